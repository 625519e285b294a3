#include "search/specs/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/mem.h"
#include "plan/pipeline/schedules.h"
#include "plan/pipeline_request.h"
#include "search/price/node_work.h"
#include "search/price/price_pipeline.h"
#include "search/specs/spec_plan.h"

enum { MOST_CUTS = 64 };

/* The stages of a step in so many, and what each has of the unsplit step. */
typedef struct cut {
    bool is_made;
    sf_arena arena;
    sf_stages stages;
    double *share[3]; /* by pass and stage: of the time of that pass; they sum to 1 */
    double weights;   /* of the time of the backward pass, what gradients of weights take */
    double *state;    /* by stage: of the bytes of parameters and state */
    double *bytes;    /* by stage: bytes of the whole batch that go from it, or through it, on */
} cut;

struct sf_judge {
    const sf_graph *graph;
    const sf_cluster *cluster;
    const sf_target *target;
    const sf_choice_rules *rules;
    int64_t memory; /* 0: what devices have */
    sf_folded folded;
    sf_arena arena;
    double *time;      /* by node: of the step on one device */
    const bool *slack; /* by value: only the update waits for it */
    const bool *moving;
    cut cuts[MOST_CUTS];
};

static void time_unsplit(sf_judge *j)
{
    int one = 1;
    sf_costs *costs;
    sf_mesh mesh = {1, {{"data", 1}}};
    sf_efforts *efforts = sf_efforts_new(j->graph, j->target, &j->arena);
    sf_plan *plan = sf_plan_new(j->graph, &mesh);
    j->time = SF_ARRAY(&j->arena, j->graph->nnodes, double);
    if (sf_costs_new(j->cluster, 1, &one, 0, &j->arena, NULL, &costs) == SF_OK)
        for (uint32_t i = 0; i < j->graph->top->nnodes; i++) {
            const sf_node *node = sf_top_node(j->graph, i);
            j->time[node->id] =
                sf_effort_seconds(efforts, node, plan->nodes[node->id], &mesh, costs);
        }
    j->slack = efforts->slack;
    j->moving = sf_find_moving(j->graph, &j->arena);
    sf_plan_free(plan);
}

/* Cuts ----------------------------------------------------------------------------------------------- */

static int pass_of(const sf_judge *j, const sf_node *node)
{
    if (node->phase == SF_FORWARD)
        return SF_PASS_FORWARD;
    return j->slack[node->result] ? SF_PASS_WEIGHTS : SF_PASS_BACKWARD;
}

static void share_times(const sf_judge *j, cut *c)
{
    uint32_t n = c->stages.count;
    double all[SF_PASSES] = {0};
    for (int p = 0; p < SF_PASSES; p++)
        c->share[p] = SF_ARRAY(&c->arena, n, double);
    for (uint32_t i = 0; i < j->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(j->graph, i);
        if (node->phase == SF_UPDATE || !j->moving[node->id] || c->stages.anywhere[node->id])
            continue;
        c->share[pass_of(j, node)][c->stages.of_node[node->id]] += j->time[node->id];
        all[pass_of(j, node)] += j->time[node->id];
    }
    for (uint32_t s = 0; s < n; s++)
        for (int p = 0; p < SF_PASSES; p++)
            c->share[p][s] /= all[p] > 0 ? all[p] : 1;
    double backward = all[SF_PASS_BACKWARD] + all[SF_PASS_WEIGHTS];
    c->weights = backward > 0 ? all[SF_PASS_WEIGHTS] / backward : 0;
}

static void share_state(const sf_judge *j, cut *c)
{
    double all = 0;
    c->state = SF_ARRAY(&c->arena, c->stages.count, double);
    for (uint32_t i = 0; i < j->graph->top->narguments; i++) {
        double bytes = (double)sf_type_bytes(sf_argument_type(j->graph, i));
        if (sf_is_handed_in(&j->graph->arguments[i]))
            continue;
        c->state[c->stages.of_argument[i]] += bytes;
        all += bytes;
    }
    for (uint32_t s = 0; s < c->stages.count; s++)
        c->state[s] /= all > 0 ? all : 1;
}

