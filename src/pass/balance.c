/* What is kept and what goes to the host, for the same bytes: unshard is told of more memory than there is, and what then does
 * not fit is offloaded, such as optimizer state that rests while layers are computed. How much more pays, if any does, is tried;
 * the simulator, with one curve and one clock for both, decides. */
#include <math.h>

#include "pass/passes.h"
#include "prog/rewrite.h"

/* Of the memory that there is, so much more; with either order of what is kept. */
static const double more[SF_BALANCE_WAYS / 2] = {0, 0.05, 0.1, 0.2, 0.4, 0.8};

static sf_status offload_rest(const sf_passing *passing, sf_buf *note)
{
    sf_passing own = *passing;
    own.note = note;
    own.options[0] = (double)NAN;
    sf_program_number(own.program);
    sf_program_settle(own.program);
    if (sf_program_bytes(own.program) <= own.limit)
        return SF_OK;
    sf_profile_take(own.program, own.costs, own.scratch, &own.profile);
    return sf_pass_offload(&own);
}

sf_status sf_pass_balance(sf_passing *passing)
{
    sf_passing kept = *passing;
    sf_buf note = {0};
    kept.variant = passing->variant % 2 * SF_UNSHARD_WAYS;
    kept.limit += (int64_t)((double)passing->limit * more[passing->variant / 2]);
    sf_status status = sf_pass_unshard(&kept);
    if (status == SF_OK)
        status = offload_rest(passing, &note);
    if (note.length > 0)
        sf_buf_printf(passing->note, "; for that, %s", note.text);
    sf_buf_free(&note);
    return status;
}
