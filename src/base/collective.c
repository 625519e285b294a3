#include "base/collective.h"

static const sf_collective_info table[SF_COLLECTIVE_COUNT + 1] = {
    [SF_ALL_REDUCE] = {"all_reduce", true, true, false, false, SF_ROUTE_RING},
    [SF_ALL_GATHER] = {"all_gather", false, true, false, true, SF_ROUTE_RING},
    [SF_REDUCE_SCATTER] = {"reduce_scatter", true, false, true, false, SF_ROUTE_RING},
    [SF_ALL_TO_ALL] = {"all_to_all", false, false, true, true, SF_ROUTE_DIRECT},
    [SF_BROADCAST] = {"broadcast", false, false, false, false, SF_ROUTE_CHAIN},
    [SF_PERMUTE] = {"permute", false, false, false, false, SF_ROUTE_PEER},
    [SF_COLLECTIVE_COUNT] = {"none", false, false, false, false, SF_ROUTE_NONE},
};

const sf_collective_info *sf_collective_get(sf_collective kind)
{
    return &table[(unsigned)kind < SF_COLLECTIVE_COUNT ? kind : SF_COLLECTIVE_COUNT];
}

sf_collective sf_collective_find(sf_str name)
{
    int kind = 0;
    while (kind < SF_COLLECTIVE_COUNT && !sf_str_is(name, table[kind].name))
        kind++;
    return (sf_collective)kind;
}

const char *sf_collective_name(sf_collective kind)
{
    return sf_collective_get(kind)->name;
}

bool sf_collective_has_segments(sf_collective kind)
{
    return sf_collective_get(kind)->reduces && sf_collective_get(kind)->gathers;
}

double sf_collective_sent(sf_collective kind, double members)
{
    const sf_collective_info *info = sf_collective_get(kind);
    double others = (members - 1) / members;
    switch (info->route) {
    case SF_ROUTE_NONE:
        return 0;
    case SF_ROUTE_RING:
        return (info->reduces + info->gathers) * others;
    case SF_ROUTE_DIRECT:
        return others;
    case SF_ROUTE_CHAIN:
    case SF_ROUTE_PEER:
        break;
    }
    return 1;
}