/* A value that later stages read goes through all on the way. */
static void find_bytes(const sf_judge *j, cut *c)
{
    const sf_graph *graph = j->graph;
    uint32_t *last = SF_ARRAY(&c->arena, graph->nvalues, uint32_t);
    c->bytes = SF_ARRAY(&c->arena, c->stages.count, double);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        for (uint32_t o = 0; node->phase == SF_FORWARD && o < node->noperands; o++)
            if (!c->stages.anywhere[node->id] &&
                c->stages.of_node[node->id] > last[node->operands[o]])
                last[node->operands[o]] = c->stages.of_node[node->id];
    }
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (node->phase != SF_FORWARD || !j->moving[node->id] || c->stages.anywhere[node->id])
            continue;
        for (uint32_t r = 0; r < node->nresults; r++)
            for (uint32_t s = c->stages.of_node[node->id]; s < last[node->result + r]; s++)
                c->bytes[s] += (double)sf_type_bytes(sf_type_of(graph, node->result + r));
    }
}

/* So many stages of a chain, whatever their schedule. */
static void make_cut(const sf_judge *j, uint32_t count, cut *c)
{
    sf_pipeline pipeline;
    sf_spec spec = {.stages = {.kind = SF_STAGES_COUNT, .count = count},
                    .micro_batches = (int)count};
    sf_pipeline_costs costs = {.time = j->time};
    if (sf_pipeline_by(j->graph, &spec, &costs, &c->arena, NULL, &pipeline) != SF_OK)
        return;
    c->stages = pipeline.stages;
    share_times(j, c);
    share_state(j, c);
    find_bytes(j, c);
    c->is_made = true;
}

/* Simulated passes ------------------------------------------------------------------------------------- */

/* What a rank's program takes, in seconds and bytes. */
typedef struct passes {
    double seconds, forward, backward, once;
    double memory, state;
    double params; /* bytes of parameters */
    double room;   /* of the device */
} passes;

static void add_passes(double weight, const passes *more, passes *to)
{
    to->seconds += weight * more->seconds;
    to->forward += weight * more->forward;
    to->backward += weight * more->backward;
    to->once += weight * more->once;
    to->memory += weight * more->memory;
    to->state += weight * more->state;
    to->params += weight * more->params;
    to->room = more->room;
}

/* What is outside of the loop over micro-batches runs once. */
static void add_program(const sf_program *program, const sf_simulation *sim, double runs,
                        bool in_turns, bool inside, passes *out)
{
    for (uint32_t i = 0; i < program->ninsts; i++) {
        const sf_inst *inst = &program->insts[i];
        const sf_timing *timing = &sim->insts[i];
        double seconds =
            runs * (inst->kind == SF_INST_COMM ? timing->exposed : timing->end - timing->start);
        if (sf_body_count(inst) > 0) {
            for (uint32_t b = 0; b < sf_body_count(inst); b++)
                add_program(inst->nest->bodies[b], &sim->bodies[i][b], runs * inst->nest->runs[b],
                            in_turns, true, out);
        } else if (inst->origin.phase == SF_UPDATE || (in_turns && !inside)) {
            out->once += seconds;
        } else if (inst->origin.phase == SF_FORWARD) {
            out->forward += seconds;
        } else {
            out->backward += seconds;
        }
    }
}

/* A job under a guard. */
typedef struct simulating {
    const sf_judge *j;
    const sf_graph *graph;
    sf_plan_spec spec;
    const double *time;
    double kept;
    bool in_turns;
    bool placed; /* buffers have places */
    sf_plan *plan;
    sf_price price;
    passes out;
} simulating;

static sf_status simulate_runs(simulating *s)
{
    const sf_judge *j = s->j;
    sf_arena arena = {0};
    sf_costs *costs;
    sf_group_runs runs = {0};
    sf_status status = sf_mesh_costs(j->cluster, &s->plan->mesh, &arena, NULL, &costs);
    sf_group_limits limits = {.unplaced = !s->placed, .memory = INT64_MAX, .seconds = HUGE_VAL};
    if (status == SF_OK)
        status = sf_group_runs_within(s->graph, s->plan, j->target, costs, &limits, NULL, &runs);
    if (status == SF_OK) {
        sf_price_groups(&runs, costs, NULL, NULL, &s->price);
        s->out = (passes){.seconds = s->price.seconds,
                          .memory = (double)s->price.memory,
                          .state = (double)(s->price.by_kind[SF_MEMORY_PARAM] +
                                            s->price.by_kind[SF_MEMORY_STATE] +
                                            s->price.by_kind[SF_MEMORY_GRADIENT]),
                          .params = (double)s->price.by_kind[SF_MEMORY_PARAM],
                          .room = (double)s->price.room};
        add_program(runs.at[0].program, &runs.at[0].sim, 1, s->in_turns, false, &s->out);
    }
    sf_group_runs_free(&runs);
    sf_arena_free(&arena);
    return status;
}

