/* Kernels by name, in place of equal ops in a module. Engines find them by themselves; this checks
 * that they do. */
#include <string.h>

#include "api/primitive/primitives.h"
#include "ir/clone.h"
#include "op/attention.h"
#include "op/carry.h"
#include "op/slots.h"
#include "op/util.h"
#include "prog/attention/find_attention.h"
#include "prog/program.h"
#include "run/runner.h"

/* "": the step. */
static bool is_in(const sf_node *node, const char *module)
{
    return !*module || sf_is_in_module(node->scope->path, module);
}

static const char *name_of(const char *module)
{
    return *module ? module : "the step";
}

static const char may_ask[] =
    "sch:kernels(\"all\"), before this, has kernels stand for what they can";

/* The step, with the schedule's choice of kernels; for sf_graph_free. */
static sf_graph *graph_with_kernels(const sf_primitives *list)
{
    const sf_entry *set = sf_find_setting(list, "kernels");
    sf_graph *graph = sf_graph_clone(list->graph);
    if (set)
        sf_kernel_choice_read(sf_str_of(set->said.value), &graph->kernels);
    return graph;
}

static bool has_attention(const sf_regraph *found, const char *module)
{
    for (uint32_t i = 0; found->graph && i < found->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(found->graph, i);
        if (node->def->id == SF_ATTENTION && is_in(node, module))
            return true;
    }
    return false;
}

/* Loops ------------------------------------------------------------------------------------------- */

/* The function of a loop. */
enum {
    DOES_BIAS = 1,       /* adds a parameter to each row */
    DOES_RESIDUAL = 2,   /* adds two tensors */
    DOES_ACTIVATION = 4, /* tanh, erf or the logistic function */
    DOES_EXP = 8,
    DOES_FOLD = 16, /* adds up, or takes the largest of, rows or columns */
    DOES_ROOT = 32, /* of a variance */
    DOES_PRODUCT = 64,
};

/* Kernels that are loops: the forward function of one loop, of which the module itself computes
 * `own`; and the backward function of one loop of the module. */
static const struct loop_kernel {
    const char *name;
    int forward, own, backward;
} loop_kernels[] = {
    {"bias_gelu", DOES_BIAS | DOES_ACTIVATION, DOES_ACTIVATION, DOES_FOLD | DOES_PRODUCT},
    {"softmax", DOES_EXP | DOES_FOLD, DOES_EXP, DOES_FOLD | DOES_PRODUCT},
    {"layer_norm", DOES_FOLD | DOES_ROOT, DOES_ROOT, DOES_FOLD | DOES_PRODUCT},
    {"bias_dropout_residual_layer_norm", DOES_BIAS | DOES_RESIDUAL | DOES_FOLD | DOES_ROOT,
     DOES_ROOT, DOES_FOLD | DOES_PRODUCT},
};

static bool is_stretched(const sf_graph *graph, sf_value value, bool param)
{
    const sf_node *node = sf_maker(graph, value);
    if (!node || !sf_is(node, SF_OP_BROADCAST_IN_DIM))
        return false;
    value = node->operands[0];
    while ((node = sf_maker(graph, value)) && sf_carries(node, SF_CARRIES_TYPE | SF_CARRIES_SHAPE))
        value = node->operands[0];
    return !param || (!node && graph->arguments[graph->values[value].index].role == SF_ROLE_PARAM);
}

static int what_node_does(const sf_graph *graph, const sf_node *node)
{
    if (sf_is(node, SF_OP_ADD)) {
        const sf_value *of = node->operands;
        if (is_stretched(graph, of[0], true) || is_stretched(graph, of[1], true))
            return DOES_BIAS;
        bool plain = !is_stretched(graph, of[0], false) && !is_stretched(graph, of[1], false);
        return plain ? DOES_RESIDUAL : 0;
    }
    if (sf_is(node, SF_OP_TANH) || sf_is(node, SF_OP_ERF) || sf_is(node, SF_OP_LOGISTIC))
        return DOES_ACTIVATION;
    if (sf_is(node, SF_OP_RSQRT) || sf_is(node, SF_OP_SQRT))
        return DOES_ROOT;
    return sf_is(node, SF_OP_EXPONENTIAL) ? DOES_EXP
           : sf_is(node, SF_OP_REDUCE)    ? DOES_FOLD
           : sf_is(node, SF_OP_MULTIPLY)  ? DOES_PRODUCT
                                          : 0;
}

