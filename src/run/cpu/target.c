#include "run/cpu/target.h"

#include "run/cpu/scratch.h"
#include "run/fast/fast.h"

/* Floats of one type, with a result of that type or, of narrow ones, of float. */
static bool multiplies_types(sf_dtype a, sf_dtype b, sf_dtype c)
{
    bool is_narrow = a == SF_BF16 || a == SF_F16;
    return a == b && (a == SF_F32 || a == SF_F64 || is_narrow) &&
           (c == a || (c == SF_F32 && is_narrow));
}

static const void *find_kernel(const sf_op *op, int64_t *variant)
{
    return sf_fast_find(op, variant);
}

/* Products of one type, with float sums. Only where a schedule asks for it: estimates of a search are of the whole step, and a rank
 * that has some of the places has a mask that is not found (docs/performance.md). */
static bool attends(const sf_attending *what)
{
    return what->asked &&
           (what->dtype == SF_F32 || what->dtype == SF_BF16 || what->dtype == SF_F16);
}

/* Thresholds are measured: docs/performance.md. Rows of that length, with all registers of a loop beside each
 * other, are still in the second-level cache of a core. */
const sf_target sf_target_cpu = {
    .name = "cpu",
    .most_nodes = 96,
    .longest_row = 1 << 17,
    .most_again = 12,
    .most_functions = 0, /* each takes longer than to store and load what it makes */
    .epilogue_columns = 32,
    .epilogue_rows = 256,
    .in_flight = 2,
    .flight_bytes = 16 << 20,
    .align = 64,
    .multiplies = multiplies_types,
    .kernel = find_kernel,
    .attends = attends,
    .scratch = sf_cpu_scratch_bytes,
};