/* The last of the forward pass keep their values. */
static void keep_last(const sf_graph *graph, double kept, sf_plan *plan)
{
    uint32_t count = 0, seen = 0;
    for (uint32_t i = 0; i < graph->top->nnodes && plan->recomputed; i++)
        count += plan->recomputed[graph->top->nodes[i]];
    for (uint32_t i = 0; i < graph->top->nnodes && plan->recomputed; i++) {
        uint32_t node = graph->top->nodes[i];
        seen += plan->recomputed[node];
        if (!plan->recomputed[node] || seen <= (1 - kept) * count)
            continue;
        plan->recomputed[node] = false;
        if (plan->recomputed_per_part)
            plan->recomputed_per_part[node] = false;
    }
}

static sf_status simulate(void *context)
{
    simulating *s = context;
    SF_TRY(sf_plan_of_spec(s->graph, &s->spec, s->time, s->j->cluster, NULL, &s->plan));
    if (s->kept > 0)
        keep_last(s->graph, s->kept, s->plan);
    sf_status status = simulate_runs(s);
    if (status != SF_OK) {
        sf_plan_free(s->plan);
        s->plan = NULL;
    }
    return status;
}

static double room_of(const sf_judge *j, double device)
{
    return j->memory > 0 ? (double)j->memory : device;
}

/* Of each short step, and their sum. */
static bool find_parts(const sf_judge *j, const sf_plan_spec *spec, bool in_turns, passes *parts,
                       passes *sum)
{
    *sum = (passes){0};
    for (int i = 0; i < j->folded.count; i++) {
        simulating s = {.j = j, .graph = j->folded.steps[i], .spec = *spec, .in_turns = in_turns};
        if (sf_guarded(simulate, &s, NULL) != SF_OK)
            return false;
        sf_plan_free(s.plan);
        parts[i] = s.out;
        add_passes(j->folded.weight[i], &s.out, sum);
    }
    return true;
}

/* On the devices of a pipeline rank, without stages. Passes decide by the memory that is left, so what they gain is not affine in
 * the layers: of a short step they get what the plan takes there without them, and as much of what is left of the whole as it has
 * of its nodes. What they gain on the longest of the short steps, scaled by nodes, counts the ends of the step too often; the
 * same part of the time as there, too rarely: the mean is taken. */
static bool find_passes(const sf_judge *j, const sf_choice *choice, passes *out)
{
    sf_choice_text text;
    passes parts[SF_MOST_SHORT_STEPS];
    bool in_turns = choice->micro_batches > 1;
    sf_choice_write(choice, j->rules, false, &text);
    if (!text.spec.passes && !text.spec.shard_state)
        return find_parts(j, &text.spec, in_turns, parts, out);
    sf_plan_spec without = text.spec;
    without.passes = "none";
    if (!find_parts(j, &without, in_turns, parts, out))
        return false;
    int last = j->folded.count - 1;
    double left = fmax(0, room_of(j, out->room) - out->memory),
           share = (double)j->folded.steps[last]->nnodes / (double)j->graph->nnodes;
    simulating s = {
        .j = j, .graph = j->folded.steps[last], .spec = text.spec, .in_turns = in_turns};
    s.spec.memory = (int64_t)(parts[last].memory + left * share);
    if (sf_guarded(simulate, &s, NULL) != SF_OK)
        return false;
    sf_plan_free(s.plan);
    double gain = s.out.seconds - parts[last].seconds;
    out->seconds += 0.5 * (gain / share + gain * out->seconds / parts[last].seconds);
    out->memory += (s.out.memory - parts[last].memory) / share;
    return true;
}

/* Pipelines -------------------------------------------------------------------------------------------- */

typedef struct staging {
    const sf_judge *j;
    const sf_choice *choice;
    const cut *cut;
    const passes *all; /* of a rank that had all stages */
    sf_arena arena;
    sf_judged out;
} staging;

static int64_t nanoseconds(double seconds)
{
    return (int64_t)(1e9 * seconds + 0.5);
}

