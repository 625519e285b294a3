#include "search/price/price.h"

#include <string.h>

#include "sim/instruction_work.h"
#include "sim/sim.h"

const char *sf_memory_kind_name(sf_memory_kind kind)
{
    static const char *const names[] = {"parameters",  "optimizer state",   "batch", "gradients",
                                        "activations", "resharded tensors", "gaps",  "scratch"};
    return names[kind];
}

sf_memory_kind sf_memory_kind_of(sf_role role)
{
    return role == SF_ROLE_PARAM   ? SF_MEMORY_PARAM
           : role == SF_ROLE_STATE ? SF_MEMORY_STATE
                                   : SF_MEMORY_BATCH;
}

void sf_peak_put(const sf_origin *peak, sf_json_writer *json)
{
    if (peak->node != SF_NONE)
        sf_json_add_int(json, "node", peak->node);
    sf_json_add_string(json, "op", peak->op);
    sf_json_add_string(json, "scope", peak->scope);
    sf_json_add_string(json, "phase", sf_phase_name(peak->phase));
}

/* A rank's program, and what it was lowered from. */
typedef struct pricing {
    const sf_graph *graph; /* the step that was given */
    const sf_local *local;
    sf_program *program;
    sf_arena arena;
    bool *gradient; /* by value of the step */
} pricing;

/* A program that is priced: that of the rank, or the body of a loop that time made, which stands for the step as well. */
typedef struct priced_program {
    const pricing *p;
    const sf_local *local; /* what it was lowered from */
    const sf_program *program;
    const sf_inner *inner; /* the region that it is, or NULL */
} priced_program;

static pricing pricing_of(const sf_local *local, sf_program *program)
{
    const sf_graph *graph = local->step;
    pricing p = {.graph = graph, .local = local, .program = program};
    p.gradient = SF_ARRAY(&p.arena, graph->nvalues, bool);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].gradient != SF_NONE)
            p.gradient[graph->arguments[i].gradient] = true;
    return p;
}

static pricing open_pricing(const sf_local *local, const sf_target *target)
{
    sf_lower_options options = {.target = target, .mesh = &local->plan->mesh};
    return pricing_of(local, sf_lower(local->graph, &options, NULL));
}

static void close_pricing(pricing *p)
{
    sf_program_free(p->program);
    sf_arena_free(&p->arena);
}

/* Memory */

static priced_program whole_program(const pricing *p)
{
    return (priced_program){.p = p, .local = p->local, .program = p->program};
}

/* The value of the step for one of what the program was lowered from; SF_NONE: none. */
static sf_value value_of_step(const priced_program *at, sf_value whole)
{
    if (whole != SF_NONE && at->inner)
        whole = sf_inner_value(at->p->local, at->inner, whole);
    return sf_local_value_of_step(at->p->local, whole);
}

/* What the node of an instruction makes a piece of. Nodes inside of regions are only words. */
static const sf_local_shard *piece_of_node(const priced_program *at, uint32_t node)
{
    const sf_node *maker = node == SF_NONE || at->inner ? NULL : at->local->graph->nodes[node];
    return maker && maker->nresults > 0 ? &at->local->pieces[maker->result] : NULL;
}

/* What the buffer holds a piece of; where lowering needed one for itself, what the instruction makes that begins
 * with it. NULL: nothing. */
static const sf_local_shard *piece_of(const priced_program *at, const sf_buffer *buffer)
{
    if (buffer->value == SF_NONE && buffer->first != SF_NONE)
        return piece_of_node(at, at->program->insts[buffer->first].origin.node);
    return buffer->value == SF_NONE || at->inner ? NULL : &at->local->pieces[buffer->value];
}

static sf_memory_kind kind_of_buffer(const priced_program *at, const sf_buffer *buffer)
{
    const sf_local_shard *piece = piece_of(at, buffer);
    if (buffer->home == SF_HOME_CONSTANT)
        return SF_MEMORY_BATCH;
    if (buffer->home == SF_HOME_KEPT)
        return SF_MEMORY_GRADIENT;
    if (buffer->home == SF_HOME_ARGUMENT)
        return sf_memory_kind_of(at->p->graph->arguments[buffer->argument].role);
    sf_value value = piece ? value_of_step(at, piece->whole) : SF_NONE;
    if (value != SF_NONE && at->p->gradient[value])
        return SF_MEMORY_GRADIENT;
    return piece && piece->moved ? SF_MEMORY_MOVED : SF_MEMORY_ACTIVATION;
}

