/* Which kernels this processor can run. */
#include "run/gemm/gemm_kernel.h"

#include "run/gemm/gemm_isa_list.h"

/* The best first. */
static const sf_gemm_set sets[] = {
#if defined(__x86_64__)
    {SF_ISA_AMX, &sf_gemm_avx512_f32, &sf_gemm_avx512_f64, &sf_gemm_amx_bf16},
    {SF_ISA_AVX512_BF16, &sf_gemm_avx512_f32, &sf_gemm_avx512_f64, &sf_gemm_avx512_bf16},
    {SF_ISA_AVX512, &sf_gemm_avx512_f32, &sf_gemm_avx512_f64, NULL},
    {SF_ISA_AVX2, &sf_gemm_avx2_f32, &sf_gemm_avx2_f64, NULL},
#elif defined(__aarch64__)
#if defined(SF_HAVE_SVE)
    {SF_ISA_SVE512_BF16, &sf_gemm_sve512_f32, &sf_gemm_sve512_f64, &sf_gemm_neon_bf16},
    {SF_ISA_SVE512, &sf_gemm_sve512_f32, &sf_gemm_sve512_f64, NULL},
    {SF_ISA_SVE256_BF16, &sf_gemm_sve256_f32, &sf_gemm_sve256_f64, &sf_gemm_neon_bf16},
    {SF_ISA_SVE256, &sf_gemm_sve256_f32, &sf_gemm_sve256_f64, NULL},
#endif
    {SF_ISA_NEON_BF16, &sf_gemm_base_f32, &sf_gemm_base_f64, &sf_gemm_neon_bf16},
#endif
    {SF_ISA_BASE, &sf_gemm_base_f32, &sf_gemm_base_f64, NULL},
};
enum { SETS = sizeof sets / sizeof *sets };

const sf_gemm_set *sf_gemm_set_nth(int index)
{
    for (int i = 0; i < SETS; i++)
        if (sf_isa_has(sets[i].isa) && index-- == 0)
            return &sets[i];
    return NULL;
}

const sf_gemm_set *sf_gemm_set_get(void)
{
    int i = 0;
    while (i < SETS - 1 && !sf_isa_allowed(sets[i].isa))
        i++;
    return &sets[i];
}

const sf_gemm_type *sf_gemm_type_for(const sf_gemm_set *set, sf_dtype a, sf_dtype b)
{
    if (a == SF_F64)
        return set->f64;
    return set->bf16 && a == SF_BF16 && b == SF_BF16 ? set->bf16 : set->f32;
}
