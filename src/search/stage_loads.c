#include "search/stage_loads.h"

#include "ir/uses.h"
#include "op/flops.h"
#include "plan/pipeline/schedules.h"

/* Of the memory, what stages may fill by what is counted here: the rest is for what comes and goes. */
#define FULL_STAGE 0.9

double *sf_node_times(const sf_efforts *efforts, const sf_plan *plan, const sf_costs *costs,
                      sf_arena *arena)
{
    const sf_graph *graph = efforts->graph;
    double *times = SF_ARRAY(arena, graph->nnodes, double);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        times[node->id] =
            sf_effort_seconds(efforts, node, plan->nodes[node->id], &plan->mesh, costs);
    }
    return times;
}

static double add_up_times(const sf_efforts *efforts, const sf_plan *plan, const sf_costs *costs)
{
    sf_arena arena = {0};
    const double *times = sf_node_times(efforts, plan, costs, &arena);
    double all = 0;
    for (uint32_t n = 0; n < efforts->graph->nnodes; n++)
        all += times[n];
    sf_arena_free(&arena);
    return all;
}

double *sf_group_speeds(const sf_efforts *efforts, const sf_plan *plan, const sf_costs *costs,
                        int groups, sf_arena *arena)
{
    double *speeds = SF_ARRAY(arena, groups, double), slowest = 0;
    for (int g = 0; g < groups; g++) {
        const sf_costs *own = sf_costs_at(costs, 0, g, arena);
        speeds[g] = 1;
        if (own == costs)
            continue;
        slowest = slowest > 0 ? slowest : add_up_times(efforts, plan, costs);
        double seconds = add_up_times(efforts, plan, own);
        speeds[g] = seconds > 0 && slowest > seconds ? slowest / seconds : 1;
    }
    return speeds;
}

/* Turns -------------------------------------------------------------------------------------------- */

/* Whether no node but those of the update waits for what the node makes. */
static bool has_slack(const sf_efforts *efforts, const sf_node *node)
{
    bool slack = node->nresults > 0;
    for (uint32_t r = 0; r < node->nresults; r++)
        slack = slack && efforts->slack[node->result + r];
    return slack;
}

/* Of an instruction that the node starts; else what it adds to one. */
static double effort_seconds(const sf_costs *costs, sf_effort effort, bool starts, uint32_t parts)
{
    static const sf_effort nothing;
    effort.flops /= parts;
    effort.bytes /= parts;
    if (starts)
        return sf_costs_op(costs, &effort);
    bool is_work = effort.flops > 0 || effort.bytes > 0;
    return is_work ? sf_costs_op(costs, &effort) - sf_costs_op(costs, &nothing) : 0;
}

static double *find_place(const sf_efforts *efforts, const sf_node *node, bool once,
                          sf_turn_work *work)
{
    if (once)
        return &work->once;
    if (node->phase == SF_FORWARD)
        return &work->forward;
    return has_slack(efforts, node) ? &work->weights : &work->backward;
}

/* Where there are several turns, each adds its gradients to those before, which are read and written for it. */
static void add_sums(const sf_graph *graph, const sf_plan *plan, const sf_costs *costs,
                     size_t count, sf_turn_work *work)
{
    double seconds = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_argument *argument = &graph->arguments[i];
        if (argument->gradient == SF_NONE)
            continue;
        double bytes =
            sf_shard_bytes(sf_type_of(graph, argument->gradient), &plan->arguments[i], &plan->mesh);
        seconds += sf_costs_op(costs, &(sf_effort){.bytes = 3 * bytes});
    }
    for (size_t w = 0; w < count; w++)
        work[w].weights += work[w].microbatches > 1 ? seconds : 0;
}

void sf_add_turn_work(const sf_efforts *efforts, const sf_plan *plan, const sf_costs *costs,
                      size_t count, sf_turn_work *work)
{
    const sf_graph *graph = efforts->graph;
    sf_arena arena = {0};
    const bool *moving = sf_find_moving(graph, &arena);
    efforts = sf_efforts_under(efforts, plan);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        const sf_layout *layouts = plan->nodes[node->id];
        bool once = node->phase == SF_UPDATE || !moving[node->id], inner = sf_is_control(node),
             starts = efforts->nodes[node->id].starts;
        sf_effort effort = sf_effort_of(efforts, node, layouts, &plan->mesh);
        double whole = inner ? sf_effort_seconds(efforts, node, layouts, &plan->mesh, costs) : 0;
        for (size_t w = 0; w < count; w++) {
            uint32_t parts = once ? 1 : work[w].microbatches;
            *find_place(efforts, node, once, &work[w]) +=
                inner ? whole / parts : effort_seconds(costs, effort, starts, parts);
        }
    }
    add_sums(graph, plan, costs, count, work);
    sf_arena_free(&arena);
}

/* Memory ------------------------------------------------------------------------------------------- */

