#include <math.h>

#include "base/listen.h"
#include "solve/problem/budget.h"

bool sf_budget_spent(const sf_budget *budget)
{
    if (budget->asked || sf_interrupt_is_raised(budget->options->interrupt) ||
        budget->work >= budget->work_limit)
        return true;
    return budget->deadline < HUGE_VAL && sf_now() >= budget->deadline;
}

sf_budget sf_budget_share(const sf_budget *budget, double share)
{
    sf_budget part = *budget;
    if (part.deadline < HUGE_VAL) {
        double now = sf_now();
        part.deadline = now + share * (part.deadline - now);
    }
    if (part.work_limit < INT64_MAX)
        part.work_limit = part.work + (int64_t)(share * (double)(part.work_limit - part.work));
    return part;
}

void sf_budget_report(sf_budget *budget, bool feasible, int64_t cost, int64_t bound)
{
    const sf_solve_options *options = budget->options;
    if (feasible && (!budget->known || cost < budget->known_cost)) {
        budget->known = true;
        budget->known_cost = cost;
    }
    sf_audience audience = {options->listener, options->context, options->interrupt};
    if (!sf_is_heard(&audience) || budget->asked)
        return;
    sf_solve_progress progress = {sizeof progress, sf_now() - budget->started, budget->known,
                                  budget->known_cost, bound};
    sf_event event = {.size = sizeof event, .kind = SF_EVENT_SOLVE, .solve = &progress};
    budget->asked = !sf_tell(&audience, &event);
}
