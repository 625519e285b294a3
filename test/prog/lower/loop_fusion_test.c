/* Recomputed and stored values of loops: a value that two loops need, because the second waits for
 * a sum over the first, is made twice if that takes few ops from little that is in memory in any
 * case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "run/cpu/cpu_target.h"
#include "sheaf/sheaf.h"
#include "support/programs.h"

#define TYPE "tensor<64x64xf32>"
enum { BYTES = 64 * 64 * 4 };

/* A value made from %x0 by `lines`, called %a; its sum; and the value less the sum. %p and %q are products. */
static sf_program *lower_twice(const char *lines, const sf_target *target)
{
    sf_buf text = {0};
    sf_buf_printf(
        &text,
        "func.func public @main(%%x0: " TYPE ", %%y: " TYPE ") -> " TYPE " {\n"
        "%%zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%%p = stablehlo.dot_general %%x0, %%y, contracting_dims = [1] x [0] : (" TYPE ", " TYPE
        ") -> " TYPE "\n"
        "%%q = stablehlo.dot_general %%x0, %%y, contracting_dims = [0] x [0] : (" TYPE ", " TYPE
        ") -> " TYPE "\n"
        "%s"
        "%%s = stablehlo.reduce(%%a init: %%zero) applies stablehlo.add across dimensions = [0, 1] "
        ": (" TYPE ", tensor<f32>) -> tensor<f32>\n"
        "%%b = stablehlo.broadcast_in_dim %%s, dims = [] : (tensor<f32>) -> " TYPE "\n"
        "%%r = stablehlo.subtract %%a, %%b : " TYPE "\nreturn %%r : " TYPE "\n}\n",
        lines);
    sf_program *p = test_lower_text(text.text, target);
    sf_buf_free(&text);
    return p;
}

/* Tensors that loops store. */
static int count_stored(const sf_program *p)
{
    int count = 0;
    for (size_t i = 0; i < p->ninsts; i++)
        for (uint32_t j = 0; p->insts[i].loop && j < p->insts[i].nout; j++)
            count += p->buffers[p->insts[i].out[j].buffer].bytes == BYTES &&
                     !(p->insts[i].kind != SF_INST_LOOP && j == 0);
    return count;
}

static int count_ops(const sf_program *p)
{
    int count = 0;
    for (size_t i = 0; i < p->ninsts; i++)
        for (uint32_t j = 0; p->insts[i].loop && j < p->insts[i].loop->nsteps; j++)
            count += p->insts[i].loop->steps[j].kind == SF_STEP_OP;
    return count;
}

/* %a after `count` ops, one after the other. */
static sf_program *lower_chain(int count, const char *op, bool is_unary, const sf_target *target)
{
    sf_buf lines = {0};
    for (int i = 0; i < count; i++) {
        char name[20];
        snprintf(name, sizeof name, i + 1 == count ? "a" : "x%d", i + 1);
        sf_buf_printf(&lines, "%%%s = stablehlo.%s %%x%d%s : " TYPE "\n", name, op, i,
                      is_unary ? "" : ", %y");
    }
    sf_program *p = lower_twice(lines.text, target);
    sf_buf_free(&lines);
    return p;
}

static void expect_chain(int count, const char *op, bool is_unary, const sf_target *target,
                         bool recomputed)
{
    sf_program *p = lower_chain(count, op, is_unary, target);
    int stored = count_stored(p), ops = count_ops(p);
    if (stored != (recomputed ? 1 : 2) || ops != (recomputed ? 2 * count : count) + 1)
        fail_msg("%d times %s: %d tensors stored, %d ops", count, op, stored, ops);
    sf_program_free(p);
}

/* As many ops, and as many functions, as the target says. */
static void test_limits(void **state)
{
    (void)state;
    const sf_target *cpu = &sf_target_cpu;
    expect_chain(1, "multiply", false, cpu, true);
    expect_chain(cpu->most_recomputed, "multiply", false, cpu, true);
    expect_chain(cpu->most_recomputed + 1, "multiply", false, cpu, false);
    expect_chain(cpu->most_functions + 1, "tanh", true, cpu, false);
    sf_target most = sf_target_cpu, none = sf_target_cpu, two = sf_target_cpu;
    two.most_functions = 2;
    expect_chain(2, "tanh", true, &two, true);
    expect_chain(3, "tanh", true, &two, false);
    most.most_recomputed = SF_MOST_RECOMPUTED;
    none.most_recomputed = 0;
    expect_chain(SF_MOST_RECOMPUTED, "multiply", false, &most, true);
    expect_chain(SF_MOST_RECOMPUTED + 1, "multiply", false, &most, false);
    expect_chain(1, "multiply", false, &none, false);
}

