#include "local/turns.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "ir/clone.h"
#include "ir/name.h"
#include "local/build.h"
#include "op/build.h"
#include "op/slots.h"
#include "plan/batch.h"
#include "plan/complete.h"
#include "plan/recipe.h"
#include "prog/view.h"

enum { TIME = 0, MOST_LOOPS = 2, MOST_TRIES = 8 };

static const sf_layout still; /* along the one axis there is */

/* A value that leaves a loop: the version that turns, and how it is put together. */
typedef struct landing {
    uint32_t move;
    bool is_sum;       /* else turns are put side by side */
    uint32_t argument; /* of the body */
    const sf_type *type;
    sf_value next; /* what it is behind the turn */
    size_t other;  /* of the same version, counted from 1; 0: none */
} landing;

/* A node of the step in turns whose layouts on ranks are known. */
typedef struct settled {
    uint32_t node;
    sf_layout *layouts;
} settled;

typedef struct turning {
    local_builder *b;
    const sf_graph *step;
    const sf_plan *space; /* on ranks */
    sf_uses uses;
    sf_plan *time;      /* in turns */
    const char *recipe; /* that says what turns; NULL: the batch does */
    int turns;
    sf_arena arena;

    /* By version: a still one is there from stage s on, before loop s; one that turns is made in loop s or later. */
    uint32_t *stage;
    bool *blocks; /* by move: what lands there must be whole before a later loop */
    bool *weighs; /* by version: it follows from more than the batch */
    uint32_t nloops;
    uint32_t *landing_stage; /* by move: before which loop it is there at the earliest */
    sf_value *landed;        /* by move: whole, where no version stands for it; or SF_NONE */

    bool *is_added;  /* by node: a still one, in the top block */
    uint32_t nadded; /* loops */

    /* Of the loop at hand. */
    bool *runs; /* by step item */
    local_version *top_versions, *body_versions;
    sf_block *top, *body;
    sf_value *given;            /* by version: the argument that it enters as, or SF_NONE */
    sf_value *operands;         /* that the loop is given, */
    sf_layout *operand_layouts; /* and how they enter it */
    size_t noperands, operand_capacity, layout_capacity;
    landing *landings;
    size_t nlandings, landing_capacity;
    size_t *landing_of; /* by version, counted from 1 */

    settled *settled;
    size_t nsettled, settled_capacity;
} turning;

/* Looking at the plan in turns */

static bool is_turning(const sf_layout *layout)
{
    return layout->axes[TIME].kind != SF_REPLICATED;
}

static bool version_turns(const turning *t, uint32_t version)
{
    return is_turning(t->b->moves->versions[version].layout);
}

static bool node_turns(const turning *t, const sf_node *node)
{
    const sf_layout *layouts = t->time->nodes[node->id];
    for (uint32_t i = 0; i < node->noperands + node->nresults; i++)
        if (is_turning(&layouts[i]))
            return true;
    return false;
}

static const uint32_t *reads_of(const turning *t, uint32_t node, uint32_t *count)
{
    const sf_moves *m = t->b->moves;
    *count = m->nreads[node];
    return m->reads + m->first_read[node];
}

/* All turns must be there: parts are summed, or put side by side. */
static bool lands(const turning *t, const sf_moving *move)
{
    return version_turns(t, move->from) && !sf_is_local_move(move->kind);
}

static uint32_t later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Stages of all versions; returns how many loops there are. */
static uint32_t find_stages(turning *t)
{
    const sf_moves *m = t->b->moves;
    uint32_t loops = 0;
    for (size_t i = 0; i < m->nsteps; i++) {
        uint32_t index = m->steps[i].index, count;
        if (m->steps[i].is_move) {
            const sf_moving *move = &m->moves[index];
            t->stage[move->to] = t->stage[move->from] + lands(t, move);
            t->landing_stage[index] = t->stage[move->to];
            t->weighs[move->to] = t->weighs[move->from];
            if (version_turns(t, move->to))
                loops = later(loops, t->stage[move->to] + 1);
            continue;
        }
        const sf_node *node = t->step->nodes[index];
        const uint32_t *reads = reads_of(t, index, &count);
        uint32_t stage = 0;
        bool weighs = false;
        for (uint32_t r = 0; r < count; r++) {
            stage = later(stage, t->stage[reads[r]]);
            weighs = weighs || t->weighs[reads[r]];
        }
        for (uint32_t r = 0; r < node->nresults; r++) {
            uint32_t version = m->made[node->result + r];
            t->stage[version] = sf_is_transparent(node) ? t->stage[reads[r]] : stage;
            t->weighs[version] = weighs;
        }
        if (node_turns(t, node))
            loops = later(loops, stage + 1);
    }
    return loops;
}

/* A loop of the step in which turns meet: what it makes whole of what they have in parts would be summed inside. */
static sf_status refuse_meeting(turning *t)
{
    const sf_block *top = t->step->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(t->step, i);
        bool turns = node->def->control != SF_CONTROL_NONE && node_turns(t, node);
        for (uint32_t r = 0; r < node->nresults && turns; r++)
            if (!version_turns(t, t->b->moves->made[node->result + r]) &&
                sf_uses_count(&t->uses, node->result + r) > 0)
                return sf_fail(t->b->diag, SF_EWRONG, node->loc,
                               "%s: a %s%s%s would need all turns in each of its own",
                               t->recipe ? "co-shard" : "micro-batches", node->def->name,
                               *node->scope->path ? " in " : "", node->scope->path);
    }
    return SF_OK;
}

static void find_weights(turning *t)
{
    const sf_block *top = t->step->top;
    for (uint32_t i = 0; i < top->narguments; i++)
        t->weighs[t->b->moves->made[top->arguments[i]]] =
            t->step->arguments[i].role != SF_ROLE_BATCH;
}

