/* The rules for primitives, checked before planning: each message names the violation and its
 * place. */
#include <inttypes.h>
#include <string.h>

#include "api/primitive/primitives.h"
#include "base/nearest.h"
#include "ir/name.h"
#include "op/util.h"
#include "pass/pass.h"
#include "plan/spec.h"

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

/* "s.lua:3", or "before". */
static const char *place_of(const sf_primitive *said, char out[256])
{
    if (said->file)
        snprintf(out, 256, "at %s:%d", said->file, said->line);
    else
        snprintf(out, 256, "before");
    return out;
}

/* Where there is a mesh, it has the axis; *size is 0 where there is none yet. */
static sf_status check_axis(const sf_primitives *list, const sf_primitive *said, sf_diag *diag,
                            int *size)
{
    sf_arena arena = {0};
    sf_mesh mesh;
    sf_status status = SF_OK;
    *size = 0;
    if (sf_find_mesh_set(list, &arena, &mesh)) {
        int axis = sf_mesh_axis(&mesh, sf_str_of(said->axis));
        *size = axis >= 0 ? mesh.axes[axis].size : 0;
        if (axis < 0)
            status = sf_fail(diag, SF_EMISMATCH, sf_said_at(said), "the mesh %s has no axis \"%s\"",
                             sf_find_setting(list, "mesh")->said.value, said->axis);
    }
    sf_arena_free(&arena);
    return status;
}

int sf_shard_dim(const sf_primitives *list, const sf_primitive *said, const sf_parameter *param)
{
    const sf_type *type = sf_argument_type(list->graph, param->argument);
    return said->dim < 0 ? said->dim + type->rank : said->dim;
}

/* In how many parts earlier primitives, along other axes, have the dimension. */
static int64_t count_parts(const sf_primitives *list, const sf_parameter *param,
                           const sf_primitive *said)
{
    int64_t parts = 1;
    for (size_t i = 0; i < list->nentries; i++) {
        const sf_entry *entry = &list->entries[i];
        int size;
        if (entry->said.kind != SF_PRIMITIVE_SHARD || strcmp(entry->said.axis, said->axis) == 0)
            continue;
        for (size_t p = 0; p < entry->nparams; p++)
            if (entry->params[p] == param &&
                sf_shard_dim(list, &entry->said, param) == sf_shard_dim(list, said, param) &&
                check_axis(list, &entry->said, NULL, &size) == SF_OK && size > 0)
                parts *= size;
    }
    return parts;
}

/* A parameter is one tensor, by whatever module it is reached: along one axis it has one layout. */
static sf_status check_tied(const sf_primitives *list, const sf_parameter *param,
                            const sf_primitive *said, sf_diag *diag)
{
    char place[256];
    for (size_t i = 0; i < list->nentries; i++) {
        const sf_entry *entry = &list->entries[i];
        if (entry->said.kind != SF_PRIMITIVE_SHARD || strcmp(entry->said.axis, said->axis) != 0)
            continue;
        for (size_t p = 0; p < entry->nparams; p++)
            if (entry->params[p] == param &&
                sf_shard_dim(list, &entry->said, param) != sf_shard_dim(list, said, param)) {
                sf_fail(
                    diag, SF_EMISMATCH, sf_said_at(said),
                    "%s is sharded along dimension %d over %s %s, by %s, and cannot be along %d, "
                    "too",
                    param->path, entry->said.dim, said->axis, place_of(&entry->said, place),
                    entry->said.module, said->dim);
                return sf_hint(diag,
                               "tied parameters are one tensor: shard it the same way, or undo the "
                               "first");
            }
    }
    return SF_OK;
}

static sf_status check_even(const sf_primitives *list, const sf_parameter *param,
                            const sf_primitive *said, int size, sf_diag *diag)
{
    const sf_type *type = sf_argument_type(list->graph, param->argument);
    char text[SF_TYPE_TEXT];
    int dim = sf_shard_dim(list, said, param);
    if (dim < 0 || dim >= type->rank)
        return sf_fail(diag, SF_EMISMATCH, sf_said_at(said),
                       "%s, %s, has no dimension %d; they count from 0, or from -1, the last, down",
                       param->path, sf_type_text(type, text), said->dim);
    int64_t parts = count_parts(list, param, said) * (size > 0 ? size : 1);
    if (type->dims[dim] % parts == 0)
        return SF_OK;
    return sf_fail(diag, SF_EMISMATCH, sf_said_at(said),
                   "%s, %s: dimension %d, of %" PRId64 ", does not divide into %" PRId64
                   " equal parts over %s",
                   param->path, sf_type_text(type, text), dim, type->dims[dim], parts, said->axis);
}

