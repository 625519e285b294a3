/* The instruction sets that kernels are compiled for: which of them this processor and its system let
 * us use, and which the user allows.
 *
 * SHEAF_VEC=NAME in the environment says: nothing better than that. Kinds of kernels that have none for
 * that very set take their next best, so SHEAF_VEC=amx leaves loops with AVX-512.
 */
#ifndef SF_RUN_VEC_ISA_H
#define SF_RUN_VEC_ISA_H

#include <stdbool.h>

#include "base/diag.h"

/* The better ones later. Each has the instructions of those before it, except that SVE is compiled
 * for one width, so that a process has one of the two at most, and that SVE without BF16 does not
 * have those of NEON_BF16. */
typedef enum sf_isa {
    SF_ISA_BASE, /* the baseline of the architecture: "base", or "neon" on aarch64 */
#if defined(__x86_64__)
    SF_ISA_AVX2,        /* and FMA */
    SF_ISA_AVX512,      /* F, BW, DQ, VL */
    SF_ISA_AVX512_BF16, /* products of bf16, two at a time */
    SF_ISA_AMX,         /* products of tiles of bf16 */
#elif defined(__aarch64__)
    SF_ISA_NEON_BF16, /* BFMMLA: products of 2x4 by 4x2 tiles of bf16 */
    SF_ISA_SVE256,    /* SVE where vectors have this width, no other */
    SF_ISA_SVE256_BF16,
    SF_ISA_SVE512,
    SF_ISA_SVE512_BF16,
#endif
    SF_ISA_COUNT
} sf_isa;

const char *sf_isa_name(sf_isa isa);

/* Whether the processor has it, and the build has kernels for it. The first call for AMX requests
 * it from the system, once for the whole process (from then on alternate signal stacks need to be a
 * little larger); the system may refuse. The width of SVE is that of the first calling thread;
 * threads that it starts inherit it. */
bool sf_isa_has(sf_isa isa);

/* Whether the processor has it and SHEAF_VEC, read at every call, allows it. A name that sf_isa_check
 * refuses allows everything. AVX512_BF16 on Intel's processors, where floats are faster, wants to be
 * named. */
bool sf_isa_allowed(sf_isa isa);

/* Fails where SHEAF_VEC names no set, or one that is not there. */
sf_status sf_isa_check(sf_diag *diag);

#endif