/* State and, of what is trained, a gradient. */
static double *find_fixed(const sf_load_request *request, sf_arena *arena)
{
    const sf_graph *graph = request->efforts->graph;
    const sf_plan *plan = request->plan;
    double *fixed = SF_ARRAY(arena, graph->top->narguments, double), state = 0, trained = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_argument *argument = &graph->arguments[i];
        if (sf_is_handed_in(argument))
            continue;
        fixed[i] = sf_shard_bytes(sf_type_of(graph, graph->top->arguments[i]), &plan->arguments[i],
                                  &plan->mesh);
        if (argument->role == SF_ROLE_STATE)
            state += fixed[i];
        else if (argument->gradient != SF_NONE)
            trained += fixed[i];
    }
    /* What the optimizer has is not read by the forward pass, so it is laid on the parameters it belongs to. */
    for (uint32_t i = 0; i < graph->top->narguments && trained > 0; i++)
        if (graph->arguments[i].role != SF_ROLE_STATE && graph->arguments[i].gradient != SF_NONE)
            fixed[i] += fixed[i] * (1 + state / trained);
    return fixed;
}

static bool is_read_later(const sf_graph *graph, const sf_uses *uses, sf_value value)
{
    for (uint32_t u = uses->first[value]; u < uses->first[value + 1]; u++)
        if (uses->at[u].node != SF_NONE && graph->nodes[uses->at[u].node]->phase == SF_BACKWARD)
            return true;
    return false;
}

/* By node: bytes of a turn that the backward pass reads. */
double *sf_kept_by_nodes(const sf_load_request *request, sf_arena *arena)
{
    const sf_graph *graph = request->efforts->graph;
    sf_uses uses = sf_uses_of(graph, arena);
    const bool *moving = sf_find_moving(graph, arena);
    double *kept = SF_ARRAY(arena, graph->nnodes, double);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (node->phase != SF_FORWARD || !moving[node->id] ||
            (request->recomputed && request->recomputed[node->id]))
            continue;
        const sf_layout *results = request->plan->nodes[node->id] + node->noperands;
        for (uint32_t r = 0; r < node->nresults; r++)
            if (is_read_later(graph, &uses, node->result + r))
                kept[node->id] += sf_shard_bytes(sf_type_of(graph, node->result + r), &results[r],
                                                 &request->plan->mesh) /
                                  request->microbatches;
    }
    return kept;
}

/* Schedules ---------------------------------------------------------------------------------------- */

/* The schedule of a chain of as many stages. */
static sf_status draft_schedule(const sf_load_request *request, sf_arena *arena, sf_diag *diag,
                                sf_schedule *out)
{
    sf_schedule_kind kind;
    SF_TRY(sf_schedule_parse(request->schedule, &kind, diag));
    if (kind.name == SF_SCHEDULE_INTERLACED) /* what all groups share is no stage of these */
        kind.name = SF_SCHEDULE_1F1B;
    sf_pipe pipe = {.nstages = request->stages,
                    .nmicrobatches = request->microbatches,
                    .ngroups = request->groups,
                    .has_backward = sf_pipe_all_backward(request->stages, arena),
                    .nedges = request->stages - 1,
                    .edges = sf_pipe_chain(request->stages, arena)};
    return sf_schedule_make(kind, &pipe, NULL, arena, out, diag);
}

uint32_t sf_turns_in_flight(const sf_schedule *schedule, uint32_t stage)
{
    const sf_pipe *pipe = &schedule->pipe;
    sf_pass last = pipe->splits_weights ? SF_PASS_WEIGHTS : SF_PASS_BACKWARD;
    uint32_t most = 1;
    for (uint32_t g = 0; g < pipe->ngroups; g++) {
        uint32_t begun = 0, ended = 0;
        for (uint32_t i = 0; i < schedule->ntasks[g]; i++) {
            const sf_stage_task *task = &schedule->tasks[g][i];
            begun += task->stage == stage && task->pass == SF_PASS_FORWARD;
            ended += task->stage == stage && task->pass == last;
            most = begun - ended > most ? begun - ended : most;
        }
    }
    return most;
}

/* How many stages share a group's memory. */
static uint32_t count_hosted(const sf_pipe *pipe, uint32_t group)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < pipe->nstages; s++)
        count += (uint32_t)(sf_pipe_hosts(pipe, s, 0) >> group & 1);
    return count > 0 ? count : 1;
}

sf_status sf_stage_loads(const sf_load_request *request, sf_arena *arena, sf_diag *diag,
                         sf_stage_request *out)
{
    sf_schedule draft;
    SF_TRY(draft_schedule(request, arena, diag, &draft));
    double *speed = SF_ARRAY(arena, request->stages, double);
    double *room = SF_ARRAY(arena, request->stages, double);
    double *in_flight = SF_ARRAY(arena, request->stages, double);
    for (uint32_t s = 0; s < request->stages; s++) {
        uint32_t group = (uint32_t)__builtin_ctzll(sf_pipe_hosts(&draft.pipe, s, 0));
        double memory =
            request->memory > 0
                ? (double)request->memory
                : (double)sf_costs_memory(sf_costs_at(request->costs, 0, (int)group, arena));
        speed[s] = request->speeds[group];
        room[s] = FULL_STAGE * memory / count_hosted(&draft.pipe, group);
        in_flight[s] = sf_turns_in_flight(&draft, s);
    }
    *out = (sf_stage_request){.speed = speed,
                              .fixed = find_fixed(request, arena),
                              .kept = sf_kept_by_nodes(request, arena),
                              .room = request->limited ? room : NULL,
                              .in_flight = in_flight};
    return SF_OK;
}
