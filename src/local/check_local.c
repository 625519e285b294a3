#include "local/check_local.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/intern.h"
#include "ir/name.h"
#include "local/element_origin.h"
#include "local/time/schedule_step.h"
#include "op/node_builder.h"
#include "op/op.h"
#include "op/slots.h"
#include "shard/shard_region_set.h"

typedef struct checker {
    const sf_local *local;
    const sf_graph *graph; /* local */
    const sf_mesh *mesh;
    sf_diag *diag;
    /* Apart, or the large arrays would fill a block and every reset free and allocate the next. */
    sf_arena arena, scratch; /* for the check, for one value */
    uint32_t *seen;          /* by local value: the search that came here */
    uint32_t search;
    uint32_t *place; /* by local node: its place in the top block, or SF_NONE */

    /* Where the current value comes from: claimed values, and the collective between, if any. */
    sf_value *sources;
    size_t nsources, capacity;
    const sf_node *collective;
    uint32_t part; /* which of its results */
    int ncollectives;
    sf_value early;       /* the value that is used before it is made, or SF_NONE */
    sf_interner reshards; /* of resharded_alike: those that are correct */
    uint32_t checked,
        checked_for; /* the last op of several results that was, of the rank and of the step */
} checker;

/* A collective that reshards a tensor: those between groups are ops of the step. */
static bool is_in_reshard(const sf_node *node)
{
    return sf_is_collective(node) && !sf_is_between_groups(node);
}

/* The value of the step of which a local one is a shard, or, inside a reshard, from which it is
 * made; SF_NONE if that is unknown. */
static sf_value whole_behind(const sf_local *local, sf_value value)
{
    while (local->pieces[value].whole == SF_NONE) {
        const sf_node *node = sf_maker(local->graph, value);
        if (!node || node->noperands == 0)
            return SF_NONE;
        value = node->operands[is_in_reshard(node) ? value - node->result : 0];
    }
    return local->pieces[value].whole;
}

static sf_status hint_pin(const checker *c, sf_value whole, sf_status status)
{
    const sf_plan *plan = c->local->plan;
    int pin = plan->pinned[whole];
    return pin < 0 ? status : sf_hint(c->diag, "the pin %s is about it", plan->pins[pin].text);
}

static sf_status fail_check(const checker *c, sf_value whole, const char *format, ...)
{
    sf_buf name = {0}, text = {0};
    va_list args;
    va_start(args, format);
    sf_buf_vprintf(&text, format, args);
    va_end(args);
    sf_status status = sf_fail(c->diag, SF_EMISMATCH, SF_NOWHERE, "rank %d: %s %s", c->local->rank,
                               sf_value_name(c->local->whole, whole, &name), text.text);
    sf_buf_free(&name);
    sf_buf_free(&text);
    return hint_pin(c, whole, status);
}

static void mark_value(checker *c, sf_value value)
{
    if (c->seen[value] == c->search)
        return;
    c->seen[value] = c->search;
    SF_PUSH(&c->scratch, c->sources, c->nsources, c->capacity, value);
}

static void visit_operands(checker *c, const sf_node *node);

static void visit_check_region(checker *c, const sf_block *block)
{
    for (uint32_t i = 0; i < block->nnodes; i++)
        visit_operands(c, c->graph->nodes[block->nodes[i]]);
    for (uint32_t i = 0; i < block->nresults; i++)
        mark_value(c, block->results[i]);
}

static bool is_made_before(const checker *c, sf_value value, const sf_node *user)
{
    const sf_node *maker = sf_maker(c->graph, value);
    return !maker || c->place[maker->id] == SF_NONE || c->place[user->id] == SF_NONE ||
           c->place[maker->id] < c->place[user->id];
}

static void visit_operand(checker *c, const sf_node *node, uint32_t o)
{
    if (!is_made_before(c, node->operands[o], node))
        c->early = node->operands[o];
    mark_value(c, node->operands[o]);
}

static void visit_operands(checker *c, const sf_node *node)
{
    for (uint32_t o = 0; o < node->noperands; o++)
        visit_operand(c, node, o);
    for (uint32_t r = 0; r < node->nregions && node->def->control == SF_CONTROL_NONE; r++)
        visit_check_region(c, node->regions[r]);
}

