/* Which kernels this processor can run. */
#include "run/gemm_kernel.h"

#include <stdlib.h>
#include <string.h>

#include "run/gemm_sets.h"

const sf_gemm_set *sf_gemm_set_nth(int index)
{
    const sf_gemm_set *sets[4];
    int count = 0;
#if defined(__x86_64__)
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2 && __builtin_cpu_supports("avx512f"))
        sets[count++] = &sf_gemm_avx512;
    if (avx2)
        sets[count++] = &sf_gemm_avx2;
#endif
    sets[count++] = &sf_gemm_base;
    return index < count ? sets[index] : NULL;
}

const sf_gemm_set *sf_gemm_set_get(void)
{
    const char *wanted = getenv("SHEAF_VEC");
    const sf_gemm_set *set;
    for (int i = 0; wanted && (set = sf_gemm_set_nth(i)); i++)
        if (strcmp(set->name, wanted) == 0)
            return set;
    return sf_gemm_set_nth(0);
}

const sf_gemm_type *sf_gemm_type_for(const sf_gemm_set *set, sf_dtype dtype)
{
    if (dtype == SF_F64)
        return &set->f64;
    return dtype == SF_F32 || dtype == SF_BF16 || dtype == SF_F16 ? &set->f32 : NULL;
}