/* Its operands must not be larger than itself: they would live longer. Arguments live in any
 * case. */
static void test_leaves(void **state)
{
    (void)state;
    static const struct {
        const char *lines;
        bool recomputed;
    } cases[] = {
        {"%a = stablehlo.add %x0, %y : " TYPE "\n", true},
        {"%c = stablehlo.add %x0, %y : " TYPE "\n%a = stablehlo.multiply %c, %x0 : " TYPE "\n",
         true},
        {"%c = stablehlo.negate %p : " TYPE "\n%a = stablehlo.add %c, %q : " TYPE "\n", false},
        {"%c = stablehlo.multiply %q, %q : " TYPE "\n%a = stablehlo.add %c, %y : " TYPE "\n", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_program *p = lower_twice(cases[i].lines, NULL);
        if ((count_stored(p) == 1) != cases[i].recomputed)
            fail_msg("%s: %d tensors stored", cases[i].lines, count_stored(p));
        sf_program_free(p);
    }
}

/* Over all steps: less memory traffic than without recompute. */
typedef struct traffic {
    double bytes;
    int ops;
} traffic;

static void add_traffic(void *context, const char *what, const sf_program *p,
                        const sf_program *other)
{
    (void)what;
    (void)other;
    traffic *t = context;
    t->ops += count_ops(p);
    for (size_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        for (uint32_t j = 0; j < inst->nin; j++)
            t->bytes += (double)p->buffers[inst->in[j].buffer].bytes;
        for (uint32_t j = 0; j < inst->nout; j++)
            t->bytes += (double)p->buffers[inst->out[j].buffer].bytes;
    }
}

static void test_all_steps(void **state)
{
    (void)state;
    sf_target none = sf_target_cpu;
    traffic with = {0}, without = {0};
    none.most_recomputed = 0;
    test_each_whole(&sf_target_cpu, add_traffic, &with);
    test_each_whole(&none, add_traffic, &without);
    print_message("computing again: %.3f of the bytes, %.3f of the ops\n",
                  with.bytes / without.bytes, (double)with.ops / without.ops);
    assert_true(with.bytes < 0.99 * without.bytes);
    assert_true(with.ops > without.ops && with.ops < 1.5 * without.ops);
}

/* Chains ----------------------------------------------------------------------------------------- */

/* Long chains of values, of which none needs memory before its reader does, go into loops part by part. */
static void test_long_chains(void **state)
{
    (void)state;
    static const struct {
        const char *op, *of;
        int count;
    } cases[] = {
        {"add", ", %x : tensor<4x4xf32>", 1000000},
        {"optimization_barrier", " : tensor<4x4xf32>", 100000},
        {"reverse", ", dims = [0] : tensor<4x4xf32>", 100000},
        {"transpose", ", dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>", 100000},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        sf_buf text = {0};
        sf_buf_puts(&text, "func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {\n"
                           "%y0 = stablehlo.tanh %x : tensor<4x4xf32>\n");
        for (int i = 1; i < cases[c].count; i++) /* import undoes two reverses in a row */
            if (c > 0 && i % 2 == 0)
                sf_buf_printf(&text, "%%y%d = stablehlo.tanh %%y%d : tensor<4x4xf32>\n", i, i - 1);
            else
                sf_buf_printf(&text, "%%y%d = stablehlo.%s %%y%d%s\n", i, cases[c].op, i - 1,
                              cases[c].of);
        sf_buf_printf(&text, "return %%y%d : tensor<4x4xf32>\n}\n", cases[c].count - 1);
        sf_program *p = test_lower_text(text.text, &sf_target_cpu);
        int ops = count_ops(p);
        if (c == 0 && ops != cases[c].count)
            fail_msg("%s: %d ops", cases[c].op, ops);
        assert_true(p->ninsts < (size_t)cases[c].count);
        sf_program_free(p);
        sf_buf_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_leaves),
        cmocka_unit_test(test_all_steps),
        cmocka_unit_test(test_long_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
