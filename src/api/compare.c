#include "api/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK = 1024 };

double sf_relative_error(double ours, double theirs, double scale)
{
    if (ours == theirs || (isnan(ours) && isnan(theirs)))
        return 0;
    if (!isfinite(ours) || !isfinite(theirs))
        return (double)INFINITY;
    double size = fabs(theirs) > scale ? fabs(theirs) : scale;
    return fabs(ours - theirs) / size;
}

bool sf_difference_holds(const sf_difference *difference)
{
    return difference->error <= difference->tolerance;
}

/* The quadratic mean of what is finite. */
static double scale_of(const sf_tensor *tensor)
{
    double sum = 0, values[CHUNK];
    int64_t count = 0;
    for (int64_t first = 0; first < tensor->type->count; first += CHUNK) {
        int64_t length = tensor->type->count - first;
        if (length > CHUNK)
            length = CHUNK;
        sf_load_f64s(tensor->type->dtype, tensor->data, first, length, values);
        for (int64_t i = 0; i < length; i++)
            if (isfinite(values[i])) {
                sum += values[i] * values[i];
                count++;
            }
    }
    return count ? sqrt(sum / (double)count) : 0;
}

static double largest_update(const sf_comparison *in, const sf_tensor *results)
{
    const sf_graph *graph = in->graph;
    double largest = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_argument *argument = &graph->arguments[i];
        if (argument->role != SF_ROLE_PARAM || argument->next == SF_NONE)
            continue;
        const sf_tensor *before = &in->arguments[i], *after = &results[argument->next];
        if (before->type->count != after->type->count)
            continue;
        for (int64_t k = 0; k < before->type->count; k++) {
            double update = fabs(sf_get_f64(after, k) - sf_get_f64(before, k));
            if (isfinite(update) && update > largest)
                largest = update;
        }
    }
    return largest;
}

struct excuses {
    const sf_comparison *in;
    sf_moments moments;
    double update; /* the largest of any weight, in the run where that is smaller */
    size_t *first; /* of the moments by result, then the next one, counted from 1; 0 ends */
    size_t *next;
    bool *is_state;
};

static void prepare(const sf_comparison *in, sf_arena *arena, struct excuses *out)
{
    uint32_t nresults = in->graph->top->nresults;
    *out = (struct excuses){.in = in};
    sf_moments_find(in->graph, in->theirs, in->noise, arena, &out->moments);
    /* An element that is wrong in one of the runs must not excuse itself. */
    out->update = fmin(largest_update(in, in->ours), largest_update(in, in->theirs));
    out->first = SF_ARRAY(arena, nresults, size_t);
    out->next = SF_ARRAY(arena, out->moments.count + 1, size_t);
    out->is_state = SF_ARRAY(arena, nresults, bool);
    for (size_t i = 0; i < out->moments.count; i++) {
        const sf_moment *moment = &out->moments.at[i];
        out->next[i + 1] = out->first[moment->weight];
        out->first[moment->weight] = i + 1;
        out->first[moment->state] = i + 1;
        out->is_state[moment->state] = true;
    }
}

static bool is_noise(const struct excuses *excuses, size_t moment, int64_t index)
{
    const sf_moment *at = &excuses->moments.at[moment];
    double level = excuses->moments.noise[at->family];
    return fabs(sf_get_f64(&excuses->in->ours[at->state], index)) <= level &&
           fabs(sf_get_f64(&excuses->in->theirs[at->state], index)) <= level;
}

/* How far a weight may differ because its moments do. Adam's update is a moment divided by the root
 * of another, so its relative error is at most the sum of theirs; and no error makes more of two
 * updates than their two sizes. The moments themselves are judged where it is their turn. */
