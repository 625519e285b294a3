#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "ir/clone.h"
#include "ir/name.h"
#include "local/time/microbatch_builder.h"
#include "plan/op_selector.h"
#include "plan/propagate.h"
#include "plan/recipe/batch_dimension.h"
#include "plan/recipe/batch_rows.h"
#include "plan/recipe/recipe.h"

enum { MOST_TRIES = 8 };

const sf_layout microbatch_invariant;

static uint32_t later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Finds after how many loops each version is available; returns the number of loops. */
static uint32_t find_loops(microbatching *t)
{
    const sf_reshards *m = t->b->reshards;
    uint32_t loops = 0;
    for (size_t i = 0; i < m->nsteps; i++) {
        uint32_t index = m->steps[i].index, count;
        if (m->steps[i].is_reshard) {
            const sf_resharding *reshard = &m->reshards[index];
            t->after[reshard->to] = t->after[reshard->from] + is_loop_output(t, reshard);
            t->output_after[index] = t->after[reshard->to];
            t->weighs[reshard->to] = t->weighs[reshard->from];
            if (is_microbatched_version(t, reshard->to))
                loops = later(loops, t->after[reshard->to] + 1);
            continue;
        }
        const sf_node *node = t->step->nodes[index];
        const uint32_t *reads = microbatch_reads(t, index, &count);
        uint32_t after = 0;
        bool weighs = false;
        for (uint32_t r = 0; r < count; r++) {
            after = later(after, t->after[reads[r]]);
            weighs = weighs || t->weighs[reads[r]];
        }
        for (uint32_t r = 0; r < node->nresults; r++) {
            uint32_t version = m->made[node->result + r];
            t->after[version] = sf_is_transparent(node) ? t->after[reads[r]] : after;
            t->weighs[version] = weighs;
        }
        if (is_microbatched_node(t, node))
            loops = later(loops, after + 1);
    }
    return loops;
}

/* A loop of the step that reduces over micro-batches: it would need the sum of partial values
 * inside. */
static sf_status refuse_meeting(microbatching *t)
{
    const sf_block *top = t->step->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(t->step, i);
        bool microbatches = node->def->control != SF_CONTROL_NONE && is_microbatched_node(t, node);
        for (uint32_t r = 0; r < node->nresults && microbatches; r++)
            if (!is_microbatched_version(t, t->b->reshards->made[node->result + r]) &&
                sf_uses_count(&t->uses, node->result + r) > 0)
                return sf_fail(t->b->diag, SF_EMISMATCH, node->loc,
                               "%s: a %s%s%s would need all micro-batches in each of them",
                               t->recipe ? "co-shard" : "micro-batches", node->def->name,
                               *node->scope->path ? " in " : "", node->scope->path);
    }
    return SF_OK;
}

static void find_weights(microbatching *t)
{
    const sf_block *top = t->step->top;
    for (uint32_t i = 0; i < top->narguments; i++)
        t->weighs[t->b->reshards->made[top->arguments[i]]] =
            t->step->arguments[i].role != SF_ROLE_BATCH;
}

/* Finds outputs that micro-batched nodes read, by way of nodes outside of loops. */
static void find_blocking(microbatching *t)
{
    const sf_reshards *m = t->b->reshards;
    bool *needed = SF_ARRAY(&t->arena, m->nversions, bool);
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index, count;
        if (m->steps[i].is_reshard) {
            const sf_resharding *reshard = &m->reshards[index];
            bool microbatched = is_microbatched_version(t, reshard->to);
            t->blocks[index] = is_loop_output(t, reshard) && (microbatched || needed[reshard->to]);
            if (!is_microbatched_version(t, reshard->from) && (microbatched || needed[reshard->to]))
                needed[reshard->from] = true;
            continue;
        }
        const sf_node *node = t->step->nodes[index];
        const uint32_t *reads = microbatch_reads(t, index, &count);
        bool wanted = is_microbatched_node(t, node);
        for (uint32_t r = 0; r < node->nresults; r++)
            wanted = wanted || needed[m->made[node->result + r]];
        for (uint32_t r = 0; r < count; r++)
            needed[reads[r]] =
                needed[reads[r]] || (wanted && !is_microbatched_version(t, reads[r]));
    }
}

