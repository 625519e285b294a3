/* Other ops for subgraphs: those of a sketch, or of a file. */
#include <string.h>

#include "api/primitive/backward_of.h"
#include "api/primitive/fragment.h"
#include "api/primitive/primitives.h"
#include "api/primitive/rewrite_step.h"
#include "base/file.h"
#include "front/import.h"
#include "ir/clone.h"

static sf_status build_sketch(const void *context, sf_emitter *emitter, const sf_value *inputs,
                              sf_diag *diag, sf_value *outputs)
{
    return sf_fragment_build(context, emitter, inputs, diag, outputs);
}

/* A text that is read into the pool of the step that it goes into. */
typedef struct fragment_file {
    const char *path;
    sf_str text;
} fragment_file;

static sf_status read_fragment(const fragment_file *file, sf_pool *pool, sf_diag *diag,
                               sf_graph **out)
{
    sf_import_options import = {.unroll = SF_UNROLL_DEFAULT,
                                .unroll_ops = SF_UNROLL_OPS,
                                .most_nodes = SF_MOST_NODES_DEFAULT,
                                .state = "none"};
    sf_module *module = sf_module_new(pool);
    sf_status status =
        sf_stablehlo_read(file->text, sf_pool_string(pool, sf_str_of(file->path)), module, diag);
    if (status == SF_OK)
        status = sf_import(module, &import, diag, out);
    sf_module_free(module);
    return status;
}

static sf_status copy_fragment(const sf_graph *from, sf_emitter *emitter, const sf_value *inputs,
                               sf_value *outputs)
{
    sf_arena scratch = {0};
    sf_value *map = SF_ARRAY(&scratch, from->nvalues, sf_value);
    for (uint32_t i = 0; i < from->top->narguments; i++)
        map[from->top->arguments[i]] = inputs[i];
    for (uint32_t i = 0; i < from->top->nnodes; i++) {
        const sf_node *node = sf_top_node(from, i);
        sf_node_clone(from, node, emitter->graph, emitter->block, map);
        sf_node *copy = emitter->graph->nodes[emitter->graph->nnodes - 1];
        copy->scope = emitter->scope;
        copy->phase = emitter->phase;
    }
    for (uint32_t i = 0; i < from->top->nresults; i++)
        outputs[i] = map[from->top->results[i]];
    sf_arena_free(&scratch);
    return SF_OK;
}

/* "(tensor<4x8x16xf32>, layer_0/mlp/up/kernel tensor<16x64xf32>) -> tensor<4x8x16xf32>", as a hint. */
static sf_status hint_signature(const sf_subgraph *part, sf_diag *diag)
{
    const sf_graph *graph = part->graph;
    char text[SF_TYPE_TEXT];
    sf_buf out = {0};
    for (int i = 0; i < part->ninputs; i++) {
        const sf_value_info *info = &graph->values[part->inputs[i]];
        bool named = info->node == SF_NONE;
        sf_buf_printf(&out, "%s%s%s%s", i > 0 ? ", " : "(",
                      named ? graph->arguments[info->index].name : "", named ? " " : "",
                      sf_type_text(info->type, text));
    }
    for (int i = 0; i < part->noutputs; i++)
        sf_buf_printf(&out, "%s%s", i > 0 ? ", " : ") -> ",
                      sf_type_text(sf_type_of(graph, part->outputs[i]), text));
    sf_status status = sf_hint(diag, "what is replaced is %s", out.text ? out.text : "nothing");
    sf_buf_free(&out);
    return status;
}

/* A part to be built, from a file: its inputs, its number of results, and the part that it
 * replaces. */
typedef struct file_part {
    const fragment_file *file;
    const sf_subgraph *part;
    int ninputs, nresults;
    const char *what; /* "subgraph", or "backward pass" */
} file_part;

