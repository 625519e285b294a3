/* Pins: rules of the user about splits.
 *
 *     batch/ids = S(0)@data              its first dimension, over axis data
 *     layer_?/mlp/up/kernel = S(1)@model
 *     layer_?/mlp/down = S(-1)@model     the last dimension, whatever the rank
 *     layer_?/norm1 = S(1)@model         results of ops in that scope
 *     grad/wte/embedding = R@data        the gradient of a parameter
 *     wte/embedding = !S(1)@model        any other split, or none
 *     wte/embedding = R@*                whole along every axis
 *     wte/embedding = S(0)@*             along one axis at least, and along no other dimension
 *     out:layer_?/attn = R@model         values that leave that scope in the forward pass
 *     back:layer_?/attn = R@model        and in the backward pass: gradients, but not those of
 *                                        parameters
 *
 * A comment follows " # ", such as the line of a schedule.
 *
 * A pattern has * (any characters, slashes too) and ?. It matches the clean name of an argument
 * (ir/name.h), the scope of a node in the forward phase, or "grad/" and the name of a parameter;
 * the whole of it or its last parts (after a leading slash, only the whole). A parameter's pin is
 * also one for its optimizer state and its gradient, because their names end alike. Of several pins
 * for one value and axis the first counts. */
#ifndef SF_PLAN_PIN_H
#define SF_PLAN_PIN_H

#include "base/intern.h"
#include "plan/plan.h"

/* Reads one pin. Strings live in the arena. Blanks around '=' are allowed. Without a mesh, the axis stays
 * SF_ANY_AXIS. */
sf_status sf_pin_parse(const char *text, const sf_mesh *mesh, sf_arena *arena, sf_diag *diag,
                       sf_pin *out);

/* The name of the axis in the text of a pin; empty where there is none, or "*". */
sf_str sf_pin_axis_name(const char *text);

/* Whether the text is a pin that wants a split. */
bool sf_pin_splits(const char *text);

/* Puts pins of a person in front of those that the plan has. */
sf_status sf_plan_add_pins(sf_plan *plan, int count, const char *const *texts, sf_diag *diag);

/* Names of values, for patterns and for messages. A step has far fewer names than values, and
 * recipes have thousands of pins: patterns are matched with names, and a pattern with a leading
 * slash and without * and ? is looked up. */
typedef struct sf_named {
    const char *name;
    sf_value first;
    bool alone;            /* it is this value, and no other of the name */
    struct sf_named *next; /* another name */
} sf_named;

typedef struct sf_names {
    const sf_graph *graph;
    /* by value of the step: name of an argument, "grad/..." of a gradient, scope of a forward
     * node's result; "" if there is none */
    const char **values;
    bool *is_scope;    /* by value: it has no name of its own, but that of a scope, or none */
    sf_value *same;    /* by value: the next of this name, or SF_NONE */
    sf_named *all;     /* a list */
    sf_interner index; /* of sf_named, by name */
} sf_names;
sf_names sf_names_of(const sf_graph *graph, sf_arena *arena);

/* The value of the same name after `value`, or SF_NONE. */
static inline sf_value sf_named_next(const sf_names *names, const sf_named *named, sf_value value)
{
    return named->alone ? SF_NONE : names->same[value];
}

/* The names that the pattern matches: *count of them, in the arena. */
const sf_named **sf_names_match(const sf_names *names, const char *pattern, sf_arena *arena,
                                size_t *count);

/* For a pattern that matches nothing: the names, or parts of some, that may have been meant; NULL: nothing is near. */
const char *sf_names_nearest(const sf_names *names, const char *pattern, sf_arena *arena);

/* Fills plan->pinned. */
void sf_plan_mark_pins(sf_plan *plan, const sf_names *names);

/* "grad/..." for the parameter of that clean name. */
const char *sf_gradient_name(const char *parameter, sf_arena *arena);

#endif
