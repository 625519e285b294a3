#include "run/cpu/cpu_target.h"

#include "run/cpu/scratch.h"
#include "run/fast/attention_block.h"
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

/* The time of attention of one head of one example, in ns of the processor that it was measured on
 * (docs/design/performance.md); only ratios matter. `score` and `depth` are per pair of places,
 * with the products along the depth. */
typedef struct attention_price {
    double start, score, depth;
} attention_price;

/* By products and loops, with all scores in memory, and by the kernel, of wide and of narrow floats: the kernel has products of small
 * blocks, and one more of them, and narrow floats are converted by every loop. */
static const attention_price by_products[] = {{27e3, 10, 0.19}, {27e3, 14.6, 0.08}};
static const attention_price by_kernel[] = {{45e3, 10, 0.29}, {45e3, 10, 0.2}};

/* Of the rows of a block, all columns up to the last that one of them sees are multiplied; half of the work on scores is on those
 * that are seen. Where rows are some of all, ranks have the others: all of them do the same, and wait for the one that sees most. */
static bool is_no_slower(const sf_attending *what)
{
    bool is_narrow = what->dtype == SF_BF16 || what->dtype == SF_F16;
    const attention_price *p = &by_products[is_narrow], *k = &by_kernel[is_narrow];
    double scores = (double)what->queries * (double)what->keys, depth = (double)what->depth;
    double made = 0, seen = 0;
    int64_t offset = what->queries < what->keys ? what->keys - what->queries : what->offset;
    for (int64_t first = 0; first < what->queries; first += SF_ATTEND_ROWS) {
        int64_t rows =
            what->queries - first < SF_ATTEND_ROWS ? what->queries - first : SF_ATTEND_ROWS;
        int64_t end = what->causal ? first + rows + offset : what->keys;
        double columns = (double)(end < what->keys ? end : what->keys);
        made += (double)rows * columns;
        seen += (double)rows *
                (end <= what->keys && what->causal ? columns - (double)rows / 2 : columns);
    }
    return k->start + k->score * (scores + seen) / 2 + k->depth * depth * made <=
           p->start + (p->score + p->depth * depth) * scores;
}

static bool has_kernel(const sf_attending *what)
{
    return what->dtype == SF_F32 || what->dtype == SF_BF16 || what->dtype == SF_F16;
}

static bool attends(const sf_attending *what)
{
    return has_kernel(what) && (what->asked || is_no_slower(what));
}

static bool attends_if_asked(const sf_attending *what)
{
    return has_kernel(what) && what->asked;
}

/* Thresholds are measured: docs/design/performance.md. Rows of that length, with all registers of a loop beside each
 * other, are still in the second-level cache of a core. */
#define CPU_TARGET                                                                                 \
    .name = "cpu", .most_nodes = 96, .longest_row = 1 << 17, .most_recomputed = 12,                \
    .most_functions = 0, /* each takes longer than to store and load its result */                 \
        .asked_functions = 2, .epilogue_columns = 32, .epilogue_rows = 256, .in_flight = 2,        \
    .flight_bytes = 16 << 20, .align = 64, .compiles = true, .multiplies = multiplies_types,       \
    .kernel = find_kernel, .scratch = sf_cpu_scratch_bytes

const sf_target sf_target_cpu = {CPU_TARGET, .attends = attends};
const sf_target sf_target_cpu_plain = {CPU_TARGET, .attends = attends_if_asked};