static sf_status check_shard(const sf_primitives *list, const sf_entry *entry, sf_diag *diag)
{
    int size;
    SF_TRY(check_axis(list, &entry->said, diag, &size));
    for (size_t p = 0; p < entry->nparams; p++) {
        SF_TRY(check_even(list, entry->params[p], &entry->said, size, diag));
        SF_TRY(check_tied(list, entry->params[p], &entry->said, diag));
    }
    return SF_OK;
}

/* Whether the entry shards one of these. */
static bool shards_one(const sf_entry *shard, const sf_parameter *const *params, size_t count)
{
    for (size_t p = 0; p < count; p++)
        for (size_t q = 0; q < shard->nparams; q++)
            if (params[p] == shard->params[q])
                return true;
    return false;
}

/* Whether a parameter is sharded that the module, or one in it, has: named in it, or read. */
static bool has_shard(const sf_primitives *list, const sf_primitive *said, const char *module)
{
    sf_arena arena = {0};
    bool found = false;
    size_t count;
    const sf_parameter **params = sf_match_params(list, 1, &module, NULL, &arena, &count);
    for (size_t i = 0; i < list->nentries && !found; i++) {
        const sf_entry *entry = &list->entries[i];
        found = entry->said.kind == SF_PRIMITIVE_SHARD &&
                strcmp(entry->said.axis, said->axis) == 0 && shards_one(entry, params, count);
    }
    sf_arena_free(&arena);
    return found;
}

sf_status sf_fail_in_loop(const sf_primitive *said, const char *path, const sf_node *loop,
                          sf_diag *diag)
{
    sf_fail(diag, SF_EMISMATCH, sf_said_at(said),
            "%s is computed inside of a loop of the step, at line %" PRIu32
            " of its text: its iterations cannot be addressed one by one",
            path, loop->loc.line);
    return sf_hint(diag, "--unroll unrolls a loop whose trip count is known");
}

static sf_status check_computes(const sf_primitives *list, const sf_entry *entry, sf_diag *diag)
{
    for (size_t m = 0; m < entry->nmodules; m++) {
        if (sf_module_computes(list, entry->modules[m]))
            continue;
        const sf_node *loop = sf_find_loop_around(list, entry->modules[m]);
        if (loop)
            return sf_fail_in_loop(&entry->said, entry->modules[m], loop, diag);
        return sf_fail(diag, SF_EMISMATCH, sf_said_at(&entry->said),
                       "%s holds parameters, and nothing of the forward pass is computed in it",
                       entry->modules[m]);
    }
    return SF_OK;
}

static sf_status check_sync(const sf_primitives *list, const sf_entry *entry, sf_diag *diag)
{
    static const char *const modes[] = {"forward", "backward", NULL};
    static const char *const ops[] = {"all_reduce", "all_gather", "reduce_scatter", NULL};
    const sf_primitive *said = &entry->said;
    int size;
    if (!is_one_of(said->mode, modes))
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said),
                       "a sync is \"forward\" or \"backward\", not \"%s\"", said->mode);
    if (!is_one_of(said->op, ops))
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said),
                       "a sync is by all_reduce, all_gather or reduce_scatter, not \"%s\"",
                       said->op);
    SF_TRY(check_axis(list, said, diag, &size));
    SF_TRY(check_computes(list, entry, diag));
    for (size_t m = 0; m < entry->nmodules; m++)
        if (!has_shard(list, said, entry->modules[m])) {
            sf_fail(diag, SF_EMISMATCH, sf_said_at(said),
                    "%s has no parameter that is sharded over %s: there is nothing to sync",
                    entry->modules[m], said->axis);
            return sf_hint(diag, "shard one first");
        }
    return SF_OK;
}

/* The entry, if there is one of the kind. */
static const sf_entry *find_kind(const sf_primitives *list, sf_primitive_kind kind)
{
    for (size_t i = 0; i < list->nentries; i++)
        if (list->entries[i].said.kind == kind)
            return &list->entries[i];
    return NULL;
}

