/* Which nodes become one loop, by small texts; and that the loops of all steps read registers that
 * they wrote. */
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

#define T "tensor<32x40xf32>"
#define R "tensor<32xf32>"
#define C "tensor<40xf32>"
#define S "tensor<f32>"
#define MAIN(results)                                                                              \
    "func.func public @main(%x: " T ", %y: " T ", %k: tensor<32x40xi32>, %w: tensor<40x32xf32>) "  \
    "-> (" results ") {\n%zero = stablehlo.constant dense<0.0> : " S "\n"
#define FOLD(name, of, op, dims, to)                                                               \
    "%" name " = stablehlo.reduce(%" of " init: %zero) applies stablehlo." op                      \
    " across dimensions = [" dims "] : (" T ", " S ") -> " to "\n"
#define SPREAD(name, of, dims, from)                                                               \
    "%" name " = stablehlo.broadcast_in_dim %" of ", dims = [" dims "] : (" from ") -> " T "\n"

static const struct {
    const char *name, *text;
    size_t loops, others;
} cases[] = {
    {"a chain",
     MAIN(T) "%a = stablehlo.add %x, %y : " T "\n%b = stablehlo.tanh %a : " T
             "\n%c = stablehlo.multiply %b, %x : " T "\nreturn %c : " T "\n}\n",
     1, 0},
    {"several readers",
     MAIN(T) "%a = stablehlo.add %x, %y : " T "\n%b = stablehlo.tanh %a : " T
             "\n%c = stablehlo.multiply %a, %x : " T "\n%d = stablehlo.add %b, %c : " T
             "\nreturn %d : " T "\n}\n",
     1, 0},
    {"types in between",
     MAIN(T) "%a = stablehlo.convert %k : (tensor<32x40xi32>) -> " T
             "\n%b = stablehlo.compare LT, %a, %x : (" T ", " T
             ") -> tensor<32x40xi1>\n%c = stablehlo.select %b, %x, %y : tensor<32x40xi1>, " T
             "\nreturn %c : " T "\n}\n",
     1, 0},
    {"softmax",
     MAIN(T) FOLD("m", "x", "maximum", "1", R)
         SPREAD("mb", "m", "0",
                R) "%d = stablehlo.subtract %x, %mb : " T "\n%e = stablehlo.exponential %d : " T
                   "\n" FOLD("s", "e", "add", "1", R)
                       SPREAD("sb", "s", "0", R) "%q = stablehlo.divide %e, %sb : " T
                                                 "\nreturn %q : " T "\n}\n",
     1, 0},
    {"sums of the same, side by side",
     MAIN(R ", " R) FOLD("s", "x", "add", "1", R) "%a = stablehlo.multiply %x, %x : " T "\n" FOLD(
         "t", "a", "add", "1", R) "return %s, %t : " R ", " R "\n}\n",
     1, 0},
    {"sums of others",
     MAIN(R ", " R) FOLD("s", "x", "add", "1", R) "%a = stablehlo.multiply %y, %y : " T "\n" FOLD(
         "t", "a", "add", "1", R) "return %s, %t : " R ", " R "\n}\n",
     2, 0},
    {"a norm, its scale converted before it is spread",
     "func.func public @main(%x: " T ", %w: " C ") -> " T
     " {\n%zero = stablehlo.constant dense<0.0> : " S "\n" FOLD("s", "x", "add", "1", R)
         SPREAD("b", "s", "0",
                R) "%d = stablehlo.subtract %x, %b : " T "\n%n = stablehlo.convert %w : (" C
                   ") -> tensor<40xbf16>\n%m = stablehlo.convert %n : (tensor<40xbf16>) -> " C
                   "\n" SPREAD("e", "m", "1", C) "%r = stablehlo.multiply %d, %e : " T
                                                 "\nreturn %r : " T "\n}\n",
     1, 0},
    {"sums over rows and over all",
     MAIN(T ", " C ", " S) "%a = stablehlo.multiply %x, %y : " T "\n" FOLD("c", "a", "add", "0", C)
         FOLD("s", "a", "add", "0, 1", S) "return %a, %c, %s : " T ", " C ", " S "\n}\n",
     1, 0},
    {"what waits for a sum over all",
     MAIN(T) FOLD("s", "x", "add", "0, 1", S)
         SPREAD("b", "s", "", S) "%a = stablehlo.divide %x, %b : " T "\nreturn %a : " T "\n}\n",
     2, 0},
    {"rows one way, then the other",
     MAIN(T) FOLD("r", "x", "add", "1", R)
         SPREAD("rb", "r", "0", R) "%a = stablehlo.subtract %x, %rb : " T "\n" FOLD("c", "a", "add",
                                                                                    "0", C)
             SPREAD("cb", "c", "1", C) "%d = stablehlo.subtract %a, %cb : " T "\nreturn %d : " T
                                       "\n}\n",
     2, 0},
    {"other shapes",
     MAIN(T
          ", tensor<40x32xf32>") "%a = stablehlo.tanh %x : " T
                                 "\n%b = stablehlo.tanh %w : tensor<40x32xf32>\nreturn %a, %b : " T
                                 ", tensor<40x32xf32>\n}\n",
     2, 0},
    {"what no loop does",
     MAIN(
         T) "%a = stablehlo.tanh %x : " T
            "\n%b = \"stablehlo.sort\"(%a) <{dimension = 1 : i64, is_stable = true}> ({ ^bb0(%l: " S
            ", %r: " S "): %u = stablehlo.compare LT, %l, %r : (" S ", " S
            ") -> tensor<i1> stablehlo.return %u : tensor<i1> }) : (" T ") -> " T
            "\n%c = stablehlo.negate %b : " T "\nreturn %c : " T "\n}\n",
     2, 1},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_program *p = test_lower_text(cases[i].text, NULL);
        size_t loops = 0;
        for (size_t n = 0; n < p->ninsts; n++)
            loops += p->insts[n].kind == SF_INST_LOOP;
        if (loops != cases[i].loops || p->ninsts != cases[i].loops + cases[i].others)
            fail_msg("%s: %zu loops of %zu instructions", cases[i].name, loops, p->ninsts);
        sf_program_free(p);
    }
}

