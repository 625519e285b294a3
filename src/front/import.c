#include "front/import.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "front/close_regions.h"
#include "front/dense_groups.h"
#include "front/duplicate_cheap.h"
#include "front/name_scope.h"
#include "front/normal.h"
#include "front/param_scopes.h"
#include "front/phase.h"
#include "front/remat.h"
#include "front/roles_and_state.h"
#include "front/trip_count.h"
#include "ir/canon.h"
#include "ir/clone.h"
#include "op/node_builder.h"
#include "op/slots.h"

/* Calls and kept loops may nest this deep in all; unrolled loops around one op, this deep. */
enum { DEEPEST = 256, MOST_LOOPS = 8, RECENT = 4096 };

/* Ops that may be gone through for each node that is allowed. */
enum { WORK_OF_NODE = 4 };

/* The nodes that an unrolled loop became. */
typedef struct unrolled_loop {
    size_t first, end;
} unrolled_loop;

struct importer {
    const sf_module *module;
    const sf_import_options *options;
    sf_diag *diag;
    sf_graph *graph;
    sf_value *map; /* by value id of the module: its current value */
    sf_emitter emitter;
    sf_arena scratch;
    sf_trips *trips;
    int64_t worked; /* ops that were processed, including calls and iterations of loops */
    int depth;
    int ncalls;
    const sf_scope *call_site; /* of the innermost call, valid when ncalls > 0 */
    int nloops;
    int64_t iterations[MOST_LOOPS];
    sf_arena kept; /* of the following */
    unrolled_loop *unrolled;
    size_t nunrolled, unrolled_capacity;
    struct {
        const char *path; /* of the module, so equal paths are mostly the same pointer */
        const sf_scope *scope;
    } recent[RECENT]; /* scopes outside of loops, by the address of their path */
};

static sf_status import_block(struct importer *im, const sf_block *block);

static sf_status too_deep(struct importer *im, sf_loc loc)
{
    return sf_fail(im->diag, SF_EUNSUPPORTED, loc, "calls and loops nest more than %d deep",
                   DEEPEST);
}

/* Many ops share a path, and reading one is slow. */
static const sf_scope *scope_of_path(struct importer *im, const char *path)
{
    if (!path || im->nloops > 0)
        return sf_scope_of_path(im->graph->pool, path, im->nloops, im->iterations);
    size_t slot = ((uintptr_t)path >> 4) % RECENT;
    if (im->recent[slot].path != path) {
        im->recent[slot].path = path;
        im->recent[slot].scope = sf_scope_of_path(im->graph->pool, path, 0, NULL);
    }
    return im->recent[slot].scope;
}

/* Inside an inlined function an op belongs to the call site, unless its own path says more. */
static const sf_scope *scope_of_node(struct importer *im, const sf_node *node)
{
    const char *path = im->module->paths ? im->module->paths[node->id] : NULL;
    const sf_scope *scope = scope_of_path(im, path), *above = scope;
    while (im->ncalls > 0 && above && above != im->call_site)
        above = above->parent;
    return above ? scope : im->call_site;
}

static sf_status import_region(struct importer *im, const sf_block *block, sf_block **out)
{
    sf_block *outer = im->emitter.block;
    if (++im->depth > DEEPEST)
        return too_deep(im, im->emitter.loc);
    *out = im->emitter.block = sf_block_new(im->graph);
    for (uint32_t i = 0; i < block->narguments; i++)
        im->map[block->arguments[i]] =
            sf_block_argument(im->graph, *out, sf_type_of(im->module->graph, block->arguments[i]));
    SF_TRY(import_block(im, block));
    sf_value *results = SF_ARRAY(&im->scratch, block->nresults, sf_value);
    for (uint32_t i = 0; i < block->nresults; i++)
        results[i] = im->map[block->results[i]];
    sf_block_return(im->graph, *out, block->nresults, results);
    im->emitter.block = outer;
    im->depth--;
    return SF_OK;
}

/* Import of a block in place of the node that runs it: a call, an iteration, a chosen branch. */
static sf_status import_inline(struct importer *im, const sf_block *block,
                               const sf_value *arguments)
{
    if (++im->depth > DEEPEST)
        return too_deep(im, im->emitter.loc);
    for (uint32_t i = 0; i < block->narguments; i++)
        im->map[block->arguments[i]] = arguments[i];
    SF_TRY(import_block(im, block));
    im->depth--;
    return SF_OK;
}