/* What lands and is read, by way of still nodes, by what turns. */
static void find_blocking(turning *t)
{
    const sf_moves *m = t->b->moves;
    bool *needed = SF_ARRAY(&t->arena, m->nversions, bool);
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index, count;
        if (m->steps[i].is_move) {
            const sf_moving *move = &m->moves[index];
            bool turned = version_turns(t, move->to);
            t->blocks[index] = lands(t, move) && (turned || needed[move->to]);
            if (!version_turns(t, move->from) && (turned || needed[move->to]))
                needed[move->from] = true;
            continue;
        }
        const sf_node *node = t->step->nodes[index];
        const uint32_t *reads = reads_of(t, index, &count);
        bool wanted = node_turns(t, node);
        for (uint32_t r = 0; r < node->nresults; r++)
            wanted = wanted || needed[m->made[node->result + r]];
        for (uint32_t r = 0; r < count; r++)
            needed[reads[r]] = needed[reads[r]] || (wanted && !version_turns(t, reads[r]));
    }
}

/* The nodes in turns that lead to what the move lands run whole instead, where they follow from the batch alone. */
static bool settle_upstream(turning *t, uint32_t blocking)
{
    const sf_moves *m = t->b->moves;
    bool *wanted = SF_ARRAY(&t->arena, m->nversions, bool), any = false;
    if (t->weighs[m->moves[blocking].from])
        return false;
    wanted[m->moves[blocking].from] = true;
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index, count;
        if (m->steps[i].is_move) {
            const sf_moving *move = &m->moves[index];
            wanted[move->from] = wanted[move->from] || wanted[move->to];
            continue;
        }
        const sf_node *node = t->step->nodes[index];
        const uint32_t *reads = reads_of(t, index, &count);
        bool leads = false;
        for (uint32_t r = 0; r < node->nresults; r++)
            leads = leads || wanted[m->made[node->result + r]];
        if (!leads || !node_turns(t, node))
            continue;
        for (uint32_t r = 0; r < count; r++)
            wanted[reads[r]] = true;
        memset(t->time->nodes[index], 0,
               (node->noperands + node->nresults) * sizeof *t->time->nodes[index]);
        any = true;
    }
    return any;
}

static sf_status refuse_blocking(turning *t, uint32_t blocking)
{
    const sf_moving *move = &t->b->moves->moves[blocking];
    const sf_node *maker = sf_maker(t->step, move->value);
    const sf_node *wants = move->wanted == SF_NONE ? maker : t->step->nodes[move->wanted];
    sf_buf name = {0};
    const char *value = sf_value_name(t->step, move->value, &name);
    sf_status status = sf_fail(
        t->b->diag, SF_EWRONG, wants ? wants->loc : SF_NOWHERE,
        "micro-batches: %s%s%s reads %s of the whole batch, and the step goes on from that: it is "
        "no sum over parts of its batch",
        wants ? wants->def->name : "a result", wants && *wants->scope->path ? " in " : "",
        wants ? wants->scope->path : "", value);
    sf_buf_free(&name);
    return status;
}

static bool is_sum_landing(const sf_moving *move)
{
    return sf_is_reduction(move->kind);
}

/* Whether anything was settled: then all is to be looked at again. */
static sf_status settle_blocking(turning *t, bool *any)
{
    const sf_moves *m = t->b->moves;
    uint32_t first = SF_NONE;
    *any = false;
    for (uint32_t i = 0; i < m->nmoves; i++) {
        if (!t->blocks[i])
            continue;
        *any = settle_upstream(t, i) || *any;
        if (first == SF_NONE || (!is_sum_landing(&m->moves[i]) && is_sum_landing(&m->moves[first])))
            first = i;
    }
    if (*any || first == SF_NONE)
        return SF_OK;
    if (t->nloops > MOST_LOOPS || !is_sum_landing(&m->moves[first]))
        return refuse_blocking(t, first);
    return SF_OK;
}

/* The plan in turns ------------------------------------------------------------------------------- */

/* The batch along the dimension that people split over ranks, in its minor digit. */
static sf_status pin_turns(turning *t)
{
    const sf_graph *graph = t->step;
    sf_graph *opened = sf_graph_clone_turn(graph);
    sf_uses uses = sf_uses_of(opened, &t->arena);
    const char **names = sf_clean_names(graph, &t->arena);
    const char **pins = SF_ARRAY(&t->arena, graph->top->narguments, const char *);
    sf_status status = SF_OK;
    int count = 0;
    for (uint32_t i = 0; i < graph->top->narguments && status == SF_OK; i++) {
        const sf_type *type = sf_argument_type(graph, i);
        if (graph->arguments[i].role != SF_ROLE_BATCH || type->rank == 0)
            continue;
        sf_share share = sf_batch_share(opened, &uses, i, 0, t->turns);
        if (share.kind != SF_SPLIT) {
            status = sf_fail(t->b->diag, SF_EWRONG, SF_NOWHERE,
                             "micro-batches: dimension 0 of %s, of size %" PRId64
                             ", does not split into %d equal parts",
                             names[i], type->dims[0], t->turns);
            continue;
        }
        sf_buf pin = {0};
        sf_buf_printf(&pin, "/%s=S(%d,%d)@time", names[i], share.dim, t->turns);
        pins[count++] = sf_arena_string(&t->arena, pin.text, pin.length);
        sf_buf_free(&pin);
    }
    sf_graph_free(opened);
    SF_TRY(status);
    if (count == 0)
        return sf_fail(t->b->diag, SF_EWRONG, SF_NOWHERE,
                       "micro-batches: no argument of the step is a batch");
    return sf_plan_add_pins(t->time, count, pins, t->b->diag);
}

