/* How a product is divided among threads: in one place for the engine and the cost model. */
#ifndef SF_BASE_GEMM_SPLIT_H
#define SF_BASE_GEMM_SPLIT_H

#include <stdint.h>

/* Rows and columns of a tile that the kernels of most processors have: for who does not know whose they will be. */
enum { SF_CUT_ROWS = 12, SF_CUT_COLUMNS = 32 };

/* How a product is cut: every batch into rows x columns cells; parts of the threads get `grain` cells
 * or a multiple. Cell c of `rows * columns` in a batch is rows [i, i + m) and columns [j, j + n), cut
 * at multiples of row_unit and column_unit. */
typedef struct sf_cut {
    int64_t batches, rows, columns, grain;
    int64_t m, n, row_unit, column_unit;
} sf_cut;

typedef struct sf_cell {
    int64_t batch, i, m, j, n;
} sf_cell;

sf_cut sf_cut_make(int64_t batches, int64_t m, int64_t n, int64_t k, int64_t row_unit,
                   int64_t column_unit, int threads);
sf_cell sf_cut_cell(const sf_cut *cut, int64_t index);

#endif
