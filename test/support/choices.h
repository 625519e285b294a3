/* Random problems of choice, and two judges that know nothing of the solver: enumeration, and an integer
 * program for CBC where the build has it. */
#ifndef SF_TEST_SUPPORT_CHOICES_H
#define SF_TEST_SUPPORT_CHOICES_H

#include "solve/problem/problem.h"

/* What a random problem is like. Shares are in percent. */
typedef struct sf_shape {
    const char *name;
    uint32_t nodes;      /* at most */
    uint32_t strategies; /* of a node, at most */
    uint32_t density;    /* edges per 100 nodes */
    uint32_t forbidden;  /* share of pairs */
    uint32_t range;      /* costs below this, and a few below 0 */
    uint32_t limit;      /* share of the mean of the largest usage; 0: none */
    uint32_t times;
    bool tree; /* chains and trees with a few more edges, rather than any pairs */
} sf_shape;

extern const sf_shape sf_shapes[];
extern const int sf_shape_count;

void sf_draw_problem(const sf_shape *shape, uint64_t seed, sf_arena *arena, sf_problem *out);

/* The least cost of all assignments that keep to the rules, SF_FORBIDDEN when none does. */
int64_t sf_enumerate(const sf_problem *problem, sf_arena *scratch);

/* The same from CBC, SF_FORBIDDEN + 1 when it was not done after so many seconds; false when the build has
 * none. */
bool sf_ask_cbc(const sf_problem *problem, double seconds, int64_t *out);

#endif
