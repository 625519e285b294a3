#include "report/page/page.h"

#include <math.h>
#include <string.h>

#include "api/api_options.h"
#include "base/guard.h"
#include "base/output.h"
#include "plan/replicated_compute.h"
#include "report/page/page_html.h"
#include "run/runner.h"
#include "sim/step_bound.h"

static void see_move(void *context, const sf_simulated_reshard *reshard)
{
    sf_page *page = context;
    SF_PUSH(&page->sim.arena, page->reshards, page->nreshards, page->move_capacity, *reshard);
}

static bool is_predicted(const sf_page *page)
{
    return sf_plan_is_for(page->sim.plan, page->sim.cluster);
}

static sf_status find_bound(sf_page *page)
{
    sf_sim_report *r = &page->sim;
    sf_costs *costs;
    sf_mesh all = {.naxes = 1, .axes = {{"all", r->cluster->ndevices}}};
    SF_TRY(sf_mesh_costs(r->cluster, &all, &r->arena, page->diag, &costs));
    page->bound = sf_step_bound_of(r->graph, sf_cluster_target(r->cluster), costs).seconds;
    return SF_OK;
}

/* The file of the step without its folder and endings; its module is called jit_step in most. */
static const char *find_title(sf_page *page)
{
    const char *path = page->sim.graph->origin.path;
    if (!path || !*path || strcmp(path, "-") == 0)
        return page->sim.graph->name;
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    size_t length = strcspn(file, ".");
    return sf_arena_string(&page->sim.arena, file, length ? length : strlen(file));
}

static const char *find_maker(sf_page *page)
{
    const sf_plan *plan = page->sim.plan;
    sf_buf text = {0};
    if (*plan->recipe && plan->pipeline)
        sf_buf_printf(&text, "a pipeline, with recipe %s in its stages", plan->recipe);
    else if (*plan->recipe)
        sf_buf_printf(&text, "recipe %s", plan->recipe);
    else
        sf_buf_puts(&text, plan->predicted ? "the search" : "pins");
    const char *kept = sf_page_shown(page, text.text);
    sf_buf_free(&text);
    return kept;
}

static const char *find_peak(sf_page *page)
{
    const sf_origin *peak = &page->sim.price.peak;
    sf_buf text = {0};
    sf_buf_printf(&text, "at %s, %s, in %s", peak->op, sf_phase_name(peak->phase),
                  *peak->scope ? peak->scope : "no scope");
    const char *kept = sf_page_shown(page, text.text);
    sf_buf_free(&text);
    return kept;
}

struct job {
    sf_page page;
    sf_report_options options;
    const sf_output *output;
};

static sf_status fill_page(struct job *job)
{
    sf_page *page = &job->page;
    sf_sim_report *r = &page->sim;
    SF_TRY(sf_sim_fill(r, see_move, page, page->diag));
    if (job->options.against)
        SF_TRY(sf_sim_read_timed(r, job->options.against, page->diag));
    sf_summarize(r->graph, NULL, &page->summary);
    page->limit = is_predicted(page) ? r->plan->predicted->limit : sf_costs_memory(r->costs);
    page->repeated = sf_find_repeated(r->graph, r->plan).share;
    page->title = sf_page_shown(page, job->options.title ? job->options.title : find_title(page));
    page->made_by = find_maker(page);
    page->peak = find_peak(page);
    SF_TRY(find_bound(page));
    sf_page_find_words(page);
    sf_page_find_spans(page);
    sf_page_find_traffic(page);
    SF_TRY(sf_page_find_scopes(page));
    return sf_page_find_others(page);
}

static sf_status write_page(struct job *job)
{
    sf_buf json = {0}, out = {0};
    sf_page_json(&job->page, job->options.json, &json);
    if (!job->options.json)
        sf_page_put(&sf_plan_page_head, &json, &sf_plan_page_tail, &out);
    sf_status status =
        sf_output_write(job->output, job->options.json ? &json : &out, job->page.diag);
    sf_buf_free(&json);
    sf_buf_free(&out);
    return status;
}

static sf_status report_plan(void *context)
{
    struct job *job = context;
    sf_page *page = &job->page;
    SF_TRY(sf_plan_expect(page->sim.plan, page->sim.graph, page->diag));
    sf_status status = fill_page(job);
    if (status == SF_OK)
        status = write_page(job);
    sf_summary_free(&page->summary);
    sf_sim_close(&page->sim);
    return status;
}

sf_status sf_plan_report(const sf_plan *plan, const sf_graph *graph, const sf_cluster *cluster,
                         const sf_report_options *options, const sf_output *output, sf_diag *diag)
{
    SF_NEED(diag, plan, graph, cluster);
    struct job job = {.output = output};
    job.page = (sf_page){.diag = diag};
    job.page.sim = (sf_sim_report){.plan = plan, .graph = graph, .cluster = cluster};
    SF_TRY(SF_TAKE(sf_report_options, options, &job.options, diag));
    SF_CHECK_OPTIONS(diag, {"threads", job.options.threads});
    if (!cluster)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a report of a plan needs a cluster");
    SF_TRY(sf_threads_open(job.options.threads, diag, &job.page.threads));
    sf_status status = sf_guarded(report_plan, &job, diag);
    sf_threads_free(job.page.threads);
    return status;
}
