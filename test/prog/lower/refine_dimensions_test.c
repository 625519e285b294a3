/* Loops across reshapes and joins of halves, for a target with few passes: how many there are, that
 * no bytes are copied between them, and that they compute the oracle's results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "run/cpu/cpu_target.h"
#include "run/cuda/cuda_target.h"
#include "support/programs.h"
#include "support/run.h"

#define X "tensor<4x6x32xf32>"
#define G "tensor<4x6x8x4xf32>"
#define TWICE "tensor<4x6x64xf32>"
#define HEAD "func.func public @main(%x: " X ", %w: " X ", %s: tensor<4x8xf32>) -> "
#define ZERO "%zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
#define GROUPS                                                                                     \
    "%b = stablehlo.broadcast_in_dim %s, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8x4xf32>\n" \
    "%c = stablehlo.reshape %b : (tensor<4x8x4xf32>) -> tensor<4x32xf32>\n"                        \
    "%d = stablehlo.broadcast_in_dim %c, dims = [0, 2] : (tensor<4x32xf32>) -> " X "\n"
#define SUM                                                                                        \
    "%t = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0, 1] : "    \
    "(tensor<4x8xf32>, tensor<f32>) -> tensor<f32>\n"
#define PAD(name, from, low, high, inside)                                                         \
    name " = stablehlo.pad " from ", %zero, low = [0, 0, " low "], high = [0, 0, " high            \
         "], interior = [0, 0, " inside "] : (" X ", tensor<f32>) -> " TWICE "\n"

#define SHIFT(name, low, high)                                                                     \
    name " = stablehlo.pad %a, %zero, low = [0, " low ", 0], high = [0, " high                     \
         ", 0], interior = [0, 0, 0] : (" X ", tensor<f32>) -> " X "\n"

typedef struct sample {
    const char *name, *text;
    int loops, calls;             /* where few passes are wanted, */
    int plain_loops, plain_calls; /* and where they are not */
} sample;

static const sample samples[] = {
    {"numbers of groups in rows of channels",
     HEAD X " {\n" GROUPS "%y = stablehlo.multiply %x, %w : " X "\n"
            "%z = stablehlo.add %y, %d : " X "\nreturn %z : " X "\n}\n",
     1, 0, 2, 0},
    {"channels, groups and channels again, with a sum of groups",
     HEAD
     "(" X ", tensor<4x8xf32>) {\n" ZERO "%y = stablehlo.multiply %x, %w : " X "\n"
     "%g = stablehlo.reshape %y : (" X ") -> " G "\n"
     "%b = stablehlo.broadcast_in_dim %s, dims = [0, 2] : (tensor<4x8xf32>) -> " G "\n"
     "%h = stablehlo.subtract %g, %b : " G "\n"
     "%t = stablehlo.reduce(%h init: %zero) applies stablehlo.add across dimensions = [1, 3] : "
     "(" G ", tensor<f32>) -> tensor<4x8xf32>\n"
     "%r = stablehlo.reshape %h : (" G ") -> " X "\n"
     "%z = stablehlo.add %r, %w : " X "\nreturn %z, %t : " X ", tensor<4x8xf32>\n}\n",
     1, 0, 3, 0},
    {"a counter of channels among groups",
     HEAD X " {\n" GROUPS "%i = stablehlo.iota dim = 2 : " X "\n"
            "%y = stablehlo.multiply %x, %i : " X "\n"
            "%z = stablehlo.add %y, %d : " X "\nreturn %z : " X "\n}\n",
     1, 1, 2, 1},
    {"halves one behind the other",
     HEAD TWICE " {\n%a = stablehlo.multiply %x, %w : " X "\n%b = stablehlo.subtract %x, %w : " X
                "\n%j = stablehlo.concatenate %a, %b, dim = 2 : (" X ", " X ") -> " TWICE
                "\nreturn %j : " TWICE "\n}\n",
     1, 0, 2, 1},
    {"halves that others read, too, are joined as they stand",
     HEAD "(" TWICE ", " X ") {\n%a = stablehlo.multiply %x, %w : " X
          "\n%b = stablehlo.subtract %x, %w : " X
          "\n%j = stablehlo.concatenate %a, %b, dim = 2 : (" X ", " X ") -> " TWICE
          "\nreturn %j, %a : " TWICE ", " X "\n}\n",
     1, 1, 2, 1},
    {"halves, one of them chosen by a scalar that is computed for it alone",
     HEAD TWICE
     " {\n" ZERO SUM "%p = stablehlo.compare GT, %t, %zero : (tensor<f32>, tensor<f32>) -> "
     "tensor<i1>\n"
     "%a = stablehlo.select %p, %x, %w : tensor<i1>, " X "\n%b = stablehlo.subtract %x, %w : " X
     "\n%j = stablehlo.concatenate %a, %b, dim = 2 : (" X ", " X ") -> " TWICE
     "\nreturn %j : " TWICE "\n}\n",
     3, 0, 4, 1},
    {"blocks of 24 and of 16, which do not go together",
     HEAD "tensor<16x48xf32> {\n%y = stablehlo.multiply %x, %w : " X "\n"
          "%a = stablehlo.reshape %y : (" X ") -> tensor<32x24xf32>\n"
          "%b = stablehlo.negate %a : tensor<32x24xf32>\n"
          "%c = stablehlo.reshape %b : (tensor<32x24xf32>) -> tensor<48x16xf32>\n"
          "%d = stablehlo.exponential %c : tensor<48x16xf32>\n"
          "%z = stablehlo.reshape %d : (tensor<48x16xf32>) -> tensor<16x48xf32>\n"
          "return %z : tensor<16x48xf32>\n}\n",
     3, 0, 3, 0},
};

