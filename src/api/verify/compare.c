#include "api/verify/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Elements at a time; and the least number of elements that can be called stale. */
enum { CHUNK = 1024, LEAST_STATE = 4 };

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

bool sf_is_narrow(const sf_graph *graph, sf_precision precision)
{
    if (precision != SF_PRECISION_F32)
        return true;
    for (size_t i = 0; i < graph->nvalues; i++) {
        sf_dtype dtype = graph->values[i].type->dtype;
        if (sf_is_float(dtype) && sf_dtype_get(dtype)->bits <= 16)
            return true;
    }
    return false;
}

double sf_tolerance_of(bool is_narrow, sf_precision precision, double given)
{
    if (given > 0)
        return given;
    if (precision == SF_PRECISION_FP8) /* some times the rounding error of a gradient */
        return 4 * ldexp(1, -sf_dtype_get(SF_F8E5M2)->mantissa - 1);
    return is_narrow ? 5e-2 : 1e-4;
}

/* A sum of squares of finite numbers. */
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

/* The value of a result before the step, if it is state. */
struct before {
    const sf_tensor *tensor; /* or NULL */
    bool is_weight;
};

/* By result. */
static struct before *find_before(const sf_comparison *in, sf_arena *arena)
{
    struct before *before = SF_ARRAY(arena, in->graph->top->nresults, struct before);
    for (uint32_t i = 0; i < in->graph->top->narguments; i++) {
        const sf_argument *argument = &in->graph->arguments[i];
        if (argument->next != SF_NONE &&
            in->arguments[i].type->count == in->theirs[argument->next].type->count)
            before[argument->next] =
                (struct before){&in->arguments[i], argument->role == SF_ROLE_PARAM};
    }
    return before;
}

/* Complex tensors are compared as twice as many floats. */
static sf_dtype number_type(const sf_tensor *tensor)
{
    return sf_part_of(tensor->type->dtype);
}

static int64_t number_count(const sf_tensor *tensor)
{
    return tensor->type->count * sf_parts_of(tensor->type->dtype);
}

/* One tensor as it is compared: chunks of it, and the sizes that errors are relative to. */
struct floats {
    const sf_tensor *theirs;
    struct before before;
    const void *ours;
    double a[CHUNK], b[CHUNK], c[CHUNK];
    double scale, change; /* quadratic means of the expected values, and of their changes */
    double allowed;       /* how much larger the error of an element may be than the tolerance */
};

static void load_chunk(struct floats *floats, int64_t first, int64_t length)
{
    sf_load_f64s(number_type(floats->theirs), floats->theirs->data, first, length, floats->b);
    const sf_tensor *before = floats->before.tensor;
    if (before)
        sf_load_f64s(number_type(before), before->data, first, length, floats->c);
}

static int64_t shorter(int64_t length)
{
    return length < CHUNK ? length : CHUNK;
}

static void measure_floats(const sf_comparison *in, uint32_t result, struct before before,
                           struct floats *floats)
{
    struct squares values = {0}, changes = {0};
    floats->theirs = &in->theirs[result];
    floats->before = before;
    floats->allowed = in->on_average ? SF_LARGEST_TO_MEAN : 1;
    int64_t count = number_count(floats->theirs);
    for (int64_t first = 0; first < count; first += CHUNK) {
        int64_t length = shorter(count - first);
        load_chunk(floats, first, length);
        for (int64_t i = 0; i < length; i++) {
            add_square(&values, floats->b[i]);
            if (before.is_weight)
                add_square(&changes, floats->b[i] - floats->c[i]);
        }
    }
    floats->scale = mean(&values);
    floats->change = mean(&changes);
}

/* The scale of a difference of element i of the chunk: the value, or, of a weight, the change, if
 * that is less. But two units in the last place of a weight are rounding, since optimizers add up
 * to two terms to it. */
static double size_of(const struct floats *floats, int64_t i, double difference)
{
    double size = fmax(fabs(floats->b[i]), floats->scale);
    if (!floats->before.is_weight)
        return size;
    double most = fmax(fabs(floats->b[i]), fabs(floats->c[i]));
    if (difference <= ldexp(most, 1 - sf_dtype_get(number_type(floats->theirs))->mantissa))
        return size;
    return fmin(size, fmax(fabs(floats->b[i] - floats->c[i]), floats->change));
}

/* The error of element i of the chunk, relative to the tolerance of an element. */
static double error_of(const struct floats *floats, int64_t i)
{
    double ours = floats->a[i], theirs = floats->b[i];
    if (ours == theirs || (isnan(ours) && isnan(theirs)))
        return 0;
    double difference = fabs(ours - theirs);
    if (!isfinite(difference))
        return (double)INFINITY;
    return difference / size_of(floats, i, difference) / floats->allowed;
}

/* The quadratic mean of the differences, relative to that of the expected values. */
static double mean_error(const struct floats *floats, const struct squares *differences)
{
    double size = floats->before.is_weight ? fmin(floats->scale, floats->change) : floats->scale;
    return differences->sum > 0 ? mean(differences) / size : 0;
}

