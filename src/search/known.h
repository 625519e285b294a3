/* Plans that people know, as candidates of a search: recipes (plan/recipe.h), on their own or with the
 * state in pieces, and pieces of the large tensors alone.
 *
 *     zero1          the recipe
 *     2d+zero1       both: pairs of products over axis model, and over axis data what zero1 splits there
 *
 * Where the state of all must not be whole but the memory is not that tight, only tensors from some size on
 * are split (Rhino, section 4.4): the fewest that make it fit are searched for, and the fastest that was seen on
 * the way is the plan. Of zero1, which saves time as well, since less is updated, there is a second one, for which that
 * is done where all would fit, too.
 */
#ifndef SF_SEARCH_KNOWN_H
#define SF_SEARCH_KNOWN_H

#include "search/refine.h"

typedef struct sf_known {
    const char *name;   /* as sf_recipe_plan takes it: "2d+zero1" */
    const char *recipe; /* "2d"; NULL: only what the user pinned */
    const char *state;  /* a recipe of ZeRO that is added, or NULL */
    bool spares;        /* tensors may stay whole although they need not, where that is faster */
} sf_known;

/* By number; NULL past the last. */
const sf_known *sf_known_nth(int index);

/* What the user pinned, completed. */
const sf_known *sf_known_pins(void);

/* The plan on the mesh, whose axes have the names that recipes know; completed, with the pins of the
 * ground in front, and priced. Fails when it does not apply. */
sf_status sf_known_plan(const sf_ground *ground, const sf_known *known, const sf_mesh *mesh,
                        const sf_costs *costs, sf_diag *diag, sf_priced *out);

#endif
