/* Copies between memory spaces on the CPU engine: a program whose buffers come and go, at drawn places, computes the same
 * bits, step after step, whatever the link to the host is; and what does not fit is refused before it runs. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/machine.h"
#include "base/mem.h"
#include "prog/check_program.h"
#include "prog/memory_spaces.h"
#include "run/cpu/cpu_target.h"
#include "sheaf/sheaf.h"
#include "support/moves.h"
#include "support/programs.h"
#include "support/run.h"

enum { STEPS = 3 };

static sf_engine *open_on(const sf_program *p, sf_engine_options options)
{
    sf_diag *diag = sf_diag_new();
    sf_engine *engine;
    options.threads = 2;
    if (sf_engine_open(p, &options, diag, &engine) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return engine;
}

/* Small floats, and integers that are 0 or 1, so that they are indices of something. */
static void fill_argument(sf_engine *engine, uint32_t index)
{
    sf_tensor t = test_argument(engine, index);
    int64_t count = sf_type_bytes(t.type) / sf_dtype_get(t.type->dtype)->bytes;
    test_random random = {.key = index + 1};
    if (t.type->dtype == SF_F32) {
        for (int64_t i = 0; i < count; i++)
            ((float *)t.data)[i] = (float)test_draw(&random, -100, 100) / 100;
        return;
    }
    memset(t.data, 0, (size_t)sf_type_bytes(t.type));
}

static void expect_same_steps(const char *what, const sf_program *plain, const sf_program *moved,
                              sf_host_link link)
{
    sf_engine *a = open_on(plain, (sf_engine_options){0});
    sf_engine *b = open_on(moved, (sf_engine_options){.host_link = link});
    sf_diag *diag = sf_diag_new();
    for (uint32_t i = 0; i < plain->narguments; i++) {
        fill_argument(a, i);
        fill_argument(b, i);
    }
    for (int step = 0; step < STEPS; step++) {
        assert_int_equal(sf_engine_step(a, diag), SF_OK);
        assert_int_equal(sf_engine_step(b, diag), SF_OK);
        for (uint32_t r = 0; r < plain->nresults; r++) {
            sf_tensor x = test_result(a, r), y = test_result(b, r);
            if (memcmp(x.data, y.data, (size_t)sf_type_bytes(x.type)) != 0)
                fail_msg("%s: result %u differs in step %d", what, r, step);
        }
        for (uint32_t i = 0; i < plain->narguments; i++) {
            sf_tensor x = test_argument(a, i), y = test_argument(b, i);
            if (memcmp(x.data, y.data, (size_t)sf_type_bytes(x.type)) != 0)
                fail_msg("%s: argument %u differs after step %d", what, i, step);
        }
    }
    sf_diag_free(diag);
    sf_engine_free(a);
    sf_engine_free(b);
}

typedef struct moving {
    test_random random;
    int moves;
} moving;

static void run_moved(void *context, const char *what, const sf_program *program,
                      const sf_program *other)
{
    (void)other;
    moving *m = context;
    for (int round = 0; round < 2; round++) {
        test_copy copy;
        test_copy_program(program, &copy);
        m->moves += test_move_buffers(&copy.p, &m->random);
        sf_host_link link = {.bandwidth = round == 0 ? 0 : 1e9, .latency = 1e-5};
        expect_same_steps(what, program, &copy.p, link);
        test_copy_free(&copy);
    }
}

static void test_all_steps(void **state)
{
    (void)state;
    moving m = {.random = {.key = 9}};
    int programs = test_each_whole(&sf_target_cpu, run_moved, &m);
    print_message("%d moves in %d programs\n", m.moves, programs);
    assert_true(m.moves > 300);
}

/* Four products in a row, and a state that the last of them changes. */
static const char chain_text[] =
    "func.func public @main(%x: tensor<64x64xf32>, %m: tensor<64x64xf32> {tf.aliasing_output = 1 : "
    "i32}) -> (tensor<64x64xf32>, tensor<64x64xf32>) {\n"
    "%a = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, "
    "tensor<64x64xf32>) -> tensor<64x64xf32>\n"
    "%b = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, "
    "tensor<64x64xf32>) -> tensor<64x64xf32>\n"
    "%c = stablehlo.dot_general %b, %a, contracting_dims = [1] x [0] : (tensor<64x64xf32>, "
    "tensor<64x64xf32>) -> tensor<64x64xf32>\n"
    "%n = stablehlo.add %c, %m : tensor<64x64xf32>\n"
    "return %c, %n : tensor<64x64xf32>, tensor<64x64xf32>\n}\n";