sf_memory_kind *sf_find_buffer_kinds(const sf_local *local, sf_program *program, sf_arena *arena)
{
    pricing p = pricing_of(local, program);
    priced_program at = whole_program(&p);
    sf_memory_kind *kinds = SF_ARRAY(arena, program->nbuffers, sf_memory_kind);
    for (size_t i = 0; i < program->nbuffers; i++)
        kinds[i] = kind_of_buffer(&at, &program->buffers[i]);
    sf_arena_free(&p.arena);
    return kinds;
}

/* On the device. */
static bool lives_at(const sf_program *program, size_t index, uint32_t inst)
{
    const sf_buffer *buffer = &program->buffers[index];
    return buffer->space == SF_SPACE_DEVICE &&
           (!sf_in_arena(buffer) || sf_buffer_lives(program, (uint32_t)index, inst));
}

/* As of the step: that what the instruction makes is a piece of. Where that is the loop that time made, what is done at
 * the peak of its body. */
static sf_origin origin_in_step(const priced_program *at, const sf_inst *inst)
{
    sf_origin origin = inst->origin;
    const sf_local_shard *piece = piece_of_node(at, origin.node);
    sf_value value = piece ? value_of_step(at, piece->whole) : SF_NONE;
    origin.node = value == SF_NONE ? SF_NONE : at->p->graph->values[value].node;
    return origin;
}

static bool is_of_time(const priced_program *at, const sf_inst *inst)
{
    return sf_body_count(inst) > 0 && sf_local_has_microbatches(at->local) &&
           origin_in_step(at, inst).node == SF_NONE;
}

static sf_origin find_peak(const priced_program *at, uint32_t inst)
{
    const sf_inst *peak = &at->program->insts[inst];
    if (!is_of_time(at, peak))
        return origin_in_step(at, peak);
    sf_arena arena = {0};
    const sf_program *body = peak->nest->bodies[peak->nest->nbodies - 1];
    uint32_t inside;
    sf_live_bytes(body, &arena, NULL, &inside);
    sf_arena_free(&arena);
    sf_origin origin = body->ninsts > 0 ? body->insts[inside].origin : peak->origin;
    origin.node = SF_NONE;
    return origin;
}

static void price_memory(const pricing *p, const sf_simulation *sim, const sf_costs *costs,
                         sf_price *out)
{
    const sf_program *program = p->program;
    priced_program at = whole_program(p);
    int64_t held = 0;
    out->memory = sf_program_bytes(program);
    if (program->ninsts > 0)
        out->peak = find_peak(&at, sim->peak);
    for (size_t i = 0; i < program->nbuffers; i++)
        if (lives_at(program, i, sim->peak)) {
            out->by_kind[kind_of_buffer(&at, &program->buffers[i])] += program->buffers[i].bytes;
            held += program->buffers[i].bytes;
        }
    out->by_kind[SF_MEMORY_GAPS] = out->memory - held;
    out->by_kind[SF_MEMORY_SCRATCH] = sf_scratch_bytes(program, costs);
    out->memory += out->by_kind[SF_MEMORY_SCRATCH];
}

/* Collectives */

typedef struct move_viewer {
    const pricing *p;
    sf_see_reshard *see;
    void *context;
} move_viewer;

/* Part `own` of a collective of the local graph, which is part `i` of one of the program. */
static void show_part(const move_viewer *v, const priced_program *at, const sf_sent *sent,
                      uint32_t own, const sf_inst *inst, uint32_t i, const sf_timing *timing,
                      double times)
{
    sf_value value = own < sent->count ? value_of_step(at, sent->parts[own].value) : SF_NONE;
    sf_simulated_reshard reshard = {.value = value,
                                    .kind = sent->kind,
                                    .axes = inst->exchange->axes,
                                    .phase = inst->origin.phase,
                                    .inner = value == SF_NONE};
    if (value != SF_NONE) {
        reshard.before = sent->parts[own].before;
        reshard.after = sent->parts[own].after;
    }
    int64_t in = sf_view_count(&inst->in[i]), out = sf_view_count(&inst->out[i]);
    reshard.bytes = times * (double)(in > out ? in : out) * sf_dtype_get(inst->in[i].dtype)->bytes;
    double part = timing->bytes > 0 ? reshard.bytes / timing->bytes : times;
    reshard.seconds = part * (timing->end - timing->start);
    reshard.exposed = part * timing->exposed;
    v->see(v->context, &reshard);
}

