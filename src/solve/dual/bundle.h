/* The multipliers of watched points, by a proximal bundle method.
 *
 * An assignment of cost c that is g(t) over the limit at the points t costs c + g * m at the multipliers m,
 * so the Lagrangian bound, as a function of m, lies below that plane. The planes of good assignments are a
 * model of it from above. The next multipliers are those where the model is highest, not too far from the
 * best ones known, the center. Whether they are better, message passing says.
 *
 * C. Lemarechal, An algorithm for minimizing convex functions, IFIP 1974; K. C. Kiwiel, Proximity control
 * in bundle methods, Math. Programming 1990.
 */
#ifndef SF_SOLVE_DUAL_BUNDLE_H
#define SF_SOLVE_DUAL_BUNDLE_H

#include "solve/dual/dual.h"

enum { SF_BUNDLE_PLANES = 48 };

typedef struct sf_plane {
    uint32_t *choice; /* [nnodes] */
    double cost;
    double *slope; /* [watch.capacity], by slot: usage less the limit */
    double weight; /* in the last solution of the model */
} sf_plane;

typedef struct sf_bundle {
    sf_dual *dual; /* the multipliers here are the ones to try */
    sf_plane planes[SF_BUNDLE_PLANES];
    uint32_t count;
    double *center; /* [watch.capacity] */
    double bound;   /* at the center; -HUGE_VAL before the first */
    double reach; /* how far from the center: a multiplier's change per unit of slope; 0: unknown */
    double promise; /* the model's value at the next multipliers */
    double *free;   /* [watch.capacity]: multipliers before they are cut off at zero */
} sf_bundle;

void sf_bundle_init(sf_bundle *bundle, sf_dual *dual, sf_arena *arena);

/* Adds the plane of an assignment; the one that mattered least goes when there are too many. */
void sf_bundle_add(sf_bundle *bundle, const uint32_t *choice);

/* Watches one more point. */
void sf_bundle_watch(sf_bundle *bundle, uint32_t point);

/* Reports the bound at the dual's multipliers: moves the center there if it is better. `own`:
 * sf_bundle_next chose them, so that the bundle may adapt. */
void sf_bundle_judge(sf_bundle *bundle, double bound, bool own);

/* Sets the dual's multipliers to the next ones, and prices with them. */
void sf_bundle_next(sf_bundle *bundle);

/* Sets the dual's multipliers to the center, and prices with them. */
void sf_bundle_return(sf_bundle *bundle);

#endif