/* Of a target that has windows, and of one that has none. */
static const sample padded[] = {
    {"sums of padded halves",
     HEAD TWICE
     " {\n" ZERO "%a = stablehlo.multiply %x, %w : " X "\n" PAD("%p", "%a", "32", "0", "0")
         PAD("%q", "%w", "0", "32", "0") "%z = stablehlo.add %p, %q : " TWICE "\nreturn %z : " TWICE
                                         "\n}\n",
     1, 0, 1, 0},
    {"sums of halves that take turns",
     HEAD TWICE
     " {\n" ZERO "%a = stablehlo.multiply %x, %w : " X "\n" PAD("%p", "%a", "1", "0", "1")
         PAD("%q", "%w", "0", "1", "1") "%z = stablehlo.add %p, %q : " TWICE "\nreturn %z : " TWICE
                                        "\n}\n",
     1, 0, 1, 0},
    {"a border that is no half",
     HEAD
     "tensor<4x6x40xf32> {\n" ZERO "%a = stablehlo.multiply %x, %w : " X "\n"
     "%p = stablehlo.pad %a, %zero, low = [0, 0, 8], high = [0, 0, 0], interior = [0, 0, 0] : (" X
     ", tensor<f32>) -> tensor<4x6x40xf32>\n"
     "%z = stablehlo.add %p, %p : tensor<4x6x40xf32>\nreturn %z : tensor<4x6x40xf32>\n}\n",
     2, 0, 2, 1},
    {"sums of halves that take turns, and of a border",
     HEAD TWICE " {\n" ZERO "%a = stablehlo.multiply %x, %w : " X
                "\n" PAD("%p", "%a", "1", "0", "1") PAD("%q", "%w", "0", "1", "1")
                    PAD("%r", "%x", "17", "15", "0") "%y = stablehlo.add %p, %q : " TWICE
                                                     "\n%z = stablehlo.add %y, %r : " TWICE
                                                     "\nreturn %z : " TWICE "\n}\n",
     2, 0, 2, 3},
    {"the next element, and the one before",
     HEAD X " {\n" ZERO "%a = stablehlo.multiply %x, %w : " X "\n" SHIFT("%p", "1", "-1")
         SHIFT("%q", "-1", "1") "%z = stablehlo.add %p, %q : " X "\nreturn %z : " X "\n}\n",
     2, 0, 2, 2},
};

static void count_insts(const sf_program *p, int *loops, int *calls)
{
    *loops = *calls = 0;
    for (size_t i = 0; i < p->ninsts; i++) {
        *loops += p->insts[i].kind == SF_INST_LOOP;
        *calls += p->insts[i].kind == SF_INST_CALL;
    }
}

static void check_counts(const sample *s, const sf_target *target, bool plain)
{
    sf_program *p = test_lower_text(s->text, target);
    int loops, calls;
    count_insts(p, &loops, &calls);
    if (loops != (plain ? s->plain_loops : s->loops) ||
        calls != (plain ? s->plain_calls : s->calls))
        fail_msg("%s, %s: %d loops, %d calls", s->name, plain ? "plain" : "few", loops, calls);
    sf_program_free(p);
}

static void test_counts(void **state)
{
    (void)state;
    sf_target few = test_few_passes();
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        check_counts(&samples[i], &few, false);
        check_counts(&samples[i], NULL, true);
    }
}

static void test_windows(void **state)
{
    (void)state;
    sf_target few = test_few_passes();
    for (size_t i = 0; i < sizeof padded / sizeof *padded; i++) {
        check_counts(&padded[i], &few, true);
        test_as_oracle(padded[i].text, &few, padded[i].name);
        check_counts(&padded[i], &sf_target_cuda, false);
    }
}

static void test_numbers(void **state)
{
    (void)state;
    sf_target few = test_few_passes();
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        test_as_oracle(samples[i].text, &few, samples[i].name);
}

static void add_insts(void *context, const char *what, const sf_program *program,
                      const sf_program *other)
{
    (void)what, (void)other;
    *(size_t *)context += program->ninsts;
}

/* Programs of all micro steps pass the checker, and have fewer instructions. */
static void test_steps(void **state)
{
    (void)state;
    sf_target few = test_few_passes();
    size_t with = 0, without = 0;
    assert_true(test_each_whole(&few, add_insts, &with) > 0);
    assert_true(test_each_whole(&sf_target_cpu, add_insts, &without) > 0);
    assert_true(with < without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts), cmocka_unit_test(test_windows),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