/* What a recipe splits, in turns; the update works on all of it at once. */
static sf_status plan_by_recipe(turning *t)
{
    const sf_block *top = t->step->top;
    SF_TRY(sf_plan_complete(t->step, t->time, t->b->diag));
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(t->step, i);
        uint32_t count = node->noperands + node->nresults;
        if (node->phase == SF_UPDATE && count > 0)
            memset(t->time->nodes[node->id], 0, count * sizeof *t->time->nodes[node->id]);
    }
    return SF_OK;
}

static sf_status plan_batch(turning *t)
{
    SF_TRY(pin_turns(t));
    return sf_plan_complete(t->step, t->time, t->b->diag);
}

static sf_status plan_turns(turning *t)
{
    const sf_block *top = t->step->top;
    SF_TRY(t->recipe ? plan_by_recipe(t) : plan_batch(t));
    /* Arguments come, and results go, whole. */
    memset(t->time->arguments, 0, top->narguments * sizeof *t->time->arguments);
    memset(t->time->results, 0, top->nresults * sizeof *t->time->results);
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        bool again;
        SF_TRY(local_prepare(t->b));
        const sf_moves *m = t->b->moves;
        t->stage = SF_ARRAY(&t->arena, m->nversions, uint32_t);
        t->weighs = SF_ARRAY(&t->arena, m->nversions, bool);
        t->blocks = SF_ARRAY(&t->arena, m->nmoves, bool);
        t->landing_stage = SF_ARRAY(&t->arena, m->nmoves, uint32_t);
        find_weights(t);
        t->nloops = find_stages(t);
        find_blocking(t);
        again = false;
        if (!t->recipe)
            SF_TRY(settle_blocking(t, &again));
        if (!again)
            return refuse_meeting(t);
    }
    return sf_fail(t->b->diag, SF_EWRONG, SF_NOWHERE,
                   "micro-batches: the step cannot be brought into turns");
}

/* Layouts on ranks -------------------------------------------------------------------------------- */

/* The share of a dimension from which the turns took a digit. */
static bool share_in_turn(const turning *t, sf_share turn, sf_share *share, int parts)
{
    int64_t unit = turn.period / t->turns;
    if (share->kind != SF_SPLIT || turn.kind != SF_SPLIT || turn.dim != share->dim ||
        share->period <= unit)
        return true;
    if (share->period / parts % turn.period != 0)
        return false;
    share->period /= t->turns;
    return true;
}

/* How a rank has what a turn has of a tensor; false where the two do not go together. */
static bool layout_in_turn(const turning *t, const sf_layout *time, const sf_layout *space,
                           sf_layout *out)
{
    const sf_mesh *mesh = &t->space->mesh;
    *out = *space;
    for (int a = 0; a < mesh->naxes; a++)
        if (!share_in_turn(t, time->axes[TIME], &out->axes[a], mesh->axes[a].size))
            return false;
    return true;
}

static void settle_node(turning *t, const sf_node *node, const sf_layout *layouts)
{
    settled s = {.node = node->id};
    s.layouts =
        sf_arena_copy(&t->arena, layouts, (node->noperands + node->nresults) * sizeof *layouts);
    SF_PUSH(&t->arena, t->settled, t->nsettled, t->settled_capacity, s);
}

/* What was just added for a node of the step: where it is the same op, it is laid out like it. */
static sf_status settle_same(turning *t, const sf_node *node)
{
    uint32_t count = node->noperands + node->nresults;
    sf_layout *layouts = SF_ARRAY(&t->arena, count, sf_layout);
    if (node->nresults == 0)
        return SF_OK;
    sf_value value = t->b->versions[t->b->moves->made[node->result]].value;
    const sf_node *added = sf_maker(t->b->graph, value);
    if (!added || added->def != node->def || added->noperands != node->noperands ||
        added->nresults != node->nresults)
        return SF_OK;
    for (uint32_t i = 0; i < count; i++) {
        if (layout_in_turn(t, &t->time->nodes[node->id][i], &t->space->nodes[node->id][i],
                           &layouts[i]))
            continue;
        if (t->recipe) /* ranks and turns want the same digit: how it is laid out follows from the rest */
            return SF_OK;
        return sf_fail(t->b->diag, SF_EWRONG, node->loc,
                       "micro-batches: what a rank has of the batch does not split into %d equal "
                       "parts",
                       t->turns);
    }
    settle_node(t, added, layouts);
    return SF_OK;
}

/* How all who read a sum behind the loop want it, where that is in pieces; else as it is made. */
static sf_layout layout_of_sum(const turning *t, sf_value value)
{
    sf_layout made = *sf_plan_layout(t->space, t->step, value), wanted = made;
    uint32_t readers = 0;
    for (uint32_t u = t->uses.first[value]; u < t->uses.first[value + 1]; u++) {
        sf_value_use use = t->uses.at[u];
        if (use.node == SF_NONE || use.operand == SF_NONE)
            return made;
        const sf_layout *want = &t->space->nodes[use.node][use.operand];
        if (sf_layout_is_partial(want) || (readers++ > 0 && !sf_layout_equal(want, &wanted)))
            return made;
        wanted = *want;
    }
    const sf_type *type = sf_type_of(t->step, value);
    const sf_mesh *mesh = &t->space->mesh;
    return sf_piece_bytes(type, &wanted, mesh) < sf_piece_bytes(type, &made, mesh) ? wanted : made;
}

/* How a value stands that leaves the loop, in each turn and behind it. Sums that are wanted in pieces are held so, and
 * reduced in each turn: who splits gradients has no room for whole ones. */
