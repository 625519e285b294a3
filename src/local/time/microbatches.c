#include "local/time/microbatches.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "local/time/microbatch_loop.h"
#include "op/node_builder.h"
#include "op/slots.h"
#include "prog/view.h"

/* Blocks */

static void enter_top(looping *o)
{
    o->t->b->block = o->top;
    o->t->b->versions = o->top_versions;
}

static void enter_body(looping *o)
{
    o->t->b->block = o->body;
    o->t->b->versions = o->body_versions;
}

/* A value of the top block, inside of the loop: all of a value of the step. */
static sf_value give(looping *o, sf_value value, sf_value whole, const sf_layout *layout)
{
    for (size_t i = 0; i < o->noperands; i++)
        if (o->operands[i] == value)
            return o->body->arguments[1 + o->nloop_outputs + i];
    size_t count = o->noperands;
    SF_PUSH(&o->t->arena, o->operands, count, o->operand_capacity, value);
    SF_PUSH(&o->t->arena, o->operand_layouts, o->noperands, o->layout_capacity, *layout);
    sf_value argument =
        sf_block_argument(o->t->b->graph, o->body, sf_type_of(o->t->b->graph, value));
    local_record(o->t->b, argument, whole, &microbatch_invariant);
    return argument;
}

/* In its own layout, so that gathered tensors need not be kept between micro-batches; but sums are
 * complete. */
static const sf_layout *layout_of_given(const looping *o, sf_value value)
{
    const sf_layout *layout = sf_plan_layout(o->t->space, o->t->step, value);
    return sf_layout_is_partial(layout) ? &microbatch_invariant : layout;
}

/* A node outside of loops that is emitted with its readers, in the loop and outside. */
static const sf_node *view_behind(const looping *o, uint32_t version)
{
    const sf_value_version *v = &o->t->b->reshards->versions[version];
    const sf_node *maker = sf_maker(o->t->step, v->value);
    bool stands = maker && loop_stands_with_readers(maker);
    return stands && v->reshard == SF_NONE && !is_microbatched_version(o->t, version) ? maker
                                                                                      : NULL;
}

/* Emits a view of its operands here; of a barrier, the requested operand. */
static sf_status add_view(looping *o, const sf_node *node, uint32_t result)
{
    if (sf_is_transparent(node)) {
        microbatch_add_barrier(o->t, node, result);
        return SF_OK;
    }
    size_t first = o->t->b->graph->nnodes;
    SF_TRY(local_add_node(o->t->b, node));
    microbatch_note_origin(o->t, first, node);
    return microbatch_settle_same(o->t, node);
}

/* Wants the versions of which a view is one, the first of them first. */
static size_t want_reads(looping *o, const sf_node *view, uint32_t result, size_t depth)
{
    uint32_t count;
    const uint32_t *reads = microbatch_reads(o->t, view->id, &count);
    for (uint32_t r = count; r-- > 0;) {
        if (sf_is_transparent(view) && r != result)
            continue;
        wanting w = {o->t->b->reshards->versions[reads[r]].same, false};
        SF_PUSH(&o->t->arena, o->wanted, depth, o->wanted_capacity, w);
    }
    return depth;
}

/* Brings a version here, in the loop or outside, after the views that lead to it: chains of them are long. */
static sf_status reach(looping *o, uint32_t version, bool in_body)
{
    const sf_reshards *m = o->t->b->reshards;
    size_t depth = 0;
    wanting first = {m->versions[version].same, false};
    SF_PUSH(&o->t->arena, o->wanted, depth, o->wanted_capacity, first);
    while (depth > 0) {
        wanting *w = &o->wanted[depth - 1];
        uint32_t at = w->version;
        const sf_node *view = view_behind(o, at);
        const local_version *here = in_body ? o->body_versions : o->top_versions;
        bool is_there =
            here[at].value != SF_NONE || (in_body ? is_microbatched_version(o->t, at) : !view);
        uint32_t result = view ? m->versions[at].value - view->result : 0;
        bool opens = !is_there && view && !w->is_opened;
        w->is_opened = true;
        if (opens) {
            depth = want_reads(o, view, result, depth);
            continue;
        }
        depth--;
        if (is_there)
            continue;
        if (view) {
            SF_TRY(add_view(o, view, result));
            continue;
        }
        enter_top(o);
        sf_value value = local_value(o->t->b, at);
        enter_body(o);
        o->body_versions[at].value =
            give(o, value, m->versions[at].value, layout_of_given(o, m->versions[at].value));
    }
    return SF_OK;
}

