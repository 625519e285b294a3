/* Layouts: how a tensor is distributed over a mesh.
 *
 * A layout gives for each axis of the mesh the share of the ranks along it:
 *
 *     R             the same
 *     S(dim)        equal parts of a dimension, in order
 *     S(dim, P)     equal parts of every block of P indices: a strided split
 *     P(+)          values that must be combined, here by addition
 *
 * Each of them may be restricted to some of the ranks along the axis, and the others have nothing:
 * tensors that are on some pipeline ranks (plan/pipeline/pipeline.h). The ranks that have it count
 * from 0, and n below is their number.
 *
 *     At(k)         rank k has it
 *     At(0,1)       ranks 0 and 1 have the same
 *     S(0)At(0,1)   ranks 0 and 1 have equal parts of a dimension
 *     At(0:0-3,1:4) rank 0 has rows 0 to 3 of dimension 0, and rank 1 row 4 (shard/uneven_partition.h)
 *
 * A rank's local graph has no such layouts.
 *
 * An index g of the dimension belongs to coordinate g % P / (P / n), where n is the size of the
 * axis. That is one digit of g in a mixed radix: it counts in units of P / n up to P. S(dim) is the
 * same with P the size of the dimension, or, when earlier axes split the dimension too, the unit of
 * the innermost of them, so that [S(0), S(0)] splits the parts further. In memory, P is always
 * explicit.
 *
 * A layout fits a shape when P divides the dimension, n divides P, and the digits of two axes on
 * one dimension do not overlap: the P of the one divides the unit P / n of the other. So all shards
 * have one size, each axis can be gathered or sliced independently of the others, and the order of
 * digits in a shard is that of the whole. Sizes that do not divide do not fit, nor does a dimension
 * of size 0: there is no padding. Partials of a layout are all of one monoid (a sum of maxima is
 * not the maximum of the sums), and it must be commutative. */
#ifndef SF_SHARD_LAYOUT_H
#define SF_SHARD_LAYOUT_H

#include "ir/factor.h"
#include "shard/mesh.h"
#include "shard/uneven_partition.h"

typedef enum __attribute__((packed)) sf_share_kind {
    SF_REPLICATED,
    SF_SPLIT,
    SF_PARTIAL
} sf_share_kind;

typedef struct sf_share {
    sf_share_kind kind;
    sf_monoid monoid; /* of PARTIAL */
    int dim;          /* of SPLIT */
    int64_t period;   /* of SPLIT: P */
    uint64_t on;      /* the coordinates that have any of it, a bit each; 0: all */
    const sf_row_partition
        *partition; /* of REPLICATED: who of them has which rows of dimension 0, which nothing
                            else splits then; NULL: each has all. Borrowed: sf_layouts_keep */
} sf_share;

/* How many have a part in it along an axis of that size; which of them a coordinate is; and whether it is one. */
static inline int sf_share_parts(sf_share share, int size)
{
    return share.on ? __builtin_popcountll(share.on) : size;
}

static inline int sf_share_place(sf_share share, int coordinate)
{
    return share.on ? __builtin_popcountll(share.on & ((UINT64_C(1) << coordinate) - 1))
                    : coordinate;
}

static inline bool sf_share_is_held(sf_share share, int coordinate)
{
    return share.on == 0 || (coordinate < 64 && share.on >> coordinate & 1);
}

/* Unused fields and axes are zero; a zeroed layout is replicated. Compare with sf_layout_equal, not
 * by bytes: a share has padding. */
typedef struct sf_layout {
    sf_share axes[SF_MAX_AXES];
} sf_layout;

bool sf_layout_equal(const sf_layout *a, const sf_layout *b);
/* Whether ranks of the mesh have the same: along an axis of one rank, everything is. */
bool sf_layout_same(const sf_mesh *mesh, const sf_layout *a, const sf_layout *b);
bool sf_share_equal(sf_share a, sf_share b);
uint64_t sf_layout_hash(const sf_layout *layout);
bool sf_layout_is_replicated(const sf_layout *layout);
bool sf_layouts_are_replicated(const sf_layout *layouts, uint32_t count); /* all of them */
bool sf_layout_is_partial(const sf_layout *layout);

/* Whether the rank has any part of the tensor. */
bool sf_layout_is_held(const sf_layout *layout, const sf_mesh *mesh, int rank);