/* Noise moves this element past the tolerance. */
static void count_unstable(double error, double tolerance, sf_unstable *out)
{
    out->count += error > tolerance;
    out->largest = fmax(out->largest, error);
}

static void find_unstable_floats(const sf_comparison *in, uint32_t result, struct before before,
                                 sf_unstable *out)
{
    struct floats floats;
    measure_floats(in, result, before, &floats);
    for (int64_t first = 0; first < number_count(floats.theirs); first += CHUNK) {
        int64_t length = shorter(number_count(floats.theirs) - first);
        load_chunk(&floats, first, length);
        for (int64_t i = 0; i < length; i++) {
            double far = (double)out->at[first + i];
            double error = far > 0 ? far / size_of(&floats, i, far) / floats.allowed : 0;
            count_unstable(error, in->tolerance, out);
        }
    }
}

void sf_find_unstable(const sf_comparison *in, float *const *noise, sf_arena *arena,
                      sf_unstable *out)
{
    const struct before *before = find_before(in, arena);
    for (uint32_t i = 0; i < in->graph->top->nresults; i++) {
        const sf_type *type = in->theirs[i].type;
        out[i] = (sf_unstable){.at = noise[i]};
        if (sf_is_inexact(type->dtype))
            find_unstable_floats(in, i, before[i], &out[i]);
        for (int64_t k = 0; k < type->count && !sf_is_inexact(type->dtype); k++)
            count_unstable((double)noise[i][k], 0, &out[i]);
    }
}

static sf_runs whole_of(const sf_type *type)
{
    static const sf_mesh mesh;
    static const sf_layout layout;
    return sf_runs_of(&layout, &mesh, 0, type);
}

/* The worst element so far. */
struct worst {
    double error;
    int64_t index, local; /* in the whole, and in the shard */
};

static void keep_worst(struct worst *worst, double error, int64_t index, int64_t local)
{
    if (error > worst->error)
        *worst = (struct worst){error, index, local};
}

/* A comparison as it goes. */
struct walk {
    const sf_comparison *in;
    const sf_unstable *unstable; /* or NULL */
    struct floats floats;
    struct squares differences;
    double tolerance;
    struct worst worst,
        missed; /* of elements that count, and of those that noise may have missed */
    int64_t nmissed, nexcused;
    double missed_squares; /* of their differences */
    struct worst excused;  /* of those that noise explains */
    int64_t nheld, nsame,
        nchanged; /* of state: elements, those that are as before, and that should not be */
};

/* Whether noise moves the element as far. No noise excuses an infinity, or a NaN, in place of a
 * number. */
static bool within_noise(const struct walk *walk, int64_t index, double difference)
{
    if (!walk->unstable || walk->unstable->at[index] == 0 || !isfinite(difference))
        return false;
    double noise = (double)walk->unstable->at[index];
    return isinf(noise) || difference <= SF_NOISE_FACTOR * noise;
}

/* State that is not updated at all is no effect of noise, however large that is. */
static void watch_state(struct walk *walk, int64_t length)
{
    const struct floats *floats = &walk->floats;
    if (!floats->before.tensor)
        return;
    walk->nheld += length;
    for (int64_t i = 0; i < length; i++) {
        walk->nsame += floats->a[i] == floats->c[i];
        walk->nchanged += floats->b[i] != floats->c[i];
    }
}

static bool is_stale(const struct walk *walk)
{
    return walk->nheld >= LEAST_STATE && walk->nsame == walk->nheld &&
           4 * walk->nchanged >= 3 * walk->nheld;
}

static void excuse(struct walk *walk, double error, int64_t index, int64_t local)
{
    walk->nexcused++;
    keep_worst(&walk->excused, error, index, local);
}

/* Whether noise can move the element past the tolerance. Its error says nothing then: of many such elements one has an error just
 * below the tolerance. */
static bool is_unstable(const struct walk *walk, int64_t index, double error, double difference)
{
    double most = SF_NOISE_FACTOR * (double)walk->unstable->at[index];
    return isinf(most) || error * most > walk->tolerance * difference;
}

/* False where the element is excused, or may be: that depends on how many there are. */
static bool judge(struct walk *walk, double error, double difference, int64_t index, int64_t local)
{
    if (within_noise(walk, index, difference)) {
        if (!is_unstable(walk, index, error, difference))
            keep_worst(&walk->worst, error, index, local);
        else if (error > walk->tolerance)
            excuse(walk, error, index, local);
        return false;
    }
    if (error > walk->tolerance && walk->unstable &&
        error <= SF_NOISE_FACTOR * walk->unstable->largest) {
        walk->nmissed++;
        walk->missed_squares += difference * difference;
        keep_worst(&walk->missed, error, index, local);
        return false;
    }
    keep_worst(&walk->worst, error, index, local);
    return true;
}

/* Elements from `first` on, which are held from `local` on. */
static void compare_chunk(struct walk *walk, int64_t local, int64_t first, int64_t length)
{
    struct floats *floats = &walk->floats;
    load_chunk(floats, first, length);
    sf_load_f64s(number_type(floats->theirs), floats->ours, local, length, floats->a);
    for (int64_t i = 0; i < length; i++) {
        double error = error_of(floats, i), difference = fabs(floats->a[i] - floats->b[i]);
        bool counts = error > 0 && judge(walk, error, difference, first + i, local + i);
        add_square(&walk->differences, counts ? difference : 0);
    }
    watch_state(walk, length);
}