static sf_status reach_top(looping *o, uint32_t version)
{
    return reach(o, version, false);
}

static sf_status reach_version(looping *o, uint32_t version)
{
    return reach(o, version, true);
}

static sf_status add_turning_node(looping *o, const sf_node *node)
{
    uint32_t count;
    const uint32_t *reads = microbatch_reads(o->t, node->id, &count);
    for (uint32_t r = 0; r < node->nresults && sf_is_transparent(node); r++)
        if (is_microbatched_version(o->t, reads[r]) && o->body_versions[reads[r]].value != SF_NONE)
            microbatch_add_barrier(o->t, node, r);
    if (sf_is_transparent(node))
        return SF_OK;
    for (uint32_t r = 0; r < count; r++)
        SF_TRY(reach_version(o, reads[r]));
    size_t inner = o->t->b->local->ninner;
    SF_TRY(local_add_node(o->t->b, node));
    for (; inner < o->t->b->local->ninner; inner++)
        if (o->t->b->local->inner[inner].local->nsent > 0)
            return sf_fail(o->t->b->diag, SF_EMISMATCH, node->loc,
                           "%s: a %s would need all micro-batches in each of them",
                           o->t->recipe ? "co-shard" : "micro-batches", node->def->name);
    return microbatch_settle_same(o->t, node);
}

/* A micro-batch's part of a whole value. */
static sf_status add_turning_move(looping *o, uint32_t index)
{
    const sf_resharding *reshard = &o->t->b->reshards->reshards[index];
    if (sf_is_local_reshard(reshard->kind)) {
        SF_TRY(reach_version(o, reshard->from));
        local_make_reshard(o->t->b, index);
        return SF_OK;
    }
    const sf_node *maker = sf_maker(o->t->step, reshard->value);
    local_resharding m = {.whole = sf_type_of(o->t->step, reshard->value),
                          .before = &microbatch_invariant,
                          .after = o->t->b->reshards->versions[reshard->to].layout,
                          .kind = SF_RESHARD_SLICE,
                          .axes = 1u << MICROBATCH_AXIS};
    sf_value whole = give(o, o->landed[index], reshard->value, layout_of_given(o, reshard->value));
    local_note_place(o->t->b, maker, reshard->phase);
    local_set(o->t->b, reshard->to, local_reshard_alone(o->t->b, whole, &m));
    return SF_OK;
}

/* Loop outputs */

static void update_output(looping *o, leaving *l)
{
    l->next = loop_output_add(o->t, &l->of, o->body->arguments[l->argument], o->t->b->microbatch);
}

/* Right after their makers, so that parts need not live until the end of the micro-batch. */
static void update_outputs(looping *o, const sf_step_item *item)
{
    const sf_reshards *m = o->t->b->reshards;
    const sf_node *node = item->is_reshard ? NULL : o->t->step->nodes[item->index];
    uint32_t count = node ? node->nresults : 1;
    if (count == 0)
        return;
    uint32_t first = node ? m->made[node->result] : m->reshards[item->index].to;
    for (uint32_t v = first; v < first + count; v++)
        for (size_t at = o->output_of[v]; at > 0; at = o->loop_outputs[at - 1].other)
            update_output(o, &o->loop_outputs[at - 1]);
}

