#include "run/vec.h"

#include <pthread.h>
#include <stdlib.h>

#include "run/vec/set.h"

/* The sets that this processor can run, the best first. */
enum { MOST_SETS = 3 };
static const sf_vec *sets[MOST_SETS];
static int nsets;
static const sf_vec *chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void add(bool can_run, const sf_vec *set)
{
    if (can_run && set != NULL)
        sets[nsets++] = set;
}

static void find_sets(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    add(avx2 && avx512, sf_vec_set_avx512());
    add(avx2, sf_vec_set_avx2());
#endif
    add(true, sf_vec_set_base());
    chosen = sets[0];
    const char *wanted = getenv("SHEAF_VEC");
    for (int i = 0; wanted != NULL && i < nsets; i++)
        if (strcmp(wanted, sets[i]->name) == 0)
            chosen = sets[i];
}

const sf_vec *sf_vec_get(void)
{
    pthread_once(&once, find_sets);
    return chosen;
}

const sf_vec *sf_vec_nth(int index)
{
    pthread_once(&once, find_sets);
    return index >= 0 && index < nsets ? sets[index] : NULL;
}