static sf_status check_signature(const sf_graph *from, const sf_emitter *emitter,
                                 const file_part *job, const sf_value *inputs, sf_diag *diag)
{
    char ours[SF_TYPE_TEXT], theirs[SF_TYPE_TEXT];
    sf_loc loc = {.file = job->file->path};
    if ((int)from->top->narguments != job->ninputs) {
        sf_fail(diag, SF_EMISMATCH, loc, "it takes %u arguments, and the %s has %d inputs",
                from->top->narguments, job->what, job->ninputs);
        return hint_signature(job->part, diag);
    }
    for (int i = 0; i < job->ninputs; i++) {
        const sf_type *want = sf_argument_type(from, (uint32_t)i),
                      *have = sf_type_of(emitter->graph, inputs[i]);
        if (want == have)
            continue;
        sf_fail(diag, SF_EMISMATCH, loc, "its argument %d is %s, and the input of the %s %s", i,
                sf_type_text(want, theirs), job->what, sf_type_text(have, ours));
        return hint_signature(job->part, diag);
    }
    if ((int)from->top->nresults == job->nresults)
        return SF_OK;
    return sf_fail(diag, SF_EMISMATCH, loc, "it makes %u results, and the %s %d",
                   from->top->nresults, job->what, job->nresults);
}

static sf_status build_file(const void *context, sf_emitter *emitter, const sf_value *inputs,
                            sf_diag *diag, sf_value *outputs)
{
    const file_part *job = context;
    sf_graph *from = NULL;
    sf_status status = read_fragment(job->file, emitter->graph->pool, diag, &from);
    if (status == SF_OK)
        status = check_signature(from, emitter, job, inputs, diag);
    if (status == SF_OK)
        status = copy_fragment(from, emitter, inputs, outputs);
    sf_graph_free(from);
    return status;
}

static sf_status check_sketch(const sf_primitive *said, const file_part *job,
                              const sf_sketch *sketch, sf_diag *diag)
{
    if (sketch->ninputs == job->ninputs && sketch->nresults == job->nresults)
        return SF_OK;
    sf_fail(diag, SF_EMISMATCH, sf_said_at(said),
            "the replacement has %d inputs and %d results, and the %s %d and %d", sketch->ninputs,
            sketch->nresults, job->what, job->ninputs, job->nresults);
    return hint_signature(job->part, diag);
}

/* The backward pass of a module: gradients of all inputs are made, and those that the step wants are kept. */
typedef struct gradients {
    file_part file;
    const sf_sketch *sketch; /* or NULL: of the file */
    sf_backward_part backward;
    sf_value *wanted;      /* existing values of the original, */
    uint32_t *readers;     /* and who reads them */
    const sf_type **types; /* of all inputs that are floats */
    sf_loc loc;
    sf_arena *arena;
} gradients;

static sf_status build_gradients(const void *context, sf_emitter *emitter, const sf_value *inputs,
                                 sf_diag *diag, sf_value *outputs)
{
    const gradients *job = context;
    char ours[SF_TYPE_TEXT], theirs[SF_TYPE_TEXT];
    const sf_value *others = inputs + job->file.ninputs;
    sf_value *made = SF_ARRAY(job->arena, job->backward.ngradients + 1, sf_value);
    SF_TRY(job->sketch ? sf_fragment_build(job->sketch, emitter, inputs, diag, made)
                       : build_file(&job->file, emitter, inputs, diag, made));
    for (int g = 0; g < job->backward.ngradients; g++) {
        const sf_type *type = sf_type_of(emitter->graph, made[g]);
        if (type != job->types[g])
            return sf_fail(diag, SF_EMISMATCH, job->loc,
                           "gradient %d of the replacement is %s, and what it is of %s", g + 1,
                           sf_type_text(type, ours), sf_type_text(job->types[g], theirs));
        const sf_gradient *gradient = &job->backward.gradients[g];
        for (int o = 0; o < gradient->nothers; o++)
            made[g] =
                sf_emit_one(emitter, SF_OP_ADD, 2, (sf_value[]){made[g], *others++}, NULL, type);
        if (gradient->value != SF_NONE)
            *outputs++ = made[g];
    }
    return SF_OK;
}

static sf_status read_file(const char *path, sf_arena *arena, sf_diag *diag,
                           const fragment_file **out)
{
    fragment_file *file = SF_NEW(arena, fragment_file);
    *out = file;
    file->path = path;
    return path ? sf_file_read(path, arena, 0, &file->text, diag) : SF_OK;
}

static sf_part begin_part(const sf_primitive *said, const sf_subgraph *of, sf_phase phase)
{
    return (sf_part){
        .scope = of->scope, .name = said->name, .phase = phase, .loc = sf_said_at(said)};
}