static sf_layout layout_of_landing(const turning *t, const landing *l)
{
    const sf_moving *move = &t->b->moves->moves[l->move];
    sf_layout out =
        l->is_sum ? layout_of_sum(t, move->value) : *sf_plan_layout(t->space, t->step, move->value);
    sf_layout piece;
    if (l->is_sum || !layout_in_turn(t, t->b->moves->versions[move->from].layout, &out, &piece))
        return l->is_sum ? out : still;
    const sf_type *type = sf_type_of(t->step, move->value);
    if (l->type->rank != type->rank + 1)
        return still;
    for (int a = 0; a < t->space->mesh.naxes; a++)
        if (piece.axes[a].kind == SF_SPLIT)
            piece.axes[a].dim++;
    return piece;
}

/* Blocks ------------------------------------------------------------------------------------------ */

static void enter_top(turning *t)
{
    t->b->block = t->top;
    t->b->versions = t->top_versions;
}

static void enter_body(turning *t)
{
    t->b->block = t->body;
    t->b->versions = t->body_versions;
}

/* A value of the top block, inside of the loop: all of a value of the step. */
static sf_value give(turning *t, sf_value value, sf_value whole, const sf_layout *layout)
{
    for (size_t i = 0; i < t->noperands; i++)
        if (t->operands[i] == value)
            return t->body->arguments[1 + t->nlandings + i];
    size_t count = t->noperands;
    SF_PUSH(&t->arena, t->operands, count, t->operand_capacity, value);
    SF_PUSH(&t->arena, t->operand_layouts, t->noperands, t->layout_capacity, *layout);
    sf_value argument = sf_block_argument(t->b->graph, t->body, sf_type_of(t->b->graph, value));
    local_record(t->b, argument, whole, &still);
    return argument;
}

/* As it stands, so that what is gathered need not be kept from turn to turn; but sums are complete. */
static const sf_layout *layout_of_given(const turning *t, sf_value value)
{
    const sf_layout *layout = sf_plan_layout(t->space, t->step, value);
    return sf_layout_is_partial(layout) ? &still : layout;
}

static void note_place(local_builder *b, const sf_node *node, sf_phase phase)
{
    b->scope = node ? node->scope : NULL;
    b->loc = node ? node->loc : SF_NOWHERE;
    b->phase = phase;
}

/* A barrier hands on each operand by itself. */
static void add_barrier(turning *t, const sf_node *node, uint32_t result)
{
    local_builder *b = t->b;
    uint32_t count, made = b->moves->made[node->result + result];
    const uint32_t *reads = reads_of(t, node->id, &count);
    if (b->versions[made].value != SF_NONE)
        return;
    sf_value value = local_value(b, reads[result]);
    note_place(b, node, node->phase);
    value = emit_op(b, SF_OP_OPTIMIZATION_BARRIER, 1, &value, NULL, sf_type_of(b->graph, value));
    local_set(b, made, value);
    sf_layout layouts[2];
    if (layout_in_turn(t, &t->time->nodes[node->id][result], &t->space->nodes[node->id][result],
                       &layouts[0])) {
        layouts[1] = layouts[0];
        settle_node(t, sf_maker(b->graph, value), layouts);
    }
}

/* A still node that only shows its operands in another way: it stands with who reads it, in the loop and outside, so that
 * what is gathered for it need not be kept. */
static const sf_node *view_behind(const turning *t, uint32_t version)
{
    const sf_value_version *v = &t->b->moves->versions[version];
    const sf_node *maker = sf_maker(t->step, v->value);
    bool shows = maker && (sf_is_view_op(maker) || sf_is_transparent(maker));
    return shows && v->move == SF_NONE && !version_turns(t, version) ? maker : NULL;
}

static sf_status reach_version(turning *t, uint32_t version);
static sf_status reach_top(turning *t, uint32_t version);

/* Makes such a node here; of a barrier, what is asked for. */
static sf_status add_view(turning *t, const sf_node *node, uint32_t version, bool in_body)
{
    uint32_t count, result = t->b->moves->versions[version].value - node->result;
    const uint32_t *reads = reads_of(t, node->id, &count);
    for (uint32_t r = 0; r < count; r++)
        if (!sf_is_transparent(node) || r == result)
            SF_TRY(in_body ? reach_version(t, reads[r]) : reach_top(t, reads[r]));
    if (sf_is_transparent(node)) {
        add_barrier(t, node, result);
        return SF_OK;
    }
    SF_TRY(local_add_node(t->b, node));
    return settle_same(t, node);
}

static sf_status reach_top(turning *t, uint32_t version)
{
    uint32_t at = t->b->moves->versions[version].same;
    const sf_node *view = view_behind(t, at);
    return view && t->top_versions[at].value == SF_NONE ? add_view(t, view, at, false) : SF_OK;
}

static sf_status reach_version(turning *t, uint32_t version)
{
    uint32_t at = t->b->moves->versions[version].same;
    const sf_node *view = view_behind(t, at);
    if (version_turns(t, version) || t->body_versions[at].value != SF_NONE)
        return SF_OK;
    if (view)
        return add_view(t, view, at, true);
    enter_top(t);
    sf_value value = local_value(t->b, at);
    enter_body(t);
    t->body_versions[at].value = give(t, value, t->b->moves->versions[at].value,
                                      layout_of_given(t, t->b->moves->versions[at].value));
    return SF_OK;
}

static sf_status add_turning_node(turning *t, const sf_node *node)
{
    uint32_t count;
    const uint32_t *reads = reads_of(t, node->id, &count);
    for (uint32_t r = 0; r < node->nresults && sf_is_transparent(node); r++)
        if (version_turns(t, reads[r]) && t->body_versions[reads[r]].value != SF_NONE)
            add_barrier(t, node, r);
    if (sf_is_transparent(node))
        return SF_OK;
    for (uint32_t r = 0; r < count; r++)
        SF_TRY(reach_version(t, reads[r]));
    size_t inner = t->b->local->ninner;
    SF_TRY(local_add_node(t->b, node));
    for (; inner < t->b->local->ninner; inner++)
        if (t->b->local->inner[inner].local->nsent > 0)
            return sf_fail(t->b->diag, SF_EWRONG, node->loc,
                           "%s: a %s would need all turns in each of its own",
                           t->recipe ? "co-shard" : "micro-batches", node->def->name);
    return settle_same(t, node);
}

