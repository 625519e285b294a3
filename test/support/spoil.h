/* Mistakes in what a rank runs, as a planner or a communicator could make them: what must not pass as a split of the
 * step. */
#ifndef TEST_SUPPORT_SPOIL_H
#define TEST_SUPPORT_SPOIL_H

#include "local/local.h"

typedef enum test_mistake {
    TEST_UNREDUCED,  /* a sum that is left out */
    TEST_TWICE,      /* one that counts everything twice */
    TEST_SWAPPED,    /* pieces that change places, on all ranks */
    TEST_WRONG_RANK, /* the same on the first rank alone */
    TEST_DROPPED,    /* what the last rank gets is lost */
    TEST_STALE,      /* state that stays what it was */
    TEST_OTHER,      /* the first rank does the work of the second */
    TEST_MISTAKES
} test_mistake;

const char *test_mistake_name(test_mistake mistake);

/* One mistake: of a part of a collective, counted over all of them, or of a result; TEST_OTHER has no place. */
typedef struct test_spoil {
    test_mistake mistake;
    uint32_t place;
    sf_value of;  /* set: the value of the step whose pieces are wrong, or SF_NONE */
    bool applied; /* set, by the first rank: there is such a place, and it makes a difference */
} test_spoil;

/* For sf_plan_trial.spoil, with a test_spoil. */
void test_spoil_rank(void *spoil, sf_local *local, int rank);

/* How many places there are. */
uint32_t test_spoil_places(const sf_local *local, test_mistake mistake);

#endif