/* Goes back from a value through those that claim nothing to those that do: c->sources. */
static void find_sources(checker *c, sf_value value)
{
    size_t kept = 0;
    c->search++;
    c->nsources = 0;
    c->ncollectives = 0;
    c->collective = NULL;
    c->early = SF_NONE;
    mark_value(c, value);
    for (size_t at = 0; at < c->nsources; at++) {
        sf_value from = c->sources[at];
        const sf_node *node = sf_maker(c->graph, from);
        bool claims = c->local->pieces[from].whole != SF_NONE;
        if (claims && from != value)
            c->sources[kept++] = from;
        if ((claims && from != value) || !node)
            continue;
        if (!is_in_reshard(node)) {
            visit_operands(c, node);
            continue;
        }
        c->collective = node;
        c->part = from - node->result;
        c->ncollectives++;
        visit_operand(c, node, c->part);
    }
    c->nsources = kept;
}

/* Reshards */

static sf_region region_at(checker *c, const sf_local_shard *shard, int rank)
{
    return sf_region_of(&shard->layout, c->mesh, rank, sf_type_of(c->local->whole, shard->whole),
                        &c->scratch);
}

static bool is_reduction(const sf_node *collective)
{
    return sf_collective_get(sf_op_collective(collective->def))->reduces;
}

/* Two axes of one size. */
static bool can_swap(const sf_mesh *mesh, sf_axes axes)
{
    int count = 0, size = 0;
    for (int a = 0; a < mesh->naxes; a++)
        if (axes >> a & 1) {
            if (count++ > 0 && mesh->axes[a].size != size)
                return false;
            size = mesh->axes[a].size;
        }
    return count == 2;
}

/* Whether all partial values that the axes combine are of the monoid. */
static bool layout_combines(const sf_layout *layout, sf_axes axes, int64_t monoid)
{
    for (int a = 0; a < SF_MAX_AXES; a++)
        if (axes >> a & 1 && layout->axes[a].kind == SF_PARTIAL &&
            (int64_t)layout->axes[a].monoid != monoid)
            return false;
    return true;
}

/* The error in the group, the size or the monoid of the collective; NULL if there is none. */
static const char *fault_of_collective(const checker *c, const sf_layout *from)
{
    const sf_node *node = c->collective;
    const sf_collective_info *info = sf_collective_get(sf_op_collective(node->def));
    int64_t axes = node->attrs[SF_COLLECTIVE_AXES]->integer;
    int64_t size = node->attrs[SF_COLLECTIVE_SIZE]->integer;
    if (axes <= 0 || axes >> c->mesh->naxes)
        return "along axes that the mesh does not have";
    if (size != sf_group_size(c->mesh, (sf_axes)axes))
        return "in a group of another size than the mesh says";
    if (info->route == SF_ROUTE_PEER && !can_swap(c->mesh, (sf_axes)axes))
        return "along axes that cannot be swapped";
    if (is_reduction(node) &&
        !layout_combines(from, (sf_axes)axes, node->attrs[SF_COLLECTIVE_BODY]->integer))
        return "with another operation than its partial values are of";
    int64_t in = sf_type_of(c->graph, node->operands[c->part])->count;
    int64_t out = sf_type_of(c->graph, node->result + c->part)->count;
    in *= info->out_blocks ? size : 1;
    out *= info->in_blocks ? size : 1;
    return in != out ? "whose result has another size than its operands" : NULL;
}

/* The ranks whose shards the collective combines. */
static int group_members(const checker *c, int *ranks)
{
    const sf_node *node = c->collective;
    if (!node) {
        ranks[0] = c->local->rank;
        return 1;
    }
    sf_axes axes = (sf_axes)node->attrs[SF_COLLECTIVE_AXES]->integer;
    int count = sf_group_size(c->mesh, axes);
    for (int place = 0; place < count; place++)
        ranks[place] = sf_group_member(c->mesh, axes, c->local->rank, place);
    if (sf_collective_get(sf_op_collective(node->def))->route != SF_ROUTE_PEER)
        return count;
    int side = 1;
    while (side * side < count)
        side++;
    int place = sf_group_place(c->mesh, axes, c->local->rank);
    ranks[0] = ranks[place % side * side + place / side];
    return 1;
}

/* Whether a member's operand has its place in the result: in a reduction, as a term of every
 * element; otherwise, as some of the elements. A group that is too large fails here. */
