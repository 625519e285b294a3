#include "base/gemm_split.h"

#include "base/checked.h"

static int64_t smaller_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Below this many products a part is not worth waking a thread. */
enum { LEAST_PRODUCTS = 1 << 17 };

/* Cells of one batch such that the threads get equal numbers of cells; none if there are so many
 * batches that they can be divided evenly enough. */
static int64_t cells_wanted(int64_t batches, double products, int threads)
{
    if (threads == 1 || batches >= 8 * (int64_t)threads)
        return 1;
    int64_t wanted = threads / sf_gcd(threads, batches);
    double most = products / LEAST_PRODUCTS;
    return (double)wanted <= most ? wanted : most < 1 ? 1 : (int64_t)most;
}

sf_cut sf_cut_make(int64_t batches, int64_t m, int64_t n, int64_t k, int64_t row_unit,
                   int64_t column_unit, int threads)
{
    sf_cut cut = {.batches = batches,
                  .rows = 1,
                  .columns = 1,
                  .m = m,
                  .n = n,
                  .row_unit = row_unit,
                  .column_unit = column_unit};
    double products = (double)m * (double)n * (double)k, best = 0;
    int64_t wanted = cells_wanted(batches, products, threads);
    int64_t row_units = (m - 1) / row_unit + 1, column_units = (n - 1) / column_unit + 1;
    for (int64_t rows = 1; rows <= smaller_of(wanted, row_units); rows++) {
        /* The largest cell, and its packing: an element costs as much as some products. */
        int64_t columns = smaller_of(wanted / rows, column_units);
        double high = (double)(((row_units - 1) / rows + 1) * row_unit);
        double wide = (double)(((column_units - 1) / columns + 1) * column_unit);
        double cost = high * wide + 12 * (high + wide);
        if (best == 0 || cost < best) {
            best = cost;
            cut.rows = rows;
            cut.columns = columns;
        }
    }
    double cell = products / (double)(cut.rows * cut.columns);
    cut.grain = cell >= LEAST_PRODUCTS ? 1 : (int64_t)(LEAST_PRODUCTS / (cell < 1 ? 1 : cell));
    return cut;
}

/* Part `index` of `parts` of [0, size), cut at multiples of `unit`. */
static void cut_range(int64_t size, int64_t unit, int64_t parts, int64_t index, int64_t *first,
                      int64_t *count)
{
    int64_t units = (size - 1) / unit + 1, each = units / parts, more = units % parts;
    int64_t begin = each * index + smaller_of(index, more), end = begin + each + (index < more);
    *first = smaller_of(begin * unit, size);
    *count = smaller_of(end * unit, size) - *first;
}

sf_cell sf_cut_cell(const sf_cut *cut, int64_t index)
{
    int64_t cells = cut->rows * cut->columns, inside = index % cells;
    sf_cell cell = {.batch = index / cells};
    cut_range(cut->m, cut->row_unit, cut->rows, inside / cut->columns, &cell.i, &cell.m);
    cut_range(cut->n, cut->column_unit, cut->columns, inside % cut->columns, &cell.j, &cell.n);
    return cell;
}
