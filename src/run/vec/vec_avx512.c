/* The vector kernels with AVX-512. */
#include "run/vec/set.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define SET_NAME "avx512"
#include "run/vec/kernels.h"

const sf_vec *sf_vec_set_avx512(void)
{
    return &set;
}
#else
const sf_vec *sf_vec_set_avx512(void)
{
    return NULL;
}
#endif