static sf_status fail_twice(const sf_primitive *said, const char *what, const sf_primitive *other,
                            sf_diag *diag)
{
    char place[256];
    return sf_fail(diag, SF_EMISMATCH, sf_said_at(said), "%s is said %s: undo that first", what,
                   place_of(other, place));
}

/* A field of the specification, or "devices" or "strict". A schedule names no file of a pass, which would be loaded. */
static sf_status check_value(const sf_primitive *said, sf_diag *diag)
{
    sf_plan_spec spec = {.size = sizeof spec};
    sf_arena arena = {0};
    sf_pass_list list;
    if (strcmp(said->name, "strict") == 0)
        return SF_OK;
    const char *field = strcmp(said->name, "devices") == 0 ? "ranks" : said->name;
    SF_TRY(sf_spec_set(&spec, field, said->value, sf_said_at(said), diag));
    if (!spec.passes)
        return SF_OK;
    sf_status status = sf_pass_list_read(spec.passes, &arena, diag, &list);
    sf_arena_free(&arena);
    return status;
}

static sf_status check_setting(const sf_primitives *list, const sf_entry *entry, sf_diag *diag)
{
    const sf_primitive *said = &entry->said;
    const sf_entry *before = sf_find_setting(list, said->name);
    const sf_entry *split = find_kind(list, SF_PRIMITIVE_PIPELINE_SPLIT);
    const sf_entry *recomputed = find_kind(list, SF_PRIMITIVE_CHECKPOINT);
    if (before)
        return fail_twice(said, said->name, &before->said, diag);
    if (split && strcmp(said->name, "stages") == 0)
        return fail_twice(said, "where stages begin", &split->said, diag);
    if (recomputed && strcmp(said->name, "recompute") == 0)
        return fail_twice(said, "recompute", &recomputed->said, diag);
    if (strcmp(said->name, "mesh") == 0 && find_kind(list, SF_PRIMITIVE_SHARD))
        return sf_fail(diag, SF_EMISMATCH, sf_said_at(said),
                       "the mesh is said before what is sharded over it");
    return check_value(said, diag);
}

/* A module that begins a stage, or is recomputed, has nodes; and the option for the whole step is
 * not set as well. */
static sf_status check_scope(const sf_primitives *list, const sf_entry *entry, const char *word,
                             sf_diag *diag)
{
    const sf_entry *other = sf_find_setting(list, word);
    if (other)
        return fail_twice(&entry->said, word, &other->said, diag);
    return check_computes(list, entry, diag);
}

/* A stage does not begin inside a leaf; but a leaf may begin one. */
static sf_status check_split(const sf_primitives *list, const sf_entry *entry, sf_diag *diag)
{
    char place[256], above[1024];
    for (size_t m = 0; m < entry->nmodules; m++) {
        const sf_node *loop = sf_find_loop_around(list, entry->modules[m]);
        if (loop && !sf_is_in_module(loop->scope->path, entry->modules[m]))
            return sf_fail_in_loop(&entry->said, entry->modules[m], loop, diag);
        snprintf(above, sizeof above, "%s", entry->modules[m]);
        char *slash = strrchr(above, '/');
        if (!slash)
            continue;
        *slash = '\0';
        const sf_entry *trace = sf_find_leaf_around(list, above);
        if (trace)
            return sf_fail(diag, SF_EMISMATCH, sf_said_at(&entry->said),
                           "%s is in %s, a leaf of the trace of %s %s: no stage begins inside of "
                           "what is not looked into",
                           entry->modules[m], above, trace->said.module,
                           place_of(&trace->said, place));
    }
    return check_scope(list, entry, "stages", diag);
}

/* Random numbers are drawn by an op, or made of a key and counters as JAX does, by exclusive or. */
static bool draws(const sf_primitives *list, const char *module)
{
    for (uint32_t i = 0; i < list->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(list->graph, i);
        if (node->phase == SF_FORWARD && sf_is_in_module(node->scope->path, module) &&
            (node->def->cost == SF_COST_RANDOM || sf_is(node, SF_OP_XOR)))
            return true;
    }
    return false;
}

static sf_status check_fork(const sf_primitives *list, const sf_entry *entry, sf_diag *diag)
{
    SF_TRY(check_computes(list, entry, diag));
    for (size_t m = 0; m < entry->nmodules; m++)
        if (!draws(list, entry->modules[m]))
            return sf_fail(diag, SF_EMISMATCH, sf_said_at(&entry->said),
                           "%s draws no random numbers: there is nothing to fork",
                           entry->modules[m]);
    return SF_OK;
}

