/* A plan by the names of the step: layouts of tensors, and the local program of a rank. */
#include <stdio.h>
#include <string.h>

#include "base/boundary.h"
#include "base/guard.h"
#include "base/output.h"
#include "ir/name.h"
#include "ir/opdef.h"
#include "local/local.h"
#include "local/print_ranks.h"
#include "pass/agree_passes.h"
#include "plan/plan.h"
#include "run/runner.h"

/* Values inside of loops and branches have no layout of their own. */
static bool has_layout(const sf_plan *plan, const sf_graph *graph, sf_value value)
{
    const sf_node *node = sf_maker(graph, value);
    return !node || plan->nodes[node->id];
}

struct finding {
    const sf_plan *plan;
    const sf_graph *graph;
    const char *name;
    int capacity, count;
    int *out;
};

static bool is_named(const struct finding *job, const char **arguments, sf_value value)
{
    const sf_node *node = sf_maker(job->graph, value);
    if (!job->name)
        return true;
    if (!node)
        return sf_name_is_in(job->name, arguments[job->graph->values[value].index]);
    sf_buf name = {0};
    bool is = sf_name_is_in(job->name, sf_value_name(job->graph, value, &name));
    sf_buf_free(&name);
    return is;
}

static sf_status find_tensors(void *context)
{
    struct finding *job = context;
    sf_arena arena = {0};
    const char **arguments = sf_clean_names(job->graph, &arena);
    for (sf_value v = 0; v < job->graph->nvalues; v++) {
        if (!has_layout(job->plan, job->graph, v) || !is_named(job, arguments, v))
            continue;
        if (job->count < job->capacity)
            job->out[job->count] = (int)v;
        job->count++;
    }
    sf_arena_free(&arena);
    return SF_OK;
}

int sf_plan_tensors(const sf_plan *plan, const sf_graph *graph, const char *name, int capacity,
                    int *out)
{
    SF_NEED_OR(-1, plan, graph);
    if (capacity > 0)
        SF_NEED_OR(-1, out);
    struct finding job = {plan, graph, name, capacity, 0, out};
    if (sf_plan_expect(plan, graph, NULL) != SF_OK)
        return -1;
    return sf_guarded(find_tensors, &job, NULL) == SF_OK ? job.count : -1;
}

struct viewing {
    const sf_plan *plan;
    const sf_graph *graph;
    sf_value value;
    sf_plan_tensor_view view;
};

static sf_status view_tensor(void *context)
{
    struct viewing *job = context;
    const sf_graph *graph = job->graph;
    const sf_node *node = sf_maker(graph, job->value);
    sf_plan_tensor_view *view = &job->view;
    sf_arena arena = {0};
    sf_buf name = {0}, layout = {0};
    sf_tensor_type type;
    sf_view_type(sf_type_of(graph, job->value), &type);
    snprintf(view->name, sizeof view->name, "%s",
             node ? sf_value_name(graph, job->value, &name)
                  : sf_clean_names(graph, &arena)[graph->values[job->value].index]);
    sf_layout_print(sf_plan_layout(job->plan, graph, job->value), &job->plan->mesh, type.rank,
                    type.dims, &layout);
    snprintf(view->layout, sizeof view->layout, "%s", layout.text);
    view->phase = node ? sf_phase_name(node->phase) : "";
    view->dtype = type.dtype;
    view->rank = type.rank;
    memcpy(view->dims, type.dims, sizeof view->dims);
    sf_buf_free(&name);
    sf_buf_free(&layout);
    sf_arena_free(&arena);
    return SF_OK;
}

bool sf_plan_tensor(const sf_plan *plan, const sf_graph *graph, int tensor,
                    sf_plan_tensor_view *out)
{
    SF_NEED_OR(false, plan, graph, out);
    struct viewing job = {
        .plan = plan, .graph = graph, .value = (sf_value)tensor, .view.size = sizeof job.view};
    if (tensor < 0 || (size_t)tensor >= graph->nvalues ||
        sf_plan_expect(plan, graph, NULL) != SF_OK || !has_layout(plan, graph, job.value))
        return false;
    return sf_guarded(view_tensor, &job, NULL) == SF_OK &&
           SF_GIVE(sf_plan_tensor_view, out, &job.view, NULL) == SF_OK;
}

struct printing {
    const sf_plan *plan;
    const sf_graph *graph;
    int rank;
    const sf_output *output;
    sf_diag *diag;
};

static sf_status print_program(void *context)
{
    struct printing *job = context;
    sf_local *local;
    sf_buf out = {0};
    SF_TRY(sf_local_new(job->graph, job->plan, job->rank, job->diag, &local));
    sf_lower_options options = {
        .target = sf_engine_target(NULL), .mesh = &job->plan->mesh, .rank = job->rank};
    sf_program *program = sf_lower(local->graph, &options, NULL);
    sf_status status = SF_OK;
    if (*job->plan->passes.list)
        status = sf_rewrite_together(job->plan, NULL, program, job->diag);
    if (status == SF_OK) {
        sf_program_print(program, &out);
        status = sf_output_report(job->output, &out, job->diag);
    }
    sf_buf_free(&out);
    sf_program_free(program);
    sf_local_free(local);
    return status;
}

sf_status sf_plan_show_program(const sf_plan *plan, const sf_graph *graph, int rank,
                               const sf_output *output, sf_diag *diag)
{
    SF_NEED(diag, plan, graph);
    struct printing job = {plan, graph, rank, output, diag};
    SF_TRY(sf_plan_expect(plan, graph, diag));
    if (rank < 0 || rank >= sf_plan_ranks(plan))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "there is no rank %d; the plan has %d", rank,
                       sf_plan_ranks(plan));
    return sf_guarded(print_program, &job, diag);
}

static sf_status print_ranks(void *context)
{
    struct printing *job = context;
    sf_buf out = {0};
    sf_status status = sf_print_ranks(job->graph, job->plan, &out, job->diag);
    if (status == SF_OK)
        status = sf_output_report(job->output, &out, job->diag);
    sf_buf_free(&out);
    return status;
}

sf_status sf_plan_save_stablehlo(const sf_plan *plan, const sf_graph *graph,
                                 const sf_output *output, sf_diag *diag)
{
    SF_NEED(diag, plan, graph);
    struct printing job = {plan, graph, 0, output, diag};
    SF_TRY(sf_plan_expect(plan, graph, diag));
    return sf_guarded(print_ranks, &job, diag);
}
