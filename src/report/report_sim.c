#include "report/report_sim.h"

#include <stdlib.h>
#include <string.h>

#include "api/api_options.h"
#include "base/guard.h"
#include "base/output.h"
#include "run/runner.h"
#include "sim/instruction_work.h"
#include "sim/timeline_trace.h"

/* Products a second of all devices together, at their peak. */
static double peak_of_all(const sf_cluster *cluster, sf_math math)
{
    double all = 0;
    for (int i = 0; i < cluster->nruns; i++) {
        const sf_nodes *nodes = &cluster->nodes[i];
        const sf_device_kind *kind = &cluster->kinds[nodes->kind];
        all += (double)nodes->count * nodes->devices * kind->flops[sf_math_done(kind, math)];
    }
    return all;
}

/* Adds the products of a program that runs `times` times: flops, and their time at the peak of all
 * devices. */
static void add_products(const sf_cluster *cluster, const sf_program *program, double times,
                         double *flops, double *seconds)
{
    for (size_t i = 0; i < program->ninsts; i++) {
        const sf_inst *inst = &program->insts[i];
        for (uint32_t b = 0; b < sf_body_count(inst); b++)
            add_products(cluster, inst->nest->bodies[b], times * inst->nest->runs[b], flops,
                         seconds);
        if (inst->kind != SF_INST_DOT && inst->kind != SF_INST_CONV)
            continue;
        sf_effort effort = sf_inst_effort(inst);
        double own =
            inst->kind == SF_INST_DOT ? sf_dot_flops(inst->dot) : sf_conv_flops(inst->conv);
        *flops += times * own;
        *seconds += times * own / peak_of_all(cluster, effort.math);
    }
}

static sf_sim_comm *find_comm(sf_sim_report *r, const sf_exchange *exchange)
{
    const char *name = sf_is_one_way(exchange) ? "message" : sf_collective_name(exchange->kind);
    for (size_t i = 0; i < r->ncomms; i++)
        if (strcmp(r->comms[i].name, name) == 0 && r->comms[i].axes == exchange->axes)
            return &r->comms[i];
    sf_sim_comm comm = {.name = name,
                        .axes = exchange->axes,
                        .level = sf_costs_group_level(r->costs, exchange->axes)};
    SF_PUSH(&r->arena, r->comms, r->ncomms, r->comm_capacity, comm);
    return &r->comms[r->ncomms - 1];
}

static void add_comm(sf_sim_report *r, const sf_inst *inst, double times, double bytes,
                     double seconds, double exposed)
{
    sf_sim_comm *comm = find_comm(r, inst->exchange);
    comm->count += (int64_t)times;
    comm->bytes += times * bytes;
    comm->seconds += times * seconds;
    comm->exposed += times * exposed;
}

static void see_comm(void *context, const sf_inst *exchange, const sf_timing *timing, double times,
                     uint32_t within)
{
    sf_sim_report *r = context;
    add_comm(r, exchange, times, timing->bytes, timing->end - timing->start, timing->exposed);
    if (r->program->insts[within].kind != SF_INST_COMM)
        r->kinds[r->program->insts[within].kind].waits += times * timing->exposed;
}

static int most_exposed_first(const void *a, const void *b)
{
    const sf_sim_comm *x = a, *y = b;
    return (x->exposed < y->exposed) - (x->exposed > y->exposed);
}

static void add_up_insts(sf_sim_report *r)
{
    const sf_program *p = r->program;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        const sf_timing *t = &r->sim.insts[i];
        sf_sim_kind *kind = &r->kinds[inst->kind];
        kind->count++;
        kind->seconds += t->end - t->start;
    }
    sf_see_exchanges(p, &r->sim, see_comm, r);
    if (r->ncomms > 0)
        qsort(r->comms, r->ncomms, sizeof *r->comms, most_exposed_first);
}

typedef struct lasting {
    uint32_t inst;
    double seconds;
} lasting;

static int slowest_first(const void *a, const void *b)
{
    const lasting *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? 1 : -1;
    return (x->inst > y->inst) - (x->inst < y->inst);
}

static void find_slowest(sf_sim_report *r)
{
    const sf_program *p = r->program;
    lasting *list = SF_ARRAY(&r->arena, p->ninsts, lasting);
    size_t count = 0;
    for (uint32_t i = 0; i < p->ninsts; i++)
        if (p->insts[i].stream == 0)
            list[count++] = (lasting){i, r->sim.insts[i].end - r->sim.insts[i].start};
    if (count > 0)
        qsort(list, count, sizeof *list, slowest_first);
    r->slowest = SF_ARRAY(&r->arena, count, uint32_t);
    for (size_t i = 0; i < count; i++)
        r->slowest[i] = list[i].inst;
    r->nslowest = count;
}