/* Copies row partitions of the layouts into the arena: they live as long as that, then. */
void sf_layouts_keep(sf_layout *layouts, uint32_t count, sf_arena *arena);

/* The axes that split any of the layouts: those that split an op with these tensors. */
sf_axes sf_layouts_split(const sf_layout *layouts, uint32_t count);

/* Whether the layout fits the shape; if not, `why` (may be NULL) gets a sentence part such as
 * "dimension 0 of size 10 does not split into 4 equal parts". */
enum { SF_WHY_TEXT = 200 };
bool sf_layout_fits(const sf_layout *layout, const sf_mesh *mesh, int rank, const int64_t *dims,
                    char why[SF_WHY_TEXT]);

/* Whether two shares that fit, over axes of so many parts, go together in a layout. */
bool sf_shares_fit(sf_share a, int a_parts, sf_share b, int b_parts);

/* The default period of S(dim) on that axis: see above. Only the shares of earlier axes are read,
 * so periods are filled in from the first axis to the last. */
int64_t sf_layout_period(const sf_layout *layout, const sf_mesh *mesh, int axis, int dim,
                         int64_t size);

/* The shape of a shard; all are equal, except in an uneven partition: then that of the largest.
 * `dims` and `out` hold `rank` numbers and may be the same. */
void sf_layout_dims(const sf_layout *layout, const sf_mesh *mesh, int rank, const int64_t *dims,
                    int64_t *out);

/* The shape of the shard of mesh rank `at`, which holds one. */
void sf_layout_dims_at(const sf_layout *layout, const sf_mesh *mesh, int at, int rank,
                       const int64_t *dims, int64_t *out);

/* Digits: a dimension in the mixed radix that a layout makes of it, major to minor. A digit is
 * split (axis >= 0; its size on a shard is 1) or not (axis -1). Their sizes multiply to the
 * dimension; digits of size 1 that are not split are left out. Returns how many there are. */
enum { SF_MAX_DIGITS = 2 * SF_MAX_AXES + 1 };
typedef struct sf_digit {
    int64_t size, unit; /* it counts 0 .. size - 1 in steps of `unit` */
    int axis;
} sf_digit;
int sf_layout_digits(const sf_layout *layout, const sf_mesh *mesh, int dim, int64_t size,
                     sf_digit digits[SF_MAX_DIGITS]);

/* The common digits of two layouts, fine enough for both; axes of size 1 are left out. `before` and
 * `after` are the axes that split the digit, or -1. If there are none (digits overlap without being
 * equal) the count is -1; that never happens between the two sides of a reshard (shard/reshard.h).
 * There, a shard before it is a row-major array of the digits with before == -1 of all dimensions,
 * and a shard after it one of those with after == -1. A digit that an axis of the reshard splits is
 * a place in the group: the destination in the collective, or the source. */
enum { SF_MAX_JOINT = 4 * SF_MAX_AXES + 1 };
typedef struct sf_joint_digit {
    int64_t size, unit;
    int before, after;
} sf_joint_digit;
int sf_layout_joint(const sf_layout *before, const sf_layout *after, const sf_mesh *mesh, int dim,
                    int64_t size, sf_joint_digit digits[SF_MAX_JOINT]);

/* Bytes of a rank's shard of a tensor; of the largest. */
double sf_shard_bytes(const sf_type *type, const sf_layout *layout, const sf_mesh *mesh);

/* Which of those that have a part in it along the axis the rank is, where it is one. */
int sf_layout_place(const sf_layout *layout, const sf_mesh *mesh, int rank, int axis);

/* The index in the whole dimension of index `local` of the shard of `rank`. */
int64_t sf_layout_global(const sf_layout *layout, const sf_mesh *mesh, int rank, int dim,
                         int64_t size, int64_t local);

/* "[S(0), At(1)]"; S without a period if that is the default. A monoid is + * min max & | ^. Row
 * partitions that are read live in the arena. */
void sf_layout_print(const sf_layout *layout, const sf_mesh *mesh, int rank, const int64_t *dims,
                     sf_buf *out);
sf_status sf_layout_parse(sf_str text, const sf_mesh *mesh, int rank, const int64_t *dims,
                          sf_arena *arena, sf_diag *diag, sf_layout *out);

/* One share, as in a pin: "R", "S(1)", "S(0,64)", "P(+)". The period is 0 where the text gives
 * none: then the default is meant. */
sf_status sf_share_parse(sf_str text, sf_diag *diag, sf_share *out);

#endif
