/* How fast the vector kernels are on a run in the first cache, for every set of instructions.
 *
 *     vec_bench [--json] [COUNT]
 *
 * In nanoseconds per element; beside functions of floats stands what a loop over libm's takes.
 */
#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "run/vec/vec.h"

enum { MOST = 4096, MOST_SETS = 4 };
static alignas(64) char dst[MOST * 8], a[MOST * 8], b[MOST * 8], c[MOST * 8];

/* One call of what is measured. */
struct task {
    const char *name;
    sf_vop op;
    sf_vfold fold;
    sf_dtype load, store, round;
    enum { OP, FOLD, LOAD, STORE, ROUND, LIBM } kind;
    sf_vclass class;
    float (*libm)(float);
};

static void call(const sf_vec *set, const struct task *task, int64_t count)
{
    switch (task->kind) {
    case OP:
        set->ops[task->op][task->class](dst, a, b, c, count);
        break;
    case FOLD:
        set->folds[task->fold][task->class](dst, a, count);
        break;
    case LOAD:
        set->loads[task->load](dst, a, 1, count);
        break;
    case STORE:
        set->stores[task->store](dst, 1, a, count);
        break;
    case ROUND:
        set->round[task->round](dst, a, NULL, NULL, count);
        break;
    case LIBM:
        for (int64_t i = 0; i < count; i++)
            ((float *)(void *)dst)[i] = task->libm(((float *)(void *)a)[i]);
        break;
    }
}

/* The best of several rounds of about a millisecond. */
static double measure(const sf_vec *set, const struct task *task, int64_t count)
{
    double best = 1e9;
    int calls = 1;
    for (int round = 0; round < 12;) {
        double start = sf_now();
        for (int i = 0; i < calls; i++)
            call(set, task, count);
        double seconds = sf_now() - start;
        if (seconds < 5e-4) {
            calls *= 2;
            continue;
        }
        double each = seconds * 1e9 / calls / (double)count;
        best = each < best ? each : best;
        round++;
    }
    return best;
}

static float logistic_libm(float x)
{
    return 1 / (1 + expf(-x));
}

static float rsqrt_libm(float x)
{
    return 1 / sqrtf(x);
}

static float pow_libm(float x)
{
    return powf(x, 2.5f);
}

static float max_libm(float x)
{
    return fmaxf(x, 0.5f);
}

/* Ordinary numbers of the class in all operands. */
static void fill(sf_vclass class)
{
    for (int i = 0; i < MOST; i++) {
        double x = 0.1 + (double)(i * 37 % 1000) / 200, y = 0.2 + (double)(i * 53 % 1000) / 400;
        switch (class) {
        case SF_VF32:
            ((float *)(void *)a)[i] = (float)x;
            ((float *)(void *)b)[i] = (float)y;
            ((float *)(void *)c)[i] = (float)(x - y);
            break;
        case SF_VF64:
            ((double *)(void *)a)[i] = x;
            ((double *)(void *)b)[i] = y;
            ((double *)(void *)c)[i] = x - y;
            break;
        case SF_VI32:
        case SF_VI64:
        case SF_VCLASS_COUNT:
            ((int32_t *)(void *)a)[i] = i * 37 % 1000;
            ((int32_t *)(void *)b)[i] = 1 + i * 53 % 100;
            ((int32_t *)(void *)c)[i] = i;
            break;
        }
    }
}

#define F32(id, libm)                                                                              \
    {                                                                                              \
#id, SF_V##id, 0, 0, 0, 0, OP, SF_VF32, libm                                               \
    }
#define I32(id)                                                                                    \
    {                                                                                              \
        "i32 " #id, SF_V##id, 0, 0, 0, 0, OP, SF_VI32, NULL                                        \
    }
#define SUM_UP(id)                                                                                 \
    {                                                                                              \
        "fold " #id, 0, SF_VFOLD_##id, 0, 0, 0, FOLD, SF_VF32, NULL                                \
    }
#define LOADED(id)                                                                                 \
    {                                                                                              \
        "load " #id, 0, 0, SF_##id, 0, 0, LOAD, SF_VF32, NULL                                      \
    }
#define STORED(id)                                                                                 \
    {                                                                                              \
        "store " #id, 0, 0, 0, SF_##id, 0, STORE, SF_VF32, NULL                                    \
    }
#define ROUNDED(id)                                                                                \
    {                                                                                              \
        "round " #id, 0, 0, 0, 0, SF_##id, ROUND, SF_VF32, NULL                                    \
    }

static const struct task tasks[] = {
    F32(EXP, expf),
    F32(EXPM1, expm1f),
    F32(LOG, logf),
    F32(LOG1P, log1pf),
    F32(TANH, tanhf),
    F32(ERF, erff),
    F32(LOGISTIC, logistic_libm),
    F32(SIN, sinf),
    F32(COS, cosf),
    F32(TAN, tanf),
    F32(POW, pow_libm),
    F32(CBRT, cbrtf),
    F32(SQRT, sqrtf),
    F32(RSQRT, rsqrt_libm),
    F32(ADD, NULL),
    F32(MUL, NULL),
    F32(FMA, NULL),
    F32(DIV, NULL),
    F32(MAX, max_libm),
    F32(FLOOR, floorf),
    F32(ROUND_AFZ, roundf),
    F32(LT, NULL),
    SUM_UP(SUM),
    SUM_UP(MAX),
    SUM_UP(PROD),
    ROUNDED(BF16),
    ROUNDED(F16),
    LOADED(F32),
    LOADED(BF16),
    LOADED(F16),
    LOADED(PRED),
    LOADED(F8E4M3FN),
    STORED(F32),
    STORED(BF16),
    STORED(F16),
    STORED(PRED),
    I32(ADD),
    I32(DIV),
    I32(REM),
    I32(UDIV),
    I32(SHL),
    I32(SELECT),
};

int main(int argc, char **argv)
{
    int json = argc > 1 && strcmp(argv[1], "--json") == 0;
    int64_t count = argc > 1 + json ? strtoll(argv[1 + json], NULL, 10) : 1024;
    if (count < 1 || count > MOST) {
        fprintf(stderr, "usage: vec_bench [--json] [COUNT of 1 to %d]\n", MOST);
        return 2;
    }
    if (!json) {
        printf("%-14s", "ns/element");
        for (int s = 0; sf_vec_nth(s); s++)
            printf(" %8s", sf_vec_nth(s)->name);
        printf(" %8s  %s\n", "libm", "libm / best");
    }
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        struct task task = tasks[i];
        double times[MOST_SETS] = {0}, libm = 0;
        fill(task.class);
        for (int s = 0; s < MOST_SETS && sf_vec_nth(s); s++)
            times[s] = measure(sf_vec_nth(s), &task, count);
        if (task.libm) {
            task.kind = LIBM;
            libm = measure(NULL, &task, count);
        }
        printf(json ? "{\"kernel\": \"%s\"" : "%-14s", task.name);
        for (int s = 0; s < MOST_SETS && sf_vec_nth(s); s++)
            if (json)
                printf(", \"%s\": %.4f", sf_vec_nth(s)->name, times[s]);
            else
                printf(" %8.3f", times[s]);
        if (json)
            printf(libm > 0 ? ", \"libm\": %.4f}\n" : "}\n", libm);
        else if (libm > 0)
            printf(" %8.3f  %.1f\n", libm, libm / times[0]);
        else
            printf("\n");
        fflush(stdout);
    }
    return 0;
}
