/* The vector kernels with SVE of 256 bits. */
#include "run/vec/set.h"

#if defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS == 256
#define SET_NAME "sve256"
#include "run/vec/kernels.h"

const sf_vec *sf_vec_set_sve256(void)
{
    return &set;
}
#else
const sf_vec *sf_vec_set_sve256(void)
{
    return NULL;
}
#endif
