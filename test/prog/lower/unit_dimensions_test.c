/* Nodes around products of many dimensions are computed without those of 1, and give what the oracle does. Products of two
 * types are multiplied in one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "run/cpu/cpu_target.h"
#include "run/cuda/cuda_target.h"
#include "support/programs.h"
#include "support/run.h"

#define Q "tensor<2x5x3x1x4xf32>"
#define K "tensor<2x6x3x4xf32>"
#define S "tensor<2x3x5x1x6xf32>"
#define SCORES                                                                                     \
    "%s = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] "  \
    "x [3] : (" Q ", " K ") -> " S "\n"
#define MAIN(result) "func.func public @main(%q: " Q ", %k: " K ") -> " result " {\n" SCORES
#define ZERO "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
#define RETURN(value, type) "return " value " : " type "\n}\n"

static const struct {
    const char *name, *text;
} cases[] = {
    {"the product itself", MAIN(S) RETURN("%s", S)},
    {"transposed, so that the 1 comes first",
     MAIN("tensor<1x2x3x5x6xf32>") "%t = stablehlo.transpose %s, dims = [3, 0, 1, 2, 4] : (" S
                                   ") -> tensor<1x2x3x5x6xf32>\n" RETURN("%t",
                                                                         "tensor<1x2x3x5x6xf32>")},
    {"a softmax", MAIN(S) ZERO
     "%m = stablehlo.reduce(%s init: %z) applies stablehlo.maximum across dimensions = [4] : (" S
     ", tensor<f32>) -> tensor<2x3x5x1xf32>\n"
     "%b = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2, 3] : (tensor<2x3x5x1xf32>) -> " S "\n"
     "%d = stablehlo.subtract %s, %b : " S "\n%e = stablehlo.exponential %d : " S
     "\n" RETURN("%e", S)},
    {"a sum along the 1 alone, and along it and more",
     MAIN("(tensor<2x3x5x6xf32>, tensor<2x3x6xf32>)") ZERO
     "%a = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [3] : (" S
     ", tensor<f32>) -> tensor<2x3x5x6xf32>\n"
     "%b = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [2, 3] : (" S
     ", tensor<f32>) -> tensor<2x3x6xf32>\n"
     "return %a, %b : tensor<2x3x5x6xf32>, tensor<2x3x6xf32>\n}\n"},
    {"a sum along the 1 from another number",
     MAIN("tensor<2x3x5x6xf32>") "%one = stablehlo.constant dense<1.0> : tensor<f32>\n"
                                 "%a = stablehlo.reduce(%s init: %one) applies stablehlo.add "
                                 "across dimensions = [3] : (" S
                                 ", tensor<f32>) -> tensor<2x3x5x6xf32>\n" RETURN(
                                     "%a", "tensor<2x3x5x6xf32>")},
    {"broadcast along the 1, selected, and read with it and without",
     MAIN("(tensor<2x3x5x7x6xf32>, " S
          ", tensor<6x30xf32>)") "%w = stablehlo.broadcast_in_dim %s, dims = [0, 1, 2, 3, 4] : (" S
                                 ") -> tensor<2x3x5x7x6xf32>\n"
                                 "%h = stablehlo.constant dense<0.5> : " S "\n"
                                 "%c = stablehlo.compare GT, %s, %h : (" S ", " S
                                 ") -> tensor<2x3x5x1x6xi1>\n"
                                 "%x = stablehlo.select %c, %s, %h : tensor<2x3x5x1x6xi1>, " S "\n"
                                 "%r = stablehlo.reshape %x : (" S ") -> tensor<6x30xf32>\n"
                                 "return %w, %x, %r : tensor<2x3x5x7x6xf32>, " S
                                 ", tensor<6x30xf32>\n}\n"},
    {"a product along the 1 and another, and one along the 1 alone",
     MAIN("(tensor<2x3x6x4xf32>, tensor<2x3x5x6x5x4xf32>)") "%t = stablehlo.transpose %q, dims = "
                                                            "[0, 2, 1, 3, 4] : (" Q
                                                            ") -> tensor<2x3x5x1x4xf32>\n"
                                                            "%a = stablehlo.dot_general %s, %t, "
                                                            "batching_dims = [0, 1] x [0, 1], "
                                                            "contracting_dims = "
                                                            "[2, 3] x [2, 3] : (" S
                                                            ", tensor<2x3x5x1x4xf32>) -> "
                                                            "tensor<2x3x6x4xf32>\n"
                                                            "%b = stablehlo.dot_general %s, %t, "
                                                            "batching_dims = [0, 1] x [0, 1], "
                                                            "contracting_dims = "
                                                            "[3] x [3] : (" S
                                                            ", tensor<2x3x5x1x4xf32>) -> "
                                                            "tensor<2x3x5x6x5x4xf32>\n"
                                                            "return %a, %b : tensor<2x3x6x4xf32>, "
                                                            "tensor<2x3x5x6x5x4xf32>\n}\n"},
    {"in a loop",
     "func.func public @main(%q: " Q ", %k: " K ") -> " S " {\n" SCORES
     "%i = stablehlo.constant dense<0> : tensor<i32>\n%n = stablehlo.constant dense<3> : "
     "tensor<i32>\n%o = stablehlo.constant dense<1> : tensor<i32>\n"
     "%l:2 = stablehlo.while(%c = %i, %x = %s) : tensor<i32>, " S "\n cond {\n"
     "%p = stablehlo.compare LT, %c, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
     "stablehlo.return %p : tensor<i1>\n} do {\n"
     "%d = stablehlo.add %c, %o : tensor<i32>\n%y = stablehlo.add %x, %s : " S "\n"
     "%u = stablehlo.tanh %y : " S "\nstablehlo.return %d, %u : tensor<i32>, " S
     "\n}\n" RETURN("%l#1", S)},
};

static void test_as_the_oracle(void **state)
{
    (void)state;
    sf_target few = test_few_passes();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_as_oracle(cases[i].text, &sf_target_cpu, cases[i].name);
        test_as_oracle(cases[i].text, &few, cases[i].name);
    }
}

/* Products of the one and the other type, with a result of the third. */
static const struct {
    const char *a, *b, *c,
        *asked; /* asked: by the algorithm, of both; with a digit before it, in so many products */
    sf_dtype cpu, cuda; /* of both operands, as they are multiplied */
} mixed[] = {
    {"f32", "bf16", "f32", NULL, SF_F32, SF_F32},
    {"bf16", "f32", "f32", NULL, SF_F32, SF_F32},
    {"f32", "bf16", "bf16", NULL, SF_F32, SF_F32},
    {"bf16", "f16", "f32", NULL, SF_F32, SF_F32},
    {"f64", "f32", "f64", NULL, SF_F64, SF_F64},
    {"f32", "bf16", "f32", "bf16", SF_F32, SF_BF16},
    {"f32", "f32", "f32", "bf16", SF_F32, SF_BF16},
    {"f32", "f32", "f32", "f16", SF_F32, SF_F16},
    {"f32", "f32", "f32", "3bf16", SF_F32, SF_F32},
    {"f32", "f32", "f32", "tf32", SF_F32, SF_F32},
    {"bf16", "bf16", "f32", "f32", SF_BF16, SF_BF16},
};

