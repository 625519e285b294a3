/* Fused launches, run by the emulator: bit by bit the results of single launches, and the oracle's;
 * the number of launches; and the time of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "prog/fused_launch.h"
#include "run/cuda/cuda_target.h"
#include "run/text/kernel_text.h"
#include "support/emulate.h"
#include "support/plans.h"
#include "support/programs.h"
#include "support/run.h"

/* Arguments of several shapes, so many of each, with a next value: of a vector element by element, of rows exponentials over their
 * sum. */
typedef struct kind {
    const char *type;
    int count;
    int rows; /* 0: a vector */
} kind;

static const kind kinds[] = {{"tensor<768xf32>", 250, 0}, {"tensor<100xf32>", 3, 0},
                             {"tensor<8x64xf32>", 3, 8},  {"tensor<6x64xf32>", 2, 6},
                             {"tensor<5x200xf32>", 2, 5}, {"tensor<1xf32>", 2, 0}};
enum { KINDS = sizeof kinds / sizeof *kinds, IN_TABLE = 240 };

/* Their types, one after the other; as arguments, with names, and with the result that each becomes. */
static void put_types(sf_buf *out, bool as_arguments)
{
    int at = 0;
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < kinds[k].count; i++, at++) {
            sf_buf_puts(out, at ? ", " : "");
            if (as_arguments)
                sf_buf_printf(out, "%%w%d: %s {tf.aliasing_output = %d : i32}", at, kinds[k].type,
                              at);
            else
                sf_buf_puts(out, kinds[k].type);
        }
}

static void put_update(sf_buf *out, const kind *k, int at)
{
    const char *type = k->type;
    if (k->rows == 0) {
        sf_buf_printf(out,
                      "%%a%d = stablehlo.multiply %%w%d, %%w%d : %s\n"
                      "%%n%d = stablehlo.subtract %%w%d, %%a%d : %s\n",
                      at, at, at, type, at, at, at, type);
        return;
    }
    sf_buf_printf(out,
                  "%%e%d = stablehlo.exponential %%w%d : %s\n"
                  "%%s%d = stablehlo.reduce(%%e%d init: %%zero) applies stablehlo.add across "
                  "dimensions = [1] : (%s, tensor<f32>) -> tensor<%dxf32>\n"
                  "%%b%d = stablehlo.broadcast_in_dim %%s%d, dims = [0] : (tensor<%dxf32>) -> %s\n"
                  "%%n%d = stablehlo.divide %%e%d, %%b%d : %s\n",
                  at, at, type, at, at, type, k->rows, at, at, k->rows, type, at, at, at, type);
}

static void step_text(sf_buf *out)
{
    int at = 0;
    sf_buf_puts(out, "func.func public @main(");
    put_types(out, true);
    sf_buf_puts(out, ") -> (");
    put_types(out, false);
    sf_buf_puts(out, ") {\n%zero = stablehlo.constant dense<0.0> : tensor<f32>\n");
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < kinds[k].count; i++)
            put_update(out, &kinds[k], at++);
    for (int i = 0; i < at; i++)
        sf_buf_printf(out, "%s%%n%d", i ? ", " : "return ", i);
    sf_buf_puts(out, " : ");
    put_types(out, false);
    sf_buf_puts(out, "\n}\n");
}

static sf_engine *open_and_run(const sf_program *p, int steps)
{
    sf_engine *engine = NULL;
    assert_int_equal(sf_engine_open(p, &(sf_engine_options){.threads = 1}, NULL, &engine), SF_OK);
    for (uint32_t a = 0; a < p->narguments; a++) {
        sf_tensor tensor = test_argument(engine, a);
        for (int64_t i = 0; i < tensor.type->count; i++)
            ((float *)tensor.data)[i] = (float)((i * 29 + a * 17) % 103) / 64.0F - 0.5F;
    }
    for (int s = 0; s < steps; s++)
        assert_int_equal(sf_engine_step(engine, NULL), SF_OK);
    return engine;
}

