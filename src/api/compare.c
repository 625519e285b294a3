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

bool sf_is_narrow(const sf_graph *graph)
{
    for (size_t i = 0; i < graph->nvalues; i++) {
        sf_dtype dtype = graph->values[i].type->dtype;
        if (sf_is_float(dtype) && sf_dtype_get(dtype)->bits <= 16)
            return true;
    }
    return false;
}

double sf_tolerance_of(const sf_graph *graph, double given)
{
    if (given > 0)
        return given;
    return sf_is_narrow(graph) ? 5e-2 : 1e-4;
}

double sf_noise_of(const sf_graph *graph)
{
    return sf_is_narrow(graph) ? 8 * 0x1p-9 : 8 * 0x1p-24;
}

/* A sum of squares of what is finite. */
struct squares {
    double sum;
    int64_t count;
};

static void add_square(struct squares *squares, double value)
{
    if (!isfinite(value))
        return;
    squares->sum += value * value;
    squares->count++;
}

static double mean(const struct squares *squares)
{
    return squares->count ? sqrt(squares->sum / (double)squares->count) : 0;
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
    const sf_tensor **before; /* by result: the weight that it replaces, or NULL */
    double update;            /* the largest of any weight, in the run where that is smaller */
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
    out->before = SF_ARRAY(arena, nresults, const sf_tensor *);
    for (uint32_t i = 0; i < in->graph->top->narguments; i++) {
        const sf_argument *argument = &in->graph->arguments[i];
        if (argument->role == SF_ROLE_PARAM && argument->next != SF_NONE &&
            in->arguments[i].type->count == in->theirs[argument->next].type->count)
            out->before[argument->next] = &in->arguments[i];
    }
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

static bool is_noise(const struct excuses *excuses, size_t moment, double ours, double theirs)
{
    double level = excuses->moments.noise[excuses->moments.at[moment].family];
    return fabs(ours) <= level && fabs(theirs) <= level;
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

static bool is_excused(const struct excuses *excuses, uint32_t result, int64_t index, double ours,
                       double theirs)
{
    size_t moment = excuses->first[result];
    if (moment == 0)
        return false;
    if (excuses->is_state[result])
        return is_noise(excuses, moment - 1, ours, theirs);
    return fabs(ours - theirs) <= explained(excuses, moment, index);
}

/* What rounding does to a weight: two units in the last place, since optimizers add up to two terms
 * to it, or what is nothing against the largest update of all. */
static double rounding(const struct excuses *excuses, sf_dtype dtype, double value, double before)
{
    double units = ldexp(fmax(fabs(value), fabs(before)), 1 - sf_dtype_get(dtype)->mantissa);
    return fmax(units, excuses->in->noise * excuses->update);
}

/* One tensor as it is compared: chunks of it, and the sizes that errors are relative to. */
struct floats {
    const sf_tensor *theirs, *before; /* `before` is NULL unless this is a weight */
    const void *ours;
    double a[CHUNK], b[CHUNK], c[CHUNK];
    double scale, change; /* quadratic means of what is expected, and of its change */
};

static void load_chunk(struct floats *floats, int64_t first, int64_t length)
{
    sf_load_f64s(floats->theirs->type->dtype, floats->theirs->data, first, length, floats->b);
    if (floats->before)
        sf_load_f64s(floats->before->type->dtype, floats->before->data, first, length, floats->c);
}

static int64_t shorter(int64_t length)
{
    return length < CHUNK ? length : CHUNK;
}

static void measure_floats(struct floats *floats)
{
    struct squares values = {0}, changes = {0};
    int64_t count = floats->theirs->type->count;
    for (int64_t first = 0; first < count; first += CHUNK) {
        int64_t length = shorter(count - first);
        load_chunk(floats, first, length);
        for (int64_t i = 0; i < length; i++) {
            add_square(&values, floats->b[i]);
            if (floats->before)
                add_square(&changes, floats->b[i] - floats->c[i]);
        }
    }
    floats->scale = mean(&values);
    floats->change = mean(&changes);
}

/* The error of element i of the chunk, relative to its value, and to its change if that is less. */
static double error_of(const struct excuses *excuses, const struct floats *floats, int64_t i)
{
    double ours = floats->a[i], theirs = floats->b[i];
    double error = sf_relative_error(ours, theirs, floats->scale);
    if (!floats->before || error == 0 || isinf(error))
        return error;
    double before = floats->c[i];
    if (fabs(ours - theirs) <= rounding(excuses, floats->theirs->type->dtype, theirs, before))
        return 0;
    double size = fmax(fabs(theirs - before), floats->change);
    return fmax(error, fabs(ours - theirs) / size);
}

/* The quadratic mean of the differences, relative to that of what is expected. */
static double mean_error(const struct floats *floats, const struct squares *differences)
{
    double size = floats->before ? fmin(floats->scale, floats->change) : floats->scale;
    return differences->sum > 0 ? mean(differences) / size : 0;
}

static sf_runs whole_of(const sf_type *type)
{
    static const sf_mesh mesh;
    static const sf_layout layout;
    return sf_runs_of(&layout, &mesh, 0, type);
}

/* A comparison of floats as it goes. */
struct walk {
    const struct excuses *excuses;
    uint32_t result;
    struct floats floats;
    struct squares differences;
    int64_t local; /* index of the worst element in what is held */
    sf_difference *out;
};

/* Elements from `first` on, which are held from `local` on. */
static void compare_chunk(struct walk *walk, int64_t local, int64_t first, int64_t length)
{
    struct floats *floats = &walk->floats;
    sf_difference *out = walk->out;
    double allowed = walk->excuses->in->on_average ? SF_LARGEST_TO_MEAN : 1;
    load_chunk(floats, first, length);
    sf_load_f64s(floats->theirs->type->dtype, floats->ours, local, length, floats->a);
    for (int64_t i = 0; i < length; i++) {
        double error = error_of(walk->excuses, floats, i) / allowed;
        double difference = error > 0 ? fabs(floats->a[i] - floats->b[i]) : 0;
        if (error > 0 &&
            is_excused(walk->excuses, walk->result, first + i, floats->a[i], floats->b[i])) {
            out->by_moment = out->by_moment || error > out->tolerance;
            difference = error = 0;
        }
        add_square(&walk->differences, difference);
        if (error > out->error) {
            out->error = error;
            out->index = first + i;
            walk->local = local + i;
        }
    }
}

/* Returns the index of the worst element in what is held. */
static int64_t compare_floats(const struct excuses *excuses, uint32_t result, sf_held held,
                              sf_difference *out)
{
    const sf_comparison *in = excuses->in;
    struct walk walk = {.excuses = excuses, .result = result, .out = out};
    walk.floats.theirs = &in->theirs[result];
    walk.floats.before = excuses->before[result];
    walk.floats.ours = held.data;
    measure_floats(&walk.floats);
    while (sf_runs_next(&held.runs))
        for (int64_t at = 0; at < held.runs.count; at += CHUNK)
            compare_chunk(&walk, held.runs.local + at, held.runs.global + at,
                          shorter(held.runs.count - at));
    if (in->on_average)
        out->error = fmax(out->error, mean_error(&walk.floats, &walk.differences));
    return walk.local;
}

static int64_t compare_integers(const sf_tensor *theirs, sf_held held, sf_difference *out)
{
    const sf_tensor ours = {.type = theirs->type, .data = (void *)held.data};
    int64_t worst = 0;
    out->tolerance = 0;
    while (sf_runs_next(&held.runs))
        for (int64_t at = 0; at < held.runs.count; at++) {
            int64_t i = held.runs.local + at, k = held.runs.global + at;
            if (sf_get_i64(&ours, i) == sf_get_i64(theirs, k))
                continue;
            double error = fabs(sf_get_f64(&ours, i) - sf_get_f64(theirs, k));
            /* Neighbours above 2^53 look the same as doubles. */
            if (error < 1)
                error = 1;
            if (error > out->error) {
                out->error = error;
                out->index = k;
                worst = i;
            }
        }
    return worst;
}

const char *sf_result_name(const sf_graph *graph, uint32_t result, sf_arena *arena)
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

double sf_badness(const sf_difference *difference)
{
    if (difference->error == 0)
        return 0;
    return difference->tolerance > 0 ? difference->error / difference->tolerance : (double)INFINITY;
}

static void compare_result(const struct excuses *excuses, uint32_t i, sf_difference *out)
{
    const sf_comparison *in = excuses->in;
    const sf_tensor *theirs = &in->theirs[i];
    sf_held held = in->held ? in->held[i] : (sf_held){whole_of(theirs->type), in->ours[i].data};
    out->index = held.runs.global; /* of the first element */
    int64_t at = sf_is_float(theirs->type->dtype) ? compare_floats(excuses, i, held, out)
                                                  : compare_integers(theirs, held, out);
    if (theirs->type->count == 0)
        return;
    const sf_tensor ours = {.type = theirs->type, .data = (void *)held.data};
    out->ours = sf_get_f64(&ours, at);
    out->theirs = sf_get_f64(theirs, out->index);
    out->is_weight = excuses->before[i] != NULL;
    if (out->is_weight)
        out->before = sf_get_f64(excuses->before[i], out->index);
}

int sf_compare(const sf_comparison *comparison, sf_arena *arena, sf_difference *out)
{
    struct excuses excuses;
    prepare(comparison, arena, &excuses);
    int worst = -1;
    for (uint32_t i = 0; i < comparison->graph->top->nresults; i++) {
        out[i] = (sf_difference){.name = sf_result_name(comparison->graph, i, arena),
                                 .tolerance = comparison->tolerances ? comparison->tolerances[i]
                                                                     : comparison->tolerance};
        compare_result(&excuses, i, &out[i]);
        if (worst < 0 || sf_badness(&out[i]) > sf_badness(&out[worst]))
            worst = (int)i;
    }
    return worst;
}
