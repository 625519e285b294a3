#include "run/vec/isa.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

static const char *const names[SF_ISA_COUNT] = {
#if defined(__x86_64__)
    [SF_ISA_BASE] = "base",     [SF_ISA_AVX2] = "avx2",
    [SF_ISA_AVX512] = "avx512", [SF_ISA_AVX512_BF16] = "avx512_bf16",
    [SF_ISA_AMX] = "amx",
#elif defined(__aarch64__)
    [SF_ISA_BASE] = "neon",     [SF_ISA_NEON_BF16] = "neon_bf16",
    [SF_ISA_SVE256] = "sve256", [SF_ISA_SVE256_BF16] = "sve256_bf16",
    [SF_ISA_SVE512] = "sve512", [SF_ISA_SVE512_BF16] = "sve512_bf16",
#else
    [SF_ISA_BASE] = "base",
#endif
};

static bool has[SF_ISA_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

#if defined(__x86_64__)
/* The state of tiles is 8 KB a thread, which Linux gives only on request. */
static bool ask_for_tiles(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18, TILES = 1 << 24, BF16 = 1 << 22 };
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & TILES) || !(d & BF16))
        return false;
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}
#elif defined(__aarch64__)
/* The width of vectors of SVE; 0 where there are none, or the compiler could make no kernels for them. */
static int sve_bits(void)
{
#if defined(SF_HAVE_SVE)
    enum { SVE = 1 << 22 /* HWCAP_SVE */, GET = 51 /* PR_SVE_GET_VL */, BYTES = 0xffff };
    int length = getauxval(AT_HWCAP) & SVE ? prctl(GET) : -1;
    return length < 0 ? 0 : (length & BYTES) * 8;
#else
    return 0;
#endif
}
#endif

static void look(void)
{
    has[SF_ISA_BASE] = true;
#if defined(__x86_64__)
    __builtin_cpu_init();
    has[SF_ISA_AVX2] = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    has[SF_ISA_AVX512] = has[SF_ISA_AVX2] && __builtin_cpu_supports("avx512f") &&
                         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                         __builtin_cpu_supports("avx512vl");
    has[SF_ISA_AVX512_BF16] = has[SF_ISA_AVX512] && __builtin_cpu_supports("avx512bf16");
    has[SF_ISA_AMX] = has[SF_ISA_AVX512_BF16] && ask_for_tiles();
#elif defined(__aarch64__)
    enum { BF16 = 1 << 14 }; /* HWCAP2_BF16 */
    has[SF_ISA_NEON_BF16] = getauxval(AT_HWCAP2) & BF16;
    has[SF_ISA_SVE256] = sve_bits() == 256;
    has[SF_ISA_SVE256_BF16] = has[SF_ISA_SVE256] && has[SF_ISA_NEON_BF16];
    has[SF_ISA_SVE512] = sve_bits() == 512;
    has[SF_ISA_SVE512_BF16] = has[SF_ISA_SVE512] && has[SF_ISA_NEON_BF16];
#endif
}

const char *sf_isa_name(sf_isa isa)
{
    return names[isa];
}

bool sf_isa_has(sf_isa isa)
{
    pthread_once(&once, look);
    return has[isa];
}

/* If the processor has it, but is faster without: on Intel's processors, AVX512-BF16 does half as
 * many products in a second as floats do. */
static bool passed_over(sf_isa isa)
{
#if defined(__x86_64__)
    return isa == SF_ISA_AVX512_BF16 && __builtin_cpu_is("intel");
#else
    (void)isa;
    return false;
#endif
}

/* The set that SHEAF_VEC names, or SF_ISA_COUNT. */
static int named(const char *name)
{
    int isa = 0;
    while (isa < SF_ISA_COUNT && strcmp(name, names[isa]) != 0)
        isa++;
    return isa;
}

bool sf_isa_allowed(sf_isa isa)
{
    const char *wanted = getenv("SHEAF_VEC");
    int most = wanted ? named(wanted) : SF_ISA_COUNT;
    bool usable = most < SF_ISA_COUNT && sf_isa_has((sf_isa)most);
    if (!sf_isa_has(isa) || (usable && (int)isa > most))
        return false;
    return (usable && (int)isa == most) || !passed_over(isa);
}

sf_status sf_isa_check(sf_diag *diag)
{
    const char *wanted = getenv("SHEAF_VEC");
    if (!wanted)
        return SF_OK;
    int isa = named(wanted);
    if (isa < SF_ISA_COUNT && sf_isa_has((sf_isa)isa))
        return SF_OK;
    char list[128] = "";
    for (int i = 0; i < SF_ISA_COUNT; i++)
        if (sf_isa_has((sf_isa)i)) {
            strncat(list, list[0] ? ", " : "", sizeof list - strlen(list) - 1);
            strncat(list, names[i], sizeof list - strlen(list) - 1);
        }
    sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "SHEAF_VEC is '%s', which %s", wanted,
            isa < SF_ISA_COUNT ? "this processor, or this build, has not"
                               : "is no instruction set");
    sf_hint(diag, "this processor has %s", list);
    return SF_EUSAGE;
}