/* The output of the loop, in the type and shape of the step. */
static void close_output(looping *o, const leaving *l, sf_value value)
{
    const sf_resharding *reshard = &o->t->b->reshards->reshards[l->of.reshard];
    local_resharding m = loop_output_reshard(o->t, &l->of);
    sf_value narrow = loop_output_end(o->t, &l->of, value);
    if (is_microbatched_version(o->t, reshard->to)) {
        o->landed[l->of.reshard] = local_reshard_after(o->t->b, narrow, &m);
        return;
    }
    o->top_versions[reshard->to].raw = narrow;
    if (o->t->recipe) /* where it was made: it may be read in several stages */
        local_value(o->t->b, reshard->to);
}

static sf_value add_turns_condition(looping *o, sf_block *block)
{
    local_builder *b = o->t->b;
    b->block = block;
    for (uint32_t i = 0; i < o->body->narguments; i++)
        sf_block_argument(b->graph, block, sf_type_of(b->graph, o->body->arguments[i]));
    sf_value microbatch = block->arguments[0];
    return emit_compare(b, "LT", microbatch, emit_like(b, microbatch, o->t->microbatches));
}

/* The phase of its last output; an update is never a whole loop. */
static sf_phase phase_of_loop(const looping *o)
{
    sf_phase last = SF_FORWARD;
    for (size_t i = 0; i < o->nloop_outputs; i++) {
        sf_value value = o->t->b->reshards->reshards[o->loop_outputs[i].of.reshard].value;
        const sf_node *maker = sf_maker(o->t->step, value);
        last = maker && maker->phase != SF_FORWARD ? SF_BACKWARD : last;
    }
    return last;
}

/* The maker of the first loop output; NULL: an argument. */
static const sf_node *maker_of_output(const looping *o)
{
    return sf_maker(o->t->step, o->t->b->reshards->reshards[o->loop_outputs[0].of.reshard].value);
}

/* The scope of its first output's maker; the loop over the batch has none. */
static const sf_scope *scope_of_loop(const looping *o)
{
    const sf_node *maker = maker_of_output(o);
    return o->t->recipe && maker ? maker->scope : NULL;
}

/* The loop, and the nodes that reshape its outputs, belong together: to one stage and pass. */
static void note_loop(looping *o, const sf_node *loop)
{
    const sf_graph *graph = o->t->b->graph;
    microbatch_note_origin(o->t, loop->id, maker_of_output(o));
    for (size_t n = loop->id; n < graph->nnodes && o->t->recipe; n++)
        graph->nodes[n]->phase = loop->phase;
}

static sf_status add_loop_node(looping *o, const sf_value *starts, sf_block *condition)
{
    local_builder *b = o->t->b;
    uint32_t nresults = 1 + (uint32_t)o->nloop_outputs, count = nresults + (uint32_t)o->noperands;
    sf_value *operands = SF_ARRAY(&o->t->arena, count, sf_value);
    const sf_type **types = SF_ARRAY(&o->t->arena, nresults, const sf_type *);
    sf_layout *layouts = SF_ARRAY(&o->t->arena, count + nresults, sf_layout);
    const sf_attr *attrs[] = {
        [SF_WHILE_TRIPS] = sf_attr_int(b->graph->pool, o->t->microbatches), [SF_WHILE_SAID] = NULL};
    sf_block *regions[] = {condition, o->body};
    for (uint32_t i = 0; i < count; i++) {
        operands[i] = i < nresults ? starts[i] : o->operands[i - nresults];
        if (i >= nresults)
            layouts[i] = o->operand_layouts[i - nresults];
        else if (i > 0)
            layouts[i] = layouts[count + i] = loop_output_layout(o->t, &o->loop_outputs[i - 1].of);
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
                         .scope = scope_of_loop(o),
                         .phase = phase_of_loop(o)};
    sf_node *node;
    SF_TRY(sf_build(b->graph, o->top, &spec, b->diag, &node));
    microbatch_settle(o->t, node, layouts);
    for (size_t i = 0; i < o->nloop_outputs; i++)
        close_output(o, &o->loop_outputs[i], node->result + 1 + (sf_value)i);
    note_loop(o, node);
    return SF_OK;
}

