/* Recipes: named strategies, as pins.
 *
 *     dp        the batch over axis data
 *     zero1     dp, and sharded optimizer state
 *     zero2     zero1, and gradients sharded where they are made; all of these reduce them to shards
 *     zero3     zero2, and sharded parameters, gathered where they are used
 *     zero1-between  zero1, and parameters sharded between steps, gathered where they are used
 *     megatron  pairs of products over axis model: the first by columns, the second by rows
 *     sequence  the tokens of the batch over axis seq
 *     expert    the batch and the weights of experts over axis expert
 *     2d        dp over data and megatron over model
 *     2d+zero1  several, joined by +: the pins of all, those of the first the strongest
 *
 * The aliases ddp, fsdp, tp, sp and ep are accepted as well.
 *
 * A recipe finds its tensors in the graph, by role and by use, not by their names. A user could
 * write the same pins. */
#ifndef SF_PLAN_RECIPE_H
#define SF_PLAN_RECIPE_H

#include "plan/plan.h"

typedef struct sf_recipe {
    const char *name, *about; /* about: half a sentence */
    const char *alias;        /* another name for it, or NULL */
    /* It shards over axis data, besides the batch, */
    bool state;      /* optimizer state: it is one of ZeRO; */
    bool gradients;  /* gradients; */
    bool parameters; /* and parameters: between steps, and with gradients, until they are used. */
} sf_recipe;

/* By number; NULL past the last. */
const sf_recipe *sf_recipe_nth(int index);

/* Whether the text is a recipe, or several joined by +. */
bool sf_recipe_exists(const char *names);

/* Of recipes joined by +, the first that shards optimizer state; NULL where none does, or there is no text. */
const sf_recipe *sf_recipe_of_state(const char *names);

/* The recipe that shards optimizer state and parameters, and gradients too or not. */
const sf_recipe *sf_recipe_of_parameters(bool gradients);

/* The axes of a recipe of that name, then NULL; NULL where there is no such single recipe. */
const char *const *sf_recipe_axes(const char *name);

/* A new plan with the mesh and the pins of the recipe, not yet completed. `mesh` NULL: one of `ranks`
 * ranks that suits it. A recipe that a step has no use for, or that does not fit so many ranks, is
 * SF_EMISMATCH: the message says that it does not apply, and why. SF_EUSAGE for a name that is none and a mesh without its
 * axes. */
sf_status sf_recipe_plan(const sf_graph *graph, const char *name, int ranks, const sf_mesh *mesh,
                         sf_diag *diag, sf_plan **out);

#endif
