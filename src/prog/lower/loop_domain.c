/* The domain of a loop. */
#include <string.h>

#include "prog/lower/lowering.h"

/* Dimensions i and i + 1 can be walked by one stride in every access. */
static bool can_merge(const sf_loop *loop, int i)
{
    if (i + 1 == loop->split)
        return false;
    for (uint32_t j = 0; j < loop->naccesses; j++) {
        const sf_access *access = &loop->accesses[j];
        if (access->is_row && i >= loop->split)
            continue;
        if (sf_access_has_window(access, i) || sf_access_has_window(access, i + 1) ||
            access->strides[i] != access->strides[i + 1] * loop->dims[i + 1])
            return false;
    }
    return true;
}

static void merge_dims(sf_loop *loop)
{
    for (int i = 0; i + 1 < loop->rank;) {
        if (!can_merge(loop, i)) {
            i++;
            continue;
        }
        loop->dims[i] *= loop->dims[i + 1];
        loop->rank--;
        if (i + 1 < loop->split)
            loop->split--;
        memmove(&loop->dims[i + 1], &loop->dims[i + 2],
                (size_t)(loop->rank - i - 1) * sizeof *loop->dims);
        for (uint32_t j = 0; j < loop->naccesses; j++) {
            int64_t *strides = loop->accesses[j].strides;
            sf_window *windows = loop->accesses[j].windows;
            memmove(&strides[i], &strides[i + 1], (size_t)(loop->rank - i) * sizeof *strides);
            if (windows)
                memmove(&windows[i], &windows[i + 1], (size_t)(loop->rank - i) * sizeof *windows);
        }
    }
}

void count_domain(sf_loop *loop, bool has_split)
{
    if (!has_split)
        loop->split = -1;
    merge_dims(loop);
    if (!has_split)
        loop->split = loop->rank - 1;
    loop->rows = loop->columns = 1;
    for (int i = 0; i < loop->rank; i++)
        *(i < loop->split ? &loop->rows : &loop->columns) *= loop->dims[i];
}
