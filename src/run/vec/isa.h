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

/* The better ones later. Each has what those before it have, except that SVE is compiled for one width,
 * so that a process has one of the two at most, and that SVE without BF16 has not what NEON_BF16 has. */
typedef enum sf_isa {
    SF_ISA_BASE, /* what every processor of the architecture has: "base", or "neon" on aarch64 */
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

/* Whether the processor has it, and the build has kernels for it. The first question about AMX asks the system for it, once for the whole
 * process (from then on it wants a little more room on alternate signal stacks); the system may refuse.
 * The width of SVE is that of the thread that asks first; those that it starts inherit it. */
bool sf_isa_has(sf_isa isa);

/* Whether the processor has it and SHEAF_VEC, read at every call, allows it. A name that sf_isa_check
 * refuses allows everything. AVX512_BF16 on Intel's processors, where floats are faster, wants to be
 * named. */
bool sf_isa_allowed(sf_isa isa);

/* Fails where SHEAF_VEC names no set, or one that is not there. */
sf_status sf_isa_check(sf_diag *diag);

#endif