/* One inside of a loop or branch of the step counts as a result of that, as often as it runs. */
static void show_inside(const move_viewer *v, sf_value value, sf_reshard_kind kind,
                        const sf_inst *exchange, const sf_timing *timing, double times)
{
    sf_simulated_reshard reshard = {.value = value,
                                    .phase = exchange->origin.phase,
                                    .kind = kind,
                                    .axes = exchange->exchange->axes,
                                    .bytes = times * timing->bytes,
                                    .seconds = times * (timing->end - timing->start),
                                    .exposed = times * timing->exposed,
                                    .inner = true};
    v->see(v->context, &reshard);
}

/* The region of `local` that has the collective of that number. */
static const sf_inner *find_inner(const sf_local *local, int64_t number)
{
    for (size_t i = 0; i < local->ninner; i++) {
        const sf_inner *inner = &local->inner[i];
        if (number >= inner->first && number < inner->first + (int64_t)inner->local->nsent)
            return inner;
    }
    return NULL;
}

/* One of a loop that time made: the collective is of a region, which is a step of its own. */
static void show_part_of_time(const move_viewer *v, sf_part_origin origin, const sf_inst *exchange,
                              uint32_t part, const sf_timing *timing, double times)
{
    const sf_local *local = v->p->local;
    priced_program at = whole_program(v->p);
    at.inner = find_inner(local, origin.number);
    if (!at.inner) {
        if (part == 0)
            show_inside(v, SF_NONE, local->sent[origin.number].kind, exchange, timing, times);
        return;
    }
    const sf_sent *own = &at.inner->local->sent[origin.number - at.inner->first];
    const sf_inner *deeper = find_inner(at.inner->local, origin.number);
    if (deeper && part == 0)
        show_inside(v, value_of_step(&at, deeper->node->result), own->kind, exchange, timing,
                    times);
    if (!deeper)
        show_part(v, &at, own, origin.part, exchange, part, timing, times);
}

static void show_move(void *context, const sf_inst *exchange, const sf_timing *timing, double times,
                      uint32_t within)
{
    const move_viewer *v = context;
    const sf_local *local = v->p->local;
    priced_program at = whole_program(v->p);
    const sf_inst *outer = &v->p->program->insts[within];
    bool of_time = outer->kind != SF_INST_COMM && is_of_time(&at, outer);
    for (uint32_t i = 0; i < exchange->nout; i++) {
        sf_part_origin origin = sf_exchange_part(exchange->exchange, i);
        const sf_sent *sent = &local->sent[origin.number];
        if (of_time || (outer->kind == SF_INST_COMM && sent->count == 0))
            show_part_of_time(v, origin, exchange, i, timing, times);
        else if (outer->kind == SF_INST_COMM)
            show_part(v, &at, sent, origin.part, exchange, i, timing, times);
        else if (i == 0) {
            const sf_local_shard *piece = piece_of_node(&at, outer->origin.node);
            show_inside(v, piece ? value_of_step(&at, piece->whole) : SF_NONE, sent->kind, exchange,
                        timing, times);
        }
    }
}

sf_status sf_mesh_costs(const sf_cluster *cluster, const sf_mesh *mesh, sf_arena *arena,
                        sf_diag *diag, sf_costs **out)
{
    int sizes[SF_MAX_AXES];
    for (int a = 0; a < mesh->naxes; a++)
        sizes[a] = mesh->axes[a].size;
    return sf_costs_new(cluster, mesh->naxes, sizes, 0, arena, diag, out);
}

/* Messages, and what groups do together, are between groups, and no moves of the plan. */
static void show_collective(void *context, const sf_inst *exchange, const sf_timing *timing,
                            double times, uint32_t within)
{
    if (!sf_is_one_way(exchange->exchange) && exchange->exchange->groups == 0)
        show_move(context, exchange, timing, times, within);
}