static double explained(const struct excuses *excuses, size_t moment, int64_t index)
{
    double most = 0;
    for (; moment; moment = excuses->next[moment]) {
        uint32_t state = excuses->moments.at[moment - 1].state;
        double error = sf_relative_error(sf_get_f64(&excuses->in->ours[state], index),
                                         sf_get_f64(&excuses->in->theirs[state], index), 0);
        if (error > most)
            most = error;
    }
    return 2 * excuses->update * (most < 1 ? most : 1);
}

static bool is_excused(const struct excuses *excuses, uint32_t result, int64_t index,
                       double difference)
{
    size_t moment = excuses->first[result];
    if (moment == 0)
        return false;
    if (excuses->is_state[result])
        return is_noise(excuses, moment - 1, index);
    return difference <= explained(excuses, moment, index);
}

static void compare_floats(const struct excuses *excuses, uint32_t result, sf_difference *out)
{
    const sf_tensor *ours = &excuses->in->ours[result], *theirs = &excuses->in->theirs[result];
    double a[CHUNK], b[CHUNK], scale = scale_of(theirs);
    for (int64_t first = 0; first < ours->type->count; first += CHUNK) {
        int64_t length = ours->type->count - first;
        if (length > CHUNK)
            length = CHUNK;
        sf_load_f64s(ours->type->dtype, ours->data, first, length, a);
        sf_load_f64s(theirs->type->dtype, theirs->data, first, length, b);
        for (int64_t i = 0; i < length; i++) {
            double error = sf_relative_error(a[i], b[i], scale);
            if (error <= out->error)
                continue;
            if (is_excused(excuses, result, first + i, fabs(a[i] - b[i]))) {
                out->by_moment = out->by_moment || error > out->tolerance;
                continue;
            }
            out->error = error;
            out->index = first + i;
        }
    }
}

static void compare_integers(const sf_tensor *ours, const sf_tensor *theirs, sf_difference *out)
{
    out->tolerance = 0;
    for (int64_t i = 0; i < ours->type->count; i++) {
        if (sf_get_i64(ours, i) == sf_get_i64(theirs, i))
            continue;
        double error = fabs(sf_get_f64(ours, i) - sf_get_f64(theirs, i));
        /* Neighbours above 2^53 look the same as doubles. */
        if (error < 1)
            error = 1;
        if (error > out->error) {
            out->error = error;
            out->index = i;
        }
    }
}

/* The result's own name, that of the argument it becomes, or its number. */
static const char *name_of(const sf_graph *graph, uint32_t result, sf_arena *arena)
{
    const char *name = graph->results[result].name;
    for (uint32_t i = 0; i < graph->top->narguments && !*name; i++)
        if (graph->arguments[i].next == result)
            name = graph->arguments[i].name;
    char number[24];
    if (!*name) {
        snprintf(number, sizeof number, "out.%u", result);
        name = number;
    }
    return sf_arena_string(arena, name, strlen(name));
}

static double badness(const sf_difference *difference)
{
    if (difference->error == 0)
        return 0;
    return difference->tolerance > 0 ? difference->error / difference->tolerance : (double)INFINITY;
}

int sf_compare(const sf_comparison *comparison, sf_arena *arena, sf_difference *out)
{
    struct excuses excuses;
    prepare(comparison, arena, &excuses);
    int worst = -1;
    for (uint32_t i = 0; i < comparison->graph->top->nresults; i++) {
        const sf_tensor *ours = &comparison->ours[i], *theirs = &comparison->theirs[i];
        out[i] = (sf_difference){.name = name_of(comparison->graph, i, arena),
                                 .tolerance = comparison->tolerance};
        if (sf_is_float(ours->type->dtype))
            compare_floats(&excuses, i, &out[i]);
        else
            compare_integers(ours, theirs, &out[i]);
        if (ours->type->count > 0) {
            out[i].ours = sf_get_f64(ours, out[i].index);
            out[i].theirs = sf_get_f64(theirs, out[i].index);
        }
        if (worst < 0 || badness(&out[i]) > badness(&out[worst]))
            worst = (int)i;
    }
    return worst;
}