static const int64_t *find_task_times(staging *s, bool splits)
{
    const cut *c = s->cut;
    double turns = s->choice->micro_batches, forward = s->all->forward / turns,
           backward = s->all->backward / turns;
    int64_t *time = SF_ARRAY(&s->arena, c->stages.count * SF_PASSES, int64_t);
    for (uint32_t i = 0; i < c->stages.count; i++) {
        double inputs = backward * (1 - c->weights) * c->share[SF_PASS_BACKWARD][i],
               weights = backward * c->weights * c->share[SF_PASS_WEIGHTS][i];
        time[i * SF_PASSES + SF_PASS_FORWARD] = nanoseconds(forward * c->share[SF_PASS_FORWARD][i]);
        time[i * SF_PASSES + SF_PASS_BACKWARD] = nanoseconds(inputs + (splits ? 0 : weights));
        time[i * SF_PASSES + SF_PASS_WEIGHTS] = nanoseconds(weights);
    }
    return time;
}

static const int64_t *find_messages(staging *s, const sf_pipe *pipe, const sf_costs *costs)
{
    int64_t *time = SF_ARRAY(&s->arena, pipe->nedges + 1, int64_t);
    double parts = (double)s->choice->axes[SF_AXIS_DATA] * s->choice->axes[SF_AXIS_REPLICA] *
                   s->choice->axes[SF_AXIS_EXPERT] * s->choice->axes[SF_AXIS_SEQ] *
                   s->choice->micro_batches;
    for (uint32_t e = 0; e < pipe->nedges; e++) {
        double bytes = s->cut->bytes[pipe->edges[e].from] / parts;
        time[e] = nanoseconds(sf_costs_collective(costs, SF_PERMUTE, 1, bytes));
    }
    return time;
}

/* Begun and not ended, the most. */
static uint32_t most_in_flight(const sf_schedule *schedule, uint32_t group, uint32_t stage)
{
    sf_pass last = schedule->pipe.splits_weights ? SF_PASS_WEIGHTS : SF_PASS_BACKWARD;
    uint32_t now = 0, most = 0;
    for (uint32_t i = 0; i < schedule->ntasks[group]; i++) {
        const sf_stage_task *task = &schedule->tasks[group][i];
        now += task->stage == stage && task->pass == SF_PASS_FORWARD;
        most = now > most ? now : most;
        now -= task->stage == stage && task->pass == last;
    }
    return most;
}

static void find_group(staging *s, const sf_schedule *schedule, uint32_t group, double *state,
                       double *kept)
{
    double activations = s->all->memory - s->all->state;
    *state = *kept = 0;
    for (uint32_t i = 0; i < s->cut->stages.count; i++) {
        uint32_t turns = most_in_flight(schedule, group, i);
        if (turns == 0)
            continue;
        *state += s->cut->state[i];
        *kept += turns * s->cut->share[SF_PASS_FORWARD][i] * activations;
    }
}

/* Stages that are on one group in some micro-batches and on another in others: the groups add up their gradients. */
static double twin_seconds(const staging *s, const sf_pipe *pipe, const sf_costs *costs)
{
    double seconds = 0;
    for (uint32_t i = 0; i < pipe->nstages; i++) {
        uint64_t hosts = 0;
        for (uint32_t m = 0; m < pipe->nmicrobatches; m++)
            hosts |= sf_pipe_hosts(pipe, i, m);
        if (sf_is_several(hosts))
            seconds = fmax(seconds, sf_costs_collective(costs, SF_ALL_REDUCE, 1,
                                                        s->cut->state[i] * s->all->params));
    }
    return seconds * (pipe->nstages > pipe->ngroups ? pipe->nstages / pipe->ngroups : 1);
}