/* The part that makes the gradients of a module. */
static sf_status list_gradients(const sf_primitive *said, const sf_subgraph *of,
                                const fragment_file *file, const sf_sketch *sketch, sf_arena *arena,
                                sf_diag *diag, sf_part *out)
{
    gradients *job = SF_NEW(arena, gradients);
    job->sketch = sketch;
    job->arena = arena;
    job->loc = sf_said_at(said);
    SF_TRY(sf_find_backward_part(of, job->loc, arena, diag, &job->backward));
    int ninputs = of->ninputs + job->backward.ncotangents, nall = ninputs, count = 0;
    for (int g = 0; g < job->backward.ngradients; g++)
        nall += job->backward.gradients[g].nothers;
    sf_value *inputs = SF_ARRAY(arena, nall, sf_value), *others = inputs + ninputs;
    job->wanted = SF_ARRAY(arena, job->backward.ngradients + 1, sf_value);
    job->readers = SF_ARRAY(arena, job->backward.ngradients + 1, uint32_t);
    job->types = SF_ARRAY(arena, job->backward.ngradients + 1, const sf_type *);
    for (int i = 0, g = 0; i < of->ninputs; i++) {
        inputs[i] = of->inputs[i];
        const sf_type *type = sf_type_of(of->graph, of->inputs[i]);
        if (!sf_is_float(type->dtype))
            continue;
        job->types[g] = type;
        if (job->backward.gradients[g].value != SF_NONE) {
            job->readers[count] = job->backward.gradients[g].reader;
            job->wanted[count++] = job->backward.gradients[g].value;
        }
        g++;
    }
    for (int c = 0; c < job->backward.ncotangents; c++)
        inputs[of->ninputs + c] = job->backward.cotangents[c];
    for (int g = 0; g < job->backward.ngradients; g++)
        for (int o = 0; o < job->backward.gradients[g].nothers; o++)
            *others++ = job->backward.gradients[g].others[o];
    job->file = (file_part){file, of, ninputs, job->backward.ngradients, "backward pass"};
    if (sketch)
        SF_TRY(check_sketch(said, &job->file, sketch, diag));
    *out = begin_part(said, of, SF_BACKWARD);
    out->ninputs = nall;
    out->inputs = inputs;
    out->noutputs = count;
    out->outputs = job->wanted;
    out->readers = job->readers;
    out->build = build_gradients;
    out->context = job;
    return SF_OK;
}

/* The replaced parts, and their replacements; in the arena. */
static sf_status list_parts(const sf_primitives *list, const sf_primitive *said, sf_arena *arena,
                            sf_diag *diag, sf_part **out, int *nparts)
{
    int count = said->nsubgraphs;
    sf_part *parts = *out = SF_ARRAY(arena, 2 * count, sf_part);
    file_part *files = SF_ARRAY(arena, count, file_part);
    const fragment_file *forward, *backward;
    SF_TRY(read_file(said->fragment, arena, diag, &forward));
    SF_TRY(read_file(said->backward, arena, diag, &backward));
    *nparts = 0;
    for (int i = 0; i < count; i++) {
        const sf_subgraph *of = &list->subgraphs[said->subgraphs[i] - 1];
        files[i] = (file_part){forward, of, of->ninputs, of->noutputs, "subgraph"};
        if (!said->fragment)
            SF_TRY(check_sketch(said, &files[i], said->sketches[i], diag));
        sf_part *part = &parts[(*nparts)++];
        *part = begin_part(said, of, SF_FORWARD);
        part->ninputs = of->ninputs;
        part->noutputs = of->noutputs;
        part->inputs = of->inputs;
        part->outputs = of->outputs;
        part->build = said->fragment ? build_file : build_sketch;
        part->context = said->fragment ? (const void *)&files[i] : (const void *)said->sketches[i];
        if (said->backwards || said->backward)
            SF_TRY(list_gradients(said, of, backward, said->backwards ? said->backwards[i] : NULL,
                                  arena, diag, &parts[(*nparts)++]));
    }
    return SF_OK;
}

sf_status sf_replace(const sf_primitives *list, sf_entry *entry, sf_diag *diag)
{
    sf_arena scratch = {0};
    sf_part *parts;
    int nparts;
    sf_status status = list_parts(list, &entry->said, &scratch, diag, &parts, &nparts);
    if (status == SF_OK)
        status = sf_rewrite(list->graph, nparts, parts, diag, &entry->made);
    sf_arena_free(&scratch);
    return status;
}
