/* Steps, their plans and outputs, as commands take them. */
#include <inttypes.h>
#include <string.h>

#include "base/diag.h"
#include "base/file.h"
#include "cli/cli.h"

sf_status sf_cli_load_planned(const char *plan, const char *given, const sf_load_options *load,
                              sf_diag *diag, sf_graph **out)
{
    sf_plan_origin origin = {.size = sizeof origin};
    sf_status status = sf_plan_load_step(plan, given, load, diag, out);
    if (status != SF_OK && !given && strcmp(plan, "-") != 0 &&
        sf_plan_origin_of(plan, NULL, &origin) == SF_OK) /* else the plan has the error */
        sf_hint(diag, "%s was made from this step; STEP or --step names where it is now", plan);
    return status;
}

/* Costs are of the cluster that the plan was made for, if it says one. */
static sf_status take_passes(const sf_cli_split *split, sf_plan *plan, sf_diag *diag)
{
    sf_plan_origin origin = {.size = sizeof origin};
    sf_cluster *cluster = NULL;
    sf_status status = SF_OK;
    if (!split->passes)
        return SF_OK;
    if (strcmp(split->plan, "-") != 0)
        SF_TRY(sf_plan_origin_of(split->plan, diag, &origin));
    if (*origin.cluster)
        status = sf_cluster_open(origin.cluster, diag, &cluster);
    if (status == SF_OK)
        status = sf_plan_use_passes(plan, split->passes, cluster, split->memory, diag);
    sf_cluster_free(cluster);
    return status;
}

/* The plan that a schedule pins, and the step as it has made it. */
static sf_status run_schedule(const sf_cli_split *split, sf_diag *diag, sf_graph **graph,
                              sf_plan **out)
{
    sf_cli_script script = split->script;
    sf_primitives *list;
    sf_graph *made = NULL;
    script.ranks = sf_cli_script_ranks(split->ranks);
    SF_TRY(sf_cli_run_script(&script, *graph, diag, &list));
    sf_status status = sf_primitives_pin(
        list, &(sf_plan_spec){.size = sizeof(sf_plan_spec), .ranks = (int)split->ranks}, diag, out);
    if (status == SF_OK && sf_primitives_graph(list) != *graph)
        status = sf_primitives_copy_graph(list, diag, &made);
    sf_primitives_free(list);
    if (made) {
        sf_graph_free(*graph);
        *graph = made;
    }
    return status == SF_OK ? sf_plan_check(*out, *graph, 0, diag) : status;
}

static sf_status open_split(const sf_cli_split *split, const sf_graph *graph, sf_diag *diag,
                            sf_plan **out)
{
    if (!split->plan && sf_ranks_started() > 1)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "mpirun started %d processes, and no --plan says how to split the step",
                       sf_ranks_started());
    if (!split->plan)
        return SF_OK;
    SF_TRY(sf_plan_load(graph, split->plan, diag, out));
    if (split->ranks > 0 && split->ranks != sf_plan_ranks(*out))
        return sf_fail(diag, SF_EUSAGE, (sf_loc){split->plan, 0, 0},
                       "the plan is for %d ranks, not for %" PRId64, sf_plan_ranks(*out),
                       split->ranks);
    SF_TRY(take_passes(split, *out, diag));
    return sf_plan_check(*out, graph, 0, diag);
}

/* A plan that is read from standard input can be read only once, and not for how its step is read. */
static sf_status load_step(const sf_cli_split *split, sf_diag *diag, sf_graph **out)
{
    if (split->plan && strcmp(split->plan, "-") != 0)
        return sf_cli_load_planned(split->plan, split->step, &split->load, diag, out);
    if (!split->step)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "STEP is missing, and no --plan leads to one");
    return sf_load(split->step, &split->load, diag, out);
}

sf_status sf_cli_open(const sf_cli_split *split, sf_diag *diag, sf_graph **graph, sf_plan **plan)
{
    *graph = NULL;
    *plan = NULL;
    sf_status status = load_step(split, diag, graph);
    if (status == SF_OK)
        status = split->script.path ? run_schedule(split, diag, graph, plan)
                                    : open_split(split, *graph, diag, plan);
    return sf_ranks_agree(status, split->limit, diag);
}

