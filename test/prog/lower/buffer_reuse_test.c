/* Which loops store their result in the memory of an operand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/str.h"
#include "support/programs.h"

#define T "tensor<8x16xf32>"

/* An op of no loop, so that its operand and its result are in memory. */
#define SORT(to, from)                                                                             \
    "%" to " = \"stablehlo.sort\"(%" from                                                          \
    ") <{dimension = 1 : i64}> ({ ^bb0(%l: tensor<f32>, %r: tensor<f32>): %u = "                   \
    "stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1> "                     \
    "stablehlo.return %u : tensor<i1> }) : (" T ") -> " T "\n"
#define MAIN "func.func public @main(%x: " T ", %n: tensor<f32>) -> "

static const struct {
    const char *name, *text;
    int over; /* loops whose result is in the memory of an operand */
} cases[] = {
    {"the last to read it",
     MAIN T " {\n" SORT("a", "x") "%b = stablehlo.tanh %a : " T "\n" SORT("c", "b") "return %c : " T
                                                                                    "\n}\n",
     1},
    {"another reads it later",
     MAIN "(" T ", " T ") {\n" SORT("a", "x") "%b = stablehlo.tanh %a : " T "\n" SORT("c", "b")
         SORT("d", "a") "return %c, %d : " T ", " T "\n}\n",
     0},
    {"an argument",
     MAIN T " {\n%b = stablehlo.tanh %x : " T "\n" SORT("c", "b") "return %c : " T "\n}\n", 0},
    {"a number for all elements",
     MAIN T " {\n%m = stablehlo.tanh %n : tensor<f32>\n"
            "%b = stablehlo.clamp %m, %x, %n : (tensor<f32>, " T ", tensor<f32>) -> " T
            "\n" SORT("c", "b") "return %c : " T "\n}\n",
     0},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_program *p = test_lower_text(cases[i].text, NULL);
        int over = 0;
        for (size_t n = 0; n < p->ninsts; n++)
            for (uint32_t k = 0; p->insts[n].kind == SF_INST_LOOP && k < p->insts[n].nin; k++)
                over += p->insts[n].in[k].buffer == p->insts[n].out[0].buffer;
        if (over != cases[i].over)
            fail_msg("%s: %d", cases[i].name, over);
        sf_program_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
