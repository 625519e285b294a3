/* Generators that stand in files of their own. */
#ifndef TEST_SUPPORT_DRAW_KINDS_H
#define TEST_SUPPORT_DRAW_KINDS_H

#include "support/draw.h"

/* draw_folds.c */
test_generator test_draw_dot_general, test_draw_convolution, test_draw_reduce,
    test_draw_reduce_window, test_draw_select_and_scatter, test_draw_gather, test_draw_scatter;

/* draw_others.c */
test_generator test_draw_sort, test_draw_top_k, test_draw_fft, test_draw_cholesky,
    test_draw_triangular_solve, test_draw_rng_bit_generator, test_draw_case, test_draw_custom_call,
    test_draw_optimization_barrier, test_draw_while;

#endif