static bool takes_part(checker *c, const sf_region *brought, const sf_region *wanted)
{
    sf_region part = sf_region_intersect(brought, wanted, &c->scratch);
    if (!c->collective || !is_reduction(c->collective))
        return !sf_region_is_empty(&part) || sf_region_is_empty(wanted);
    for (int side = part.rank; side < part.nsides; side++)
        part.sides[side] = wanted->sides[side];
    return sf_region_equal(&part, wanted);
}

/* The key of a check of a group's operands: tensors of one type that are resharded alike are
 * checked once, however many ranks are in the group. */
typedef struct resharded_alike {
    const sf_type *type;
    const sf_layout *from, *to;
    const sf_opdef *def; /* of the collective, or NULL */
    int64_t axes;
} resharded_alike;

static bool are_resharded_alike(const void *item, const void *key)
{
    const resharded_alike *a = item, *b = key;
    return a->type == b->type && a->def == b->def && a->axes == b->axes &&
           sf_layout_equal(a->from, b->from) && sf_layout_equal(a->to, b->to);
}

static sf_intern_slot *find_resharded_alike(checker *c, const resharded_alike *m)
{
    uint64_t hash = sf_hash_mix((uint64_t)(uintptr_t)m->type, (uint64_t)(uintptr_t)m->def);
    hash = sf_hash_mix(sf_hash_mix(hash, (uint64_t)m->axes), sf_layout_hash(m->from));
    hash = sf_hash_mix(hash, sf_layout_hash(m->to));
    return sf_intern_find(&c->reshards, &c->arena, hash, are_resharded_alike, m);
}

/* Whether the shards of the group's members together are the shard that the layout demands. */
static bool brings_wanted(checker *c, const sf_local_shard *to, const sf_local_shard *from)
{
    int *ranks = SF_ARRAY(&c->scratch, sf_mesh_size(c->mesh), int);
    int count = group_members(c, ranks);
    sf_region *brought = SF_ARRAY(&c->scratch, count, sf_region);
    for (int i = 0; i < count; i++)
        brought[i] = region_at(c, from, ranks[i]);
    sf_region wanted = region_at(c, to, c->local->rank);
    bool good = sf_region_covered_once(&wanted, (size_t)count, brought, &c->scratch);
    for (int i = 0; good && i < count; i++)
        good = takes_part(c, &brought[i], &wanted);
    return good;
}

static sf_status check_reshard(checker *c, const sf_local_shard *to, const sf_local_shard *from)
{
    const sf_node *collective = c->collective;
    const char *fault = collective ? fault_of_collective(c, &from->layout) : NULL;
    const sf_type *type = sf_type_of(c->local->whole, to->whole);
    if (fault)
        return fail_check(c, to->whole, "is moved by %s %s", collective->def->name, fault);
    resharded_alike m = {type, &from->layout, &to->layout, collective ? collective->def : NULL,
                         collective ? collective->attrs[SF_COLLECTIVE_AXES]->integer : 0};
    sf_intern_slot *slot = find_resharded_alike(c, &m);
    if (slot->item)
        return SF_OK;
    slot->item = sf_arena_copy(&c->arena, &m, sizeof m);
    if (brings_wanted(c, to, from))
        return SF_OK;
    sf_buf text = {0};
    sf_layout_print(&from->layout, c->mesh, type->rank, type->dims, &text);
    sf_buf_puts(&text, " does not become ");
    sf_layout_print(&to->layout, c->mesh, type->rank, type->dims, &text);
    sf_buf_printf(&text, " by %s", c->collective ? c->collective->def->name : "no collective");
    sf_status status = fail_check(c, to->whole, "as %s", text.text);
    sf_buf_free(&text);
    return status;
}

/* Ops */

/* Sources are in the order of operands, so related ones have about the same number: the search
 * starts there and wraps around. */
static bool is_operand(const checker *c, const sf_node *whole, size_t at)
{
    const sf_layout *layouts = c->local->plan->nodes[whole->id];
    const sf_local_shard *source = &c->local->pieces[c->sources[at]];
    static const sf_layout replicated;
    for (uint32_t k = 0; k < whole->noperands; k++) {
        size_t o = (at + k) % whole->noperands;
        if (whole->operands[o] == source->whole &&
            sf_layout_same(c->mesh, &layouts[o], &source->layout))
            return true;
    }
    return whole->nregions > 0 && sf_layout_same(c->mesh, &source->layout, &replicated);
}