static sf_status add_body(looping *o)
{
    const sf_reshards *m = o->t->b->reshards;
    o->t->b->least = o->t->recipe ? phase_of_loop(o) : SF_FORWARD;
    for (size_t i = 0; i < o->running.count; i++) {
        const sf_step_item *item = &m->steps[o->running.at[i]];
        if (item->is_reshard)
            SF_TRY(add_turning_move(o, item->index));
        else
            SF_TRY(add_turning_node(o, o->t->step->nodes[item->index]));
        update_outputs(o, item);
    }
    o->t->b->least = SF_FORWARD;
    return SF_OK;
}

static sf_status add_loop(looping *o)
{
    local_builder *b = o->t->b;
    const sf_type *count = sf_type_scalar(b->graph->pool, SF_S32);
    o->body = sf_block_new(b->graph);
    for (size_t v = 0; v < b->reshards->nversions; v++)
        o->body_versions[v] = (local_version){SF_NONE, SF_NONE};
    o->noperands = 0;
    b->microbatch = sf_block_argument(b->graph, o->body, count);
    for (size_t i = 0; i < o->nloop_outputs; i++) {
        o->loop_outputs[i].argument = (uint32_t)i + 1;
        sf_block_argument(b->graph, o->body, o->loop_outputs[i].of.type);
    }
    enter_body(o);
    SF_TRY(add_body(o));
    sf_value *next = SF_ARRAY(&o->t->arena, 1 + o->nloop_outputs, sf_value);
    for (size_t i = 0; i < o->nloop_outputs; i++)
        next[1 + i] = o->loop_outputs[i].next;
    local_note_place(b, NULL, SF_BACKWARD);
    next[0] = emit_binary(b, SF_OP_ADD, b->microbatch, emit_like(b, b->microbatch, 1));
    sf_block_return(b->graph, o->body, 1 + (uint32_t)o->nloop_outputs, next);

    sf_block *condition = sf_block_new(b->graph);
    sf_value decision = add_turns_condition(o, condition);
    sf_block_return(b->graph, condition, 1, &decision);
    enter_top(o);
    b->microbatch = SF_NONE;
    sf_value *starts = SF_ARRAY(&o->t->arena, 1 + o->nloop_outputs, sf_value);
    starts[0] = emit_number(b, count, 0);
    for (size_t i = 0; i < o->nloop_outputs; i++)
        starts[1 + i] = loop_output_start(o->t, &o->loop_outputs[i].of);
    return add_loop_node(o, starts, condition);
}

/* The step */

static uint32_t loops_before(const looping *o, const sf_node *node)
{
    return node->nresults ? o->t->after[o->t->b->reshards->made[node->result]] : 0;
}

static sf_status add_invariant(looping *o, const sf_node *node)
{
    uint32_t count;
    const uint32_t *reads = microbatch_reads(o->t, node->id, &count);
    if (o->is_added[node->id])
        return SF_OK;
    o->is_added[node->id] = true;
    for (uint32_t r = 0; r < count; r++)
        SF_TRY(reach_top(o, reads[r]));
    size_t first = o->t->b->graph->nnodes;
    SF_TRY(local_add_node(o->t->b, node));
    microbatch_note_origin(o->t, first, node);
    return microbatch_settle_same(o->t, node);
}

/* Nodes outside of loops whose results the loop reads come before it, wherever they are in the
 * step. */
static sf_status add_before_loop(looping *o)
{
    const sf_reshards *m = o->t->b->reshards;
    for (size_t i = 0; i < o->before.count; i++)
        SF_TRY(add_invariant(o, o->t->step->nodes[m->steps[o->before.at[i]].index]));
    return SF_OK;
}

