/* Recipes: the splits that people know by name, as pins.
 *
 *     dp        the batch over axis data
 *     zero1     dp, and optimizer state in pieces
 *     zero2     zero1, and gradients in pieces
 *     zero3     zero2, and parameters in pieces, gathered where they are used
 *     zero1-between  zero1, and parameters in pieces between steps, gathered where they are used
 *     megatron  pairs of products over axis model: the first by columns, the second by rows
 *     sequence  the tokens of the batch over axis seq
 *     expert    the batch and the weights of experts over axis expert
 *     2d        dp over data and megatron over model
 *     2d+zero1  several, joined by +: the pins of all, those of the first the strongest
 *
 * Names that others have for them, ddp, fsdp, tp, sp and ep, are taken as well.
 *
 * Which tensors are meant is found in the graph, by role and by what is done with them, not by their
 * names. A recipe does nothing that a person could not do by writing the pins.
 */
#ifndef SF_PLAN_RECIPE_H
#define SF_PLAN_RECIPE_H

#include "plan/plan.h"

typedef struct sf_recipe {
    const char *name, *about; /* about: half a sentence */
} sf_recipe;

/* By number; NULL past the last. */
const sf_recipe *sf_recipe_nth(int index);

/* The axes of a recipe of that name, then NULL; NULL where there is no such single recipe. */
const char *const *sf_recipe_axes(const char *name);

/* A new plan with the mesh and the pins of the recipe, not yet completed. `mesh` NULL: one of `ranks`
 * ranks that suits it. A recipe that a step has no use for, or that does not fit so many ranks, is
 * SF_EMISMATCH: the message says that it does not apply, and why. SF_EUSAGE for a name that is none and a mesh without its
 * axes. */
sf_status sf_recipe_plan(const sf_graph *graph, const char *name, int ranks, const sf_mesh *mesh,
                         sf_diag *diag, sf_plan **out);

#endif
