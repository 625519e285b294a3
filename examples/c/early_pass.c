/* A pass of one's own: gathers stand right behind what they need, however much memory that takes. Where it does not fit, or is
 * predicted to be slower, the program is as it was.
 *
 *     cc -shared -fPIC -o early_pass.so early_pass.c $(pkg-config --cflags sheaf)
 *     sheaf sim plan.json --cluster 2xH100 --passes fsdp,./early_pass.so
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sheaf/pass.h>

static bool is_gather(const sf_user_inst *inst)
{
    return strcmp(inst->kind, "all_gather") == 0;
}

/* Whether all that it needs stands in the list already. */
static bool is_ready(const sf_user_inst *inst, const bool *done)
{
    for (uint32_t i = 0; i < inst->nbefore; i++)
        if (!done[inst->before[i]])
            return false;
    return true;
}

/* Before each instruction, all gathers that can go. */
static int put_early(sf_user_passing *passing)
{
    bool *done = calloc(passing->count + 1, sizeof *done);
    uint32_t at = 0, moved = 0;
    if (!done) {
        snprintf(passing->note, sizeof passing->note, "out of memory");
        return 1;
    }
    for (uint32_t i = 0; i < passing->count; i++) {
        for (uint32_t g = i + 1; g < passing->count; g++)
            if (!done[g] && is_gather(&passing->insts[g]) && is_ready(&passing->insts[g], done)) {
                passing->order[at++] = g;
                done[g] = true;
                moved++;
            }
        if (!done[i])
            passing->order[at++] = i;
        done[i] = true;
    }
    snprintf(passing->note, sizeof passing->note, "%u gathers as early as can be", moved);
    free(done);
    return 0;
}

SF_API const sf_user_pass *sheaf_pass(void)
{
    static const sf_user_pass pass = {SF_USER_PASS_VERSION, "early", SF_USER_FOR_TIME, put_early};
    return &pass;
}