/* A constant may be folded into the replacement of the op. */
static bool is_read(const checker *c, const sf_node *node, uint32_t operand)
{
    sf_value whole = node->operands[operand];
    const sf_layout *layout = &c->local->plan->nodes[node->id][operand];
    const sf_node *maker = sf_maker(c->local->whole, whole);
    bool folded = maker && sf_is(maker, SF_OP_CONSTANT);
    for (size_t k = 0; k < c->nsources; k++) {
        const sf_local_shard *source = &c->local->pieces[c->sources[(operand + k) % c->nsources]];
        if (source->whole == whole && sf_layout_same(c->mesh, &source->layout, layout))
            return true;
        folded = folded && source->whole != whole;
    }
    return folded;
}

/* Whether the value and the value of which it is a shard are the same result of their ops, which
 * have as many results. */
static bool is_same_result(const checker *c, sf_value value, const sf_local_shard *made)
{
    const sf_node *maker = sf_maker(c->graph, value),
                  *node = sf_maker(c->local->whole, made->whole);
    return node && maker->nresults > 1 && maker->nresults == node->nresults &&
           made->whole == node->result + (value - maker->result);
}

/* Whether all but its layout was checked with another result of the same op, so that its operands
 * need no search: a loop of a thousand tensors, which reads as many, is checked once. */
static bool is_checked_result(const checker *c, sf_value value, const sf_local_shard *made)
{
    return is_same_result(c, value, made) && c->checked == sf_maker(c->graph, value)->id &&
           c->checked_for == sf_maker(c->local->whole, made->whole)->id;
}

static sf_status check_made_layout(const checker *c, const sf_local_shard *made)
{
    const sf_layout *wanted = sf_plan_layout(c->local->plan, c->local->whole, made->whole);
    return sf_layout_same(c->mesh, wanted, &made->layout)
               ? SF_OK
               : fail_check(c, made->whole, "is not made as the plan says");
}

static sf_status check_op(checker *c, sf_value value, const sf_local_shard *made)
{
    const sf_graph *whole = c->local->whole;
    const sf_node *node = sf_maker(whole, made->whole);
    if (!node)
        return fail_check(c, made->whole, "is an argument of the step, but made by the rank");
    if (c->collective)
        return fail_check(c, made->whole, "is made by way of %s", c->collective->def->name);
    SF_TRY(check_made_layout(c, made));
    for (size_t i = 0; i < c->nsources; i++) {
        const sf_local_shard *source = &c->local->pieces[c->sources[i]];
        sf_buf name = {0};
        if (is_operand(c, node, i))
            continue;
        sf_status status = fail_check(c, made->whole, "reads %s in a layout that it does not want",
                                      sf_value_name(c->local->whole, source->whole, &name));
        sf_buf_free(&name);
        return c->local->plan->pinned[made->whole] < 0 ? hint_pin(c, source->whole, status)
                                                       : status;
    }
    for (uint32_t o = 0; o < node->noperands; o++)
        if (!is_read(c, node, o))
            return fail_check(c, made->whole, "does not read operand %" PRIu32 " as the plan says",
                              o);
    if (is_same_result(c, value, made)) {
        c->checked = sf_maker(c->graph, value)->id;
        c->checked_for = node->id;
    }
    return SF_OK;
}

static sf_status check_argument_piece(checker *c, const sf_local_shard *shard)
{
    const sf_value_info *info = &c->local->whole->values[shard->whole];
    const sf_layout *layouts = c->local->plan->arguments;
    static const sf_layout replicated;
    bool of_step = info->index < c->local->whole->top->narguments &&
                   c->local->whole->top->arguments[info->index] == shard->whole;
    return sf_layout_same(c->mesh, &shard->layout, of_step ? &layouts[info->index] : &replicated)
               ? SF_OK
               : fail_check(c, shard->whole, "does not come as the plan says");
}

