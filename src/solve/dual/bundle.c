#include "solve/dual/bundle.h"

#include <math.h>
#include <string.h>

void sf_bundle_init(sf_bundle *bundle, sf_dual *dual, sf_arena *arena)
{
    uint32_t capacity = dual->watch.capacity;
    *bundle = (sf_bundle){.dual = dual, .bound = -HUGE_VAL, .promise = HUGE_VAL};
    bundle->center = SF_ARRAY(arena, capacity, double);
    bundle->free = SF_ARRAY(arena, capacity, double);
    for (uint32_t k = 0; k < SF_BUNDLE_PLANES; k++) {
        bundle->planes[k].choice = SF_ARRAY(arena, dual->tables->problem->nnodes, uint32_t);
        bundle->planes[k].slope = SF_ARRAY(arena, capacity, double);
    }
}

/* The value of the plane at the multipliers. */
static double height_of_plane(const sf_bundle *bundle, const sf_plane *plane,
                              const double *multiplier)
{
    double sum = plane->cost;
    for (uint32_t slot = 0; slot < bundle->dual->watch.count; slot++)
        sum += plane->slope[slot] * multiplier[slot];
    return sum;
}

/* An unused place, or that of the highest plane among those without weight. */
static sf_plane *place_for_plane(sf_bundle *bundle)
{
    if (bundle->count < SF_BUNDLE_PLANES)
        return &bundle->planes[bundle->count++];
    sf_plane *worst = NULL;
    double most = -HUGE_VAL;
    for (uint32_t k = 0; k < bundle->count; k++) {
        sf_plane *plane = &bundle->planes[k];
        double score = height_of_plane(bundle, plane, bundle->center);
        if (plane->weight == 0 && score > most) {
            most = score;
            worst = plane;
        }
    }
    return worst ? worst : &bundle->planes[0];
}

void sf_bundle_add(sf_bundle *bundle, const uint32_t *choice)
{
    const sf_dual *dual = bundle->dual;
    const sf_watch *watch = &dual->watch;
    sf_plane *plane = place_for_plane(bundle);
    memcpy(plane->choice, choice, watch->problem->nnodes * sizeof *choice);
    plane->cost = sf_dual_value(dual, choice);
    plane->weight = 0;
    for (uint32_t slot = 0; slot < watch->count; slot++) {
        int64_t usage = sf_watch_usage_at(watch->problem, choice, watch->point[slot]);
        plane->slope[slot] = (double)(usage - sf_watch_limit(watch, slot));
        plane->cost -= dual->multiplier[slot] * plane->slope[slot];
    }
}

void sf_bundle_watch(sf_bundle *bundle, uint32_t point)
{
    sf_watch *watch = &bundle->dual->watch;
    uint32_t before = watch->count, slot = sf_watch_add(watch, point);
    if (watch->count == before)
        return;
    bundle->center[slot] = bundle->dual->multiplier[slot] = 0;
    for (uint32_t k = 0; k < bundle->count; k++) {
        int64_t usage = sf_watch_usage_at(watch->problem, bundle->planes[k].choice, point);
        bundle->planes[k].slope[slot] = (double)(usage - sf_watch_limit(watch, slot));
    }
}

/* The reach that would have led from the center to the present multipliers, along the steepest plane. */
static double reach_taken(const sf_bundle *bundle)
{
    double moved = 0, steepest = 0;
    for (uint32_t slot = 0; slot < bundle->dual->watch.count; slot++) {
        double change = bundle->dual->multiplier[slot] - bundle->center[slot];
        moved += change * change;
    }
    for (uint32_t k = 0; k < bundle->count; k++) {
        double square = 0;
        for (uint32_t slot = 0; slot < bundle->dual->watch.count; slot++)
            square += bundle->planes[k].slope[slot] * bundle->planes[k].slope[slot];
        steepest = fmax(steepest, square);
    }
    return steepest > 0 ? sqrt(moved / steepest) : 0;
}

