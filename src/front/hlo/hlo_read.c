/* The whole text: index, computations, aliases. */
#include "front/hlo/hlo_reader.h"

/* The leaf that a path leads to; false when it leads nowhere or to a tuple. */
static bool follow_path(const sf_hlo_shape *shape, const sf_hlo_path *path, uint32_t *out)
{
    uint32_t leaf = 0;
    for (int i = 0; i < path->count; i++) {
        if (path->at[i] < 0 || path->at[i] >= shape->nparts)
            return false;
        shape = &shape->parts[path->at[i]];
        leaf += shape->first;
    }
    *out = leaf;
    return shape->type != NULL;
}

static sf_status apply_alias(sf_hlo_reader *reader, const sf_hlo_computation *entry,
                             const sf_hlo_alias *alias)
{
    uint32_t result, leaf;
    if (!follow_path(&entry->root, &alias->from, &result))
        return sf_fail(reader->diag, SF_EINPUT, alias->loc,
                       "the alias is of something that is no result of the entry computation");
    if (alias->parameter < 0 || alias->parameter >= entry->nparameters ||
        !follow_path(&entry->parameters[alias->parameter], &alias->to, &leaf))
        return sf_fail(reader->diag, SF_EINPUT, alias->loc,
                       "the alias is to something that is no parameter of the entry computation");
    sf_argument *argument =
        &entry->func->arguments[entry->parameters[alias->parameter].first + leaf];
    if (argument->next != SF_NONE)
        return sf_fail(reader->diag, SF_EINPUT, alias->loc, "parameter %lld has two aliases",
                       (long long)alias->parameter);
    argument->next = result;
    argument->next_from = SF_FROM_ALIAS;
    return SF_OK;
}

static void finish_entry(sf_hlo_reader *reader)
{
    const sf_hlo_computation *entry = NULL;
    for (size_t i = 0; i < reader->ncomputations; i++) {
        const sf_hlo_computation *computation = reader->computations[i];
        if (!computation->is_entry)
            continue;
        if (entry) {
            sf_hlo_count_error(reader, sf_fail(reader->diag, SF_EINPUT, computation->loc,
                                               "there is a second ENTRY computation"));
            return;
        }
        entry = computation;
    }
    if (!entry) {
        if (reader->errors == 0)
            sf_hlo_count_error(reader, sf_fail(reader->diag, SF_EINPUT, reader->end,
                                               "the module has no ENTRY computation"));
        return;
    }
    if (entry->state != SF_HLO_GOOD)
        return;
    reader->module->entry = entry->func;
    for (size_t i = 0; i < reader->naliases; i++)
        if (!sf_hlo_count_error(reader, apply_alias(reader, entry, &reader->aliases[i])))
            return;
}

static void keep_paths(sf_hlo_reader *reader)
{
    sf_graph *graph = reader->module->graph;
    if (reader->path_capacity == 0)
        return;
    size_t known = reader->path_capacity < graph->nnodes ? reader->path_capacity : graph->nnodes;
    reader->module->paths = SF_ARRAY(&graph->arena, graph->nnodes + 1, const char *);
    memcpy(reader->module->paths, reader->paths, known * sizeof *reader->paths);
}

sf_status sf_hlo_read(sf_str text, const char *file, sf_module *module, sf_diag *diag)
{
    SF_TRY(sf_text_check(&text, file, diag));
    sf_hlo_reader reader = {
        .module = module,
        .diag = diag,
        .budget = 65536 + 8 * text.length,
    };
    sf_hlo_index(&reader, text, file);
    for (size_t i = 0; i < reader.ncomputations; i++)
        if (reader.computations[i]->state == SF_HLO_UNREAD && reader.errors < SF_DIAG_KEPT)
            sf_hlo_read_computation(&reader, reader.computations[i], 0);
    finish_entry(&reader);
    keep_paths(&reader);
    sf_arena_free(&reader.arena);
    return reader.status;
}
