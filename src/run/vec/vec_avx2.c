/* The vector kernels with AVX2. */
#include "run/vec/set.h"

#if defined(__AVX2__) && defined(__F16C__)
#define SET_NAME "avx2"
#include "run/vec/kernels.h"

const sf_vec *sf_vec_set_avx2(void)
{
    return &set;
}
#else
const sf_vec *sf_vec_set_avx2(void)
{
    return NULL;
}
#endif
