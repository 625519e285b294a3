/* Random instances of every op of the table: legal shapes, types, attributes and bodies, at sizes from
 * none to more than a tile or a block of a cache. Operands reach the op through views and neighbours,
 * and results leave through some, so that an engine meets strides, copies and things to fuse.
 *
 * Whatever stands between an argument and the op, and between the op and a result, is exact; only the op
 * itself may be computed in several ways, and `test_case` says how far apart their results may be.
 */
#ifndef TEST_SUPPORT_DRAW_H
#define TEST_SUPPORT_DRAW_H

#include "support/indexing.h"

enum { TEST_MOST_ARGUMENTS = 64, TEST_MOST_RESULTS = 32 };

/* What an argument may hold: numbers from a range, floats and parts of complex numbers in steps of 1/64 and so with few digits; or any
 * bits at all, with many zeros, infinities, NaN and extremes. */
typedef struct test_range {
    bool wild;
    int64_t low, high;
} test_range;

/* |ours - expected| <= relative * |expected| + absolute; 0 and 0 for what must be equal. */
typedef struct test_tolerance {
    double relative, absolute;
} test_tolerance;

typedef struct test_case {
    test_random random;
    sf_opcode op;
    sf_graph *graph;
    sf_pool *pool;
    sf_block *block; /* where nodes are added */
    sf_node *node;   /* the op, once drawn */
    bool plain;      /* operands and results are those of the op, without views */
    bool only_views; /* operands come through views alone: the op sees the bits of NaN */
    int64_t most;    /* elements of a tensor, roughly */
    test_range ranges[TEST_MOST_ARGUMENTS];
    uint32_t nresults;
    sf_value results[TEST_MOST_RESULTS];
    test_tolerance tolerances[TEST_MOST_RESULTS];
} test_case;

/* Draws a graph with one op of this kind, the same for the same seed. `plain` leaves views and neighbours
 * away; `most` bounds the size of tensors, 0 takes any. Fails the running test when the op table refuses
 * what was drawn. */
void test_case_draw(test_case *c, sf_opcode op, uint32_t seed, bool plain, int64_t most);
void test_case_free(test_case *c);

/* Fills argument `index` of the case. */
void test_case_fill(test_case *c, uint32_t index, sf_tensor tensor);

/* Whether there is a generator for the op. */
bool test_can_draw(sf_opcode op);

/* For generators --------------------------------------------------------------------------------- */

typedef void test_generator(test_case *c);
extern test_generator *const test_generators[SF_OP_COUNT];

extern const test_range test_small, test_wild;

int64_t test_pick(test_case *c, int64_t low, int64_t high); /* uniform, both included */
bool test_chance(test_case *c, int percent);
void test_shuffle(test_case *c, int count, int64_t *values);

/* A type: common ones more often. `classes` is a set of bits 1 << sf_class. */
sf_dtype test_dtype(test_case *c, int classes);
sf_dtype test_any_dtype(test_case *c);
sf_dtype test_ordered_dtype(test_case *c); /* any but complex numbers */
sf_dtype test_index_dtype(test_case *c);

/* Dimensions, with a product of c->most at most. */
void test_dims(test_case *c, int rank, int64_t *dims);
const sf_type *test_type(test_case *c, sf_dtype dtype, int least_rank, int most_rank);

/* A value of this type, made from arguments and constants. */
sf_value test_operand(test_case *c, const sf_type *type, test_range range);

/* A constant of the type with random elements. */
sf_value test_constant(test_case *c, const sf_type *type, test_range range);

/* What a node is given. Attributes are set by name. */
typedef struct test_spec {
    sf_opcode op;
    uint32_t noperands, nresults, nregions;
    sf_value operands[TEST_MOST_ARGUMENTS];
    const sf_type *types[8]; /* declared; the first NULL: none */
    const sf_attr *attrs[24];
    sf_block *regions[4];
} test_spec;

void test_set(test_spec *spec, const char *name, const sf_attr *attr);
void test_set_int(test_case *c, test_spec *spec, const char *name, int64_t value);
void test_set_ints(test_case *c, test_spec *spec, const char *name, int count,
                   const int64_t *values);
void test_set_text(test_case *c, test_spec *spec, const char *name, const char *text);

/* Adds a node; fails the test when it is refused. `test_try` gives NULL instead. */
sf_node *test_add(test_case *c, const test_spec *spec);
sf_node *test_try(test_case *c, const test_spec *spec);

/* One operand or two, no attributes, one result. */
sf_value test_unary(test_case *c, sf_opcode op, sf_value a);
sf_value test_binary(test_case *c, sf_opcode op, sf_value a, sf_value b);
sf_value test_compare(test_case *c, const char *direction, const char *kind, sf_value a,
                      sf_value b);
sf_value test_iota(test_case *c, const sf_type *type, int64_t dim);
sf_value test_broadcast(test_case *c, sf_value value, const sf_type *type, int count,
                        const int64_t *dims);

/* Begins a block of scalars, two of each type, whose nodes are now added; `test_close` gives it its
 * results and goes back to adding to `outer`. */
sf_block *test_open(test_case *c, int count, const sf_dtype *dtypes, bool twice);
void test_close(test_case *c, sf_block *block, sf_block *outer, uint32_t count,
                const sf_value *results);

/* Adds the op of the case, and uses its results. */
void test_finish(test_case *c, const test_spec *spec, test_tolerance tolerance);

/* The distance from 1 to the next number of a float type; 0 for others. */
double test_epsilon(sf_dtype dtype);

/* A bound of the smallest number above zero of a float type. */
double test_smallest(sf_dtype dtype);

/* Of a sum of `terms` numbers up to `magnitude`, kept in 32 bits or more and rounded to `dtype`. */
test_tolerance test_sum_tolerance(sf_dtype dtype, double terms, double magnitude);

#endif