void sf_bundle_judge(sf_bundle *bundle, double bound, bool own)
{
    double hoped = bundle->promise - bundle->bound, gained = bound - bundle->bound;
    if (own && gained > 0.5 * hoped)
        bundle->reach *= 3;
    else if (own && gained <= 0)
        bundle->reach *= 0.6;
    else if (!own && gained > 0)
        bundle->reach = fmax(bundle->reach, reach_taken(bundle));
    if (gained <= 0)
        return;
    bundle->bound = bound;
    memcpy(bundle->center, bundle->dual->multiplier,
           bundle->dual->watch.count * sizeof *bundle->center);
}

/* A first step that would move the newest plane by a tenth of its cost. */
static void choose_reach(sf_bundle *bundle)
{
    double square = 0, cost = 0;
    for (uint32_t k = 0; k < bundle->count; k++) {
        double sum = 0;
        for (uint32_t slot = 0; slot < bundle->dual->watch.count; slot++)
            sum += bundle->planes[k].slope[slot] * bundle->planes[k].slope[slot];
        if (sum > square) {
            square = sum;
            cost = fabs(bundle->planes[k].cost);
        }
    }
    bundle->reach = square > 0 ? 0.1 * (cost > 0 ? cost : 1) / square : 0;
}

/* Multipliers for the weights of the planes: from the center along the weighted sum of slopes. */
static void start_model(sf_bundle *bundle)
{
    double sum = 0;
    for (uint32_t k = 0; k < bundle->count; k++)
        sum += bundle->planes[k].weight;
    if (sum <= 0)
        bundle->planes[bundle->count - 1].weight = sum = 1;
    for (uint32_t slot = 0; slot < bundle->dual->watch.count; slot++) {
        bundle->free[slot] = bundle->center[slot];
        for (uint32_t k = 0; k < bundle->count; k++)
            bundle->free[slot] +=
                bundle->reach * bundle->planes[k].weight / sum * bundle->planes[k].slope[slot];
    }
    for (uint32_t k = 0; k < bundle->count; k++)
        bundle->planes[k].weight /= sum;
}

/* Moves weight from the highest plane that has any to the lowest, as much as makes them equal. False when
 * they are. */
static bool improve_model(sf_bundle *bundle)
{
    double *multiplier = bundle->dual->multiplier, low = HUGE_VAL, high = -HUGE_VAL, square = 0;
    sf_plane *to = NULL, *from = NULL;
    for (uint32_t k = 0; k < bundle->count; k++) {
        sf_plane *plane = &bundle->planes[k];
        double h = height_of_plane(bundle, plane, multiplier);
        if (h < low) {
            low = h;
            to = plane;
        }
        if (plane->weight > 0 && h > high) {
            high = h;
            from = plane;
        }
    }
    bundle->promise = low;
    if (!to || !from || to == from || high - low <= 1e-7 * fabs(low))
        return false;
    for (uint32_t slot = 0; slot < bundle->dual->watch.count; slot++) {
        double change = to->slope[slot] - from->slope[slot];
        square += bundle->free[slot] > 0 ? change * change : 0;
    }
    double step = square > 0 ? (high - low) / (bundle->reach * square) : from->weight;
    step = step < from->weight ? step : from->weight;
    from->weight -= step;
    to->weight += step;
    for (uint32_t slot = 0; slot < bundle->dual->watch.count; slot++) {
        bundle->free[slot] += bundle->reach * step * (to->slope[slot] - from->slope[slot]);
        multiplier[slot] = fmax(0, bundle->free[slot]);
    }
    return true;
}

void sf_bundle_next(sf_bundle *bundle)
{
    enum { MOST_STEPS = 1000 };
    if (bundle->count == 0 || bundle->dual->watch.count == 0)
        return;
    if (!(bundle->reach > 0))
        choose_reach(bundle);
    start_model(bundle);
    for (uint32_t slot = 0; slot < bundle->dual->watch.count; slot++)
        bundle->dual->multiplier[slot] = fmax(0, bundle->free[slot]);
    for (int step = 0; step < MOST_STEPS && improve_model(bundle); step++)
        ;
    sf_dual_price(bundle->dual);
}

void sf_bundle_return(sf_bundle *bundle)
{
    memcpy(bundle->dual->multiplier, bundle->center,
           bundle->dual->watch.count * sizeof *bundle->center);
    sf_dual_price(bundle->dual);
}
