/* Rules: the meaning of the user's pins on one mesh, tensor by tensor and axis by axis; and whether
 * a plan satisfies them.
 *
 *     R@a        not split along axis a                R@*        nor along any other
 *     !S(d)@a    not along dimension d over a          !S(d)@*    nor over any other axis
 *     S(d)@a     split along d over a                  S(d)@*     over some axis, and along no
 *                other dimension
 *
 * So there are three kinds of rules: a fixed share, banned dimensions, and preferences, which some
 * axis must satisfy. A rule about an argument is about its layout, and ops may read slices of it; a
 * rule about a computed value is about its layout at its maker and its readers. A partial sum is
 * not split. A computed value must have a fixed share at its maker or at one of its readers; if
 * pins match scopes, one of all their values must.
 *
 * Earlier pins are stronger. A pin without effect, because earlier ones decide otherwise about all
 * that it matches, is an error, and so are pins that contradict each other. */
#ifndef SF_PLAN_PIN_RULES_H
#define SF_PLAN_PIN_RULES_H

#include "plan/pin.h"

/* Fixed shares along one axis, by value of the step. All NULL: none. */
typedef struct sf_fixed {
    int *pin;         /* that fixes the share, or -1 */
    sf_share *shares; /* period 0: the default */
    uint32_t *banned; /* bit d: not split along dimension d */
} sf_fixed;

/* Some axis splits the value along the dimension. */
typedef struct sf_preference {
    sf_value value;
    int pin;
} sf_preference;

typedef struct sf_rules {
    const sf_graph *graph;
    const sf_names *names;
    sf_mesh mesh;
    int npins; /* 0: there are no rules */
    const sf_pin *pins;
    sf_fixed axes[SF_MAX_AXES];
    size_t npreferences, preference_capacity;
    sf_preference *preferences;
} sf_rules;

/* The pins were read for this mesh; they, the names and the graph outlive the rules, which live in the arena.
 * SF_EUSAGE when a pin matches nothing, or does not fit an argument that it matches, or pins contradict each
 * other. Of scopes, values that do not fit are passed over as long as one does, and so are single numbers,
 * such as the count of steps, where a pattern has * or ?. */
sf_status sf_rules_new(const sf_graph *graph, const sf_names *names, const sf_mesh *mesh, int npins,
                       const sf_pin *pins, sf_arena *arena, sf_diag *diag, sf_rules *out);

/* Who grants the wishes: nobody; each that no other axis of the plan grants, the current axis; or else, by
 * number, one axis all of them, but for those that do not fit there. */
enum { SF_GRANT_NONE = -2, SF_GRANT_REST = -1 };

/* Fixed shares along the axis, with those of the preferences that it satisfies; in the arena, if
 * there are any. */
sf_fixed sf_rules_along(const sf_rules *rules, int axis, int grant, const sf_plan *plan,
                        sf_arena *arena);

/* Whether the value, made or an argument, must not have this share along the axis. */
bool sf_is_banned(const sf_fixed *fixed, sf_value value, sf_share share);

/* The first pin that the plan, on a mesh of the same sizes, breaks; -1: none. */
int sf_rules_broken(const sf_rules *rules, const sf_plan *plan);

#endif
