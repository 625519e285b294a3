/* The instruction sets that kernels are compiled for: which of them this processor and its system let
 * us use, and which the user allows.
 *
 * SHEAF_VEC=NAME in the environment says: nothing better than that. Kinds of kernels that have none for
 * that very set take their next best, so SHEAF_VEC=amx leaves loops with AVX-512.
 */
#ifndef SF_RUN_ISA_H
#define SF_RUN_ISA_H

#include <stdbool.h>

#include "base/diag.h"

/* Each has what those before it have. */
typedef enum sf_isa {
    SF_ISA_BASE, /* what every processor of the architecture has: "base", or "neon" on aarch64 */
#if defined(__x86_64__)
    SF_ISA_AVX2,        /* and FMA */
    SF_ISA_AVX512,      /* F, BW, DQ, VL */
    SF_ISA_AVX512_BF16, /* products of bf16, two at a time */
    SF_ISA_AMX,         /* products of tiles of bf16 */
#elif defined(__aarch64__)
    SF_ISA_NEON_BF16, /* BFMMLA: products of 2x4 by 4x2 tiles of bf16 */
#endif
    SF_ISA_COUNT
} sf_isa;

const char *sf_isa_name(sf_isa isa);

/* Whether the processor has it. The first question about AMX asks the system for it, once for the whole
 * process (from then on it wants a little more room on alternate signal stacks); the system may refuse. */
bool sf_isa_has(sf_isa isa);

/* Whether the processor has it and SHEAF_VEC, read at every call, allows it. A name that sf_isa_check
 * refuses allows everything. AVX512_BF16 on Intel's processors, where floats are faster, wants to be
 * named. */
bool sf_isa_allowed(sf_isa isa);

/* Fails where SHEAF_VEC names no set, or one that this processor has not. */
sf_status sf_isa_check(sf_diag *diag);

#endif
