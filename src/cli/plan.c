/* Plans, as commands take them. */
#include <inttypes.h>

#include "base/diag.h"
#include "cli/cli.h"

sf_status sf_cli_plan(const sf_graph *graph, const char *path, int64_t ranks, sf_diag *diag,
                      sf_plan **out)
{
    sf_status status = sf_plan_load(graph, path, diag, out);
    if (status != SF_OK)
        return status;
    if (ranks > 0 && ranks != sf_plan_ranks(*out))
        status = sf_fail(diag, SF_EUSAGE, (sf_loc){path, 0, 0},
                         "the plan is for %d ranks, not for %" PRId64, sf_plan_ranks(*out), ranks);
    if (status == SF_OK)
        status = sf_plan_check(*out, graph, 0, diag);
    if (status != SF_OK) {
        sf_plan_free(*out);
        *out = NULL;
    }
    return status;
}
