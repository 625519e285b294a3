#include "base/collective.h"

const char *sf_collective_name(sf_collective kind)
{
    static const char *const names[SF_COLLECTIVE_COUNT] = {
        "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "permute"};
    return names[kind];
}