static bool changes_argument(const sf_program *p, uint32_t argument)
{
    return p->next[argument] != SF_NONE;
}

/* The state of the chain is away while the products run. */
static void test_lent_state(void **state)
{
    (void)state;
    sf_program *p = test_lower_text(chain_text, NULL);
    test_copy copy;
    test_copy_program(p, &copy);
    sf_program *q = &copy.p;
    uint32_t lent = changes_argument(p, 0) ? 0 : 1;
    assert_true(changes_argument(p, lent));
    int64_t bytes = p->buffers[lent].bytes, plain = sf_program_bytes(p);
    uint32_t host = sf_add_host_buffer(q, lent), last = (uint32_t)q->ninsts - 1;
    sf_insertion list[] = {{0, sf_copy_inst(q, lent, host)},
                           {0, sf_join_inst(q, &host, 1)},
                           {last, sf_copy_inst(q, host, lent)}};
    q->buffers[lent].is_lent = true;
    sf_insert_insts(q, list, 3);
    sf_program_settle(q);
    assert_int_equal(q->state_bytes, p->state_bytes - bytes);
    assert_int_equal(q->buffers[lent].ngaps, 1);
    assert_int_equal(q->buffers[lent].gaps[0].first, 1);
    assert_int_equal(sf_program_host_bytes(q), bytes);
    print_message("%" PRId64 " bytes, with the state away %" PRId64 "\n", plain,
                  sf_program_bytes(q));
    assert_true(sf_program_bytes(q) <= plain);
    expect_same_steps("chain", p, q, (sf_host_link){0});
    test_copy_free(&copy);
    sf_program_free(p);
}

/* What a shaped link takes is what a step takes that waits for it, and nothing where there is enough to do beside. */
static void test_shaped(void **state)
{
    (void)state;
    sf_program *p = test_lower_text(chain_text, NULL);
    test_copy copy;
    test_copy_program(p, &copy);
    sf_program *q = &copy.p;
    uint32_t lent = changes_argument(p, 0) ? 0 : 1;
    uint32_t host = sf_add_host_buffer(q, lent);
    sf_insertion list[] = {{0, sf_copy_inst(q, lent, host)},
                           {0, sf_join_inst(q, &host, 1)},
                           {0, sf_copy_inst(q, host, lent)}};
    q->buffers[lent].is_lent = true;
    sf_insert_insts(q, list, 3);
    sf_program_settle(q);
    double bytes = (double)p->buffers[lent].bytes;
    sf_engine *engine =
        open_on(q, (sf_engine_options){.host_link = {.bandwidth = bytes / 0.02, .latency = 0.005}});
    sf_diag *diag = sf_diag_new();
    double start = sf_now();
    assert_int_equal(sf_engine_step(engine, diag), SF_OK);
    assert_true(sf_now() - start >= 2 * 0.025);
    const sf_timing *t = sf_engine_timeline(engine, q);
    assert_true(t[0].end - t[0].start >= 0.025 && t[2].end - t[2].start >= 0.025);
    assert_true(t[2].start >= t[0].end && t[0].exposed >= 0.02);
    sf_diag_free(diag);
    sf_engine_free(engine);
    test_copy_free(&copy);
    sf_program_free(p);
}

static void test_refused(void **state)
{
    (void)state;
    sf_program *p = test_lower_text(chain_text, NULL);
    sf_diag *diag = sf_diag_new();
    sf_engine *engine;
    int64_t need = sf_program_bytes(p);
    sf_engine_options options = {.threads = 1, .device_memory = need};
    assert_int_equal(sf_engine_open(p, &options, diag, &engine), SF_OK);
    sf_engine_free(engine);
    options.device_memory--;
    assert_int_equal(sf_engine_open(p, &options, diag, &engine), SF_ENOMEM);
    const char *text = sf_diag_text(diag, 0);
    print_message("%s\n", text);
    assert_non_null(strstr(text, "at instruction"));
    assert_non_null(strstr(text, "of arguments"));
    sf_diag_free(diag);
    sf_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_steps),
        cmocka_unit_test(test_lent_state),
        cmocka_unit_test(test_shaped),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
