#include "pass/agree_passes.h"

#include "prog/edit_program.h"
#include "run/comm/rank_agreement.h"

static sf_status rewrite(const sf_plan *plan, sf_comm *comm, bool anew, sf_program *program,
                         sf_diag *diag, int *other)
{
    sf_arena arena = {0};
    sf_status status = sf_plan_rewrite(plan, NULL, anew, program, &arena, diag, NULL, NULL);
    uint64_t mine = sf_program_traffic(program);
    sf_arena_free(&arena);
    *other = 1;
    SF_TRY(sf_agree(comm, status, "passes", diag));
    if (!plan->pipeline) /* groups of one send what is their own */
        SF_TRY(sf_agree_same(comm, &mine, 1, "passes", diag, other));
    return SF_OK;
}

/* Where one rank finds on disk what another does not, or an older one, they decide anew. */
sf_status sf_rewrite_together(const sf_plan *plan, sf_comm *comm, sf_program *program,
                              sf_diag *diag)
{
    sf_arena arena = {0};
    const sf_kept *before = *plan->passes.list ? sf_program_keep(program, &arena) : NULL;
    int other;
    sf_status status = rewrite(plan, comm, false, program, diag, &other);
    if (status == SF_OK && other == 0 && before) {
        sf_program_put_back(program, before);
        sf_program_settle(program);
        status = rewrite(plan, comm, true, program, diag, &other);
    }
    sf_arena_free(&arena);
    SF_TRY(status);
    if (other == 0)
        return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                       "passes made different programs on different ranks; run without them");
    return SF_OK;
}
