#include "run/vec/vec.h"

#include <pthread.h>

#include "run/vec/isa.h"
#include "run/vec/set.h"

/* The sets that this processor can run, the best first. */
enum { MOST_SETS = 3 };
static const sf_vec *sets[MOST_SETS];
static int nsets;
static const sf_vec *chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void add_set(sf_isa isa, const sf_vec *set)
{
    if (set == NULL || !sf_isa_has(isa))
        return;
    sets[nsets++] = set;
    if (chosen == NULL && sf_isa_allowed(isa))
        chosen = set;
}

static void find_sets(void)
{
#if defined(__x86_64__)
    add_set(SF_ISA_AVX512, sf_vec_set_avx512());
    add_set(SF_ISA_AVX2, sf_vec_set_avx2());
#elif defined(__aarch64__)
    add_set(SF_ISA_SVE512, sf_vec_set_sve512());
    add_set(SF_ISA_SVE256, sf_vec_set_sve256());
#endif
    add_set(SF_ISA_BASE, sf_vec_set_base());
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
