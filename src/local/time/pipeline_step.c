#include "local/time/pipeline_step.h"

#include "ir/clone.h"
#include "ir/name.h"
#include "local/time/pipeline_builder.h"
#include "op/slots.h"

/* Messages */

static const sf_node *add_message(piping *p, const pipe_message *m, sf_opcode code,
                                  sf_value *operand, const sf_type *type)
{
    local_builder *b = p->t->b;
    sf_pool *pool = b->graph->pool;
    sf_buf name = {0};
    const sf_value_version *v = &b->reshards->versions[m->version];
    const char *what = sf_value_name(p->t->step, v->value, &name);
    const sf_attr *attrs[SF_MESSAGE_SLOTS] = {
        [SF_COLLECTIVE_AXES] = sf_attr_int(pool, 1 << p->pipeline->axis),
        [SF_COLLECTIVE_SIZE] = sf_attr_int(pool, p->pipe->ngroups),
        [SF_COLLECTIVE_NUMBER] = sf_attr_int(pool, m->number),
        [SF_COLLECTIVE_WHAT] = sf_attr_text(pool, sf_str_of(what)),
        [SF_COLLECTIVE_MICROBATCH] = sf_attr_int(pool, pipe_microbatch_of(p, m->run)),
        [SF_MESSAGE_PEER] = sf_attr_int(pool, operand ? m->to : m->from),
        [SF_MESSAGE_ARRIVED] = m->arrived > 0 ? sf_attr_int(pool, m->arrived) : NULL,
    };
    sf_buf_free(&name);
    sf_node_spec spec = {.def = sf_opdef_get(code),
                         .noperands = operand ? 1 : 0,
                         .operands = operand,
                         .nresults = operand ? 0 : 1,
                         .types = &type,
                         .attrs = attrs,
                         .scope = b->scope,
                         .phase = b->phase,
                         .loc = b->loc};
    const sf_node *node = sf_graph_add(b->graph, b->block, &spec);
    sf_layout layout = pipe_message_layout(p, m->version);
    microbatch_settle(p->t, node, &layout);
    return node;
}

static void enter_run(piping *p, uint32_t run, bool microbatches)
{
    p->t->b->versions = p->versions[microbatches ? run : p->nruns];
    p->t->b->rank = (int)pipe_microbatch_of(p, run);
}

static void note_where(piping *p, sf_value value)
{
    const sf_node *maker = sf_maker(p->t->step, value);
    local_note_place(p->t->b, maker, maker ? maker->phase : SF_FORWARD);
}

/* A sum is in memory after each micro-batch: parts that waited for the last micro-batch would be as
 * many as there are micro-batches. */
static sf_value hold_sum(piping *p, const loop_output *l, sf_value sum)
{
    local_builder *b = p->t->b;
    sf_layout layout = loop_output_layout(p->t, l), layouts[2] = {layout, layout};
    sf_value held =
        emit_op(b, SF_OP_OPTIMIZATION_BARRIER, 1, &sum, NULL, sf_type_of(b->graph, sum));
    microbatch_settle(p->t, sf_maker(b->graph, held), layouts);
    return held;
}

/* Rows of a micro-batch that another pipeline rank makes are concatenated where they arrive. */
static bool is_output_here(const piping *p, const sf_resharding *reshard, uint32_t run,
                           bool is_received)
{
    uint64_t hosts = pipe_output_hosts(p, reshard, 0);
    bool is_sum = sf_move_reduces(reshard->kind);
    if (run / p->nmicrobatches != pipe_first_run(p, reshard) / p->nmicrobatches)
        return false;
    if (p->wanted[pipe_instance(p, reshard->to, 0)] == 0 || (is_sum && is_received))
        return false;
    return is_sum || hosts == 0 || (hosts >> p->group & 1);
}

