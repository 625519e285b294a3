/* Builds with sanitizers, in which everything takes several times as long. */
#ifndef TEST_SUPPORT_SANITIZED_H
#define TEST_SUPPORT_SANITIZED_H

#include <stdbool.h>
#include <stdlib.h>

/* Whether this is one. A test that repeats itself for the sake of its numbers may then do so less often. */
static inline bool test_sanitized(void)
{
    const char *sanitizers = getenv("SHEAF_SANITIZE");
    return sanitizers && *sanitizers;
}

/* How often to repeat what is drawn at random. What sanitizers look for, a wrong access, is in the code, not in the numbers:
 * a quarter of the draws goes through the same code. */
static inline int test_rounds(int rounds)
{
    return test_sanitized() ? (rounds + 3) / 4 : rounds;
}

#endif
