/* Which of the ways that cuBLASLt proposes for a product is the fastest: they are run on the product's own operands when it is first
 * run, and what was found is kept, in this process and with the kernels on disk (base/cache.h), so that every later run takes the
 * same and gives the same bits. Where nothing can be kept on disk, the library's first proposal is taken. */
#ifndef SF_RUN_CUDA_LT_CHOICE_H
#define SF_RUN_CUDA_LT_CHOICE_H

#include "run/cuda/library.h"

enum { SF_LT_WAYS = 12 };

/* Of one product. */
typedef struct sf_lt_choice {
    uint64_t key; /* the product, the library and the GPU */
    int count;
    lt_algorithm ways[SF_LT_WAYS]; /* the library's first one first */
    bool is_made;                  /* ways[0] is the one */
} sf_lt_choice;

/* What times ways: `run` puts way number `way` on the stream, and returns 0 where that goes. */
typedef struct sf_lt_trial {
    const sf_cuda_driver *driver;
    cu_stream stream;
    int (*run)(void *context, int way);
    void *context;
} sf_lt_trial;

/* Makes the choice, if it is not made. One thread of the process does that at a time. */
void sf_lt_choose(sf_lt_choice *choice, const sf_lt_trial *trial);

#endif