void sf_cli_set_profile(const sf_output *profile, sf_train_options *options)
{
    size_t length = profile->path ? strlen(profile->path) : 0;
    bool timeline = length > 5 && strcmp(profile->path + length - 5, ".json") == 0;
    options->trace = timeline ? profile : NULL;
    options->profile = length > 0 && !timeline ? profile : NULL;
}

sf_status sf_cli_open_plan(const char *path, const sf_graph *graph, sf_diag *diag, sf_plan **out)
{
    *out = NULL;
    SF_TRY(sf_plan_load(graph, path, diag, out));
    sf_status status = sf_plan_check(*out, graph, 0, diag);
    if (status == SF_OK)
        return SF_OK;
    sf_plan_free(*out);
    *out = NULL;
    if (status == SF_ENOMEM) /* which says nothing of the plan */
        return status;
    return sf_fail(diag, status, (sf_loc){.file = path}, "this plan does not compute the step");
}

sf_status sf_cli_open_cluster(const char *name, const char *measured, sf_diag *diag,
                              sf_cluster **out)
{
    sf_cluster *cluster;
    *out = NULL;
    if (!measured)
        return sf_cluster_open(name, diag, out);
    SF_TRY(sf_cluster_open(name, diag, &cluster));
    sf_status status = sf_cluster_measured(cluster, measured, diag, out);
    sf_cluster_free(cluster);
    return status;
}

/* The plan's own, or as many cores as it has ranks. */
static sf_status open_cluster(const sf_cli_pricing *pricing, const sf_plan *plan, const char *named,
                              sf_diag *diag, sf_cluster **out)
{
    char cores[32];
    if (pricing->cluster)
        return sf_cli_open_cluster(pricing->cluster, pricing->measured, diag, out);
    if (!*named) {
        snprintf(cores, sizeof cores, "1x%dxCPU", sf_plan_ranks(plan));
        sf_warn(diag, (sf_loc){.file = pricing->plan},
                "the plan was made for no cluster and is simulated on %s; --cluster names another",
                cores);
        return sf_cli_open_cluster(cores, pricing->measured, diag, out);
    }
    return sf_cli_open_cluster(named, pricing->measured, diag, out) == SF_OK
               ? SF_OK
               : sf_hint(diag, "%s says so; --cluster names another", pricing->plan);
}

sf_status sf_cli_open_priced(const sf_cli_pricing *pricing, sf_diag *diag, sf_cli_priced *out)
{
    sf_plan_origin origin = {.size = sizeof origin};
    *out = (sf_cli_priced){0};
    SF_TRY(sf_plan_origin_of(pricing->plan, diag, &origin));
    SF_TRY(sf_cli_load_planned(pricing->plan, pricing->step, &pricing->load, diag, &out->graph));
    SF_TRY(sf_cli_open_plan(pricing->plan, out->graph, diag, &out->plan));
    SF_TRY(open_cluster(pricing, out->plan, origin.cluster, diag, &out->cluster));
    const char *passes = pricing->passes;
    if (!passes && pricing->measured && *sf_plan_passes_of(out->plan))
        passes = sf_plan_passes_of(out->plan); /* they use the measurements, too */
    return passes ? sf_plan_use_passes(out->plan, passes, out->cluster, pricing->memory, diag)
                  : SF_OK;
}

void sf_cli_close_priced(sf_cli_priced *priced)
{
    sf_cluster_free(priced->cluster);
    sf_plan_free(priced->plan);
    sf_graph_free(priced->graph);
}

sf_status sf_cli_try_output(const char *path, const char *input, const char *other, sf_diag *diag)
{
    const char *inputs[] = {input, other};
    if (!path)
        return SF_OK;
    for (int i = 0; i < 2; i++)
        if (inputs[i] && sf_file_is_same(path, inputs[i]))
            return sf_fail(diag, SF_EUSAGE, (sf_loc){.file = path},
                           "is read, so it cannot be the output as well");
    return sf_file_try(path, diag);
}
