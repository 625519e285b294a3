/* Generators of sorts, linear algebra, random bits and control flow. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/draw_kinds.h"

static const test_tolerance exact = {0, 0};

/* By the first operand; where it is equal, perhaps by the second. */
static sf_block *comparator(test_case *c, int count, const sf_dtype *dtypes, bool wild)
{
    sf_block *outer = c->block, *body = test_open(c, count, dtypes, true);
    const char *direction = test_chance(c, 60) ? "LT" : "GT";
    const char *kind = wild && sf_is_float(dtypes[0]) ? "TOTALORDER" : NULL;
    bool swap = test_chance(c, 20), second = count > 1 && !wild && test_chance(c, 30);
    const sf_value *x = body->arguments;
    sf_value less = test_compare(c, direction, kind, x[swap], x[!swap]);
    if (second) {
        sf_value equal = test_compare(c, "EQ", NULL, x[0], x[1]);
        sf_value then = test_compare(c, "LT", NULL, x[2], x[3]);
        less = test_binary(c, SF_OP_OR, less, test_binary(c, SF_OP_AND, equal, then));
    }
    test_close(c, body, outer, 1, &less);
    return body;
}

void test_draw_sort(test_case *c)
{
    int64_t most = c->most;
    c->most = most / 4 + 4;
    const sf_type *type = test_type(c, test_ordered_dtype(c), 1, 4);
    c->most = most;
    int count = test_chance(c, 50) ? 1 : (int)test_pick(c, 2, 3);
    bool wild = test_chance(c, 40);
    int64_t dim = test_pick(c, 0, type->rank - 1);
    sf_dtype dtypes[3] = {type->dtype};
    test_spec s = {.op = c->op, .nregions = 1};
    c->only_views = wild;
    s.noperands = s.nresults = (uint32_t)count;
    for (int i = 1; i < count; i++)
        dtypes[i] = i == 1 ? test_ordered_dtype(c) : test_any_dtype(c);
    for (int i = 0; i < count; i++)
        s.operands[i] = test_operand(c, sf_type_with(c->pool, type, dtypes[i]),
                                     wild ? test_wild : (test_range){.low = -3, .high = 3});
    s.regions[0] = comparator(c, count, dtypes, wild);
    test_set_int(c, &s, "dimension", test_chance(c, 20) ? dim - type->rank : dim);
    /* Where the order of equals is free it must not show. */
    if (count > 1 || test_chance(c, 50))
        test_set_int(c, &s, "is_stable", 1);
    test_finish(c, &s, exact);
}

void test_draw_top_k(test_case *c)
{
    const sf_type *type = test_type(c, test_ordered_dtype(c), 1, 4);
    c->only_views = true;
    test_spec s = {
        .op = c->op,
        .noperands = 1,
        .nresults = 2,
        .operands = {test_operand(c, type, test_chance(c, 40) ? test_wild : test_small)}};
    test_set_int(c, &s, "k", test_pick(c, 0, type->dims[type->rank - 1]));
    test_finish(c, &s, exact);
}

