/* The space that resharding searches: the shares of each axis in intermediate layouts, and the
 * reshards between.
 *
 * Each axis has a list of choices, of which choice 0 is R. A state takes one choice per axis; its
 * number is their row of bits. Compatible choices, and the changes between choices, are bit masks,
 * so that the reshards out of a state are found without reading layouts.
 *
 * There are two spaces for a pair of layouts. In the fine one choices are shares. In the coarse one
 * they are only R, P, "the wanted split" and "some other split", and all choices are compatible:
 * the cost of a way there is a lower bound of its cost in the fine one, which guides the search. */
#ifndef SF_SHARD_RESHARD_SPACE_H
#define SF_SHARD_RESHARD_SPACE_H

#include "shard/reshard.h"

enum { SF_MAX_CHOICES = 64, SF_COARSE_BITS = 2, SF_FINE_BITS = 6 };

typedef uint32_t sf_packed_layout;

typedef struct sf_space {
    const sf_mesh *mesh;
    int bits; /* per axis, of a state */
    int counts[SF_MAX_AXES];
    uint64_t splits[SF_MAX_AXES], partials[SF_MAX_AXES]; /* which choices are so */
    /* The choices of another axis that are compatible with a choice; those that an exchange makes
     * of it; those of another axis, of the same size, that a swap makes of it. */
    uint64_t beside[SF_MAX_AXES][SF_MAX_CHOICES][SF_MAX_AXES];
    uint64_t exchanges[SF_MAX_AXES][SF_MAX_CHOICES];
    uint64_t swaps[SF_MAX_AXES][SF_MAX_CHOICES][SF_MAX_AXES];
    /* Of the fine space. */
    sf_share shares[SF_MAX_AXES][SF_MAX_CHOICES];
    uint8_t classes[SF_MAX_AXES][SF_MAX_CHOICES]; /* the choice in the coarse space */
} sf_space;

static inline int sf_state_choice(const sf_space *space, sf_packed_layout state, int axis)
{
    return (int)(state >> axis * space->bits & ((1u << space->bits) - 1));
}

static inline sf_packed_layout sf_state_with(const sf_space *space, sf_packed_layout state,
                                             int axis, int choice)
{
    sf_packed_layout mask = ((1u << space->bits) - 1) << axis * space->bits;
    return (state & ~mask) | (sf_packed_layout)choice << axis * space->bits;
}

/* The fine space of a pair of layouts that fit. Choices are R; the partials and splits of both
 * layouts, of any axis; and of each dimension that they split, and one more, the contiguous split
 * under any others. */
void sf_space_fine(const sf_mesh *mesh, const sf_type *type, const sf_layout *from,
                   const sf_layout *to, sf_space *out);
void sf_space_coarse(const sf_space *fine, sf_space *out);

sf_packed_layout sf_space_state(const sf_space *fine, const sf_layout *layout);
sf_layout sf_space_layout(const sf_space *fine, sf_packed_layout state);
sf_packed_layout sf_space_class(const sf_space *fine, sf_packed_layout state);

/* A reshard out of a state. `split` are the axes that split the larger of the shards before and
 * after. */
typedef struct sf_space_step {
    sf_reshard_kind kind;
    sf_axes axes, split;
    sf_packed_layout to;
} sf_space_step;

/* Calls `visit` for each move out of the state, in the order of kinds, axes and choices. */
typedef void sf_step_visit(void *context, const sf_space_step *step);
void sf_space_reshards(const sf_space *space, sf_packed_layout state, sf_step_visit *visit,
                       void *context);

#endif
