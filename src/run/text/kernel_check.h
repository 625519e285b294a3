/* Kernels that check each access to memory (SHEAF_CUDA_CHECK=1): what is outside of a parameter's own bytes is noted, not touched.
 *
 * The body of such a kernel begins with the bounds of each pointer, `p0_low` and `p0_high` in bytes after p0; AT and SOME of
 * cu/kernel_base.cu compare with these. The last parameter is where the first mistake is noted, an sf_fault in memory that both
 * the host and the device reach. */
#ifndef SF_RUN_TEXT_KERNEL_CHECK_H
#define SF_RUN_TEXT_KERNEL_CHECK_H

#include "run/text/kernel_text.h"

/* As cu/kernel_base.cu declares it. */
typedef struct sf_fault {
    int32_t is_noted, param;
    int64_t first, bytes, low, high, block;
    int32_t thread;
    int32_t own; /* where the launch has its parameters in the table of a fused one */
} sf_fault;

enum { SF_FAULT_BYTES = 1 << 16 }; /* of an sf_fault, and of what is touched instead */

/* The bytes of a parameter from its pointer on, from *low to before *high; false where they are not known. */
bool sf_param_bounds(const sf_writer *w, const sf_param *param, int64_t *low, int64_t *high);

/* Body and parameters of a kernel become those of one that checks. */
void sf_write_checks(sf_writer *w);

/* The bounds of another name for parameter `param`; -1: for none. */
void sf_put_bounds_of(sf_buf *out, const char *name, int param);

#endif