/* A compiler that there is, and ops that one loop can hold. */
static sf_status check_fuse(const sf_primitives *list, const sf_entry *entry, sf_diag *diag)
{
    const sf_primitive *said = &entry->said;
    SF_TRY(sf_check_subgraphs(list, said, diag));
    if (said->nsubgraphs == 0)
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said), "fuse needs a subgraph");
    if (said->value && strcmp(said->value, "vm") != 0 && strcmp(said->value, "cc") != 0)
        return sf_fail(
            diag, SF_EUSAGE, sf_said_at(said),
            "compilers are \"vm\", the built-in one, and \"cc\", that of the system: none is "
            "called \"%s\"",
            said->value);
    for (int i = 0; i < said->nsubgraphs; i++) {
        const sf_subgraph *part = &list->subgraphs[said->subgraphs[i] - 1];
        for (int n = 0; n < part->nnodes; n++) {
            const sf_node *node = part->graph->nodes[part->nodes[n]];
            if (node->def->factors != sf_factors_pointwise && !sf_is(node, SF_OP_REDUCE) &&
                !sf_is(node, SF_OP_BROADCAST_IN_DIM) && !sf_is(node, SF_OP_CONSTANT))
                return sf_fail(diag, SF_EMISMATCH, sf_said_at(said),
                               "%s in %s does not go into a loop over elements", node->def->name,
                               node->scope->path);
        }
    }
    return SF_OK;
}

static sf_status check_replace(const sf_primitives *list, const sf_entry *entry, sf_diag *diag)
{
    char place[256];
    const sf_primitive *said = &entry->said;
    if (said->kernel)
        return sf_check_kernel(list, entry, diag);
    SF_TRY(sf_check_subgraphs(list, said, diag));
    if (said->nsubgraphs == 0)
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said), "replace needs a subgraph");
    if (entry->made) /* it exists already, and is only checked once more */
        return SF_OK;
    for (size_t i = 0; i < list->nentries; i++) { /* the plan names their ops by number */
        const sf_primitive *other = &list->entries[i].said;
        if (other->kind != SF_PRIMITIVE_CHECKPOINT || other->nsubgraphs == 0)
            continue;
        sf_fail(diag, SF_EMISMATCH, sf_said_at(said),
                "ops of the step as it is are recomputed already, %s", place_of(other, place));
        return sf_hint(diag, "replace first, then find and checkpoint");
    }
    if (said->backwards && said->backward)
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said),
                       "gradients are replaced by sketches or by a file, not by both");
    if (!said->sketches == !said->fragment)
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said),
                       "a subgraph is replaced by a sketch or by a file, one of them");
    return SF_OK;
}

static sf_status check_checkpoint(const sf_primitives *list, const sf_entry *entry, sf_diag *diag)
{
    SF_TRY(sf_check_subgraphs(list, &entry->said, diag));
    return check_scope(list, entry, "recompute", diag);
}

sf_status sf_primitive_check(const sf_primitives *list, const sf_entry *entry, sf_diag *diag)
{
    switch (entry->said.kind) {
    case SF_PRIMITIVE_SET:
        return check_setting(list, entry, diag);
    case SF_PRIMITIVE_SHARD:
        return check_shard(list, entry, diag);
    case SF_PRIMITIVE_SYNC:
        return check_sync(list, entry, diag);
    case SF_PRIMITIVE_CHECKPOINT:
        return check_checkpoint(list, entry, diag);
    case SF_PRIMITIVE_PIPELINE_SPLIT:
        return check_split(list, entry, diag);
    case SF_PRIMITIVE_DECOMPOSE:
    case SF_PRIMITIVE_TRACE:
        return check_computes(list, entry, diag);
    case SF_PRIMITIVE_FORK_RNG:
        return check_fork(list, entry, diag);
    case SF_PRIMITIVE_REPLACE:
        return check_replace(list, entry, diag);
    case SF_PRIMITIVE_FUSE:
        return check_fuse(list, entry, diag);
    case SF_PRIMITIVE_TRANS:
    case SF_PRIMITIVE_ASSIGN:
    case SF_PRIMITIVE_ORDER:
        return sf_check_space(list, entry, diag);
    case SF_PRIMITIVE_ANNOTATE:
        return SF_OK;
    }
    return SF_OK;
}