static sf_status check_value(checker *c, sf_value value)
{
    const sf_local_shard *shard = &c->local->pieces[value];
    const sf_type *whole = sf_type_of(c->local->whole, shard->whole);
    const sf_type *type = sf_type_of(c->graph, value);
    int64_t dims[SF_MAX_RANK];
    if (!sf_layout_fits(&shard->layout, c->mesh, whole->rank, whole->dims, NULL))
        return fail_check(c, shard->whole, "has a layout that does not fit");
    sf_layout_dims(&shard->layout, c->mesh, whole->rank, whole->dims, dims);
    bool same = type->rank == whole->rank && type->dtype == whole->dtype;
    for (int d = 0; same && d < whole->rank; d++)
        same = dims[d] == type->dims[d];
    if (!same)
        return fail_check(c, shard->whole, "has a shard whose shape is not that of its layout");
    const sf_node *maker = sf_maker(c->local->whole, shard->whole);
    if (maker && !c->local->plan->nodes[maker->id])
        return SF_OK; /* inside of a region, which is replicated */
    if (!sf_maker(c->graph, value))
        return check_argument_piece(c, shard);
    if (is_checked_result(c, value, shard))
        return check_made_layout(c, shard);
    find_sources(c, value);
    if (c->early != SF_NONE) {
        sf_value early = whole_behind(c->local, c->early);
        return fail_check(c, early == SF_NONE ? shard->whole : early, "is used before it is made");
    }
    if (c->ncollectives > 1)
        return fail_check(c, shard->whole, "is made by several collectives in one move");
    if (c->nsources != 1 || c->local->pieces[c->sources[0]].whole != shard->whole)
        return check_op(c, value, shard);
    SF_TRY(check_reshard(c, shard, &c->local->pieces[c->sources[0]]));
    return sf_check_elements(c->local, value, c->sources[0])
               ? SF_OK
               : fail_check(c, shard->whole,
                            "has its elements in other places than its layout says");
}

static sf_status check_results(checker *c)
{
    const sf_block *top = c->graph->top, *whole = c->local->whole->top;
    for (uint32_t r = 0; r < whole->nresults; r++) {
        const sf_local_shard *shard = &c->local->pieces[top->results[r]];
        if (shard->whole != whole->results[r] ||
            !sf_layout_same(c->mesh, &shard->layout, &c->local->plan->results[r]))
            return fail_check(c, whole->results[r], "is not returned as the plan says");
    }
    return SF_OK;
}

/* Claims first: their messages name tensors. */
static sf_status check_local_graph(checker *c)
{
    sf_mark mark = sf_arena_mark(&c->scratch);
    for (size_t v = 0; v < c->graph->nvalues; v++) {
        if (c->local->pieces[v].whole == SF_NONE)
            continue;
        SF_TRY(check_value(c, (sf_value)v));
        sf_arena_reset(&c->scratch, mark);
        c->sources = NULL;
        c->nsources = c->capacity = 0;
    }
    SF_TRY(check_results(c));
    return sf_graph_verify(c->graph, c->diag);
}

static void find_piece_places(checker *c)
{
    c->place = SF_ARRAY(&c->arena, c->graph->nnodes, uint32_t);
    memset(c->place, 0xff, c->graph->nnodes * sizeof *c->place);
    for (uint32_t i = 0; i < c->graph->top->nnodes; i++)
        c->place[c->graph->top->nodes[i]] = i;
}

/* The arguments and results of a region are those of the node around it. */
static sf_status check_ends(checker *c, const sf_inner *inner)
{
    const sf_node *node = inner->node;
    const sf_layout *outer = c->local->plan->nodes[node->id];
    const sf_plan *plan = inner->plan.plan;
    uint32_t first = sf_first_entering(node);
    bool answers = node->def->control == SF_CONTROL_LOOP && inner->region == 0;
    static const sf_layout replicated;
    for (uint32_t i = first; i < node->noperands; i++)
        if (!sf_layout_same(c->mesh, &outer[i], &plan->arguments[i - first]))
            return fail_check(c, node->operands[i], "comes into a region in another layout");
    for (uint32_t i = 0; i < first; i++)
        if (!sf_layout_same(c->mesh, &outer[i], &replicated))
            return fail_check(c, node->operands[i], "decides, and differs from rank to rank");
    for (uint32_t i = 0; i < inner->plan.graph->top->nresults; i++)
        if (!sf_layout_same(c->mesh, &plan->results[i],
                            answers ? &replicated : &outer[node->noperands + i]))
            return fail_check(c, node->result + i, "leaves a region in another layout");
    return SF_OK;
}

