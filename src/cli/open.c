/* Steps, their plans and outputs, as commands take them. */
#include <inttypes.h>
#include <string.h>

#include "base/diag.h"
#include "base/file.h"
#include "cli/cli.h"

sf_status sf_cli_load_planned(const char *plan, const char *given, const sf_load_options *load,
                              sf_diag *diag, sf_graph **out)
{
    sf_status status = sf_plan_load_step(plan, given, load, diag, out);
    if (status != SF_OK && !given)
        sf_hint(diag, "%s was made from this step; STEP or --step names where it is now", plan);
    return status;
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
        status = open_split(split, *graph, diag, plan);
    return sf_ranks_agree(status, split->limit, diag);
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