static sf_status run_schedule(staging *s)
{
    const sf_judge *j = s->j;
    sf_choice_text text;
    sf_schedule_kind kind;
    sf_pipe pipe;
    sf_schedule schedule;
    sf_pipe_jobs jobs;
    sf_times times;
    sf_mesh mesh = {2, {{SF_PIPE_AXIS, s->choice->axes[SF_AXIS_PIPE]}, {"rest", 1}}};
    sf_costs *costs;
    sf_choice_write(s->choice, j->rules, true, &text);
    mesh.axes[1].size = sf_choice_devices(s->choice) / mesh.axes[0].size;
    SF_TRY(sf_mesh_costs(j->cluster, &mesh, &s->arena, NULL, &costs));
    SF_TRY(sf_schedule_parse(text.spec.schedule, &kind, NULL));
    sf_pipe_of_stages(j->graph, &s->cut->stages, (uint32_t)s->choice->micro_batches,
                      (uint32_t)s->choice->axes[SF_AXIS_PIPE], &s->arena, &pipe);
    SF_TRY(sf_schedule_make(kind, &pipe, NULL, &s->arena, &schedule, NULL));
    const int64_t *messages = find_messages(s, &schedule.pipe, costs);
    sf_pipe_costs of = {.time = find_task_times(s, schedule.pipe.splits_weights),
                        .ahead = messages,
                        .back = messages};
    sf_schedule_time(&schedule, &of, &s->arena, &jobs, &times);
    double once = 0, memory = 0;
    for (uint32_t g = 0; g < schedule.pipe.ngroups; g++) {
        double state, kept;
        find_group(s, &schedule, g, &state, &kept);
        once = fmax(once, state * s->all->once);
        memory = fmax(memory, state * s->all->state + kept);
    }
    s->out = (sf_judged){
        true, 1e-9 * (double)times.makespan + once + twin_seconds(s, &schedule.pipe, costs),
        memory};
    return SF_OK;
}

static sf_status stage(void *context)
{
    staging *s = context;
    sf_status status = run_schedule(s);
    sf_arena_free(&s->arena);
    return status;
}

double sf_judge_work(const sf_judge *j)
{
    double nodes = 0;
    for (int i = 0; i < j->folded.count; i++)
        nodes += (double)j->folded.steps[i]->nnodes;
    return nodes;
}

sf_judged sf_judge_estimate(const sf_judge *j, const sf_choice *choice)
{
    passes all;
    sf_judged none = {0};
    sf_choice_text text;
    int groups = choice->axes[SF_AXIS_PIPE];
    sf_choice_write(choice, j->rules, true, &text);
    int stages = text.spec.stages ? atoi(text.spec.stages) : 1;
    if (groups > 1 && (stages >= MOST_CUTS || !j->cuts[stages].is_made))
        return none;
    if (!find_passes(j, choice, &all))
        return none;
    if (groups == 1)
        return (sf_judged){true, all.seconds, all.memory / room_of(j, all.room)};
    staging s = {.j = j, .choice = choice, .cut = &j->cuts[stages], .all = &all};
    if (sf_guarded(stage, &s, NULL) != SF_OK)
        return none;
    s.out.filled /= room_of(j, all.room);
    return s.out;
}

sf_judged sf_judge_simulate(const sf_judge *j, const sf_choice *choice, double kept, bool placed,
                            sf_plan **plan, sf_price *price)
{
    sf_choice_text text;
    sf_choice_write(choice, j->rules, true, &text);
    simulating s = {.j = j,
                    .graph = j->graph,
                    .spec = text.spec,
                    .time = j->time,
                    .kept = kept,
                    .placed = placed};
    s.spec.memory = j->memory;
    if (sf_guarded(simulate, &s, NULL) != SF_OK)
        return (sf_judged){0};
    *plan = s.plan;
    *price = s.price;
    return (sf_judged){true, s.price.seconds,
                       (double)s.price.memory / room_of(j, (double)s.price.room)};
}

sf_judge *sf_judge_new(const sf_graph *graph, const sf_cluster *cluster, const sf_target *target,
                       const sf_choice_rules *rules, int64_t memory)
{
    sf_arena arena = {0};
    sf_judge *j = SF_NEW(&arena, sf_judge);
    *j = (sf_judge){
        .graph = graph, .cluster = cluster, .target = target, .memory = memory, .arena = arena};
    j->rules = rules;
    sf_fold_step(graph, &j->folded);
    time_unsplit(j);
    for (uint32_t n = 2; n < MOST_CUTS && n <= (uint32_t)4 * (uint32_t)cluster->ndevices; n *= 2)
        make_cut(j, n, &j->cuts[n]);
    return j;
}

void sf_judge_free(sf_judge *j)
{
    if (!j)
        return;
    for (int n = 0; n < MOST_CUTS; n++)
        sf_arena_free(&j->cuts[n].arena);
    sf_folded_free(&j->folded);
    sf_arena arena = j->arena;
    sf_arena_free(&arena);
}