static sf_status check_inner(checker *c)
{
    for (size_t i = 0; i < c->local->ninner; i++) {
        SF_TRY(check_ends(c, &c->local->inner[i]));
        SF_TRY(sf_check_local(c->local->inner[i].local, c->diag));
    }
    return SF_OK;
}

sf_status sf_check_local(const sf_local *local, sf_diag *diag)
{
    checker c = {.local = local, .graph = local->graph, .mesh = &local->plan->mesh, .diag = diag};
    c.checked = c.checked_for = SF_NONE;
    c.seen = SF_ARRAY(&c.arena, local->graph->nvalues, uint32_t);
    find_piece_places(&c);
    sf_status status = local->timed ? sf_check_timed(local->timed, diag) : SF_OK;
    if (status == SF_OK)
        status = check_local_graph(&c);
    if (status == SF_OK)
        status = check_inner(&c);
    sf_arena_free(&c.arena);
    sf_arena_free(&c.scratch);
    return status;
}

/* Ranks with each other */

/* Collectives in the order in which a rank comes to them, each once. */
typedef struct collectives {
    sf_arena arena;
    const sf_node **at;
    size_t count, capacity;
} collectives;

static void list_in_order(collectives *list, const sf_graph *graph, const sf_block *block)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]];
        if (sf_is_collective(node))
            SF_PUSH(&list->arena, list->at, list->count, list->capacity, node);
        for (uint32_t r = 0; r < node->nregions; r++)
            list_in_order(list, graph, node->regions[r]);
    }
}

static const char *what_of(const sf_node *node)
{
    const sf_attr *what = node ? node->attrs[SF_COLLECTIVE_WHAT] : NULL;
    return what ? what->text : "nothing";
}

bool sf_same_collective(const sf_local *a, const sf_node *x, const sf_local *b, const sf_node *y)
{
    bool same =
        x->def == y->def && x->nresults == y->nresults && strcmp(what_of(x), what_of(y)) == 0;
    for (int slot = 0; same && slot < x->def->nattrs; slot++)
        same = slot == SF_COLLECTIVE_WHAT || (x->attrs[slot] ? x->attrs[slot]->integer : -1) ==
                                                 (y->attrs[slot] ? y->attrs[slot]->integer : -1);
    for (uint32_t r = 0; same && r < x->nresults; r++) {
        const sf_type *s = sf_type_of(a->graph, x->result + r);
        const sf_type *t = sf_type_of(b->graph, y->result + r);
        same = s->dtype == t->dtype && s->count == t->count;
    }
    return same;
}

static sf_status fail_to_match_pieces(const sf_local *a, const sf_node *x, const sf_local *b,
                                      const sf_node *y, int64_t number, sf_diag *diag)
{
    sf_status status =
        sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                "collective %" PRId64
                " is %s of %s on rank %d, but %s of %s on rank %d: they would wait for each other",
                number, x ? x->def->name : "none", what_of(x), a->rank, y ? y->def->name : "none",
                what_of(y), b->rank);
    sf_value moved = x ? whole_behind(a, x->operands[0]) : whole_behind(b, y->operands[0]);
    int pin = moved == SF_NONE ? -1 : a->plan->pinned[moved];
    return pin < 0 ? status : sf_hint(diag, "the pin %s is about it", a->plan->pins[pin].text);
}

sf_status sf_check_match(const sf_local *a, const sf_local *b, sf_diag *diag)
{
    collectives of_a = {0}, of_b = {0};
    sf_status status = SF_OK;
    list_in_order(&of_a, a->graph, a->graph->top);
    list_in_order(&of_b, b->graph, b->graph->top);
    for (size_t i = 0; status == SF_OK && (i < of_a.count || i < of_b.count); i++) {
        const sf_node *x = i < of_a.count ? of_a.at[i] : NULL;
        const sf_node *y = i < of_b.count ? of_b.at[i] : NULL;
        if (!x || !y || !sf_same_collective(a, x, b, y))
            status = fail_to_match_pieces(a, x, b, y, (int64_t)i, diag);
    }
    sf_arena_free(&of_a.arena);
    sf_arena_free(&of_b.arena);
    return status;
}