static sf_value *operands_of(struct importer *im, const sf_node *node)
{
    sf_value *operands = SF_ARRAY(&im->scratch, node->noperands, sf_value);
    for (uint32_t i = 0; i < node->noperands; i++)
        operands[i] = im->map[node->operands[i]];
    return operands;
}

static void set_call_results(struct importer *im, const sf_node *node, const sf_block *block)
{
    for (uint32_t i = 0; i < node->nresults; i++)
        im->map[node->result + i] = im->map[block->results[i]];
}

static sf_status import_call(struct importer *im, const sf_node *node, const sf_scope *scope)
{
    const char *name = node->attrs[SF_CALL_CALLEE]->text;
    const sf_func *func = sf_module_find(im->module, name);
    if (!func)
        return sf_fail(im->diag, SF_EINPUT, node->loc, "there is no function @%s", name);
    const sf_block *block = func->block;
    bool fits = block->narguments == node->noperands && block->nresults == node->nresults;
    for (uint32_t i = 0; fits && i < node->noperands; i++)
        fits = sf_type_of(im->module->graph, block->arguments[i]) ==
               sf_type_of(im->module->graph, node->operands[i]);
    for (uint32_t i = 0; fits && i < node->nresults; i++)
        fits = sf_type_of(im->module->graph, block->results[i]) ==
               sf_type_of(im->module->graph, node->result + i);
    if (!fits)
        return sf_fail(im->diag, SF_EINPUT, node->loc,
                       "the call does not fit @%s, which takes %u arguments and gives %u results",
                       name, block->narguments, block->nresults);
    const sf_scope *outer = im->call_site;
    im->call_site = scope;
    im->ncalls++;
    SF_TRY(import_inline(im, block, operands_of(im, node)));
    im->ncalls--;
    im->call_site = outer;
    set_call_results(im, node, block);
    return SF_OK;
}

/* Scopes of the nodes that an iteration added were numbered by the iteration. Where its slices show
 * that it works on another layer (a backward scan runs from the last to the first), renumber them. */
static void renumber_nodes(struct importer *im, size_t first_node, const sf_node *loop,
                           int64_t from, int64_t to)
{
    char old_suffix[32], new_suffix[32];
    snprintf(old_suffix, sizeof old_suffix, "_%" PRId64, from);
    snprintf(new_suffix, sizeof new_suffix, "_%" PRId64, to);
    const sf_scope *own = scope_of_node(im, loop);
    for (size_t i = first_node; i < im->graph->nnodes; i++) {
        sf_node *node = im->graph->nodes[i];
        const sf_scope *chain[64];
        uint32_t depth = 0, keep = 0;
        for (const sf_scope *at = node->scope; at->parent && depth < 64; at = at->parent)
            chain[depth++] = at;
        /* The numbered part is the first below the loop's own scope that ends in the suffix. */
        for (keep = depth; keep-- > 0;) {
            size_t length = strlen(chain[keep]->name), tail = strlen(old_suffix);
            if (chain[keep]->depth > own->depth && length > tail &&
                strcmp(chain[keep]->name + length - tail, old_suffix) == 0)
                break;
        }
        if (keep >= depth)
            continue;
        sf_buf name = {0};
        sf_buf_add(&name, chain[keep]->name, strlen(chain[keep]->name) - strlen(old_suffix));
        sf_buf_puts(&name, new_suffix);
        const sf_scope *scope =
            sf_scope_child(im->graph->pool, chain[keep]->parent, (sf_str){name.text, name.length});
        sf_buf_free(&name);
        while (keep-- > 0)
            scope = sf_scope_child(im->graph->pool, scope, sf_str_of(chain[keep]->name));
        node->scope = scope;
    }
}

