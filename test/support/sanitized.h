/* How much a test does. `make check` runs the short version of what takes long, `make nightly` the long one; builds with
 * sanitizers, in which everything takes several times as long, always run the short one. */
#ifndef TEST_SUPPORT_SANITIZED_H
#define TEST_SUPPORT_SANITIZED_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool test_sanitized(void)
{
    const char *sanitizers = getenv("SHEAF_SANITIZE");
    return sanitizers && *sanitizers;
}

/* Whether to run the short version: fewer steps, recipes or draws through the same code. */
static inline bool test_short(void)
{
    const char *nightly = getenv("SHEAF_NIGHTLY");
    return test_sanitized() || !(nightly && *nightly);
}

/* How often to repeat what is drawn at random. What sanitizers look for, a wrong access, is in the code, not in the numbers:
 * a quarter of the draws goes through the same code. */
static inline int test_rounds(int rounds)
{
    return test_short() ? (rounds + 3) / 4 : rounds;
}

#endif
