/* How often a loop runs, where its counter can be followed. */
#ifndef SF_FRONT_TRIP_COUNT_H
#define SF_FRONT_TRIP_COUNT_H

#include "front/text_module.h"

typedef struct sf_trips sf_trips;

/* `most_steps` bounds the nodes looked at in all, over every loop of the module. */
sf_trips *sf_trips_new(const sf_module *module, int64_t most_steps);
void sf_trips_free(sf_trips *trips);

/* No loop is followed for longer than this. */
enum { SF_MOST_TRIPS = 1 << 16 };

/* The trip count of a `while` node of the module whose operands start as the constants in `start`
 * (NULL: unknown); -1 when it cannot be known. Only small integers are followed: the loop runs on
 * those that its condition needs. Iterations past `limit` have `most_steps` of their own, so that a
 * long loop does not keep others from being counted. */
int64_t sf_trip_count(sf_trips *trips, const sf_node *loop, const sf_attr *const *start,
                      int64_t limit);

#endif