static void test_same_bits(void **state)
{
    (void)state;
    sf_buf text = {0};
    step_text(&text);
    sf_target alone = sf_target_cuda;
    alone.small_bytes = 0;
    sf_program *p = test_lower_text(text.text, &sf_target_cuda),
               *q = test_lower_text(text.text, &alone);
    sf_engine *x = open_and_run(p, 3), *y = open_and_run(q, 3);
    for (uint32_t r = 0; r < p->nresults; r++) {
        sf_tensor got = test_result(x, r), want = test_result(y, r);
        assert_memory_equal(got.data, want.data, (size_t)want.type->count * sizeof(float));
    }
    sf_engine_free(x);
    sf_engine_free(y);
    sf_program_free(p);
    sf_program_free(q);
    test_as_oracle(text.text, &sf_target_cuda, "small loops");
    sf_buf_free(&text);
}

/* Tables have room for 480 pointers, two for each of these, and blocks of one kernel have as many threads. */
static void test_launches(void **state)
{
    (void)state;
    sf_buf text = {0};
    sf_arena arena = {0};
    sf_kernels kernels = {0};
    step_text(&text);
    sf_program *p = test_lower_text(text.text, &sf_target_cuda);
    sf_code **codes = SF_ARRAY(&arena, p->ninsts, sf_code *);
    const uint32_t *firsts = sf_fused_launches_of(p, NULL, &arena);
    uint32_t together = 0;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *unknown = NULL;
        codes[i] = SF_NEW(&arena, sf_code);
        sf_write_inst(&kernels, &arena, &p->insts[i], false, codes[i], &unknown);
        assert_int_equal(firsts[i], 0);
    }
    sf_fused_launch *fused_launches;
    size_t count =
        sf_write_fused_launches(&kernels, &arena, codes, (uint32_t)p->ninsts, &fused_launches);
    assert_int_equal(count, 5); /* 2 of 256 threads, one of 64, and 2 of 32, which share memory */
    for (size_t b = 0; b < count; b++) {
        uint32_t pointers = 0;
        int64_t blocks = 0;
        for (uint32_t i = 0; i < fused_launches[b].count; i++) {
            assert_int_equal(fused_launches[b].launches[i].threads,
                             fused_launches[b].launch.threads);
            pointers += fused_launches[b].launches[i].kernel->nparams;
            blocks += fused_launches[b].launches[i].blocks;
        }
        assert_int_equal(fused_launches[b].launch.kernel->ntable, pointers);
        assert_int_equal(fused_launches[b].launch.blocks, blocks);
        assert_true(pointers <= 2 * IN_TABLE);
        const char *shared = strstr(fused_launches[b].launch.kernel->text, "SHARED");
        assert_true(!shared || !strstr(shared + 1, "SHARED"));
        together += fused_launches[b].count;
    }
    assert_int_equal(together, p->ninsts);
    sf_kernels_free(&kernels);
    sf_arena_free(&arena);
    sf_program_free(p);
    sf_buf_free(&text);
}

/* Those of one launch have parts of its time, by their bytes. */
static void test_timings(void **state)
{
    (void)state;
    sf_buf text = {0};
    step_text(&text);
    sf_program *p = test_lower_text(text.text, &sf_target_cuda);
    sf_engine *engine = open_and_run(p, 2);
    const sf_timing *timings = sf_engine_timeline(engine, p);
    double all = 0, rate = 0;
    int vectors = 0;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        double seconds = timings[i].end - timings[i].start;
        all = timings[i].end > all ? timings[i].end : all;
        assert_true(seconds > 0);
        if (p->insts[i].out[0].rank > 1)
            continue;
        double one = seconds / sf_inst_touched(&p->insts[i]);
        rate = vectors++ % IN_TABLE ? rate : one;
        assert_true(one > 0.99 * rate && one < 1.01 * rate);
    }
    assert_int_equal(vectors, 255);
    assert_true(all > 0);
    sf_engine_free(engine);
    sf_program_free(p);
    sf_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_timings),
    };
    test_emulate_gpu();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