/* The part of a micro-batch in its accumulated results. */
static void output_version(piping *p, uint32_t version, uint32_t run, bool is_received)
{
    local_builder *b = p->t->b;
    for (uint32_t at = p->output_of[version]; at > 0; at = p->next_output[at - 1]) {
        const sf_resharding *reshard = &b->reshards->reshards[at - 1];
        loop_output *l = &p->loop_outputs[at - 1];
        sf_value *sum = &p->sums[at - 1];
        if (!is_output_here(p, reshard, run, is_received))
            continue;
        if (!l->type)
            *l = loop_output_of(p->t, at - 1);
        if (*sum == SF_NONE && !l->is_sum)
            *sum = loop_output_start(p->t, l);
        sf_value number = l->is_sum ? SF_NONE
                                    : emit_number(b, sf_type_scalar(b->graph->pool, SF_S32),
                                                  pipe_microbatch_of(p, run));
        *sum = loop_output_add(p->t, l, *sum, number);
        if (l->is_sum)
            *sum = hold_sum(p, l, *sum);
    }
}

static sf_value receive_value(piping *p, const pipe_message *m)
{
    local_builder *b = p->t->b;
    const sf_value_version *v = &b->reshards->versions[m->version];
    note_where(p, v->value);
    const sf_type *type = local_type(b, sf_type_of(p->t->step, v->value), v->layout);
    return add_message(p, m, SF_OP_RECEIVE, NULL, type)->result;
}

static void receive_message(piping *p, const pipe_message *m)
{
    local_builder *b = p->t->b;
    enter_run(p, m->run, is_microbatched_version(p->t, m->version));
    sf_value value = receive_value(p, m);
    if (!m->is_part) {
        local_set(b, m->version, value);
        output_version(p, m->version, m->run, true);
        return;
    }
    const sf_value_version *v = &b->reshards->versions[m->version];
    uint32_t reshard = v->reshard;
    local_record(b, value, v->value, v->layout); /* a part of it, as who sends it says, too */
    p->sums[reshard] = loop_output_join(p->t, &p->loop_outputs[reshard], p->sums[reshard], value);
}

/* All messages from that pipeline rank up to this one: in the order in which they were sent. */
static void receive_up_to(piping *p, const pipe_message *m)
{
    pipe_channel *c = &p->channels[m->from];
    while ((int64_t)c->received <= m->number)
        receive_message(p, &p->messages[c->at[c->received++]]);
}

/* A value that is needed now and made elsewhere. It is received here, and not before, so that no
 * node that waits for it precedes sends; lowering lets it begin earlier (prog/order.c). */
static void receive_version(piping *p, uint32_t version, uint32_t run)
{
    for (uint32_t i = p->incoming[pipe_instance(p, version, run)]; i > 0;
         i = p->messages[i - 1].next)
        receive_up_to(p, &p->messages[i - 1]);
}

static void send_message(piping *p, const pipe_message *m)
{
    local_builder *b = p->t->b;
    sf_value value = local_value(b, m->version);
    note_where(p, b->reshards->versions[m->version].value);
    add_message(p, m, SF_OP_SEND, &value, NULL);
}

static void send_version(piping *p, uint32_t version, uint32_t run, bool is_part)
{
    size_t at = pipe_instance(p, version, run);
    for (uint32_t i = p->outgoing[at]; i > 0; i = p->messages[i - 1].next)
        if (p->messages[i - 1].is_part == is_part && !p->messages[i - 1].is_deferred)
            send_message(p, &p->messages[i - 1]);
}

/* Deferred messages follow those of the task at the place. */
static void send_deferred(piping *p, uint32_t place)
{
    enter_run(p, 0, false);
    for (size_t i = 0; i < p->nmessages; i++) {
        const pipe_message *m = &p->messages[i];
        if (m->from == p->group && m->is_deferred && m->sent_at == place)
            send_message(p, m);
    }
}

/* They are received when they are sent, not when they are needed: others of their sender follow. */
static void receive_deferred(piping *p, uint32_t place)
{
    for (size_t i = 0; i < p->nmessages; i++) {
        const pipe_message *m = &p->messages[i];
        if (m->to == p->group && m->is_deferred && m->due_at == place)
            receive_up_to(p, m);
    }
}

/* Emitting */

/* Invariant values are the same in every micro-batch. */
static void bring_invariant(piping *p, uint32_t version)
{
    uint32_t at = pipe_same(p, version);
    if (!is_microbatched_version(p->t, at))
        p->t->b->versions[at] = p->versions[p->nruns][at];
}

/* A value that a task reads but that comes after the task, as when an update that works on
 * micro-batches leads to other tasks. */