static void price_messages(const sf_rank_run *run, sf_price *out)
{
    int64_t count = 0;
    double bytes = 0;
    for (uint32_t i = 0; i < run->program->ninsts; i++) {
        const sf_inst *inst = &run->program->insts[i];
        if (inst->kind != SF_INST_COMM || !sf_is_one_way(inst->exchange))
            continue;
        count++;
        bytes += run->sim.insts[i].bytes;
    }
    if (bytes > out->message_bytes) {
        out->nmessages = count;
        out->message_bytes = bytes;
    }
}

void sf_price_groups(const sf_group_runs *runs, const sf_costs *costs, sf_see_reshard *see,
                     void *context, sf_price *out)
{
    const sf_rank_run *busiest = &runs->at[runs->busiest];
    const sf_simulation *sim = &busiest->sim;
    *out = (sf_price){.seconds = runs->seconds,
                      .compute = sim->compute,
                      .exposed = runs->seconds - sim->compute,
                      .hidden = sim->hidden,
                      .traffic = sim->traffic,
                      .ncollectives = sim->ncollectives,
                      .peak = SF_NO_ORIGIN,
                      .nprograms = runs->count};
    for (int g = 0; g < runs->count; g++) {
        pricing p = pricing_of(runs->at[g].local, runs->at[g].program);
        sf_price memory = {.peak = SF_NO_ORIGIN};
        price_messages(&runs->at[g], out);
        price_memory(&p, &runs->at[g].sim, costs, &memory);
        memory.room = sf_costs_memory(runs->at[g].costs);
        if (g == 0 || memory.memory - memory.room > out->memory - out->room) {
            out->memory = memory.memory;
            out->room = memory.room;
            out->peak = memory.peak;
            memcpy(out->by_kind, memory.by_kind, sizeof out->by_kind);
        }
        if (see && g == runs->busiest)
            sf_see_exchanges(p.program, sim, show_collective, &(move_viewer){&p, see, context});
        sf_arena_free(&p.arena);
    }
}

/* Of what is told, where it is put. */
typedef struct telling {
    sf_full_price *simulated;
    sf_arena *arena;
} telling;

static void tell_move(void *context, const sf_simulated_reshard *reshard)
{
    const telling *t = context;
    SF_PUSH(t->arena, t->simulated->reshards, t->simulated->nreshards, t->simulated->move_capacity,
            *reshard);
}

const sf_full_price *sf_tell_groups(const sf_group_runs *runs, const sf_costs *costs,
                                    sf_arena *arena)
{
    sf_full_price *simulated = SF_NEW(arena, sf_full_price);
    sf_price_groups(runs, costs, tell_move, &(telling){simulated, arena}, &simulated->price);
    return simulated;
}

sf_status sf_price_plan(const sf_graph *graph, const sf_plan *plan, const sf_target *target,
                        const sf_costs *costs, sf_see_reshard *see, void *context, sf_diag *diag,
                        sf_price *out)
{
    sf_group_runs runs;
    sf_status status = sf_group_runs_new(graph, plan, target, costs, diag, &runs);
    if (status == SF_OK)
        sf_price_groups(&runs, costs, see, context, out);
    sf_group_runs_free(&runs);
    return status;
}

void sf_price_within(const sf_group_runs *runs, const sf_costs *costs, sf_price *out)
{
    if (!runs->is_beyond) {
        sf_price_groups(runs, costs, NULL, NULL, out);
        return;
    }
    const sf_rank_run *last = &runs->at[runs->count - 1];
    *out = (sf_price){.seconds = runs->seconds,
                      .memory = sf_program_bytes(last->program) +
                                sf_scratch_bytes(last->program, last->costs),
                      .room = sf_costs_memory(last->costs),
                      .peak = SF_NO_ORIGIN,
                      .nprograms = runs->count};
}

/* Relief */

/* The last instruction of the forward pass, plus one. */
static uint32_t find_turning_point(const sf_program *program)
{
    uint32_t microbatch = 0;
    for (uint32_t i = 0; i < program->ninsts; i++)
        if (program->insts[i].origin.phase == SF_FORWARD)
            microbatch = i + 1;
    return microbatch;
}