/* Whether a loop computes the function, and the module, in this phase, its own part of that; 0:
 * any. */
static bool has_loop(const sf_graph *graph, const sf_trace *trace, size_t ninsts,
                     const char *module, sf_phase phase, int wanted, int own)
{
    sf_arena scratch = {0};
    int *does = SF_ARRAY(&scratch, ninsts + 1, int);
    bool *ours = SF_ARRAY(&scratch, ninsts + 1, bool), found = false;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        uint32_t inst = trace->insts[node->id];
        if (inst == SF_NONE)
            continue;
        int what = what_node_does(graph, node);
        does[inst] |= what;
        ours[inst] =
            ours[inst] || (node->phase == phase && (what & own) == own && is_in(node, module));
    }
    for (size_t i = 0; i < ninsts && !found; i++)
        found = ours[i] && (does[i] & wanted) == wanted;
    sf_arena_free(&scratch);
    return found;
}

/* Cross entropy ----------------------------------------------------------------------------------- */

/* The logits that are looked up by labels in the module: a gather of the forward pass takes one of
 * each row of them. */
static bool is_lookup(const sf_graph *graph, const sf_node *node, const char *module)
{
    return node->phase == SF_FORWARD && sf_is(node, SF_OP_GATHER) && is_in(node, module) &&
           sf_type_of(graph, node->operands[0])->count > sf_type_of(graph, node->result)->count &&
           sf_is_float(sf_type_of(graph, node->operands[0])->dtype) &&
           sf_maker(graph, node->operands[0]);
}

static bool reads_buffer(const sf_inst *inst, uint32_t buffer)
{
    for (uint32_t i = 0; i < inst->nin; i++)
        if (inst->in[i].buffer == buffer)
            return true;
    return false;
}

static bool writes_buffer(const sf_inst *inst, uint32_t buffer)
{
    for (uint32_t i = 0; i < inst->nout; i++)
        if (inst->out[i].buffer == buffer)
            return true;
    return false;
}

/* The gradient at labels, which is a loop where nothing is scattered, with all else that the gradient of logits is; in their place. */
static bool has_entropy_back(const sf_graph *graph, const sf_trace *trace,
                             const sf_program *program, const char *module, uint32_t logits)
{
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        uint32_t inst = trace->insts[node->id];
        if (node->phase == SF_BACKWARD && sf_is(node, SF_OP_SCATTER) && is_in(node, module) &&
            inst != SF_NONE && program->insts[inst].kind == SF_INST_LOOP &&
            reads_buffer(&program->insts[inst], logits) &&
            writes_buffer(&program->insts[inst], logits))
            return true;
    }
    return false;
}

/* Exponentials and their sums are of one loop, which reads the logits and does not write them anywhere. */
static bool has_entropy(const sf_graph *graph, const sf_trace *trace, const sf_program *program,
                        const char *module, bool *forward)
{
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (!is_lookup(graph, node, module))
            continue;
        const sf_node *maker = sf_maker(graph, node->operands[0]);
        bool converts = sf_is(maker, SF_OP_CONVERT);
        uint32_t logits = trace->buffers[converts ? maker->operands[0] : maker->result];
        for (uint32_t e = 0; e < graph->top->nnodes && logits != SF_NONE; e++) {
            const sf_node *exponential = sf_top_node(graph, e);
            uint32_t inst = trace->insts[exponential->id];
            if (exponential->phase != SF_FORWARD || !sf_is(exponential, SF_OP_EXPONENTIAL) ||
                inst == SF_NONE || program->insts[inst].kind != SF_INST_LOOP ||
                !reads_buffer(&program->insts[inst], logits))
                continue;
            *forward = true;
            if (has_entropy_back(graph, trace, program, module, logits))
                return true;
        }
    }
    return false;
}