static sf_status unroll_loop(struct importer *im, const sf_node *node, int64_t trips)
{
    const sf_block *body = node->regions[1];
    sf_value *carried = operands_of(im, node);
    sf_emitter *emitter = &im->emitter;
    int64_t outer_length = emitter->slice_length;
    int loop = im->nloops < MOST_LOOPS ? im->nloops++ : -1;
    unrolled_loop unrolled = {.first = im->graph->nnodes};
    for (int64_t i = 0; i < trips; i++) {
        size_t first = im->graph->nnodes;
        if (loop >= 0)
            im->iterations[loop] = i;
        emitter->slice_length = trips;
        emitter->sliced_at = -1;
        emitter->slices_disagree = false;
        SF_TRY(import_inline(im, body, carried));
        for (uint32_t j = 0; j < node->noperands; j++)
            carried[j] = im->map[body->results[j]];
        int64_t layer = emitter->sliced_at;
        if (loop >= 0 && layer >= 0 && layer != i && !emitter->slices_disagree)
            renumber_nodes(im, first, node, i, layer);
    }
    if (loop >= 0)
        im->nloops--;
    unrolled.end = im->graph->nnodes;
    SF_PUSH(&im->kept, im->unrolled, im->nunrolled, im->unrolled_capacity, unrolled);
    emitter->slice_length = outer_length;
    emitter->sliced_at = -1;
    for (uint32_t j = 0; j < node->nresults; j++)
        im->map[node->result + j] = carried[j];
    return SF_OK;
}

/* The constants that a loop starts from, as far as they are known. */
static int64_t known_trips(struct importer *im, const sf_node *node)
{
    const sf_attr **start = SF_ARRAY(&im->scratch, node->noperands, const sf_attr *);
    for (uint32_t i = 0; i < node->noperands; i++) {
        if (sf_constant_of(im->graph, im->map[node->operands[i]]))
            start[i] = sf_maker(im->graph, im->map[node->operands[i]])->attrs[SF_CONSTANT_VALUE];
    }
    return sf_trip_count(im->trips, node, start, im->options->unroll);
}

/* Ops of the block with those of its regions and calls, up to `most`. */
static int64_t count_ops(const struct importer *im, const sf_block *block, int64_t most, int depth)
{
    int64_t count = 0;
    for (uint32_t i = 0; i < block->nnodes && count < most && depth < DEEPEST; i++) {
        const sf_node *node = im->module->graph->nodes[block->nodes[i]];
        const sf_func *func = sf_is(node, SF_OP_CALL)
                                  ? sf_module_find(im->module, node->attrs[SF_CALL_CALLEE]->text)
                                  : NULL;
        count++;
        if (func)
            count += count_ops(im, func->block, most - count, depth + 1);
        for (uint32_t r = 0; r < node->nregions; r++)
            count += count_ops(im, node->regions[r], most - count, depth + 1);
    }
    return count;
}

/* Short loops are, and longer ones as long as that does not make too much of them. */
static bool is_unrolled(const struct importer *im, const sf_node *node, int64_t trips)
{
    enum { LONGER = 8 };
    if (trips < 0 || trips > LONGER * im->options->unroll)
        return false;
    int64_t most = trips > 0 ? im->options->unroll_ops / trips : 0;
    return trips <= im->options->unroll || count_ops(im, node->regions[1], most + 1, 0) <= most;
}

/* A region of two scalars that compares them: the direction, or NULL. */
static const sf_attr *select_comparison(const sf_graph *graph, const sf_block *block)
{
    if (block->narguments != 2 || block->nresults != 1)
        return NULL;
    const sf_node *node = sf_maker(graph, block->results[0]);
    bool is_plain = node && sf_is(node, SF_OP_COMPARE) &&
                    node->operands[0] == block->arguments[0] &&
                    node->operands[1] == block->arguments[1];
    return is_plain ? node->attrs[SF_COMPARE_DIRECTION] : NULL;
}

/* Replaces the body of a reduction by its monoid. False when a region has to stay. */
static bool recognise_body(struct importer *im, const sf_node *node, const sf_attr **attrs)
{
    int body = sf_attr_slot(node->def, sf_str_of("body"));
    int select = sf_attr_slot(node->def, sf_str_of("select"));
    if (body < 0 || node->nregions == 0)
        return false;
    const sf_graph *from = im->module->graph;
    sf_monoid monoid = sf_monoid_of_block(from, node->regions[node->nregions - 1]);
    const sf_attr *direction = select >= 0 ? select_comparison(from, node->regions[0]) : NULL;
    bool is_known = monoid != SF_MONOID_NONE && (select < 0 || direction);
    if (monoid == SF_MONOID_SECOND && !sf_is(node, SF_OP_SCATTER))
        is_known = false;
    if (!is_known)
        return false;
    attrs[body] = sf_attr_int(im->graph->pool, monoid);
    if (select >= 0)
        attrs[select] = direction;
    return true;
}

