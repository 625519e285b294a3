/* Factors: the loops of an operator.
 *
 * Every operator is a loop nest; its loops are its factors. Each dimension of each operand and result
 * is walked by a chain of factors, major to minor, whose sizes multiply to the dimension. From this
 * alone follow the ways an op can be split and what the pieces look like:
 *
 *     map      in operands and results: pieces of the result are independent
 *     reduce   in operands only: each piece gives a partial result, combined by a monoid
 *     window   as map, but a piece reads a range of the operand that the op computes (with a halo)
 *     whole    cannot be split
 *
 * Tensors are numbered operands first, then results.
 */
#ifndef SF_IR_FACTOR_H
#define SF_IR_FACTOR_H

#include "ir/tensor_region.h"

typedef enum sf_factor_role { SF_MAP, SF_REDUCE, SF_WINDOW, SF_WHOLE } sf_factor_role;

/* What people call the factors of an op, by number: i, j, k, ... */
static inline char sf_factor_letter(int factor)
{
    return (char)(factor < 18 ? 'i' + factor : 'a' + (factor - 18) % 8);
}

/* How partial values combine. */
typedef enum __attribute__((packed)) sf_monoid {
    SF_MONOID_NONE,
    SF_MONOID_ADD,
    SF_MONOID_MUL,
    SF_MONOID_MIN,
    SF_MONOID_MAX,
    SF_MONOID_AND,
    SF_MONOID_OR,
    SF_MONOID_XOR,
    SF_MONOID_SECOND, /* the later one wins: the body of a plain scatter. Not commutative */
    SF_MONOID_COUNT
} sf_monoid;
const char *sf_monoid_name(sf_monoid monoid);

typedef struct sf_factor {
    int64_t size;
    sf_factor_role role;
    sf_monoid monoid; /* of a reduce factor */
    const bool *
        partial; /* by tensor: cut by the factor, it is a partial sum, operands too. Of loops; or NULL */
} sf_factor;

enum { SF_MAX_CHAIN = 8 };

/* How one dimension of one tensor is walked. */
typedef struct sf_walk {
    int count;
    int factors[SF_MAX_CHAIN]; /* major to minor */
    bool halo; /* one factor; the range that a piece needs is what the op's `halo` says */
} sf_walk;

typedef struct sf_factoring {
    sf_arena *arena;
    int nfactors;
    sf_factor *factors;
    size_t capacity;
    int ntensors;
    sf_walk **walks; /* [tensor][dimension] */
} sf_factoring;

/* Adds a factor; returns its number. */
int sf_factor_add(sf_factoring *factoring, int64_t size, sf_factor_role role, sf_monoid monoid);

/* Appends a factor to the chain of a dimension. */
void sf_factor_walk(sf_factoring *factoring, int tensor, int dim, int factor);

/* A piece of it is of use: its results are pieces, or partial results that others can be added to in any order. */
bool sf_factor_can_cut(const sf_factor *factor);

/* A dimension cut into blocks of `period` indices, of which each of `parts` pieces has a part: as much of a factor of
 * its chain. False where no factor can be cut so. */
typedef struct sf_walk_cut {
    int at; /* dimension, or factor */
    int64_t period;
} sf_walk_cut;
bool sf_cut_to_factor(const sf_factoring *factoring, int tensor, sf_walk_cut dim, int parts,
                      sf_walk_cut *factor);

/* And the way back: false where the factor does not walk the tensor, which has `rank` dimensions. */
bool sf_cut_to_dim(const sf_factoring *factoring, int tensor, int rank, sf_walk_cut factor,
                   sf_walk_cut *dim);

/* Gives a dimension a factor of its own that cannot be split. */
void sf_factor_whole(sf_factoring *factoring, int tensor, int dim, int64_t size);

#endif