static void compare_integers(struct walk *walk, const sf_held *held, int64_t local, int64_t first,
                             int64_t length)
{
    const sf_tensor *theirs = walk->floats.theirs;
    const sf_tensor ours = {.type = theirs->type, .data = (void *)held->data};
    for (int64_t at = 0; at < length; at++) {
        int64_t i = local + at, k = first + at;
        if (sf_get_i64(&ours, i) == sf_get_i64(theirs, k))
            continue;
        /* Neighbours above 2^53 look the same as doubles. */
        double error = fmax(fabs(sf_get_f64(&ours, i) - sf_get_f64(theirs, k)), 1);
        judge(walk, error, error, k, i);
    }
}

static bool same_bits(const sf_held *held, const sf_tensor *theirs)
{
    size_t bytes = sf_dtype_get(theirs->type->dtype)->bytes;
    return memcmp((const char *)held->data + (size_t)held->runs.local * bytes,
                  (const char *)theirs->data + (size_t)held->runs.global * bytes,
                  (size_t)held->runs.count * bytes) == 0;
}

/* Noise misses an element now and then, where it moves many. */
static void end_walk(struct walk *walk, sf_difference *out)
{
    if (walk->nmissed <= (walk->unstable ? walk->unstable->count / SF_UNSTABLE_TO_MISSED : 0)) {
        walk->nexcused += walk->nmissed;
    } else {
        keep_worst(&walk->worst, walk->missed.error, walk->missed.index, walk->missed.local);
        walk->differences.sum += walk->missed_squares;
    }
    if (is_stale(walk))
        keep_worst(&walk->worst, walk->excused.error, walk->excused.index, walk->excused.local);
    out->excused = walk->nexcused;
    out->unstable = walk->unstable ? walk->unstable->count : 0;
    out->error = walk->worst.error;
    if (walk->in->on_average && sf_is_inexact(walk->floats.theirs->type->dtype))
        out->error = fmax(out->error, mean_error(&walk->floats, &walk->differences));
}

static void walk_held(struct walk *walk, sf_held held, sf_difference *out)
{
    sf_dtype dtype = walk->floats.theirs->type->dtype;
    int parts = sf_parts_of(dtype);
    walk->floats.ours = held.data;
    while (sf_runs_next(&held.runs)) {
        out->differs = out->differs || !same_bits(&held, walk->floats.theirs);
        int64_t local = held.runs.local * parts, global = held.runs.global * parts;
        int64_t count = held.runs.count * parts;
        for (int64_t at = 0; at < count; at += CHUNK) {
            int64_t length = shorter(count - at);
            if (sf_is_inexact(dtype))
                compare_chunk(walk, local + at, global + at, length);
            else
                compare_integers(walk, &held, local + at, global + at, length);
        }
    }
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

static void compare_result(const sf_comparison *in, uint32_t i, struct before before,
                           sf_difference *out)
{
    const sf_tensor *theirs = &in->theirs[i];
    int parts = sf_parts_of(theirs->type->dtype);
    sf_held held = in->held ? in->held[i] : (sf_held){whole_of(theirs->type), in->ours[i].data};
    struct walk walk = {.in = in,
                        .unstable = in->unstable ? &in->unstable[i] : NULL,
                        .floats.theirs = theirs,
                        .worst.index = held.runs.global * parts}; /* of the first element */
    if (sf_is_inexact(theirs->type->dtype))
        measure_floats(in, i, before, &walk.floats);
    walk.tolerance = out->tolerance = sf_is_inexact(theirs->type->dtype) ? in->tolerance : 0;
    walk_held(&walk, held, out);
    end_walk(&walk, out);
    out->index = walk.worst.index / parts;
    if (theirs->type->count == 0)
        return;
    sf_dtype number = number_type(theirs);
    out->ours = sf_load_f64(number, held.data, walk.worst.local);
    out->theirs = sf_load_f64(number, theirs->data, walk.worst.index);
    out->is_weight = before.is_weight;
    if (out->is_weight)
        out->before = sf_load_f64(number, before.tensor->data, walk.worst.index);
}

int sf_compare(const sf_comparison *comparison, sf_arena *arena, sf_difference *out)
{
    const struct before *before = find_before(comparison, arena);
    int worst = -1;
    for (uint32_t i = 0; i < comparison->graph->top->nresults; i++) {
        out[i] = (sf_difference){.size = sizeof *out,
                                 .name = sf_result_name(comparison->graph, i, arena)};
        compare_result(comparison, i, before[i], &out[i]);
        if (worst < 0 || sf_badness(&out[i]) > sf_badness(&out[worst]))
            worst = (int)i;
    }
    return worst;
}

bool sf_all_hold(const sf_graph *graph, const sf_difference *differences)
{
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        if (!sf_difference_holds(&differences[i]))
            return false;
    return true;
}
