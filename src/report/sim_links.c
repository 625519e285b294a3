#include "report/report_sim.h"

const char *sf_level_name(int level)
{
    static const char *const names[] = {"inside hosts", "between hosts", "between racks"};
    return level >= 0 && level < SF_LEVELS ? names[level] : "nowhere";
}

double sf_sim_link_seconds(const sf_sim_report *r, int level)
{
    double seconds = 0;
    for (size_t i = 0; i < r->ncomms; i++)
        seconds += r->comms[i].level == level ? r->comms[i].seconds : 0;
    return seconds;
}
