/* Comparing as `sheaf verify` does: with noise, where that is needed. */
#ifndef TEST_SUPPORT_JUDGE_H
#define TEST_SUPPORT_JUDGE_H

#include "api/verify/compare.h"

/* As sf_compare. */
int test_judge(sf_comparison *comparison, sf_arena *arena, sf_difference *out);

#endif