/* Lengths that are powers of two and others, over one to three dimensions; some with several factors, and with large ones. */
void test_draw_fft(test_case *c)
{
    static const char *const kinds[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
    int64_t kind = test_pick(c, 0, 3), length[3], dims[SF_MAX_RANK];
    int count = (int)test_pick(c, 1, 3), batch = (int)test_pick(c, 0, 2);
    static const int64_t longer[] = {16, 17, 32, 34, 45, 49, 64, 96, 97, 128, 210, 256};
    test_dims(c, batch + count, dims);
    if (test_chance(c, 30)) {
        count = batch = 1;
        dims[0] = 2;
        dims[1] = longer[test_pick(c, 0, sizeof longer / sizeof *longer - 1)];
    }
    for (int i = 0; i < count; i++)
        length[i] = dims[batch + i];
    if (kind == 3) /* half of the last one is given */
        dims[batch + count - 1] = length[count - 1] / 2 + 1;
    bool is_wide = test_chance(c, 50);
    sf_dtype dtype = kind == 2 ? (is_wide ? SF_F64 : SF_F32) : is_wide ? SF_C128 : SF_C64;
    const sf_type *type = sf_type_get(c->pool, dtype, batch + count, dims);
    test_spec s = {.op = c->op,
                   .noperands = 1,
                   .nresults = 1,
                   .operands = {test_operand(c, type, test_small)}};
    test_set_text(c, &s, "fft_type", kinds[kind]);
    test_set_ints(c, &s, "fft_length", count, length);
    /* Sums of numbers of some units, in any order, which may be rounded between dimensions and factors of lengths. */
    double points = 1;
    for (int i = 0; i < count; i++)
        points *= (double)length[i];
    double epsilon = test_epsilon(sf_part_of(dtype));
    test_finish(c, &s, (test_tolerance){2 * epsilon, fmax(1e-13, 4 * epsilon) * points});
}

/* A batch of matrices with elements in [-2, 2] and a large number, exact in every type, on the diagonal. */
static sf_value dominant(test_case *c, const sf_type *type)
{
    int rank = type->rank;
    const sf_type *places = sf_type_with(c->pool, type, SF_S32);
    sf_value on =
        test_compare(c, "EQ", NULL, test_iota(c, places, rank - 2), test_iota(c, places, rank - 1));
    int64_t large = 4;
    while (large < 4 * type->dims[rank - 1])
        large *= 2;
    sf_value diagonal = test_constant(c, sf_type_scalar(c->pool, type->dtype),
                                      (test_range){.low = large, .high = large});
    test_spec s = {.op = SF_OP_SELECT, .noperands = 3, .nresults = 1};
    s.operands[0] = on;
    s.operands[1] = test_broadcast(c, diagonal, type, 0, NULL);
    s.operands[2] = test_operand(c, type, test_small);
    return test_add(c, &s)->result;
}

static sf_dtype draw_wide_float(test_case *c)
{
    static const sf_dtype dtypes[] = {SF_F32, SF_F32, SF_F64, SF_BF16, SF_F16};
    return dtypes[test_pick(c, 0, 4)];
}

/* Batches of n x n; `n` gets the size. */
static const sf_type *square(test_case *c)
{
    int64_t dims[SF_MAX_RANK], most = c->most;
    int batch = (int)test_pick(c, 0, 2);
    c->most = 12;
    test_dims(c, batch, dims);
    c->most = most;
    dims[batch] = dims[batch + 1] = test_pick(c, test_chance(c, 5) ? 0 : 1, most > 1000 ? 33 : 7);
    return sf_type_get(c->pool, draw_wide_float(c), batch + 2, dims);
}

/* The matrices are well conditioned: errors do not grow. */
static test_tolerance solve_tolerance(const sf_type *type)
{
    return test_sum_tolerance(type->dtype, (double)type->dims[type->rank - 1] + 1, 16);
}

void test_draw_cholesky(test_case *c)
{
    const sf_type *type = square(c);
    test_spec s = {.op = c->op, .noperands = 1, .nresults = 1, .operands = {dominant(c, type)}};
    if (test_chance(c, 70))
        test_set_int(c, &s, "lower", test_chance(c, 70));
    test_finish(c, &s, solve_tolerance(type));
}

void test_draw_triangular_solve(test_case *c)
{
    static const char *const transposes[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
    const sf_type *type = square(c);
    bool left = test_chance(c, 50);
    int64_t dims[SF_MAX_RANK];
    memcpy(dims, type->dims, (size_t)type->rank * sizeof *dims);
    dims[type->rank - (left ? 1 : 2)] = test_pick(c, 0, 9);
    const sf_type *other = sf_type_get(c->pool, type->dtype, type->rank, dims);
    test_spec s = {.op = c->op, .noperands = 2, .nresults = 1};
    s.operands[0] = dominant(c, type);
    s.operands[1] = test_operand(c, other, test_small);
    test_set_int(c, &s, "left_side", left);
    test_set_int(c, &s, "lower", test_chance(c, 50));
    test_set_int(c, &s, "unit_diagonal", 0);
    test_set_text(c, &s, "transpose_a", transposes[test_pick(c, 0, 2)]);
    test_finish(c, &s, solve_tolerance(type));
}

void test_draw_rng_bit_generator(test_case *c)
{
    static const char *const algorithms[] = {"THREE_FRY", "PHILOX", "DEFAULT"};
    static const sf_dtype dtypes[] = {SF_U8, SF_U16, SF_U32, SF_U32, SF_U64,
                                      SF_S8, SF_S16, SF_S32, SF_S64, SF_U64};
    int64_t which = test_pick(c, 0, 2), words = which == 0 ? 2 : test_pick(c, 2, 3);
    const sf_type *state = sf_type_get(c->pool, SF_U64, 1, &words);
    test_spec s = {.op = c->op, .noperands = 1, .nresults = 2};
    s.operands[0] = test_operand(c, state, test_wild);
    s.types[0] = state;
    s.types[1] = test_type(c, dtypes[test_pick(c, 0, 9)], 0, 4);
    test_set_text(c, &s, "rng_algorithm", algorithms[which]);
    test_finish(c, &s, exact);
}

/* Branches make their results from values outside of them, each in its own way. */
void test_draw_case(test_case *c)
{
    int count = (int)test_pick(c, 1, 2);
    const sf_type *types[2];
    for (int i = 0; i < count; i++)
        types[i] = test_type(c, test_any_dtype(c), 0, 3);
    test_spec s = {.op = c->op, .noperands = 1};
    s.operands[0] =
        test_operand(c, sf_type_scalar(c->pool, SF_S32), (test_range){.low = -1, .high = 4});
    s.nregions = (uint32_t)test_pick(c, 1, 4);
    s.nresults = (uint32_t)count;
    sf_block *outer = c->block;
    for (uint32_t r = 0; r < s.nregions; r++) {
        sf_block *branch = sf_block_new(c->graph);
        sf_value results[2];
        c->block = branch;
        for (int i = 0; i < count; i++)
            results[i] = test_operand(c, types[i], test_small);
        test_close(c, branch, outer, (uint32_t)count, results);
        s.regions[r] = branch;
    }
    test_finish(c, &s, exact);
}

void test_draw_custom_call(test_case *c)
{
    static const char *const targets[] = {"Sharding", "LayoutConstraint", "MoveToHost",
                                          "MoveToDevice", "annotate_device_placement"};
    const sf_type *type = test_type(c, test_any_dtype(c), 0, 4);
    sf_value value = test_operand(c, type, test_small);
    test_spec s = {.op = c->op, .noperands = 1, .nresults = 1, .operands = {value}};
    test_set_text(c, &s, "call_target_name", targets[test_pick(c, 0, 4)]);
    test_finish(c, &s, exact);
    if (c->plain || sf_is_inexact(type->dtype)) /* NaN is not equal to itself */
        return;
    test_spec check = {.op = c->op, .noperands = 2, .operands = {value, value}};
    test_set_text(c, &check, "call_target_name", "check.expect_eq");
    test_set_int(c, &check, "has_side_effect", 1);
    test_add(c, &check);
}

void test_draw_optimization_barrier(test_case *c)
{
    test_spec s = {.op = c->op};
    s.noperands = s.nresults = (uint32_t)test_pick(c, 1, 4);
    for (uint32_t i = 0; i < s.noperands; i++)
        s.operands[i] = test_operand(c, test_type(c, test_any_dtype(c), 0, 4), test_wild);
    test_finish(c, &s, exact);
}

/* Counts up to a number that may be known only when it runs, and changes what it carries on the way;
 * both blocks also look at values outside. */
void test_draw_while(test_case *c)
{
    int count = (int)test_pick(c, 1, 3);
    const sf_type *integer = sf_type_scalar(c->pool, test_chance(c, 70) ? SF_S32 : SF_S64);
    const sf_type *types[4] = {integer};
    test_spec s = {.op = c->op, .nregions = 2};
    s.noperands = s.nresults = (uint32_t)count + 1;
    int64_t most = c->most;
    c->most = most / 4 + 2;
    s.operands[0] = test_chance(c, 50)
                        ? test_constant(c, integer, (test_range){.low = 0, .high = 2})
                        : test_operand(c, integer, test_small);
    for (int i = 1; i <= count; i++) {
        types[i] = test_type(c, test_any_dtype(c), 0, 3);
        s.operands[i] = test_operand(c, types[i], test_small);
    }
    test_range limit = {.low = -1, .high = 6};
    sf_value end = c->plain ? SF_NONE : test_operand(c, integer, limit), one;
    sf_block *outer = c->block, *blocks[2];
    for (int b = 0; b < 2; b++) {
        blocks[b] = s.regions[b] = c->block = sf_block_new(c->graph);
        for (int i = 0; i <= count; i++)
            sf_block_argument(c->graph, blocks[b], types[i]);
        sf_value results[4];
        if (b == 0) {
            end = c->plain ? test_operand(c, integer, limit) : end;
            results[0] = test_compare(c, "LT", NULL, blocks[b]->arguments[0], end);
        } else {
            one = test_constant(c, integer, (test_range){.low = 1, .high = 1});
            results[0] = test_binary(c, SF_OP_ADD, blocks[b]->arguments[0], one);
        }
        for (int i = 1; b == 1 && i <= count; i++) {
            sf_value x = blocks[b]->arguments[i], y = test_operand(c, types[i], test_small);
            sf_opcode op = sf_is_complex(types[i]->dtype) ? SF_OP_ADD
                           : test_chance(c, 50)           ? SF_OP_MAXIMUM
                                                          : SF_OP_MINIMUM;
            results[i] = test_binary(c, op, x, y);
            if (types[i]->dtype != SF_PRED && test_chance(c, 50))
                results[i] = test_unary(c, SF_OP_NEGATE, results[i]);
        }
        test_close(c, blocks[b], outer, b == 0 ? 1 : (uint32_t)count + 1, results);
    }
    c->most = most;
    test_finish(c, &s, exact);
}
