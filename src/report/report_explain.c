#include "report/report_explain.h"

#include <math.h>

#include "api/api_options.h"
#include "base/guard.h"
#include "base/output.h"
#include "base/units.h"
#include "run/runner.h"

static sf_explained_reshards *find_kind(sf_explanation *e, const sf_simulated_reshard *reshard)
{
    for (size_t i = 0; i < e->nkinds; i++) {
        sf_explained_reshards *k = &e->kinds[i];
        if (k->kind == reshard->kind && k->axes == reshard->axes && k->phase == reshard->phase)
            return k;
    }
    sf_explained_reshards new_kind = {reshard->kind, reshard->axes, reshard->phase, 0, 0, 0, 0};
    SF_PUSH(&e->arena, e->kinds, e->nkinds, e->kind_capacity, new_kind);
    return &e->kinds[e->nkinds - 1];
}

static void sum_move(sf_explanation *e, const sf_simulated_reshard *reshard)
{
    sf_explained_reshards *kind = find_kind(e, reshard);
    kind->count++;
    kind->bytes += reshard->bytes;
    kind->seconds += reshard->seconds;
    kind->exposed += reshard->exposed;
}

static sf_status find_explained_bound(sf_explanation *e)
{
    sf_costs *costs;
    sf_mesh all = {.naxes = 1, .axes = {{"all", e->cluster->ndevices}}};
    SF_TRY(sf_mesh_costs(e->cluster, &all, &e->arena, e->diag, &costs));
    e->bound = sf_step_bound_of(e->graph, e->target, costs);
    return SF_OK;
}

/* The search that found the plan may have recorded everything. */
static sf_status find_told(sf_explanation *e)
{
    sf_group_runs runs;
    if (sf_plan_is_for(e->plan, e->cluster) && e->plan->predicted->simulated) {
        e->simulated = e->plan->predicted->simulated;
        return SF_OK;
    }
    sf_status status = sf_group_runs_new(e->graph, e->plan, e->target, e->costs, e->diag, &runs);
    if (status == SF_OK)
        e->simulated = sf_tell_groups(&runs, e->costs, &e->arena);
    sf_group_runs_free(&runs);
    return status;
}

/* Tests take this as a failure (test/support/cli.sh). */
static void check_bound(const sf_explanation *e)
{
    double seconds = e->simulated->price.seconds;
    if (e->bound.seconds > seconds * (1 + 1e-9))
        sf_warn(e->diag, SF_NOWHERE,
                "the bound, %s, is above this plan, which takes %s: a fault of the cost model",
                sf_text_seconds(e->bound.seconds).at, sf_text_seconds(seconds).at);
}

static sf_status price_plan(sf_explanation *e)
{
    e->target = sf_cluster_target(e->cluster);
    SF_TRY(find_explained_bound(e)); /* of all devices, also of those that the plan leaves unused */
    SF_TRY(sf_plan_cluster(e->plan, e->cluster, &e->arena, e->diag, &e->cluster));
    SF_TRY(sf_mesh_costs(e->cluster, &e->plan->mesh, &e->arena, e->diag, &e->costs));
    SF_TRY(find_told(e));
    check_bound(e);
    for (size_t i = 0; i < e->simulated->nreshards; i++)
        sum_move(e, &e->simulated->reshards[i]);
    return SF_OK;
}

struct job {
    sf_explanation e;
    const char *what;
    const sf_output *output;
};

static sf_status explain_plan(struct job *job, sf_buf *out)
{
    SF_TRY(sf_plan_expect(job->e.plan, job->e.graph, job->e.diag));
    SF_TRY(price_plan(&job->e));
    if (job->what)
        return sf_explain_what(&job->e, job->what, out);
    if (job->e.options.json)
        sf_explain_json(&job->e, out);
    else
        sf_explain_text(&job->e, out);
    return SF_OK;
}

static sf_status write_explanation(void *context)
{
    struct job *job = context;
    sf_buf out = {0};
    sf_status status = explain_plan(job, &out);
    if (status == SF_OK)
        status = sf_output_report(job->output, &out, job->e.diag);
    sf_buf_free(&out);
    sf_arena_free(&job->e.arena);
    return status;
}

sf_status sf_plan_explain(const sf_plan *plan, const sf_graph *graph, const sf_cluster *cluster,
                          const char *what, const sf_show_options *options, const sf_output *output,
                          sf_diag *diag)
{
    SF_NEED(diag, plan, graph, cluster);
    struct job job = {.what = what, .output = output};
    job.e = (sf_explanation){.plan = plan, .graph = graph, .cluster = cluster, .diag = diag};
    SF_TRY(SF_TAKE(sf_show_options, options, &job.e.options, diag));
    if (!cluster)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "explaining a plan needs a cluster");
    return sf_guarded(write_explanation, &job, diag);
}