/* What a turn has of a whole value. */
static sf_status add_turning_move(turning *t, uint32_t index)
{
    const sf_moving *move = &t->b->moves->moves[index];
    if (sf_is_local_move(move->kind)) {
        SF_TRY(reach_version(t, move->from));
        local_make_move(t->b, index);
        return SF_OK;
    }
    const sf_node *maker = sf_maker(t->step, move->value);
    local_moving m = {.whole = sf_type_of(t->step, move->value),
                      .before = &still,
                      .after = t->b->moves->versions[move->to].layout,
                      .kind = SF_MOVE_SLICE,
                      .axes = 1u << TIME};
    sf_value whole = give(t, t->landed[index], move->value, layout_of_given(t, move->value));
    note_place(t->b, maker, move->phase);
    local_set(t->b, move->to, local_move_alone(t->b, whole, &m));
    return SF_OK;
}

/* Loops ------------------------------------------------------------------------------------------- */

static local_moving moving_of_landing(const turning *t, const landing *l)
{
    const sf_moving *move = &t->b->moves->moves[l->move];
    return (local_moving){.whole = sf_type_of(t->step, move->value),
                          .before = t->b->moves->versions[move->from].layout,
                          .after = &still,
                          .kind = l->is_sum ? SF_MOVE_REDUCE : SF_MOVE_GATHER,
                          .axes = 1u << TIME};
}

/* 16 bits are too few to add up many turns in. */
static sf_dtype sum_type(sf_dtype dtype)
{
    return dtype == SF_BF16 || dtype == SF_F16 ? SF_F32 : dtype;
}

static sf_monoid monoid_of_landing(const turning *t, const landing *l)
{
    local_moving m = moving_of_landing(t, l);
    return local_move_monoid(&m);
}

static sf_opcode opcode_of(sf_monoid monoid)
{
    static const sf_opcode codes[SF_MONOID_COUNT] = {
        [SF_MONOID_ADD] = SF_OP_ADD,     [SF_MONOID_MUL] = SF_OP_MULTIPLY,
        [SF_MONOID_MIN] = SF_OP_MINIMUM, [SF_MONOID_MAX] = SF_OP_MAXIMUM,
        [SF_MONOID_AND] = SF_OP_AND,     [SF_MONOID_OR] = SF_OP_OR,
        [SF_MONOID_XOR] = SF_OP_XOR,
    };
    return codes[monoid];
}

static void open_landing(turning *t, landing *l)
{
    local_builder *b = t->b;
    const sf_moving *move = &b->moves->moves[l->move];
    const sf_type *whole = sf_type_of(t->step, move->value);
    const sf_type *piece = local_type(b, whole, b->moves->versions[move->from].layout);
    l->is_sum = is_sum_landing(move);
    if (l->is_sum) {
        bool adds = monoid_of_landing(t, l) == SF_MONOID_ADD;
        l->type = sf_type_with(b->graph->pool, piece, adds ? sum_type(piece->dtype) : piece->dtype);
    } else {
        l->type = local_rows(b, t->turns, piece);
    }
    sf_block_argument(b->graph, t->body, l->type);
}

static sf_value start_of_landing(turning *t, const landing *l)
{
    return l->is_sum ? emit_identity(t->b, monoid_of_landing(t, l), l->type)
                     : emit_number(t->b, l->type, 0);
}

/* The sum so far and this turn's part. */
static sf_value add_part(turning *t, const landing *l, sf_value sum, sf_value part)
{
    local_builder *b = t->b;
    sf_layout layout = layout_of_landing(t, l), layouts[3] = {layout, layout, layout};
    sf_value wide = emit_convert(b, part, l->type->dtype);
    if (wide != part)
        settle_node(t, sf_maker(b->graph, wide), layouts);
    sf_value out = emit_binary(b, opcode_of(monoid_of_landing(t, l)), sum, wide);
    settle_node(t, sf_maker(b->graph, out), layouts);
    return out;
}

/* All turns so far, and this one in its place. */
static sf_value put_part(turning *t, const landing *l, sf_value rows, sf_value part)
{
    local_builder *b = t->b;
    sf_value operands[2 + SF_MAX_RANK], zero = emit_like(b, b->turn, 0);
    int64_t dims[SF_MAX_RANK];
    memcpy(dims, l->type->dims, (size_t)l->type->rank * sizeof *dims);
    dims[0] = 1;
    operands[0] = rows;
    operands[1] = emit_reshape(b, part, l->type->rank, dims);
    for (int d = 0; d < l->type->rank; d++)
        operands[2 + d] = d == 0 ? b->turn : zero;
    return emit_op(b, SF_OP_DYNAMIC_UPDATE_SLICE, 2 + (uint32_t)l->type->rank, operands, NULL,
                   l->type);
}

static void update_landing(turning *t, landing *l)
{
    local_builder *b = t->b;
    const sf_moving *move = &b->moves->moves[l->move];
    const sf_node *maker = sf_maker(t->step, move->value);
    local_moving m = moving_of_landing(t, l);
    sf_value before = t->body->arguments[l->argument];
    sf_value part = local_value(b, move->from);
    note_place(b, maker, maker ? maker->phase : SF_FORWARD);
    part = local_move_before(b, part, &m);
    l->next = l->is_sum ? add_part(t, l, before, part) : put_part(t, l, before, part);
}