/* The parts of a loop that are apart. */
static sf_status add_parts(looping *o, uint32_t number)
{
    for (size_t i = 0; i < o->nends; i++) {
        if (o->ends[i].at->number != number)
            continue;
        loop_find_runs(o, &o->ends[i]);
        SF_TRY(add_before_loop(o));
        SF_TRY(add_loop(o));
    }
    return SF_OK;
}

/* The first so many loops, where they are not there yet. */
static sf_status add_loops(looping *o, uint32_t count)
{
    for (; o->nadded < count; o->nadded++)
        SF_TRY(add_parts(o, o->nadded));
    return SF_OK;
}

/* Nodes outside of loops in the order of the step, so that recompute comes late; each loop comes
 * before the first reader of its outputs. */
static sf_status add_all(looping *o)
{
    const sf_reshards *m = o->t->b->reshards;
    enter_top(o);
    for (size_t i = 0; i < m->nsteps; i++) {
        if (!loop_is_invariant(o, &m->steps[i]))
            continue;
        const sf_node *node = o->t->step->nodes[m->steps[i].index];
        SF_TRY(add_loops(o, loops_before(o, node)));
        SF_TRY(add_invariant(o, node));
    }
    return add_loops(o, o->t->nloops);
}

static void note_gradients(looping *o)
{
    sf_graph *graph = o->t->b->graph;
    for (uint32_t i = 0; i < o->t->step->top->narguments; i++) {
        sf_value gradient = o->t->step->arguments[i].gradient;
        uint32_t version = gradient == SF_NONE ? SF_NONE : o->t->b->reshards->made[gradient];
        graph->arguments[i].gradient = SF_NONE;
        for (uint32_t v = version; v != SF_NONE; v = o->t->b->reshards->versions[v].next)
            if (!is_microbatched_version(o->t, v) && o->top_versions[v].value != SF_NONE)
                graph->arguments[i].gradient = o->top_versions[v].value;
    }
}

static sf_status build_transposed(void *context)
{
    looping *o = context;
    local_builder *b = o->t->b;
    SF_TRY(microbatch_plan(o->t));
    const sf_reshards *m = b->reshards;
    o->top = b->graph->top;
    o->top_versions = b->versions;
    o->runs = SF_ARRAY(&o->t->arena, m->nsteps, bool);
    o->is_added = SF_ARRAY(&o->t->arena, o->t->step->nnodes, bool);
    o->output_of = SF_ARRAY(&o->t->arena, m->nversions, size_t);
    o->body_versions = SF_ARRAY(&o->t->arena, m->nversions, local_version);
    o->landed = SF_ARRAY(&o->t->arena, m->nreshards, sf_value);
    for (size_t i = 0; i < m->nreshards; i++)
        o->landed[i] = SF_NONE;
    loop_find_places(o);
    loop_find_ends(o);
    local_add_arguments(b);
    SF_TRY(add_all(o));
    for (uint32_t i = 0; i < o->t->step->top->nresults; i++)
        SF_TRY(reach_top(o, m->results[i]));
    local_add_results(b);
    note_gradients(o);
    return SF_OK;
}

sf_status sf_microbatched_new(const sf_graph *graph, const sf_plan *plan,
                              const sf_microbatch_request *request, sf_pool *pool, sf_diag *diag,
                              sf_microbatched *out)
{
    local_builder b = {.diag = diag};
    microbatching t = {.b = &b,
                       .step = graph,
                       .space = plan,
                       .time = request->time,
                       .recipe = request->recipe,
                       .may = request->may,
                       .in = request->in,
                       .apart = request->apart,
                       .microbatches = request->microbatches};
    looping o = {.t = &t};
    return microbatch_build(&t, pool, build_transposed, &o, out);
}
