/* The trade-off between unshard and offload, for the same bytes: unshard gets a higher memory limit
 * than the device has, and buffers that then do not fit are offloaded, such as optimizer state that
 * is unused while layers are computed. The pass tries several higher limits; the simulator, with
 * one memory curve and one clock for both, decides.
 *
 * The tensor that saves most per byte is kept first, which need not give the best set: two that fit
 * together may be better than one that excludes both. If there are few that could be kept, all sets
 * of them are tried. */
#include <math.h>

#include "pass/passes.h"
#include "pass/unsharding.h"
#include "prog/edit_program.h"

/* After the ways of unshard: higher limits by these shares of memory; in either order of kept
 * tensors. */
enum { MORE = SF_BALANCE_ORDERS - SF_UNSHARD_WAYS };
static const double more[MORE / 2] = {0, 0.05, 0.1, 0.2, 0.4, 0.8};

static void settle(sf_passing *passing)
{
    sf_program_number(passing->program);
    if (passing->is_trial)
        sf_program_settle_lives(passing->program);
    else
        sf_program_settle(passing->program);
}

/* Copies do not shorten a step: a set that saves no time without them is not worth them. */
static sf_status offload_rest(const sf_passing *passing, sf_buf *note)
{
    sf_passing own = *passing;
    own.note = note;
    own.options[0] = (double)NAN;
    own.options[1] = passing->options[0]; /* once more */
    settle(&own);
    if (sf_program_bytes(own.program) <= own.limit)
        return SF_OK;
    sf_profile_take(own.program, own.costs, own.scratch, &own.profile);
    if (own.is_trial && passing->profile.bytes <= own.limit &&
        own.profile.sim.seconds >= passing->profile.sim.seconds)
        return SF_OK;
    return sf_pass_offload(&own);
}

/* Memory does not matter where a set is said; one that is beyond the last is none. */
static void keep_some(sf_passing *passing)
{
    sf_passing kept = *passing;
    uint64_t set = UINT64_MAX;
    int order = passing->variant - SF_UNSHARD_WAYS;
    if (order >= 0 && order < MORE) {
        kept.variant = order % 2 * SF_UNSHARD_WAYS;
        kept.limit += (int64_t)((double)passing->limit * more[order / 2]);
    } else if (order >= MORE) {
        kept.variant = 0;
        kept.limit = INT64_MAX;
        set = (uint64_t)(passing->variant - SF_BALANCE_ORDERS);
    }
    size_t count = unshard_some(&kept, set);
    bool is_few = count < 64 && UINT64_C(1) << count <= SF_BALANCE_SETS;
    int last = SF_BALANCE_ORDERS - 1 + (is_few ? 1 << count : 0);
    passing->is_last = passing->variant >= last;
}

sf_status sf_pass_balance(sf_passing *passing)
{
    sf_buf note = {0};
    keep_some(passing);
    sf_status status = SF_OK; /* unshard alone gets a lower limit until the program fits */
    if (passing->variant >= SF_UNSHARD_WAYS)
        status = offload_rest(passing, &note);
    if (note.length > 0)
        sf_buf_printf(passing->note, "; for that, %s", note.text);
    sf_buf_free(&note);
    return status;
}
