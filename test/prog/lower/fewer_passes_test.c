/* Loads and stores of loops for a target with few passes: the number of passes over tensors, and
 * the oracle's numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/programs.h"
#include "support/run.h"

#define X "tensor<4x16x32xf32>"
#define M "tensor<64x32xf32>"
#define W "tensor<32x32xf32>"
enum { BYTES = 4 * 16 * 32 * 4 };
#define HEAD "func.func public @main(%x: " X ", %y: " X ", %w: " W ", %c: tensor<32xf32>) -> "
#define ZERO "%zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
#define SUM(name, of, dims, to)                                                                    \
    name " = stablehlo.reduce(" of " init: %zero) applies stablehlo.add across dimensions = " dims \
         " : (" X ", tensor<f32>) -> " to "\n"
/* A product of a tensor as a matrix, and of that as a tensor. */
#define DOT(name, of)                                                                              \
    name "f = stablehlo.reshape " of " : (" X ") -> " M "\n" name                                  \
         "d = stablehlo.dot_general " name "f, %w, contracting_dims = [1] x [0] : (" M ", " W      \
         ") -> " M "\n" name " = stablehlo.reshape " name "d : (" M ") -> " X "\n"

typedef struct sample {
    const char *name, *text;
    int passes,
        plain; /* reads and stores of tensors of the size of %x in loops; where few are not wanted */
} sample;

static const sample samples[] = {
    {"the gradient of a bias beside sums over pixels",
     HEAD "(tensor<32xf32>, tensor<4x32xf32>) {\n" ZERO "%p = stablehlo.multiply %x, %y : " X
          "\n" SUM("%b", "%x", "[0, 1]", "tensor<32xf32>")
              SUM("%s", "%p", "[1]",
                  "tensor<4x32xf32>") "return %b, %s : tensor<32xf32>, tensor<4x32xf32>\n}\n",
     2, 3},
    {"sums of different tensors",
     HEAD "(tensor<32xf32>, tensor<4x32xf32>) {\n" ZERO SUM("%b", "%x", "[0, 1]", "tensor<32xf32>")
         SUM("%s", "%y", "[1]",
             "tensor<4x32xf32>") "return %b, %s : tensor<32xf32>, tensor<4x32xf32>\n}\n",
     2, 2},
    {"the mask of a maximum that a product reads",
     HEAD X
     " {\n%z = stablehlo.constant dense<0.0> : " X "\n"
     "%a = stablehlo.multiply %x, %y : " X "\n%m = stablehlo.maximum %a, %z : " X "\n" DOT(
         "%g",
         "%m") "%k = stablehlo.compare GT, %a, %z : (" X ", " X
               ") -> tensor<4x16x32xi1>\n%r = stablehlo.select %k, %g, %z : tensor<4x16x32xi1>, " X
               "\nreturn %r : " X "\n}\n",
     5, 7},
    {"factors of two products from the same",
     HEAD "(" X ", " X ") {\n%a = stablehlo.multiply %x, %y : " X
          "\n%b = stablehlo.subtract %x, %y : " X "\n" DOT("%g", "%a")
              DOT("%h", "%b") "return %g, %h : " X ", " X "\n}\n",
     4, 6},
    {"a result from which what waits for its sum is computed",
     HEAD "(" X ", " X ") {\n" ZERO DOT("%g", "%x")
         DOT("%h", "%y") "%d = stablehlo.add %g, %h : " X
                         "\n%b = stablehlo.broadcast_in_dim %c, dims = [2] : (tensor<32xf32>) -> " X
                         "\n%e = stablehlo.multiply %d, %b : " X
                         "\n" SUM("%s", "%e", "[0, 1]",
                                  "tensor<32xf32>") "%t = stablehlo.broadcast_in_dim %s, dims = "
                                                    "[2] : (tensor<32xf32>) -> " X
                                                    "\n%r = stablehlo.subtract %e, %t : " X
                                                    "\nreturn %r, %d : " X ", " X "\n}\n",
     5, 6},
};

static int count_passes(const sf_program *p)
{
    int count = 0;
    for (size_t i = 0; i < p->ninsts; i++)
        for (uint32_t j = 0; p->insts[i].loop && j < p->insts[i].nin + p->insts[i].nout; j++) {
            const sf_inst *inst = &p->insts[i];
            const sf_view *view = j < inst->nin ? &inst->in[j] : &inst->out[j - inst->nin];
            count += p->buffers[view->buffer].bytes == BYTES;
        }
    return count;
}

static void test_passes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        for (int few = 0; few < 2; few++) {
            sf_target target = test_few_passes();
            target.few_passes = few;
            sf_program *p = test_lower_text(samples[i].text, &target);
            if (count_passes(p) != (few ? samples[i].passes : samples[i].plain))
                fail_msg("%s, %s: %d passes", samples[i].name, few ? "few" : "plain",
                         count_passes(p));
            sf_program_free(p);
        }
}

static void test_numbers(void **state)
{
    (void)state;
    sf_target few = test_few_passes();
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        test_as_oracle(samples[i].text, &few, samples[i].name);
}

#define SUM_OF(type, dims, to)                                                                     \
    "func.func public @main(%x: " type ") -> " to " {\n" ZERO                                      \
    "%s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = " dims        \
    " : (" type ", tensor<f32>) -> " to "\nreturn %s : " to "\n}\n"

/* Rows enough for all multiprocessors: a sum with few results is one of sums. */
static void test_few_results(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        size_t loops;
    } cases[] = {
        {"channels between", SUM_OF("tensor<4x3x16x32xf32>", "[0, 2, 3]", "tensor<3xf32>"), 2},
        {"pixels alone", SUM_OF("tensor<4x3x16x32xf32>", "[2, 3]", "tensor<4x3xf32>"), 1},
        {"channels last", SUM_OF("tensor<4x16x32x3xf32>", "[0, 1, 2]", "tensor<3xf32>"), 1},
        {"short rows", SUM_OF("tensor<4x3x16xf32>", "[0, 2]", "tensor<3xf32>"), 1},
        {"many results", SUM_OF("tensor<4x600x256xf32>", "[0, 2]", "tensor<600xf32>"), 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_target target = test_few_passes();
        sf_program *p = test_lower_text(cases[i].text, &target);
        if (p->ninsts != cases[i].loops)
            fail_msg("%s: %d instructions", cases[i].name, (int)p->ninsts);
        sf_program_free(p);
        test_as_oracle(cases[i].text, &target, cases[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_passes),
                                       cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_few_results)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
