/* The fastest algorithm that a library proposes for a product or a convolution: each is timed once,
 * and the choice is kept, in this process and with the kernels on disk (base/native/disk_cache.h),
 * so that every later run takes the same and gives the same bits. If no choice can be kept on disk,
 * the library's first proposal is taken. */
#ifndef SF_RUN_CUDA_ALGORITHM_CHOICE_H
#define SF_RUN_CUDA_ALGORITHM_CHOICE_H

#include "run/cuda/cuda_libraries.h"

enum { SF_MOST_WAYS = 12 };

/* Of one product or convolution. */
typedef struct sf_choice {
    uint64_t key; /* the work, the library and the GPU: the same ways, in the same order */
    int count;    /* of ways, the library's first one first */
    int way;      /* the one that is taken */
    bool is_made;
} sf_choice;

/* A timing of ways: `run` puts way number `way` on the stream, and returns 0 on success. */
typedef struct sf_trial {
    const sf_cuda_driver *driver;
    cu_stream stream;
    int (*run)(void *context, int way);
    void *context;
} sf_trial;

/* Makes the choice, if it is not made. One thread of the process does that at a time. */
void sf_choose(sf_choice *choice, const sf_trial *trial);

/* The part of keys that identifies the GPU and the version of a library. */
uint64_t sf_choice_machine(const sf_cuda_driver *driver, int ordinal,
                           int (*property)(int which, int *value));

#endif
