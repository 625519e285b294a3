/* Loops in threads: what each part does, against one thread and against the rule that says how many there are. */
#include "run/cpu/run_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

enum { ALIGN = 64, UNTOUCHED = 0x5a };

/* out = in + 1 + 2 + ... and, of the whole, the sums by columns. */
enum { MOST_STEPS = 24 };
typedef struct example {
    sf_loop loop;
    sf_loop_step steps[MOST_STEPS];
    sf_access accesses[3];
    bool is_wide[MOST_STEPS];
    float *in, *out, *sums;
    char *scratch;
    int64_t room;
} example;

static void add_constants(example *e, int constants)
{
    sf_loop_step *s = e->steps;
    *s++ = (sf_loop_step){.kind = SF_STEP_LOAD, .class = SF_VF32, .dtype = SF_F32};
    for (int i = 1; i <= constants; i++) {
        uint16_t at = (uint16_t)i;
        *s++ = (sf_loop_step){
            .kind = SF_STEP_CONSTANT, .class = SF_VF32, .dst = at, .constant.real = i};
        *s++ = (sf_loop_step){.kind = SF_STEP_OP, .op = SF_VADD, .class = SF_VF32, .b = at};
    }
    *s++ = (sf_loop_step){.kind = SF_STEP_STORE, .class = SF_VF32, .access = 1};
    *s++ =
        (sf_loop_step){.kind = SF_STEP_GATHER, .class = SF_VF32, .fold = SF_VFOLD_SUM, .access = 2};
    e->loop.nsteps = (uint32_t)(s - e->steps);
    e->loop.nregisters = (uint32_t)constants + 1;
}

static void open_example(example *e, int64_t rows, int64_t columns, int constants, int threads)
{
    *e = (example){0};
    e->loop = (sf_loop){.rank = 2,
                        .split = 1,
                        .dims = {rows, columns},
                        .rows = rows,
                        .columns = columns,
                        .steps = e->steps,
                        .is_wide = e->is_wide,
                        .naccesses = 3,
                        .accesses = e->accesses};
    e->accesses[0] = e->accesses[1] = (sf_access){.dtype = SF_F32, .strides = {columns, 1}};
    e->accesses[2] = (sf_access){.dtype = SF_F32, .view = 1, .strides = {0, 1}};
    add_constants(e, constants);
    e->room = sf_loop_scratch(&e->loop, threads);
    e->in = sf_alloc((size_t)(rows * columns) * sizeof(float));
    e->out = sf_alloc((size_t)(rows * columns) * sizeof(float));
    e->sums = sf_alloc((size_t)(columns + 16) * sizeof(float));
    e->scratch = sf_alloc((size_t)e->room + ALIGN);
    memset(e->scratch, UNTOUCHED, (size_t)e->room + ALIGN);
    for (int64_t i = 0; i < rows * columns; i++)
        e->in[i] = (float)(i % 7); /* sums of these are exact, in any order */
}

static void close_example(example *e)
{
    sf_free(e->in);
    sf_free(e->out);
    sf_free(e->sums);
    sf_free(e->scratch);
}

static void run_example(example *e, sf_threads *threads)
{
    char *in[] = {(char *)e->in}, *out[] = {(char *)e->out, (char *)e->sums};
    char *scratch = e->scratch + (ALIGN - (uintptr_t)e->scratch % ALIGN) % ALIGN;
    sf_loop_run(&e->loop, NULL, (sf_pointers){in, out}, scratch, threads);
}

/* Parts whose registers were written: the first constant comes after the register that is loaded. */
static int count_touched(const example *e, int parts)
{
    const char *scratch = e->scratch + (ALIGN - (uintptr_t)e->scratch % ALIGN) % ALIGN;
    sf_tiling t = sf_loop_tile(&e->loop);
    int touched = 0;
    for (int p = 0; p < parts; p++)
        touched += scratch[p * (e->room / parts) + t.register_bytes[0]] != UNTOUCHED;
    return touched;
}

static void check_example(const example *e, int constants)
{
    float more = (float)(constants * (constants + 1)) / 2;
    for (int64_t c = 0; c < e->loop.columns; c++) {
        float sum = 0;
        for (int64_t r = 0; r < e->loop.rows; r++) {
            float right = (float)((r * e->loop.columns + c) % 7) + more;
            assert_true(e->out[r * e->loop.columns + c] == right);
            sum += right;
        }
        assert_true(e->sums[c] == sum);
    }
}

static const struct {
    int64_t rows, columns;
    int constants;
} cases[] = {{1, 1, 1},       {1, 300, 1},  {1, 8192, 10}, {8, 5000, 1},
             {3, 20000, 2},   {1000, 1, 1}, {1000, 3, 4},  {64, 1024, 1},
             {700, 100, 10},  {2, 3, 10},   {1, 40000, 3}, {513, 127, 7},
             {1, 131072, 10}, {16, 512, 1}, {8, 98304, 1}, {5, 30001, 4}};

/* As many parts are set up as have something to do, and no more have than the rule says. */
static void test_parts(void **state)
{
    (void)state;
    for (int count = 1; count <= 16; count = 2 * count + 1) {
        sf_threads *threads = sf_threads_new(count);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            example e;
            open_example(&e, cases[i].rows, cases[i].columns, cases[i].constants, count);
            int64_t shares = sf_loop_shares(&e.loop), most = shares < count ? shares : count;
            run_example(&e, threads);
            check_example(&e, cases[i].constants);
            int parts = count_touched(&e, count);
            if (parts > most || parts < (most + 1) / 2)
                fail_msg("case %zu: %d parts of %d threads, not %d", i, parts, count, (int)most);
            run_example(&e, threads); /* on what is left of the first time */
            check_example(&e, cases[i].constants);
            close_example(&e);
        }
        sf_threads_free(threads);
    }
}

/* Nobody is woken for less than is worth it, and everybody for much. */
static void test_shares(void **state)
{
    (void)state;
    example e;
    open_example(&e, 1, 1024, 10, 1);
    assert_int_equal(sf_loop_shares(&e.loop), 1);
    close_example(&e);
    open_example(&e, 1, 8192, 10, 1);
    int64_t small = sf_loop_shares(&e.loop);
    assert_true(small > 1 && small < 16);
    close_example(&e);
    open_example(&e, 1, 1 << 20, 10, 1);
    assert_true(sf_loop_shares(&e.loop) >= 64);
    close_example(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_shares)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
