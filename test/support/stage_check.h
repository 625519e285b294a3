/* A judge of assignments to stages: holds them to the rules of plan/pipeline/stage.h, and counts what crosses. */
#ifndef TEST_SUPPORT_STAGE_CHECK_H
#define TEST_SUPPORT_STAGE_CHECK_H

#include "plan/pipeline/stage.h"

/* Unusual properties of a valid assignment. */
typedef struct test_census {
    uint32_t crossings; /* forward values that other stages read */
    uint32_t skips;     /* of those, readers in a stage that is not the next one */
    uint32_t
        kept_elsewhere; /* forward values that the backward pass of a stage reads which does not have them from
                                   its forward pass, once per stage */
    uint32_t tied; /* parameters that several stages read */
    uint32_t
        gradients_elsewhere; /* gradients that are made in a later stage than their parameter is in */
    uint32_t
        updates_elsewhere; /* state that is made in another stage than it is in: by a node that makes that of
                                   several, or that is itself part of the forward or the backward pass */
    int64_t
        forward_bytes; /* per micro-batch, sent forward to other stages: once per value and stage */
    int64_t backward_bytes; /* the same of the backward pass */
    int64_t kept_bytes;     /* of kept_elsewhere */
    int64_t
        step_bytes; /* once per step: to updates and late sums, and of weights and values of weights alone */
} test_census;

/* Holds an assignment to the rules; SF_EMISMATCH names the first edge that breaks one. `out` may be NULL. */
sf_status test_check_stages(const sf_graph *graph, const sf_stages *stages, sf_diag *diag,
                            test_census *out);

#endif