/* Right behind what makes them, so that parts need not wait for the end of the turn. */
static void update_landings(turning *t, const sf_step_item *item)
{
    const sf_moves *m = t->b->moves;
    const sf_node *node = item->is_move ? NULL : t->step->nodes[item->index];
    uint32_t count = node ? node->nresults : 1;
    if (count == 0)
        return;
    uint32_t first = node ? m->made[node->result] : m->moves[item->index].to;
    for (uint32_t v = first; v < first + count; v++)
        for (size_t at = t->landing_of[v]; at > 0; at = t->landings[at - 1].other)
            update_landing(t, &t->landings[at - 1]);
}

/* What the loop leaves, in the type and shape of the step. */
static void close_landing(turning *t, const landing *l, sf_value value)
{
    local_builder *b = t->b;
    const sf_moving *move = &b->moves->moves[l->move];
    local_moving m = moving_of_landing(t, l);
    note_place(b, sf_maker(t->step, move->value), move->phase);
    sf_value narrow = emit_convert(b, value, m.whole->dtype);
    if (narrow != value) {
        sf_layout layout = layout_of_landing(t, l), layouts[2] = {layout, layout};
        settle_node(t, sf_maker(b->graph, narrow), layouts);
    }
    if (version_turns(t, move->to))
        t->landed[l->move] = local_move_behind(b, narrow, &m);
    else
        t->top_versions[move->to].raw = narrow;
}

/* A node that is wanted wants what it reads, a barrier only what it hands on to who wants it. */
static void want_read(const turning *t, const sf_node *node, uint32_t operand, uint32_t version,
                      bool *wanted)
{
    bool wants = !sf_is_transparent(node) || wanted[t->b->moves->made[node->result + operand]];
    wanted[version] = wanted[version] || wants;
}

/* Where all turns of the batch are there anyway, in the last loop; else as soon as can be. */
static uint32_t loop_of_landing(const turning *t, uint32_t index)
{
    bool early = t->recipe || t->blocks[index];
    return early ? t->landing_stage[index] - 1 : t->nloops - 1;
}

/* Which of them the loop runs: what leads to what lands behind it. */
static void find_runs(turning *t, uint32_t loop)
{
    const sf_moves *m = t->b->moves;
    bool *wanted = SF_ARRAY(&t->arena, m->nversions, bool);
    memset(t->runs, 0, m->nsteps * sizeof *t->runs);
    memset(t->landing_of, 0, m->nversions * sizeof *t->landing_of);
    t->nlandings = 0;
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index, count;
        if (m->steps[i].is_move) {
            const sf_moving *move = &m->moves[index];
            if (lands(t, move)) {
                if (loop_of_landing(t, index) == loop) {
                    landing l = {.move = index, .other = t->landing_of[move->from]};
                    SF_PUSH(&t->arena, t->landings, t->nlandings, t->landing_capacity, l);
                    t->landing_of[move->from] = t->nlandings;
                    wanted[move->from] = true;
                }
                if (version_turns(t, move->to) && wanted[move->to])
                    t->runs[i] = true;
                continue;
            }
            t->runs[i] = version_turns(t, move->to) && wanted[move->to];
            if (t->runs[i])
                wanted[move->from] = true;
            continue;
        }
        const sf_node *node = t->step->nodes[index];
        const uint32_t *reads = reads_of(t, index, &count);
        for (uint32_t r = 0; r < node->nresults; r++)
            t->runs[i] = t->runs[i] || (wanted[m->made[node->result + r]] &&
                                        version_turns(t, m->made[node->result + r]));
        for (uint32_t r = 0; r < count && t->runs[i]; r++)
            want_read(t, node, r, reads[r], wanted);
    }
}

static sf_value add_turns_condition(turning *t, sf_block *block)
{
    local_builder *b = t->b;
    b->block = block;
    for (uint32_t i = 0; i < t->body->narguments; i++)
        sf_block_argument(b->graph, block, sf_type_of(b->graph, t->body->arguments[i]));
    sf_value turn = block->arguments[0];
    return emit_compare(b, "LT", turn, emit_like(b, turn, t->turns));
}

static sf_status add_loop_node(turning *t, const sf_value *starts, sf_block *condition)
{
    local_builder *b = t->b;
    uint32_t nresults = 1 + (uint32_t)t->nlandings, count = nresults + (uint32_t)t->noperands;
    sf_value *operands = SF_ARRAY(&t->arena, count, sf_value);
    const sf_type **types = SF_ARRAY(&t->arena, nresults, const sf_type *);
    sf_layout *layouts = SF_ARRAY(&t->arena, count + nresults, sf_layout);
    const sf_attr *attrs[] = {[SF_WHILE_TRIPS] = sf_attr_int(b->graph->pool, t->turns)};
    sf_block *regions[] = {condition, t->body};
    for (uint32_t i = 0; i < count; i++) {
        operands[i] = i < nresults ? starts[i] : t->operands[i - nresults];
        if (i >= nresults)
            layouts[i] = t->operand_layouts[i - nresults];
        else if (i > 0)
            layouts[i] = layouts[count + i] = layout_of_landing(t, &t->landings[i - 1]);
        if (i < nresults)
            types[i] = sf_type_of(b->graph, operands[i]);
    }
    sf_node_spec spec = {.def = sf_opdef_get(SF_OP_WHILE),
                         .noperands = count,
                         .nresults = nresults,
                         .nregions = 2,
                         .operands = operands,
                         .types = types,
                         .attrs = attrs,
                         .regions = regions,
                         .phase = SF_BACKWARD};
    sf_node *node;
    SF_TRY(sf_build(b->graph, t->top, &spec, b->diag, &node));
    settle_node(t, node, layouts);
    for (size_t i = 0; i < t->nlandings; i++)
        close_landing(t, &t->landings[i], node->result + 1 + (sf_value)i);
    return SF_OK;
}

