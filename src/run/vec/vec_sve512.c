/* The vector kernels with SVE of 512 bits. */
#include "run/vec/set.h"

#if defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS == 512
#define SET_NAME "sve512"
#include "run/vec/kernels.h"

const sf_vec *sf_vec_set_sve512(void)
{
    return &set;
}
#else
const sf_vec *sf_vec_set_sve512(void)
{
    return NULL;
}
#endif
