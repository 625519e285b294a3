/* Other ops for subgraphs: those of a sketch, or of a file. */
#include <string.h>

#include "api/primitive/fragment.h"
#include "api/primitive/primitives.h"
#include "api/primitive/rewrite.h"
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

static sf_status check_signature(const sf_graph *from, const sf_emitter *emitter,
                                 const sf_subgraph *part, const sf_value *inputs, const char *path,
                                 sf_diag *diag)
{
    char ours[SF_TYPE_TEXT], theirs[SF_TYPE_TEXT];
    if ((int)from->top->narguments != part->ninputs) {
        sf_fail(diag, SF_EWRONG, (sf_loc){.file = path},
                "it takes %u arguments, and the subgraph has %d inputs", from->top->narguments,
                part->ninputs);
        return hint_signature(part, diag);
    }
    for (int i = 0; i < part->ninputs; i++) {
        const sf_type *want = sf_argument_type(from, (uint32_t)i),
                      *have = sf_type_of(emitter->graph, inputs[i]);
        if (want == have)
            continue;
        sf_fail(diag, SF_EWRONG, (sf_loc){.file = path},
                "its argument %d is %s, and the input of the subgraph %s", i,
                sf_type_text(want, theirs), sf_type_text(have, ours));
        return hint_signature(part, diag);
    }
    return SF_OK;
}

typedef struct file_part {
    const fragment_file *file;
    const sf_subgraph *part;
} file_part;

static sf_status build_file(const void *context, sf_emitter *emitter, const sf_value *inputs,
                            sf_diag *diag, sf_value *outputs)
{
    const file_part *job = context;
    sf_graph *from = NULL;
    sf_status status = read_fragment(job->file, emitter->graph->pool, diag, &from);
    if (status == SF_OK)
        status = check_signature(from, emitter, job->part, inputs, job->file->path, diag);
    if (status == SF_OK && (int)from->top->nresults != job->part->noutputs)
        status = sf_fail(diag, SF_EWRONG, (sf_loc){.file = job->file->path},
                         "it makes %u results, and the subgraph %d", from->top->nresults,
                         job->part->noutputs);
    if (status == SF_OK)
        status = copy_fragment(from, emitter, inputs, outputs);
    sf_graph_free(from);
    return status;
}

static sf_status check_sketch(const sf_primitive *said, const sf_subgraph *part,
                              const sf_sketch *sketch, sf_diag *diag)
{
    if (sketch->ninputs == part->ninputs && sketch->nresults == part->noutputs)
        return SF_OK;
    sf_fail(diag, SF_EWRONG, sf_said_at(said),
            "the replacement has %d inputs and %d results, and the subgraph %d and %d",
            sketch->ninputs, sketch->nresults, part->ninputs, part->noutputs);
    return hint_signature(part, diag);
}

/* What is replaced, and by what; in the arena. */
static sf_status list_parts(const sf_primitives *list, const sf_primitive *said, sf_arena *arena,
                            sf_diag *diag, sf_part **out)
{
    int count = said->nsubgraphs;
    sf_part *parts = SF_ARRAY(arena, count, sf_part);
    file_part *files = SF_ARRAY(arena, count, file_part);
    fragment_file *file = SF_NEW(arena, fragment_file);
    file->path = said->fragment;
    if (said->fragment)
        SF_TRY(sf_file_read(said->fragment, arena, 0, &file->text, diag));
    for (int i = 0; i < count; i++) {
        const sf_subgraph *part = &list->subgraphs[said->subgraphs[i] - 1];
        files[i] = (file_part){file, part};
        if (!said->fragment)
            SF_TRY(check_sketch(said, part, said->sketches[i], diag));
        parts[i] = (sf_part){.ninputs = part->ninputs,
                             .noutputs = part->noutputs,
                             .inputs = part->inputs,
                             .outputs = part->outputs,
                             .scope = part->scope,
                             .name = said->name,
                             .phase = SF_FORWARD,
                             .loc = sf_said_at(said),
                             .build = said->fragment ? build_file : build_sketch,
                             .context = said->fragment ? (const void *)&files[i]
                                                       : (const void *)said->sketches[i]};
    }
    *out = parts;
    return SF_OK;
}

sf_status sf_replace(const sf_primitives *list, sf_entry *entry, sf_diag *diag)
{
    sf_arena scratch = {0};
    sf_part *parts;
    sf_status status = list_parts(list, &entry->said, &scratch, diag, &parts);
    if (status == SF_OK)
        status = sf_rewrite(list->graph, entry->said.nsubgraphs, parts, diag, &entry->made);
    sf_arena_free(&scratch);
    return status;
}