static sf_status add_body(turning *t)
{
    const sf_moves *m = t->b->moves;
    for (size_t i = 0; i < m->nsteps; i++) {
        if (!t->runs[i])
            continue;
        if (m->steps[i].is_move)
            SF_TRY(add_turning_move(t, m->steps[i].index));
        else
            SF_TRY(add_turning_node(t, t->step->nodes[m->steps[i].index]));
        update_landings(t, &m->steps[i]);
    }
    return SF_OK;
}

static sf_status add_loop(turning *t)
{
    local_builder *b = t->b;
    const sf_type *count = sf_type_scalar(b->graph->pool, SF_S32);
    t->body = sf_block_new(b->graph);
    t->body_versions = SF_ARRAY(&t->arena, b->moves->nversions, local_version);
    for (size_t v = 0; v < b->moves->nversions; v++)
        t->body_versions[v] = (local_version){SF_NONE, SF_NONE};
    t->noperands = 0;
    b->turn = sf_block_argument(b->graph, t->body, count);
    for (size_t i = 0; i < t->nlandings; i++) {
        t->landings[i].argument = (uint32_t)i + 1;
        open_landing(t, &t->landings[i]);
    }
    enter_body(t);
    SF_TRY(add_body(t));
    sf_value *next = SF_ARRAY(&t->arena, 1 + t->nlandings, sf_value);
    for (size_t i = 0; i < t->nlandings; i++)
        next[1 + i] = t->landings[i].next;
    note_place(b, NULL, SF_BACKWARD);
    next[0] = emit_binary(b, SF_OP_ADD, b->turn, emit_like(b, b->turn, 1));
    sf_block_return(b->graph, t->body, 1 + (uint32_t)t->nlandings, next);

    sf_block *condition = sf_block_new(b->graph);
    sf_value decision = add_turns_condition(t, condition);
    sf_block_return(b->graph, condition, 1, &decision);
    enter_top(t);
    b->turn = SF_NONE;
    sf_value *starts = SF_ARRAY(&t->arena, 1 + t->nlandings, sf_value);
    starts[0] = emit_number(b, count, 0);
    for (size_t i = 0; i < t->nlandings; i++)
        starts[1 + i] = start_of_landing(t, &t->landings[i]);
    return add_loop_node(t, starts, condition);
}

/* The step ---------------------------------------------------------------------------------------- */

/* When still values are there, now that it is known behind which loop each landing stands. */
static void find_final_stages(turning *t)
{
    const sf_moves *m = t->b->moves;
    for (size_t i = 0; i < m->nsteps; i++) {
        uint32_t index = m->steps[i].index, count, stage = 0;
        if (m->steps[i].is_move) {
            const sf_moving *move = &m->moves[index];
            if (version_turns(t, move->to))
                continue;
            t->stage[move->to] =
                lands(t, move) ? loop_of_landing(t, index) + 1 : t->stage[move->from];
            continue;
        }
        const sf_node *node = t->step->nodes[index];
        const uint32_t *reads = reads_of(t, index, &count);
        if (node_turns(t, node) && !sf_is_transparent(node))
            continue;
        for (uint32_t r = 0; r < count; r++)
            stage = later(stage, version_turns(t, reads[r]) ? 0 : t->stage[reads[r]]);
        for (uint32_t r = 0; r < node->nresults; r++)
            if (!version_turns(t, m->made[node->result + r]))
                t->stage[m->made[node->result + r]] =
                    sf_is_transparent(node) ? t->stage[reads[r]] : stage;
    }
}

static uint32_t stage_of_node(const turning *t, const sf_node *node)
{
    return node->nresults ? t->stage[t->b->moves->made[node->result]] : 0;
}

/* A still node of the top block; views are made with who reads them. */
static bool is_still(const turning *t, const sf_step_item *item)
{
    if (item->is_move)
        return false;
    const sf_node *node = t->step->nodes[item->index];
    return !sf_is_view_op(node) && !sf_is_transparent(node) && !node_turns(t, node);
}

static sf_status add_still(turning *t, const sf_node *node)
{
    uint32_t count;
    const uint32_t *reads = reads_of(t, node->id, &count);
    if (t->is_added[node->id])
        return SF_OK;
    t->is_added[node->id] = true;
    for (uint32_t r = 0; r < count; r++)
        SF_TRY(reach_top(t, reads[r]));
    SF_TRY(local_add_node(t->b, node));
    return settle_same(t, node);
}

/* What the loop at hand reads of the still nodes comes before it, wherever it stands in the step. */
static sf_status add_before_loop(turning *t)
{
    const sf_moves *m = t->b->moves;
    bool *wanted = SF_ARRAY(&t->arena, m->nversions, bool);
    bool *before = SF_ARRAY(&t->arena, m->nsteps, bool);
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index, count;
        bool needs = t->runs[i];
        if (m->steps[i].is_move) {
            const sf_moving *move = &m->moves[index];
            needs = needs || (wanted[move->to] && !lands(t, move));
            wanted[move->from] = wanted[move->from] || needs;
            continue;
        }
        const sf_node *node = t->step->nodes[index];
        const uint32_t *reads = reads_of(t, index, &count);
        for (uint32_t r = 0; r < node->nresults && !node_turns(t, node); r++)
            needs = needs || wanted[m->made[node->result + r]];
        before[i] = needs && is_still(t, &m->steps[i]);
        for (uint32_t r = 0; r < count && needs; r++)
            want_read(t, node, r, reads[r], wanted);
    }
    for (size_t i = 0; i < m->nsteps; i++)
        if (before[i])
            SF_TRY(add_still(t, t->step->nodes[m->steps[i].index]));
    return SF_OK;
}