/* `attrs` is a copy of the node's, and becomes the new node's. */
static sf_status import_with(struct importer *im, const sf_node *node, const sf_scope *scope,
                             const sf_attr **attrs)
{
    const sf_type **types = SF_ARRAY(&im->scratch, node->nresults, const sf_type *);
    sf_block **regions = SF_ARRAY(&im->scratch, node->nregions, sf_block *);
    for (uint32_t i = 0; i < node->nresults; i++)
        types[i] = sf_type_of(im->module->graph, node->result + i);
    uint32_t nregions = recognise_body(im, node, attrs) ? 0 : node->nregions;
    for (uint32_t i = 0; i < nregions; i++)
        SF_TRY(import_region(im, node->regions[i], &regions[i]));
    im->emitter.scope = scope;
    im->emitter.loc = node->loc;
    sf_node_spec spec = {
        .def = node->def,
        .noperands = node->noperands,
        .operands = operands_of(im, node),
        .nresults = node->nresults,
        .types = types,
        .attrs = attrs,
        .nregions = nregions,
        .regions = regions,
    };
    sf_emit(&im->emitter, &spec, &im->map[node->result]);
    return SF_OK;
}

static const sf_attr **copy_attrs(struct importer *im, const sf_node *node)
{
    const sf_attr **attrs = SF_ARRAY(&im->scratch, node->def->nattrs, const sf_attr *);
    if (node->def->nattrs)
        memcpy(attrs, node->attrs, (size_t)node->def->nattrs * sizeof *attrs);
    return attrs;
}

static sf_status import_plain(struct importer *im, const sf_node *node, const sf_scope *scope)
{
    return import_with(im, node, scope, copy_attrs(im, node));
}

/* A loop that stays, with a note of how often it runs where that is known or said. */
static sf_status import_loop(struct importer *im, const sf_node *node, const sf_scope *scope,
                             int64_t trips)
{
    const sf_attr **attrs = copy_attrs(im, node);
    bool is_said = trips < 0 && im->options->assume_trip_count > 0;
    attrs[SF_WHILE_TRIPS] = trips >= 0 ? sf_attr_int(im->graph->pool, trips) : NULL;
    attrs[SF_WHILE_SAID] =
        is_said ? sf_attr_int(im->graph->pool, im->options->assume_trip_count) : NULL;
    return import_with(im, node, scope, attrs);
}

static sf_status import_case(struct importer *im, const sf_node *node, const sf_scope *scope)
{
    const sf_dense *index = sf_constant_of(im->graph, im->map[node->operands[0]]);
    if (!index)
        return import_plain(im, node, scope);
    int64_t choice = sf_load_i64(index->type->dtype, index->data, 0);
    if (choice < 0 || choice >= node->nregions)
        choice = (int64_t)node->nregions - 1;
    SF_TRY(import_inline(im, node->regions[choice], NULL));
    set_call_results(im, node, node->regions[choice]);
    return SF_OK;
}

static sf_status import_node(struct importer *im, const sf_node *node)
{
    const sf_scope *scope = scope_of_node(im, node);
    if ((int64_t)im->graph->nnodes > im->options->most_nodes) {
        sf_fail(im->diag, SF_EUNSUPPORTED, node->loc,
                "inlining and unrolling give more than %" PRId64 " nodes", im->options->most_nodes);
        return sf_hint(im->diag, "unroll less, or allow more nodes");
    }
    /* Constants are folded and calls may hold nothing: not all that is gone through becomes a node. */
    if (++im->worked / WORK_OF_NODE > im->options->most_nodes) {
        sf_fail(im->diag, SF_EUNSUPPORTED, node->loc,
                "inlining and unrolling go through more than %" PRId64 " ops",
                WORK_OF_NODE * im->options->most_nodes);
        return sf_hint(im->diag, "unroll less, or allow more nodes");
    }
    switch (node->def->id) {
    case SF_OP_CALL:
        return import_call(im, node, scope);
    case SF_OP_CASE:
        return import_case(im, node, scope);
    case SF_OP_WHILE: {
        int64_t trips = known_trips(im, node);
        return is_unrolled(im, node, trips) ? unroll_loop(im, node, trips)
                                            : import_loop(im, node, scope, trips);
    }
    default:
        return import_plain(im, node, scope);
    }
}

static sf_status import_block(struct importer *im, const sf_block *block)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = im->module->graph->nodes[block->nodes[i]];
        sf_mark mark = sf_arena_mark(&im->scratch);
        sf_emitter outer = im->emitter;
        SF_TRY(import_node(im, node));
        im->emitter.scope = outer.scope;
        im->emitter.loc = outer.loc;
        sf_arena_reset(&im->scratch, mark);
    }
    return SF_OK;
}