static sf_status check_there(const piping *p, uint32_t version, uint32_t run)
{
    const local_builder *b = p->t->b;
    const local_version *v =
        &p->versions[is_microbatched_version(p->t, version) ? run : p->nruns][version];
    if (v->value != SF_NONE || v->raw != SF_NONE)
        return SF_OK;
    sf_buf name = {0};
    sf_value value = b->reshards->versions[version].value;
    const sf_node *maker = sf_maker(p->t->step, value);
    sf_status status = sf_fail(b->diag, SF_EMISMATCH, maker ? maker->loc : SF_NOWHERE,
                               "a pipeline cannot run this step: %s is needed before it is there",
                               sf_value_name(p->t->step, value, &name));
    sf_buf_free(&name);
    return status;
}

static sf_status bring_reads(piping *p, uint32_t count, const uint32_t *reads, uint32_t run,
                             bool microbatches)
{
    for (uint32_t r = 0; r < count; r++) {
        uint32_t at = pipe_same(p, reads[r]);
        receive_version(p, at, run);
        SF_TRY(check_there(p, at, run));
        if (!microbatches || is_microbatched_version(p->t, at))
            continue;
        enter_run(p, run, false);
        local_value(p->t->b, at); /* a sum is reshaped once, for all readers */
        enter_run(p, run, true);
        bring_invariant(p, at);
    }
    enter_run(p, run, microbatches);
    return SF_OK;
}

/* How many collectives these pipeline ranks have had. */
static int64_t count_together(piping *p, int64_t groups)
{
    for (size_t i = 0; i < p->ntogether; i++)
        if (p->together[i].groups == groups)
            return p->together[i].count++;
    pipe_together first = {groups, 1};
    SF_PUSH(&p->t->arena, p->together, p->ntogether, p->together_capacity, first);
    return 0;
}

/* Messages of one micro-batch differ from those of the next. */
static void number_collective(piping *p, const sf_node *node, uint32_t run)
{
    sf_graph *graph = p->t->b->graph;
    sf_value value = p->t->b->versions[p->t->b->reshards->made[node->result]].value;
    sf_node *added = graph->nodes[graph->values[value].node];
    const sf_attr **attrs =
        sf_arena_copy(&graph->arena, added->attrs, (size_t)added->def->nattrs * sizeof *attrs);
    int64_t groups = attrs[SF_COLLECTIVE_GROUPS]->integer;
    attrs[SF_COLLECTIVE_NUMBER] = sf_attr_int(graph->pool, count_together(p, groups));
    attrs[SF_COLLECTIVE_MICROBATCH] = sf_attr_int(graph->pool, pipe_microbatch_of(p, run));
    added->attrs = attrs;
}

static sf_status add_doing_node(piping *p, const sf_node *node, uint32_t run)
{
    uint32_t count;
    const uint32_t *reads = microbatch_reads(p->t, node->id, &count);
    bool microbatches = is_microbatched_node(p->t, node);
    const sf_reshards *m = p->t->b->reshards;
    SF_TRY(bring_reads(p, count, reads, run, microbatches));
    SF_TRY(local_add_node(p->t->b, node));
    SF_TRY(microbatch_settle_same(p->t, node));
    if (sf_is_between_groups(node))
        number_collective(p, node, run);
    for (uint32_t r = 0; r < node->nresults; r++) {
        if (microbatches && is_microbatched_version(p->t, m->made[node->result + r]))
            output_version(p, pipe_same(p, m->made[node->result + r]), run, false);
        if (!pipe_is_anywhere(p, node))
            send_version(p, m->made[node->result + r], run, false);
    }
    return SF_OK;
}

/* Values that the survey computes from a part of the batch are recomputed in the task of the
 * micro-batch: they are not kept until then. */
static void keep_apart(piping *p, uint32_t version)
{
    local_builder *b = p->t->b;
    sf_value value = local_value(b, version);
    local_set(b, version,
              emit_op(b, SF_OP_OPTIMIZATION_BARRIER, 1, &value, NULL, sf_type_of(b->graph, value)));
}