/* Limits of the target */

static size_t count_insts(const char *text, const sf_target *target)
{
    sf_program *p = test_lower_text(text, target);
    size_t count = p->ninsts;
    sf_program_free(p);
    return count;
}

static void test_nodes(void **state)
{
    (void)state;
    for (int count = 4; count <= 12; count++) {
        sf_target target = sf_target_cpu;
        sf_buf text = {0};
        target.most_nodes = 4;
        target.most_recomputed = 0;
        sf_buf_printf(&text, "func.func public @main(%%v0: " T ", %%y: " T ") -> " T " {\n");
        for (int i = 0; i < count; i++)
            sf_buf_printf(&text, "%%v%d = stablehlo.multiply %%v%d, %%y : " T "\n", i + 1, i);
        sf_buf_printf(&text, "return %%v%d : " T "\n}\n", count);
        assert_int_equal(count_insts(text.text, &target), (count + 3) / 4);
        assert_int_equal(count_insts(text.text, NULL), 1);
        sf_buf_free(&text);
    }
}

static void test_rows(void **state)
{
    (void)state;
    sf_target target = sf_target_cpu;
    const char *softmax = cases[3].text;
    target.longest_row = 40;
    assert_int_equal(count_insts(softmax, &target), 1);
    target.longest_row = 39;
    assert_true(count_insts(softmax, &target) > 1);
}

/* The steps of loops */

static bool reads_three(const sf_loop_step *step)
{
    return step->kind == SF_STEP_OP && step->op == SF_VSELECT;
}

static bool is_binary(const sf_loop_step *step)
{
    switch ((int)step->op) {
    case SF_VADD:
    case SF_VSUB:
    case SF_VMUL:
    case SF_VDIV:
    case SF_VMAX:
    case SF_VMIN:
    case SF_VPOW:
    case SF_VSELECT:
        return step->kind == SF_STEP_OP;
    default:
        return false;
    }
}

static bool is_wide(sf_vclass class)
{
    return class == SF_VF64 || class == SF_VI64;
}

typedef struct seen {
    int loops, steps, folds, most;
} seen;

/* Registers are written before they are read, and are as wide as their content; every access is
 * used, every output stored once. */
static void check_loop(const char *what, const sf_inst *inst, seen *n)
{
    const sf_loop *loop = inst->loop;
    bool *set = sf_alloc(loop->nregisters + 1), *used = sf_alloc(loop->naccesses + 1);
    memset(set, 0, loop->nregisters + 1);
    memset(used, 0, loop->naccesses + 1);
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (loop->steps[i].kind == SF_STEP_CONSTANT)
            set[loop->steps[i].dst] = true;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_loop_step *step = &loop->steps[i];
        bool fresh = step->kind == SF_STEP_LOAD || step->kind == SF_STEP_CONSTANT ||
                     step->kind == SF_STEP_INDEX;
        bool moves = step->kind == SF_STEP_LOAD || step->kind == SF_STEP_STORE ||
                     step->kind == SF_STEP_GATHER || step->kind == SF_STEP_INDEX;
        if ((!fresh && !set[step->a]) || (is_binary(step) && !set[step->b]) ||
            (reads_three(step) && !set[step->c]))
            fail_msg("%s: step %u reads a register that holds nothing", what, i);
        if (moves && used[step->access])
            fail_msg("%s: step %u goes where another went", what, i);
        if (moves)
            used[step->access] = true;
        if (step->kind != SF_STEP_STORE && step->kind != SF_STEP_GATHER)
            set[step->dst] = true;
        if (step->kind == SF_STEP_LOAD && loop->is_wide[step->dst] != is_wide(step->class))
            fail_msg("%s: step %u loads into a register of another width", what, i);
        n->folds += step->kind == SF_STEP_FOLD || step->kind == SF_STEP_GATHER;
    }
    for (uint32_t i = 0; i < loop->naccesses; i++)
        if (!used[i])
            fail_msg("%s: access %u is not used", what, i);
    n->loops++;
    n->steps += (int)loop->nsteps;
    n->most = (int)loop->nsteps > n->most ? (int)loop->nsteps : n->most;
    sf_free(set);
    sf_free(used);
}

static void check_loops(void *context, const char *what, const sf_program *p,
                        const sf_program *other)
{
    (void)other;
    for (size_t i = 0; i < p->ninsts; i++)
        if (p->insts[i].loop)
            check_loop(what, &p->insts[i], context);
}

static void test_all_steps(void **state)
{
    (void)state;
    seen n = {0};
    test_each_whole(&sf_target_cpu, check_loops, &n);
    print_message("%d loops of %d steps, at most %d, with %d folds\n", n.loops, n.steps, n.most,
                  n.folds);
    assert_true(n.loops > 1000 && n.folds > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_all_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
