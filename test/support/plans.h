/* Steps that are split, for tests of plans. */
#ifndef TEST_SUPPORT_PLANS_H
#define TEST_SUPPORT_PLANS_H

#include "ir/opdef.h"
#include "local/local.h"
#include "op/op.h"

/* The micro steps, by name; NULL at the end. */
extern const char *const test_steps[];

/* Whether step `i` of these is one of the short version of a test (support/sanitized.h): one in three, a decoder, one with
 * remat, one of another family of decoders, an encoder with a decoder, and the Evoformer. */
bool test_takes(int i);

/* A micro step. Skips the running test where such files cannot be read. */
sf_graph *test_step(const char *name);

/* The same from another folder of test/data. */
sf_graph *test_step_of(const char *folder, const char *name);

/* A step from a text; loops stay as they are. */
sf_graph *test_step_text(const char *text);

/* The nth node of that op at the top of a graph, from 0. */
const sf_node *test_node(const sf_graph *graph, sf_opcode code, int nth);

/* The plan, or NULL and the status and the first message. Pins end with NULL; mesh, recipe and pins may be
 * NULL. */
typedef struct test_refusal {
    sf_status status;
    char text[1000];
} test_refusal;
sf_plan *test_pin(const sf_graph *graph, const char *recipe, int ranks, const char *mesh,
                  const char *const *pins, test_refusal *refusal);

/* Fails the test where there is none. */
sf_plan *test_plan(const sf_graph *graph, const char *recipe, int ranks, const char *mesh,
                   const char *const *pins);
sf_local *test_local(const sf_graph *graph, const sf_plan *plan, int rank);

/* sf_plan_recompute by the text of `how`, or NULL. */
sf_status test_recompute(const sf_graph *graph, sf_plan *plan, const char *how, sf_diag *diag);

/* Collective `at` of a local graph, or NULL past the last. */
sf_node *test_collective(const sf_local *local, int at);

/* Whether text of `kind` of refusal is there. */
#define assert_says(refusal, kind, part)                                                           \
    do {                                                                                           \
        if (!strstr((refusal).text, (part)))                                                       \
            fail_msg("\"%s\" lacks \"%s\"", (refusal).text, (part));                               \
        assert_int_equal((refusal).status, (kind));                                                \
    } while (0)

#endif