static sf_status add_doing(piping *p, const pipe_doing *d)
{
    const sf_reshards *m = p->t->b->reshards;
    uint32_t count;
    if (!d->is_reshard) {
        const sf_node *node = p->t->step->nodes[d->index];
        if (!sf_is_transparent(node))
            return add_doing_node(p, node, d->run);
        const uint32_t *reads = microbatch_reads(p->t, node->id, &count);
        bool microbatches = is_microbatched_version(p->t, m->made[node->result + d->result]);
        SF_TRY(bring_reads(p, 1, &reads[d->result], d->run, microbatches));
        microbatch_add_barrier(p->t, node, d->result);
        return SF_OK;
    }
    const sf_resharding *reshard = &m->reshards[d->index];
    bool microbatches = is_microbatched_version(p->t, reshard->to);
    SF_TRY(bring_reads(p, 1, &reshard->from, d->run, microbatches));
    local_make_reshard(p->t->b, d->index);
    if (d->run >= p->nmicrobatches && !is_microbatched_version(p->t, reshard->from))
        keep_apart(p, reshard->to);
    if (microbatches)
        output_version(p, pipe_same(p, reshard->to), d->run, false);
    return SF_OK;
}

/* Accumulated results: parts of sums that belong to another pipeline rank are sent to it, then
 * received parts are added. */
static void close_outputs(piping *p, bool in_middle, bool at_home)
{
    const sf_reshards *m = p->t->b->reshards;
    for (size_t item = 0; item < m->nsteps; item++) {
        uint32_t i = m->steps[item].index;
        if (!m->steps[item].is_reshard || p->sums[i] == SF_NONE)
            continue;
        const sf_resharding *reshard = &m->reshards[i];
        uint64_t home = pipe_output_hosts(p, reshard, 0);
        uint32_t first = pipe_first_run(p, reshard);
        if (pipe_output_in_middle(p, reshard) != in_middle)
            continue;
        if ((home == 0 || (home >> p->group & 1)) != at_home)
            continue;
        for (uint32_t microbatch = 0; microbatch < p->nmicrobatches && !p->loop_outputs[i].is_sum;
             microbatch++)
            receive_version(p, reshard->from, first + microbatch);
        if (at_home)
            receive_version(p, reshard->to, 0);
        enter_run(p, 0, false);
        p->versions[p->nruns][reshard->to].raw =
            loop_output_end(p->t, &p->loop_outputs[i], p->sums[i]);
        send_version(p, reshard->to, 0, !at_home);
        if (!at_home)
            p->versions[p->nruns][reshard->to] = (local_version){SF_NONE, SF_NONE};
    }
}

static sf_status add_tasks(piping *p)
{
    uint32_t last = p->last[p->group];
    for (uint32_t place = 0; place <= last; place++) {
        const pipe_doings *list = &p->doings[place];
        receive_deferred(p, place);
        bool in_middle = p->has_middle && place == p->middle[p->group];
        for (int at_home = 0; at_home < 2 && (in_middle || place == last); at_home++)
            close_outputs(p, in_middle, at_home);
        for (size_t i = 0; i < list->count; i++)
            SF_TRY(add_doing(p, &list->at[i]));
        send_deferred(p, place);
    }
    return SF_OK;
}

/* The step */

/* State of another pipeline rank is empty here. */
static void add_arguments(piping *p)
{
    local_builder *b = p->t->b;
    const sf_block *top = p->t->step->top;
    enter_run(p, 0, false);
    for (uint32_t a = 0; a < p->narguments; a++) {
        uint32_t i = p->t->arguments[a];
        const sf_type *type = sf_argument_type(p->t->step, i);
        const int64_t none[] = {0};
        if (!p->t->held[i])
            type = sf_type_get(b->graph->pool, type->dtype, 1, none);
        sf_value argument = sf_block_argument(b->graph, b->graph->top, type);
        if (p->t->held[i])
            local_set(b, b->reshards->made[top->arguments[i]], argument);
        if (p->t->held[i] && sf_pipeline_holders(p->pipeline, p->t->step, i) != 0)
            send_version(p, b->reshards->made[top->arguments[i]], 0, false);
    }
}