/* The last instruction before the turn that touches the buffer, plus one, and the first behind it. */
typedef struct gap {
    uint32_t before, after;
} gap;

static gap *find_gaps(pricing *p, uint32_t microbatch)
{
    const sf_program *program = p->program;
    gap *gaps = SF_ARRAY(&p->arena, program->nbuffers, gap);
    for (uint32_t i = 0; i < program->ninsts; i++) {
        const sf_inst *inst = &program->insts[i];
        for (uint32_t j = 0; j < inst->nin + inst->nout; j++) {
            gap *g = &gaps[j < inst->nin ? inst->in[j].buffer : inst->out[j - inst->nin].buffer];
            if (i < microbatch)
                g->before = i + 1;
            else if (g->after == 0)
                g->after = i;
        }
    }
    return gaps;
}

/* The peak of the kinds; with gaps, activations are let go between the passes. */
static int64_t find_peak_bytes(pricing *p, uint32_t kinds, const gap *gaps)
{
    const sf_program *program = p->program;
    priced_program at = whole_program(p);
    int64_t *change = SF_ARRAY(&p->arena, program->ninsts + 2, int64_t), always = 0, held = 0,
            most = 0;
    for (size_t i = 0; i < program->nbuffers; i++) {
        const sf_buffer *buffer = &program->buffers[i];
        sf_memory_kind kind = kind_of_buffer(&at, buffer);
        if (!(kinds >> kind & 1) || buffer->space != SF_SPACE_DEVICE)
            continue;
        if (!sf_in_arena(buffer)) {
            always += buffer->bytes;
            continue;
        }
        if (buffer->first == SF_NONE)
            continue;
        change[buffer->first] += buffer->bytes;
        change[buffer->is_result ? program->ninsts : buffer->last + 1] -= buffer->bytes;
        for (uint32_t g = 0; g < buffer->ngaps; g++) {
            change[buffer->gaps[g].first] -= buffer->bytes;
            change[buffer->gaps[g].last + 1] += buffer->bytes;
        }
        if (gaps && kind == SF_MEMORY_ACTIVATION && gaps[i].before > 0 && gaps[i].after > 0) {
            change[gaps[i].before] -= buffer->bytes;
            change[gaps[i].after] += buffer->bytes;
        }
    }
    for (size_t i = 0; i <= program->ninsts; i++) {
        held += change[i];
        most = held > most ? held : most;
    }
    return always + most;
}

sf_status sf_find_relief(const sf_graph *graph, const sf_plan *plan, const sf_target *target,
                         sf_diag *diag, sf_relief *out)
{
    const uint32_t all = (1u << SF_MEMORY_KIND_COUNT) - 1;
    const uint32_t batch = 1u << SF_MEMORY_ACTIVATION | 1u << SF_MEMORY_BATCH;
    sf_local *local;
    SF_TRY(sf_local_new(graph, plan, 0, diag, &local));
    pricing p = open_pricing(local, target);
    out->state = find_peak_bytes(&p, all & ~batch, NULL);
    out->batch = find_peak_bytes(&p, batch, NULL);
    out->recomputed = find_peak_bytes(&p, all, find_gaps(&p, find_turning_point(p.program)));
    close_pricing(&p);
    sf_local_free(local);
    return SF_OK;
}

sf_status sf_find_held(const sf_graph *graph, const sf_plan *plan, const sf_target *target,
                       sf_arena *arena, sf_diag *diag, double **out)
{
    sf_local *local;
    uint32_t peak;
    SF_TRY(sf_local_new(graph, plan, 0, diag, &local));
    pricing p = open_pricing(local, target);
    priced_program at = whole_program(&p);
    *out = SF_ARRAY(arena, graph->nvalues, double);
    sf_live_bytes(p.program, &p.arena, NULL, &peak);
    for (size_t i = 0; i < p.program->nbuffers; i++) {
        const sf_buffer *buffer = &p.program->buffers[i];
        const sf_local_shard *piece = piece_of(&at, buffer);
        sf_value value = piece ? value_of_step(&at, piece->whole) : SF_NONE;
        if (value != SF_NONE && lives_at(p.program, i, peak))
            (*out)[value] += (double)buffer->bytes;
    }
    close_pricing(&p);
    sf_local_free(local);
    return SF_OK;
}