/* The plan in time */

/* The batch along the dimension that people split over ranks, in its minor digit. */
static sf_status pin_turns(microbatching *t)
{
    const sf_graph *graph = t->step;
    sf_graph *opened = sf_graph_clone_iteration(graph);
    sf_uses uses = sf_uses_of(opened, &t->arena);
    const char **names = sf_clean_names(graph, &t->arena);
    const char **pins = SF_ARRAY(&t->arena, graph->top->narguments, const char *);
    sf_status status = SF_OK;
    int count = 0;
    for (uint32_t i = 0; i < graph->top->narguments && status == SF_OK; i++) {
        const sf_type *type = sf_argument_type(graph, i);
        if (!sf_has_rows(graph, i))
            continue;
        sf_share share = sf_batch_share(opened, &uses, i, 0, t->microbatches);
        if (share.kind != SF_SPLIT) {
            status = sf_fail(t->b->diag, SF_EMISMATCH, SF_NOWHERE,
                             "micro-batches: dimension 0 of %s, of size %" PRId64
                             ", does not split into %d equal parts",
                             names[i], type->dims[0], t->microbatches);
            continue;
        }
        sf_buf pin = {0};
        sf_buf_printf(&pin, "/%s=S(%d,%d)@time", names[i], share.dim, t->microbatches);
        pins[count++] = sf_arena_string(&t->arena, pin.text, pin.length);
        sf_buf_free(&pin);
    }
    sf_graph_free(opened);
    SF_TRY(status);
    if (count == 0)
        return sf_fail(t->b->diag, SF_EMISMATCH, SF_NOWHERE,
                       "micro-batches: no argument of the step is a batch");
    return sf_plan_add_pins(t->time, count, pins, t->b->diag);
}

/* Splits of a recipe, or of chosen factors, become chunks where they are possible; the update works
 * on whole tensors. */
static sf_status plan_by_recipe(microbatching *t)
{
    const sf_block *top = t->step->top;
    sf_choice_list chosen = {0};
    bool any = false;
    if (sf_is_choice_text(t->recipe))
        SF_TRY(
            sf_choose_by_text(t->step, t->recipe, t->microbatches, &t->arena, t->b->diag, &chosen));
    SF_TRY(sf_plan_propagate_chosen(t->step, t->time, chosen.count, chosen.at, t->b->diag));
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(t->step, i);
        uint32_t count = node->noperands + node->nresults;
        if ((node->phase == SF_UPDATE || (t->may && !t->may[node->id])) && count > 0)
            memset(t->time->nodes[node->id], 0, count * sizeof *t->time->nodes[node->id]);
        any = any || is_microbatched_node(t, node);
    }
    if (any)
        return SF_OK;
    return sf_fail(t->b->diag, SF_EMISMATCH, SF_NOWHERE, "co-shard: %s splits nothing%s%s",
                   t->recipe, t->in && *t->in ? " in " : "", t->in ? t->in : "");
}

/* An op that only writes its operand into a larger tensor. */
static bool puts_into(const sf_node *node)
{
    return sf_is(node, SF_OP_DYNAMIC_UPDATE_SLICE) || sf_is(node, SF_OP_CONCATENATE) ||
           sf_is(node, SF_OP_PAD);
}

/* A partial value that another stage reads to make something once (plan/pipeline/stage.h), or that
 * pipeline ranks reduce, is summed first: so it is sent once, and not in every micro-batch. So is a
 * value that is written into a stack of gradients, which is then made once. */
