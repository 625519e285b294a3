/* What collectives are given in tests, and what must come out. Inputs are a function of the rank and the index alone, so that
 * every rank computes for itself what it must get, to the bit, in the order that the header of the kinds promises. */
#ifndef TEST_SUPPORT_TRANSFERS_H
#define TEST_SUPPORT_TRANSFERS_H

#include "run/comm/comm_backend.h"

enum { TEST_MOST_PARTS = 12 };

typedef struct test_shape {
    sf_collective kind;
    sf_dtype dtype;
    sf_monoid monoid;
    int nparts;
    int64_t counts[TEST_MOST_PARTS];
    bool in_place;
    int microbatch; /* of a permute: how far; 0: along a chain with two ends. Of a broadcast: the source */
    uint64_t seed;
    int pieces; /* it is done in so many transfers, each of which has some of every block; 0: all at once */
} test_shape;

/* Well mixed bits of a number. */
uint64_t test_mix(uint64_t x);

/* Puts element `index` of what `rank` gives at place `at` of the data: ordinary numbers, exact in every type that they are
 * rounded to. */
void test_put_element(const test_shape *s, int rank, int part, int64_t index, void *data,
                      int64_t at);

/* Element `index` of what the member at `place` must get. False: nothing comes. */
bool test_want_element(const test_shape *s, const int *ranks, int members, int place, int part,
                       int64_t index, void *out);

/* Whom a member has it from, and whom it sends it to; -1: nobody. */
int test_chain_from(const test_shape *s, int place, int members);
int test_chain_to(const test_shape *s, int place, int members);

/* Elements of a part that a member gives, and that it gets. */
int64_t test_in_count(const test_shape *s, int part, int members);
int64_t test_out_count(const test_shape *s, int part, int members);

#endif