sf_status sf_sim_fill(sf_sim_report *r, sf_see_reshard *see, void *context, sf_diag *diag)
{
    SF_TRY(sf_plan_cluster(r->plan, r->cluster, &r->arena, diag, &r->cluster));
    const sf_target *target = sf_cluster_target(r->cluster);
    SF_TRY(sf_mesh_costs(r->cluster, &r->plan->mesh, &r->arena, diag, &r->costs));
    SF_TRY(sf_group_runs_new(r->graph, r->plan, target, r->costs, diag, &r->runs));
    sf_price_groups(&r->runs, r->costs, see, context, &r->price);
    r->program = r->runs.at[r->runs.busiest].program;
    r->sim = r->runs.at[r->runs.busiest].sim;
    r->sim.seconds = r->runs.seconds;
    r->sim.exposed = r->sim.seconds - r->sim.compute;
    sf_lower_options unsplit = {.target = target, .unplaced = true};
    sf_program *whole = sf_lower(r->graph, &unsplit, NULL);
    add_products(r->cluster, whole, 1, &r->flops, &r->best);
    sf_program_free(whole);
    add_up_insts(r);
    find_slowest(r);
    return SF_OK;
}

void sf_sim_close(sf_sim_report *r)
{
    sf_group_runs_free(&r->runs);
    sf_arena_free(&r->arena);
}

struct job {
    sf_sim_report r;
    sf_sim_options options;
    sf_show_options show;
    const sf_output *output;
    sf_diag *diag;
};

static sf_status write_trace(struct job *job)
{
    sf_buf out = {0};
    sf_json_writer json = {.buf = &out, .indent = true};
    int ranks = job->options.ranks > 0 ? job->options.ranks : 1;
    sf_trace_begin(&json, "a step as simulated", &job->r.plan->mesh);
    for (int rank = 0; rank < ranks && rank < sf_mesh_size(&job->r.plan->mesh); rank++) {
        const sf_rank_run *run = &job->r.runs.at[sf_group_of_rank(job->r.plan, rank)];
        sf_trace_put(run->program, run->sim.insts, rank, &json);
    }
    sf_trace_end(&json);
    sf_buf_putc(&out, '\n');
    sf_status status = sf_output_write(job->options.trace, &out, job->diag);
    sf_buf_free(&out);
    return status;
}

static sf_status write_report(struct job *job)
{
    sf_buf out = {0};
    sf_style style = {.width = job->show.width, .colour = job->show.colour};
    if (job->show.json)
        sf_sim_json(&job->r, &out);
    else
        sf_sim_text(&job->r, style, job->show.all, &out);
    sf_status status = sf_output_report(job->output, &out, job->diag);
    sf_buf_free(&out);
    return status;
}

static sf_status simulate_plan(struct job *job)
{
    SF_TRY(sf_plan_expect(job->r.plan, job->r.graph, job->diag));
    SF_TRY(sf_sim_fill(&job->r, NULL, NULL, job->diag));
    if (job->options.against)
        SF_TRY(sf_sim_read_timed(&job->r, job->options.against, job->diag));
    if (job->options.trace)
        SF_TRY(write_trace(job));
    return write_report(job);
}

static sf_status simulate_guarded(void *context)
{
    struct job *job = context;
    sf_status status = simulate_plan(job);
    sf_sim_close(&job->r);
    return status;
}

sf_status sf_plan_simulate(const sf_plan *plan, const sf_graph *graph, const sf_cluster *cluster,
                           const sf_sim_options *options, const sf_show_options *show,
                           const sf_output *output, sf_diag *diag)
{
    SF_NEED(diag, plan, graph, cluster);
    struct job job = {.output = output, .diag = diag};
    job.r = (sf_sim_report){.plan = plan, .graph = graph, .cluster = cluster};
    SF_TRY(SF_TAKE(sf_sim_options, options, &job.options, diag));
    SF_TRY(SF_TAKE(sf_show_options, show, &job.show, diag));
    SF_CHECK_OPTIONS(diag, {"ranks", job.options.ranks});
    if (!cluster)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "simulating a plan needs a cluster");
    return sf_guarded(simulate_guarded, &job, diag);
}