static void settle_crossing(microbatching *t)
{
    const sf_block *top = t->step->top;
    bool *settled = SF_ARRAY(&t->arena, t->step->nnodes, bool);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(t->step, i);
        sf_layout *layouts = t->time->nodes[node->id];
        for (uint32_t o = 0; o < node->noperands && !settled[node->id]; o++) {
            const sf_node *maker = sf_maker(t->step, node->operands[o]);
            if (!maker || layouts[o].axes[MICROBATCH_AXIS].kind != SF_PARTIAL)
                continue;
            bool crosses = !t->stages->anywhere[maker->id] && !t->stages->anywhere[node->id] &&
                           t->stages->of_node[maker->id] != t->stages->of_node[node->id];
            settled[node->id] =
                ((crosses || settled[maker->id]) && sf_makes_once(t->stages, node)) ||
                sf_is_between_groups(node) || (t->stages->late[node->id] && puts_into(node));
        }
        if (settled[node->id])
            microbatch_settle_node(t, node);
    }
}

static sf_status plan_batch(microbatching *t)
{
    if (t->microbatches == 1)
        return SF_OK;
    SF_TRY(pin_turns(t));
    SF_TRY(sf_plan_propagate(t->step, t->time, t->b->diag));
    if (t->stages)
        settle_crossing(t);
    return SF_OK;
}

sf_status microbatch_plan(microbatching *t)
{
    const sf_block *top = t->step->top;
    if (!t->is_given)
        SF_TRY(t->recipe ? plan_by_recipe(t) : plan_batch(t));
    /* Arguments come, and results go, whole. */
    memset(t->time->arguments, 0, top->narguments * sizeof *t->time->arguments);
    memset(t->time->results, 0, top->nresults * sizeof *t->time->results);
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        bool recomputed;
        SF_TRY(local_prepare(t->b));
        const sf_reshards *m = t->b->reshards;
        t->after = SF_ARRAY(&t->arena, m->nversions, uint32_t);
        t->weighs = SF_ARRAY(&t->arena, m->nversions, bool);
        t->blocks = SF_ARRAY(&t->arena, m->nreshards, bool);
        t->output_after = SF_ARRAY(&t->arena, m->nreshards, uint32_t);
        find_weights(t);
        t->nloops = find_loops(t);
        find_blocking(t);
        recomputed = false;
        if (!t->recipe)
            SF_TRY(microbatch_settle_blocking(t, &recomputed));
        if (!recomputed)
            return refuse_meeting(t);
    }
    return sf_fail(t->b->diag, SF_EMISMATCH, SF_NOWHERE,
                   "micro-batches: the step cannot be micro-batched");
}

/* Opening */

static sf_status open_recipe(microbatching *t, sf_mesh *mesh)
{
    const char *const *axes = sf_recipe_axes(t->recipe);
    if (!axes || !axes[0] || axes[1])
        return sf_fail(t->b->diag, SF_EUSAGE, SF_NOWHERE,
                       "co-shard: \"%s\" is no recipe of one axis, such as megatron, nor a list "
                       "such as 4@layer_0,2",
                       t->recipe);
    mesh->axes[0].name = axes[0];
    return sf_recipe_plan(t->step, t->recipe, t->microbatches, mesh, t->b->diag, &t->time);
}

sf_status microbatch_open(microbatching *t)
{
    sf_mesh mesh = {1, {{"time", t->microbatches}}};
    t->uses = sf_uses_of(t->step, &t->arena);
    t->is_given = t->time != NULL;
    if (t->is_given)
        return SF_OK;
    if (t->recipe && !sf_is_choice_text(t->recipe))
        SF_TRY(open_recipe(t, &mesh));
    else
        t->time = sf_plan_of(t->step, &mesh, t->space->graph);
    return SF_OK;
}

sf_status sf_microbatch_plan(const sf_graph *graph, const sf_plan *plan, const sf_stages *stages,
                             int microbatches, sf_pool *pool, sf_diag *diag, sf_plan **out)
{
    local_builder b = {.diag = diag};
    microbatching t = {
        .b = &b, .step = graph, .space = plan, .microbatches = microbatches, .stages = stages};
    sf_local *local = sf_alloc(sizeof *local);
    sf_status status = microbatch_open(&t);
    if (status == SF_OK) {
        local_open(&b, local, graph, t.time, 0, pool, 0);
        status = microbatch_plan(&t);
        local_close(&b);
    }
    local_free(local);
    if (status == SF_OK)
        *out = t.time;
    else
        sf_plan_free(t.time);
    sf_arena_free(&t.arena);
    return status;
}
