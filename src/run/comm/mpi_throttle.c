/* A link that is slower than the machine's own, as between hosts. A message is delivered when it
 * would have come over the link, so its receiver sees the same timing; a rank's messages go through
 * its link one after the other. The link does not wait for the thread that polls it: the next
 * message is on it from when the one before was through, if it was there then. */
#if SF_HAVE_MPI

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "base/number.h"
#include "run/comm/comm_mpi.h"

const char *sf_line_read(sf_mpi_engine *engine)
{
    const char *text = getenv("SHEAF_MPI_LINK"), *colon = text ? strchr(text, ':') : NULL;
    int64_t hosts = 0, rate = 0;
    if (!text || !*text)
        return NULL;
    if (!colon || !sf_number_int((sf_str){text, (size_t)(colon - text)}, &hosts) ||
        !sf_number_int(sf_str_of(colon + 1), &rate) || hosts < 1 || hosts > engine->size ||
        rate < 1)
        return "SHEAF_MPI_LINK is HOSTS:BYTES, at most as many hosts as ranks, and bytes a second";
    for (int r = 0; r < engine->size; r++)
        engine->hosts[r] = (uint64_t)(r * hosts / engine->size);
    engine->line_rate = (double)rate;
    return NULL;
}

bool sf_line_lets(sf_mpi_engine *engine, sf_flow *flow, int peer, int64_t bytes)
{
    if (engine->line_rate <= 0 || engine->hosts[peer] == engine->hosts[engine->rank])
        return true;
    if (flow->due <= 0)
        flow->due = engine->line_free =
            fmax(flow->ready, engine->line_free) + (double)bytes / engine->line_rate;
    if (sf_now() < flow->due)
        return false;
    flow->due = 0;
    return true;
}

#endif