static void test_products_of_two_types(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++) {
        char text[1024], algorithm[400] = "";
        const char *asked = mixed[i].asked;
        int parts = asked && *asked == '3' ? 3 : 1;
        if (asked)
            snprintf(algorithm, sizeof algorithm,
                     ", algorithm = <lhs_precision_type = %s, rhs_precision_type = %s, "
                     "accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
                     "num_primitive_operations = %d, allow_imprecise_accumulation = false>",
                     asked + (parts > 1), asked + (parts > 1), parts);
        snprintf(text, sizeof text,
                 "func.func public @main(%%x: tensor<4x8x%s>, %%y: tensor<8x6x%s>) -> "
                 "tensor<4x6x%s> {\n%%p = stablehlo.dot_general %%x, %%y, contracting_dims = [1] x "
                 "[0]%s : (tensor<4x8x%s>, tensor<8x6x%s>) -> tensor<4x6x%s>\nreturn %%p : "
                 "tensor<4x6x%s>\n}\n",
                 mixed[i].a, mixed[i].b, mixed[i].c, algorithm, mixed[i].a, mixed[i].b, mixed[i].c,
                 mixed[i].c);
        for (int cuda = 0; cuda < 2; cuda++) {
            sf_program *program = test_lower_text(text, cuda ? &sf_target_cuda : NULL);
            sf_dtype wanted = cuda ? mixed[i].cuda : mixed[i].cpu;
            int products = 0;
            for (size_t n = 0; n < program->ninsts; n++) {
                const sf_inst *inst = &program->insts[n];
                if (inst->kind != SF_INST_DOT)
                    continue;
                products++;
                if (inst->in[0].dtype != wanted || inst->in[1].dtype != wanted)
                    fail_msg("%s x %s, row %d: multiplied in another type", mixed[i].a, mixed[i].b,
                             (int)i);
            }
            assert_int_equal(products, 1);
            sf_program_free(program);
        }
        test_as_oracle(text, &sf_target_cpu, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_the_oracle),
        cmocka_unit_test(test_products_of_two_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