/* All loops before the stage that are not there yet. */
static sf_status add_loops(turning *t, uint32_t stage)
{
    for (; t->nadded < stage; t->nadded++) {
        find_runs(t, t->nadded);
        SF_TRY(add_before_loop(t));
        SF_TRY(add_loop(t));
    }
    return SF_OK;
}

/* Still nodes in the order of the step, so that what is computed again stands late; a loop before the first that needs what
 * it leaves. */
static sf_status add_all(turning *t)
{
    const sf_moves *m = t->b->moves;
    enter_top(t);
    for (size_t i = 0; i < m->nsteps; i++) {
        if (!is_still(t, &m->steps[i]))
            continue;
        const sf_node *node = t->step->nodes[m->steps[i].index];
        SF_TRY(add_loops(t, stage_of_node(t, node)));
        SF_TRY(add_still(t, node));
    }
    return add_loops(t, t->nloops);
}

static void note_gradients(turning *t)
{
    sf_graph *graph = t->b->graph;
    for (uint32_t i = 0; i < t->step->top->narguments; i++) {
        sf_value gradient = t->step->arguments[i].gradient;
        uint32_t version = gradient == SF_NONE ? SF_NONE : t->b->moves->made[gradient];
        graph->arguments[i].gradient = SF_NONE;
        for (uint32_t v = version; v != SF_NONE; v = t->b->moves->versions[v].next)
            if (!version_turns(t, v) && t->top_versions[v].value != SF_NONE)
                graph->arguments[i].gradient = t->top_versions[v].value;
    }
}

static sf_status build_turned(turning *t)
{
    local_builder *b = t->b;
    SF_TRY(plan_turns(t));
    const sf_moves *m = b->moves;
    t->top = b->graph->top;
    t->top_versions = b->versions;
    t->runs = SF_ARRAY(&t->arena, m->nsteps, bool);
    t->is_added = SF_ARRAY(&t->arena, t->step->nnodes, bool);
    t->landing_of = SF_ARRAY(&t->arena, m->nversions, size_t);
    t->landed = SF_ARRAY(&t->arena, m->nmoves, sf_value);
    for (size_t i = 0; i < m->nmoves; i++)
        t->landed[i] = SF_NONE;
    find_final_stages(t);
    local_add_arguments(b);
    SF_TRY(add_all(t));
    for (uint32_t i = 0; i < t->step->top->nresults; i++)
        SF_TRY(reach_top(t, m->results[i]));
    local_add_results(b);
    note_gradients(t);
    return SF_OK;
}

/* The plan of it ---------------------------------------------------------------------------------- */

static sf_status carry_plan(turning *t, sf_turned *out)
{
    const sf_plan *from = t->space;
    const sf_graph *graph = out->graph;
    const sf_block *top = graph->top;
    sf_plan *plan = out->plan = sf_plan_of(graph, &from->mesh, from->graph);
    bool *fixed = SF_ARRAY(&t->arena, graph->nnodes, bool);
    if (top->narguments)
        memcpy(plan->arguments, from->arguments, top->narguments * sizeof *plan->arguments);
    if (top->nresults)
        memcpy(plan->results, from->results, top->nresults * sizeof *plan->results);
    for (size_t i = 0; i < t->nsettled; i++) {
        const sf_node *node = graph->nodes[t->settled[i].node];
        plan->nodes[node->id] =
            sf_arena_copy(&plan->arena, t->settled[i].layouts,
                          (node->noperands + node->nresults) * sizeof(sf_layout));
        fixed[node->id] = true;
    }
    SF_TRY(sf_plan_complete_around(graph, plan, fixed, t->b->diag));
    out->value_of = SF_ARRAY(&plan->arena, graph->nvalues, sf_value);
    for (sf_value v = 0; v < graph->nvalues; v++) {
        out->value_of[v] = v < t->b->npieces ? t->b->local->pieces[v].whole : SF_NONE;
        if (out->value_of[v] != SF_NONE)
            plan->pinned[v] = from->pinned[out->value_of[v]];
    }
    return SF_OK;
}

static sf_status open_time(turning *t, uint64_t hash)
{
    const char *const *axes = t->recipe ? sf_recipe_axes(t->recipe) : NULL;
    sf_mesh mesh = {1, {{"time", t->turns}}};
    if (!t->recipe) {
        t->time = sf_plan_of(t->step, &mesh, hash);
        return SF_OK;
    }
    if (!axes || !axes[0] || axes[1])
        return sf_fail(t->b->diag, SF_EUSAGE, SF_NOWHERE,
                       "co-shard: \"%s\" is no recipe of one axis, such as megatron", t->recipe);
    mesh.axes[0].name = axes[0];
    return sf_recipe_plan(t->step, t->recipe, t->turns, &mesh, t->b->diag, &t->time);
}

sf_status sf_turns_new(const sf_graph *graph, const sf_plan *plan, const char *recipe, int turns,
                       sf_pool *pool, sf_diag *diag, sf_turned *out)
{
    local_builder b = {.diag = diag};
    turning t = {.b = &b, .step = graph, .space = plan, .recipe = recipe, .turns = turns};
    *out = (sf_turned){0};
    SF_TRY(open_time(&t, plan->graph));
    sf_local *local = sf_alloc(sizeof *local);
    t.uses = sf_uses_of(graph, &t.arena);
    local_open(&b, local, graph, t.time, 0, pool, 0);
    sf_status status = build_turned(&t);
    if (status == SF_OK) {
        out->graph = local->graph;
        local->graph = NULL;
        status = carry_plan(&t, out);
    }
    if (status != SF_OK)
        sf_turned_free(out);
    local_close(&b);
    sf_local_free(local);
    sf_plan_free(t.time);
    sf_arena_free(&t.arena);
    return status;
}

void sf_turned_free(sf_turned *turned)
{
    sf_plan_free(turned->plan);
    sf_graph_free(turned->graph);
    *turned = (sf_turned){0};
}
