/* Comparing the results of a step with known ones. */
#ifndef SF_API_COMPARE_H
#define SF_API_COMPARE_H

#include "ir/graph.h"
#include "ir/tensor.h"
#include "run/engine/engine.h"
#include "shard/contiguous_runs.h"
#include "sheaf/eval.h"

/* A rank's part of a result. */
typedef struct sf_held {
    sf_runs runs;
    const void *data;
} sf_held;

/* The effect of noise on a result (api/spread.h). */
typedef struct sf_unstable {
    const float *at; /* the largest deviation of each element */
    int64_t count;   /* elements that noise moves past the tolerance */
    double largest;  /* error that noise makes */
} sf_unstable;

typedef struct sf_comparison {
    const sf_graph *graph;
    const sf_tensor *arguments;     /* of the step, whole */
    const sf_tensor *ours, *theirs; /* results of it, whole */
    /* by result: the part that is compared instead of all of `ours`; or NULL */
    const sf_held *held;
    double tolerance;
    const sf_unstable *unstable; /* by result; or NULL: there was no noise */
    bool on_average; /* judge tensors by quadratic means, single elements less strictly */
} sf_comparison;

/* How many times more an element may differ than its tensor on average. */
enum { SF_LARGEST_TO_MEAN = 5 };

/* How many times its largest deviation an element may differ, and a loss, since runs are a random
 * sample; and for how many elements that noise moves there may be one that noise has missed. */
enum { SF_NOISE_FACTOR = 2, SF_LOSS_NOISE_FACTOR = 8, SF_UNSTABLE_TO_MISSED = 16 };

/* Fills one difference for each result, as include/sheaf/eval.h describes them; names live in the
 * arena. Returns the worst one, -1 when there are no results. */
int sf_compare(const sf_comparison *comparison, sf_arena *arena, sf_difference *out);

/* One for each result, from the deviations of its elements; neither `ours` nor `held` is read. */
void sf_find_unstable(const sf_comparison *comparison, float *const *noise, sf_arena *arena,
                      sf_unstable *out);

/* The result's own name, that of the argument it becomes, or its number. Lives in the arena. */
const char *sf_result_name(const sf_graph *graph, uint32_t result, sf_arena *arena);

/* How much worse a difference is than allowed: 1 is just right. */
double sf_badness(const sf_difference *difference);

/* Whether a difference is within its tolerance. */
bool sf_difference_holds(const sf_difference *difference);

/* Whether all of them are, one for each result. */
bool sf_all_hold(const sf_graph *graph, const sf_difference *differences);

/* |ours - theirs| / max(|theirs|, scale); 0 when both are the same infinity or both NaN, an
 * infinity when only one is. */
double sf_relative_error(double ours, double theirs, double scale);

/* Whether the step computes in 16 bits or fewer, or its products in fewer than those of f32: there, two good runs differ far
 * more. */
bool sf_is_narrow(const sf_graph *graph, sf_precision precision);

/* The tolerance of a result without noise: as given, or, for 0, the rounding errors of a step of
 * its kind. */
double sf_tolerance_of(bool is_narrow, sf_precision precision, double given);

#endif
