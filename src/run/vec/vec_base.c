/* The vector kernels with the instructions that every processor of the architecture has. */
#if defined(__aarch64__)
#define SET_NAME "neon"
#else
#define SET_NAME "base"
#endif
#include "run/vec/kernels.h"

const sf_vec *sf_vec_set_base(void)
{
    return &set;
}
