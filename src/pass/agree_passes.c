#include "pass/agree_passes.h"

#include "prog/edit_program.h"
#include "run/comm/rank_agreement.h"

sf_status sf_rewrite_together(const sf_plan *plan, sf_comm *comm, sf_program *program,
                              sf_diag *diag)
{
    sf_arena arena = {0};
    sf_status status = sf_plan_rewrite(plan, NULL, program, &arena, diag, NULL, NULL);
    uint64_t mine = sf_program_traffic(program);
    int other = 1;
    sf_arena_free(&arena);
    SF_TRY(sf_agree(comm, status, "passes", diag));
    if (!plan->pipeline) /* messages of single ranks differ */
        SF_TRY(sf_agree_same(comm, &mine, 1, "passes", diag, &other));
    if (other == 0)
        return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                       "passes made different programs on different ranks; run without them");
    return SF_OK;
}