/* `kernel`: NULL: cross entropy. */
static bool has_kernel(const sf_graph *graph, const sf_trace *trace, const sf_program *program,
                       const char *module, const struct loop_kernel *kernel, bool *forward)
{
    *forward = false;
    if (!kernel)
        return has_entropy(graph, trace, program, module, forward);
    *forward =
        has_loop(graph, trace, program->ninsts, module, SF_FORWARD, kernel->forward, kernel->own);
    return *forward &&
           has_loop(graph, trace, program->ninsts, module, SF_BACKWARD, kernel->backward, 0);
}

static sf_status check_loops(const sf_primitives *list, const sf_entry *entry,
                             const struct loop_kernel *kernel, sf_diag *diag)
{
    sf_arena arena = {0};
    sf_trace trace;
    sf_lower_options options = {
        .target = sf_engine_target("cpu"), .trace_arena = &arena, .unplaced = true};
    sf_graph *graph = graph_with_kernels(list);
    sf_program *program = sf_lower(graph, &options, &trace);
    sf_status status = SF_OK;
    for (size_t m = 0; m < entry->nmodules && status == SF_OK; m++) {
        bool forward;
        if (has_kernel(graph, &trace, program, entry->modules[m], kernel, &forward))
            continue;
        status = sf_fail(diag, SF_EMISMATCH, sf_said_at(&entry->said),
                         "%s has no %s that is one loop in the %s pass", name_of(entry->modules[m]),
                         entry->said.kernel, forward ? "backward" : "forward");
        if (forward && graph->kernels == SF_KERNELS_BEST)
            sf_hint(diag, "%s", may_ask);
    }
    sf_program_free(program);
    sf_graph_free(graph);
    sf_arena_free(&arena);
    return status;
}

static const struct loop_kernel *find_loop_kernel(const char *name)
{
    for (size_t i = 0; i < sizeof loop_kernels / sizeof *loop_kernels; i++)
        if (strcmp(loop_kernels[i].name, name) == 0)
            return &loop_kernels[i];
    return NULL;
}

/* Attention --------------------------------------------------------------------------------------- */

static sf_status fail_missing(const sf_primitive *said, const char *module,
                              sf_kernel_choice kernels, sf_diag *diag)
{
    if (kernels == SF_KERNELS_NONE)
        return sf_fail(diag, SF_EMISMATCH, sf_said_at(said),
                       "no kernels are wanted, as the schedule says: kernels(\"none\")");
    sf_fail(diag, SF_EMISMATCH, sf_said_at(said), "%s has no %s that a kernel stands for",
            name_of(module), said->kernel);
    return kernels == SF_KERNELS_ALL ? SF_EMISMATCH : sf_hint(diag, "%s", may_ask);
}

sf_status sf_check_kernel(const sf_primitives *list, const sf_entry *entry, sf_diag *diag)
{
    const sf_primitive *said = &entry->said;
    const struct loop_kernel *loop = find_loop_kernel(said->kernel);
    bool entropy = strcmp(said->kernel, "cross_entropy") == 0;
    if (!loop && !entropy && strcmp(said->kernel, "attention") != 0)
        return sf_fail(
            diag, SF_EUSAGE, sf_said_at(said),
            "there is no kernel \"%s\": there are attention, bias_gelu, softmax, layer_norm, "
            "bias_dropout_residual_layer_norm and cross_entropy",
            said->kernel);
    if (said->nsubgraphs > 0 || said->sketches || said->fragment || said->backwards ||
        said->backward)
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said),
                       "a kernel stands for all that it is in a module, not for subgraphs");
    if (loop || entropy)
        return check_loops(list, entry, loop, diag);
    sf_graph *graph = graph_with_kernels(list);
    sf_regraph found = sf_find_attention(graph, sf_engine_target(NULL), false, false);
    sf_status status = SF_OK;
    for (size_t m = 0; m < entry->nmodules && status == SF_OK; m++)
        if (!has_attention(&found, entry->modules[m]))
            status = fail_missing(said, entry->modules[m], graph->kernels, diag);
    sf_regraph_free(&found);
    sf_graph_free(graph);
    return status;
}