static sf_status add_results(piping *p)
{
    local_builder *b = p->t->b;
    sf_value *results = SF_ARRAY(&p->t->arena, p->nresults, sf_value);
    for (uint32_t i = 0; i < p->nresults; i++)
        results[i] = SF_NONE;
    for (uint32_t i = 0; i < p->narguments; i++)
        if (!p->t->held[p->t->arguments[i]] && b->graph->arguments[i].next != SF_NONE)
            results[b->graph->arguments[i].next] = b->graph->top->arguments[i];
    for (uint32_t i = 0; i < p->nresults; i++)
        if (results[i] == SF_NONE) {
            uint32_t version = b->reshards->results[p->t->results[i]];
            SF_TRY(bring_reads(p, 1, &version, 0, false));
            results[i] = local_value(b, version);
        }
    sf_block_return(b->graph, b->graph->top, p->nresults, results);
    return SF_OK;
}

/* Tables by version and by reshard. */
static void open_versions(piping *p)
{
    const sf_reshards *m = p->t->b->reshards;
    sf_arena *arena = &p->t->arena;
    p->output_of = SF_ARRAY(arena, m->nversions, uint32_t);
    p->next_output = SF_ARRAY(arena, m->nreshards, uint32_t);
    p->leads = SF_ARRAY(arena, m->nversions, bool);
    p->needed = SF_ARRAY(arena, m->nversions, bool);
    p->early = SF_ARRAY(arena, m->nversions, bool);
    p->surveyed = SF_ARRAY(arena, m->nversions, bool);
    p->loop_outputs = SF_ARRAY(arena, m->nreshards, loop_output);
    p->sums = SF_ARRAY(arena, m->nreshards, sf_value);
    for (uint32_t i = 0; i < m->nreshards; i++) {
        uint32_t from = pipe_same(p, m->reshards[i].from);
        p->sums[i] = SF_NONE;
        if (!is_loop_output(p->t, &m->reshards[i]))
            continue;
        p->next_output[i] = p->output_of[from];
        p->output_of[from] = i + 1;
    }
}

/* Tables by instance and by position. */
static void open_runs(piping *p)
{
    const sf_reshards *m = p->t->b->reshards;
    sf_arena *arena = &p->t->arena;
    size_t ninstances = m->nversions * p->nruns;
    p->wanted = SF_ARRAY(arena, ninstances, uint64_t);
    p->due = SF_ARRAY(arena, ninstances, uint32_t);
    p->outgoing = SF_ARRAY(arena, ninstances, uint32_t);
    p->incoming = SF_ARRAY(arena, ninstances, uint32_t);
    p->channels = SF_ARRAY(arena, p->pipe->ngroups, pipe_channel);
    p->versions = SF_ARRAY(arena, p->nruns + 1, local_version *);
    for (uint32_t run = 0; run <= p->nruns; run++) {
        p->versions[run] = SF_ARRAY(arena, m->nversions, local_version);
        for (size_t v = 0; v < m->nversions; v++)
            p->versions[run][v] = (local_version){SF_NONE, SF_NONE};
    }
    for (size_t i = 0; i < ninstances; i++)
        p->due[i] = NEVER;
    p->doings = SF_ARRAY(arena, p->last[p->group] + 1, pipe_doings);
}

static sf_status build_pipe(void *context)
{
    piping *p = context;
    SF_TRY(microbatch_plan(p->t));
    open_versions(p);
    pipe_find_leading(p);
    pipe_find_needed(p);
    pipe_find_early(p);
    SF_TRY(pipe_find_survey(p));
    pipe_find_places(p);
    open_runs(p);
    pipe_find_wanted(p);
    pipe_time_tasks(p);
    pipe_list_messages(p);
    pipe_find_ends(p);
    add_arguments(p);
    SF_TRY(add_tasks(p));
    return add_results(p);
}

sf_status sf_pipe_step_new(const sf_graph *graph, const sf_plan *plan, const sf_pipeline *pipeline,
                           const sf_unstacked *parts, uint32_t group, sf_plan *time, sf_pool *pool,
                           sf_diag *diag, sf_microbatched *out)
{
    local_builder b = {.diag = diag};
    microbatching t = {.b = &b,
                       .step = graph,
                       .space = plan,
                       .time = time,
                       .microbatches = (int)pipeline->schedule.pipe.nmicrobatches,
                       .stages = &pipeline->stages};
    piping p = {.t = &t,
                .pipeline = pipeline,
                .pipe = &pipeline->schedule.pipe,
                .parts = parts,
                .group = group,
                .nmicrobatches = pipeline->schedule.pipe.nmicrobatches};
    return microbatch_build(&t, pool, build_pipe, &p, out);
}