/* Names, sharding and aliases of the entry, as the text has them. */
static void import_signature(struct importer *im)
{
    const sf_func *entry = im->module->entry;
    sf_graph *graph = im->graph;
    const sf_block *block = entry->block;
    graph->arguments = SF_ARRAY(&graph->arena, block->narguments, sf_argument);
    graph->results = SF_ARRAY(&graph->arena, block->nresults, sf_result);
    for (uint32_t i = 0; i < block->narguments; i++) {
        sf_argument *argument = &graph->arguments[i];
        *argument = entry->arguments[i];
        if (!argument->name) {
            char name[16];
            int length = snprintf(name, sizeof name, "arg%u", i);
            argument->name = sf_pool_string(graph->pool, (sf_str){name, (size_t)length});
        }
        argument->role = SF_ROLE_OTHER;
        argument->role_from = SF_FROM_NOTHING;
        argument->gradient = SF_NONE;
    }
    for (uint32_t i = 0; i < block->nresults; i++) {
        graph->results[i] = entry->results[i];
        if (!graph->results[i].name)
            graph->results[i].name = "";
    }
}

/* By node: the innermost loop of the text that contains it, counted from 1; 0: none. */
static uint32_t *find_places(struct importer *im)
{
    uint32_t *places = SF_ARRAY(&im->kept, im->graph->nnodes, uint32_t);
    for (size_t i = im->nunrolled; i-- > 0;) /* those within come first */
        for (size_t n = im->unrolled[i].first; n < im->unrolled[i].end; n++)
            places[n] = (uint32_t)i + 1;
    return places;
}

static sf_status import_entry(struct importer *im)
{
    const sf_block *block = im->module->entry->block;
    for (uint32_t i = 0; i < block->narguments; i++)
        im->map[block->arguments[i]] = sf_block_argument(
            im->graph, im->graph->top, sf_type_of(im->module->graph, block->arguments[i]));
    SF_TRY(import_block(im, block));
    sf_value *results = SF_ARRAY(&im->scratch, block->nresults, sf_value);
    for (uint32_t i = 0; i < block->nresults; i++)
        results[i] = im->map[block->results[i]];
    sf_block_return(im->graph, im->graph->top, block->nresults, results);
    import_signature(im);
    sf_graph_merge(im->graph, find_places(im), NULL);
    sf_graph_prune(im->graph); /* later stages see no unused nodes */
    SF_TRY(sf_state_infer(im->graph, im->options, im->diag));
    sf_value *roots;
    size_t nroots = sf_find_phases(im->graph, &im->scratch, &roots);
    if (sf_fold_again(&im->graph, im->nunrolled > 0))
        nroots = sf_find_phases(im->graph, &im->scratch, &roots);
    sf_graph_unshare(im->graph);
    sf_settle_again(im->graph);
    sf_graph_arrange(im->graph, nroots, roots);
    sf_graph_close(im->graph);
    sf_graph_prune(im->graph);
    sf_find_param_scopes(im->graph);
    sf_warn_dense_groups(im->graph, im->diag);
    sf_graph *arranged = sf_graph_clone(im->graph);
    sf_graph_free(im->graph);
    im->graph = arranged;
    return SF_OK;
}

sf_status sf_import(const sf_module *module, const sf_import_options *options, sf_diag *diag,
                    sf_graph **out)
{
    struct importer im = {.module = module, .options = options, .diag = diag};
    im.graph = sf_graph_new(module->graph->pool);
    im.graph->name = module->graph->name;
    im.map = sf_alloc(module->graph->nvalues * sizeof *im.map);
    im.trips = sf_trips_new(module, options->most_nodes);
    im.emitter = (sf_emitter){.graph = im.graph, .block = im.graph->top, .slice_length = -1};
    for (size_t i = 0; module->paths && i < module->graph->nnodes; i++)
        im.graph->has_scopes = im.graph->has_scopes || module->paths[i];
    sf_status status = import_entry(&im);
    sf_trips_free(im.trips);
    sf_free(im.map);
    sf_arena_free(&im.scratch);
    sf_arena_free(&im.kept);
    if (status != SF_OK) {
        sf_graph_free(im.graph);
        im.graph = NULL;
    }
    *out = im.graph;
    return status;
}
