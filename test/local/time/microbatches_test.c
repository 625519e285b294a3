/* Micro-batched steps: they compute the same as the whole batch, whatever their loss is divided by;
 * early sums come before the loop; and a loss that does not decompose over the batch is refused by
 * the op that mixes samples. */
#include "local/time/microbatches.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "local/check_local.h"
#include "local/local.h"
#include "op/eval.h"
#include "op/op.h"
#include "support/plans.h"

/* A step is the beginning, its own lines, and an end: w is trained, x is the batch, of 16 rows. The
 * lines make %loss and %g, the gradient of w, and may use the sum %s of the rows of %p. */
#define HEAD                                                                                       \
    "func.func @main(%w: tensor<8x4xf32>, %x: tensor<16x8xf32>, %m: tensor<16xf32>, "              \
    "%ids: tensor<16xi32>) -> (tensor<8x4xf32>, tensor<f32>"
#define BODY                                                                                       \
    ") {\n"                                                                                        \
    "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"                                      \
    "  %rate = stablehlo.constant dense<0.125> : tensor<8x4xf32>\n"                                \
    "  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "                         \
    "(tensor<16x8xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>\n"
#define SUM(name, of)                                                                              \
    "  %" name " = stablehlo.reduce(%" of " init: %zero) applies stablehlo.add across "            \
    "dimensions = [0, 1] : (tensor<16x4xf32>, tensor<f32>) -> tensor<f32>\n"
#define GRADIENT(of)                                                                               \
    "  %g = stablehlo.dot_general %x, %" of ", contracting_dims = [0] x [0] : "                    \
    "(tensor<16x8xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>\n"
#define UPDATE                                                                                     \
    "  %d = stablehlo.multiply %g, %rate : tensor<8x4xf32>\n"                                      \
    "  %new = stablehlo.subtract %w, %d : tensor<8x4xf32>\n"
#define TAIL "  return %new, %loss : tensor<8x4xf32>, tensor<f32>\n}\n"
#define EACH(op, to, a, b) "  %" to " = stablehlo." op " %" a ", %" b " : tensor<16x4xf32>\n"
#define ROWS(to, from)                                                                             \
    "  %" to " = stablehlo.broadcast_in_dim %" from ", dims = [0] : (tensor<16xf32>) -> "          \
    "tensor<16x4xf32>\n"
#define ALL(to, from)                                                                              \
    "  %" to " = stablehlo.broadcast_in_dim %" from ", dims = [] : (tensor<f32>) -> "              \
    "tensor<16x4xf32>\n"

typedef struct turned_case {
    const char *name, *text;
    int loops; /* of the micro-batched step */
} turned_case;

static const turned_case cases[] = {
    {"a sum of squares",
     HEAD BODY EACH("multiply", "q", "p", "p") SUM("loss", "q") GRADIENT("p") UPDATE TAIL, 1},
    {"a mean over what counts",
     HEAD BODY "  %n = stablehlo.reduce(%m init: %zero) applies stablehlo.add across dimensions = "
               "[0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>\n" ROWS("r", "m") ALL("a", "n")
                   EACH("divide", "share", "r", "a") EACH("multiply", "q", "p", "share")
                       EACH("multiply", "qq", "q", "p") SUM("loss", "qq") GRADIENT("q") UPDATE TAIL,
     1},
    {"a product of means",
     HEAD BODY SUM("s", "p") ALL(
         "a", "s") "  %loss = stablehlo.multiply %s, %s : tensor<f32>\n" GRADIENT("a") UPDATE TAIL,
     2},
    /* One pass over all rows concatenates the operands of a little work on all of them. */
    {"how far each is from the mean, by the deviation: a norm over little",
     HEAD BODY SUM("s", "p") ALL("a", "s") EACH("subtract", "c", "p", "a") EACH(
         "multiply", "v", "c", "c") SUM("vs", "v") ALL("va", "vs") EACH("divide", "h", "c", "va")
         EACH("multiply", "hh", "h", "h") SUM("loss", "hh") GRADIENT("h") UPDATE TAIL,
     2},
    {"shares of what all have, by their exponents",
     HEAD BODY
     "  %top = stablehlo.reduce(%p init: %zero) applies stablehlo.maximum across "
     "dimensions = [0, 1] : (tensor<16x4xf32>, tensor<f32>) -> tensor<f32>\n" ALL("t", "top")
         EACH("subtract", "c", "p", "t") "  %e = stablehlo.exponential %c : tensor<16x4xf32>\n" SUM(
             "n", "e") ALL("a", "n") EACH("divide", "h", "e", "a") EACH("multiply", "q", "h", "p")
             SUM("loss", "q") GRADIENT("h") UPDATE TAIL,
     2},
    {"a deviation that is reported",
     HEAD ", tensor<f32>" BODY EACH("multiply", "q", "p", "p") SUM("loss", "q") ALL("a", "loss")
         EACH("subtract", "c", "p", "a") EACH("multiply", "v", "c", "c") SUM("vs", "v")
             GRADIENT("p") UPDATE
     "  return %new, %loss, %vs : tensor<8x4xf32>, tensor<f32>, tensor<f32>\n}\n",
     1},
    {"what knows its place",
     HEAD BODY "  %i = stablehlo.iota dim = 0 : tensor<16x4xf32>\n" EACH("multiply", "q", "p", "i")
         SUM("loss", "q") GRADIENT("q") UPDATE TAIL,
     1},
    {"numbers of the text",
     HEAD BODY
     "  %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, "
     "11.0, 12.0, 13.0, 14.0, 15.0, 16.0]> : tensor<16xf32>\n" ROWS("r", "c")
         EACH("multiply", "q", "p", "r") SUM("loss", "q") GRADIENT("q") UPDATE TAIL,
     1},
    {"what is reported of each",
     HEAD ", tensor<16xf32>" BODY EACH("multiply", "q", "p", "p") SUM(
         "loss",
         "q") "  %rows = stablehlo.reduce(%q init: %zero) applies stablehlo.add across "
              "dimensions = [1] : (tensor<16x4xf32>, tensor<f32>) -> tensor<16xf32>\n" GRADIENT("p")
                  UPDATE "  return %new, %loss, %rows : tensor<8x4xf32>, tensor<f32>, "
                         "tensor<16xf32>\n}\n",
     1},
    {"the largest of all",
     HEAD ", tensor<f32>" BODY EACH("multiply", "q", "p", "p")
         SUM("loss", "q") "  %top = stablehlo.reduce(%p init: %zero) applies stablehlo.maximum "
                          "across dimensions = [0, 1] : (tensor<16x4xf32>, tensor<f32>) -> "
                          "tensor<f32>\n" GRADIENT("p") UPDATE
     "  return %new, %loss, %top : tensor<8x4xf32>, tensor<f32>, tensor<f32>\n}\n",
     1},
    {"a reduction that starts somewhere",
     HEAD BODY "  %five = stablehlo.constant dense<5.0> : tensor<f32>\n" EACH(
         "multiply", "q", "p",
         "p") "  %loss = "
              "stablehlo.reduce(%q init: %five) applies stablehlo.add across dimensions = [0, 1] "
              ": (tensor<16x4xf32>, tensor<f32>) -> tensor<f32>\n" GRADIENT("p") UPDATE TAIL,
     1},
    {"a barrier over what turns and what does not",
     HEAD BODY "  %b:2 = stablehlo.optimization_barrier %p, %w : tensor<16x4xf32>, "
               "tensor<8x4xf32>\n" EACH("multiply", "q", "b#0", "b#0") SUM("loss", "q")
                   GRADIENT("b#0") "  %d = stablehlo.multiply %g, %b#1 : tensor<8x4xf32>\n"
                                   "  %new = stablehlo.subtract %w, %d : tensor<8x4xf32>\n" TAIL,
     1},
    {"rows that are looked up",
     HEAD BODY
     "  %index = stablehlo.reshape %ids : (tensor<16xi32>) -> tensor<16x1xi32>\n"
     "  %e = \"stablehlo.gather\"(%w, %index) <{dimension_numbers = #stablehlo.gather<offset_dims "
     "= [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes "
     "= array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<16x1xi32>) -> tensor<16x4xf32>\n" EACH(
         "multiply", "q", "e", "e")
         SUM("loss", "q") "  %none = stablehlo.constant dense<0.0> : tensor<8x4xf32>\n"
                          "  %g = \"stablehlo.scatter\"(%none, %index, %e) "
                          "<{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = "
                          "[1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                          "index_vector_dim = 1>}> ({\n"
                          "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
                          "    %c = stablehlo.add %a, %b : tensor<f32>\n"
                          "    stablehlo.return %c : tensor<f32>\n"
                          "  }) : (tensor<8x4xf32>, tensor<16x1xi32>, tensor<16x4xf32>) -> "
                          "tensor<8x4xf32>\n" UPDATE TAIL,
     1},
};

static sf_tensor *new_tensors(uint32_t count)
{
    return sf_alloc((count + (size_t)1) * sizeof(sf_tensor));
}

static void free_tensors(sf_tensor *tensors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        sf_free(tensors[i].data);
    sf_free(tensors);
}

/* Small numbers that are all different, a few of them zero; indices of w. */
static sf_tensor *fill_arguments(const sf_graph *graph)
{
    const sf_block *top = graph->top;
    sf_tensor *all = new_tensors(top->narguments);
    for (uint32_t i = 0; i < top->narguments; i++) {
        const sf_type *type = sf_argument_type(graph, i);
        all[i] = (sf_tensor){.type = type, .data = sf_alloc((size_t)sf_type_bytes(type))};
        for (int64_t j = 0; j < type->count; j++)
            if (sf_is_float(type->dtype))
                sf_store_f64(type->dtype, all[i].data, j, (double)((j * 7 + i) % 13) / 8);
            else
                sf_store_i64(type->dtype, all[i].data, j, (j * 5 + 3) % 8);
    }
    return all;
}

static sf_tensor *evaluate(const sf_graph *graph, const sf_tensor *arguments)
{
    sf_diag *diag = sf_diag_new();
    sf_tensor *results = new_tensors(graph->top->nresults);
    if (sf_eval_graph(graph, arguments, results, 0, diag) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return results;
}

static void compare(const char *name, const sf_tensor *ours, const sf_tensor *expected)
{
    assert_int_equal(ours->type->count, expected->type->count);
    for (int64_t i = 0; i < expected->type->count; i++) {
        double a = sf_get_f64(ours, i), b = sf_get_f64(expected, i);
        if (!(fabs(a - b) <= 1e-5 * (1 + fabs(b))))
            fail_msg("%s: element %d is %g, not %g", name, (int)i, a, b);
    }
}

static sf_plan *plan_in_turns(const sf_graph *graph, const char *recipe, int ranks,
                              int microbatches)
{
    sf_plan *plan = test_plan(graph, recipe, ranks, recipe ? NULL : "data=1", NULL);
    plan->micro_batches = microbatches;
    return plan;
}

static int count_loops(const sf_graph *graph)
{
    int count = 0;
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        count += sf_is(sf_top_node(graph, i), SF_OP_WHILE);
    return count;
}

/* A sum whose initial value is not known when it is lowered runs by itself, and not in one loop
 * with its operands. */
static void expect_known_starts(const char *name, const sf_graph *graph)
{
    for (uint32_t i = 0; i < graph->nnodes; i++) {
        const sf_node *start = sf_is(graph->nodes[i], SF_OP_REDUCE)
                                   ? sf_maker(graph, graph->nodes[i]->operands[1])
                                   : NULL;
        if (sf_is(graph->nodes[i], SF_OP_REDUCE) && !(start && sf_is(start, SF_OP_CONSTANT)))
            fail_msg("%s: what a sum starts from is handed to its loop", name);
    }
}

static void test_turns_compute_the_step(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int microbatches = 2; microbatches <= 16; microbatches *= 2) {
            sf_graph *graph = test_step_text(cases[c].text);
            sf_tensor *arguments = fill_arguments(graph), *expected = evaluate(graph, arguments);
            sf_plan *plan = plan_in_turns(graph, NULL, 1, microbatches);
            sf_local *local = test_local(graph, plan, 0);
            if (count_loops(local->graph) != cases[c].loops)
                fail_msg("%s: %d loops", cases[c].name, count_loops(local->graph));
            /* that counts in one of the micro-batches alone */
            if (!strstr(cases[c].text, "init: %five"))
                expect_known_starts(cases[c].name, local->graph);
            assert_int_equal(sf_check_local(local, NULL), SF_OK);
            sf_tensor *ours = evaluate(local->graph, arguments);
            for (uint32_t r = 0; r < graph->top->nresults; r++)
                compare(cases[c].name, &ours[r], &expected[r]);
            free_tensors(ours, graph->top->nresults);
            free_tensors(expected, graph->top->nresults);
            free_tensors(arguments, graph->top->narguments);
            sf_local_free(local);
            sf_plan_free(plan);
            sf_graph_free(graph);
        }
}

/* So are micro-batches that are split over ranks: sums, concatenated rows, and the largest of
 * all. */
static void test_turns_of_ranks_are_checked(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int microbatches = 2; microbatches <= 8; microbatches *= 2) {
            sf_graph *graph = test_step_text(cases[c].text);
            sf_plan *plan = plan_in_turns(graph, "dp", 2, microbatches);
            for (int rank = 0; rank < 2; rank++) {
                sf_local *local = test_local(graph, plan, rank);
                assert_int_equal(sf_check_local(local, NULL), SF_OK);
                sf_local_free(local);
            }
            sf_plan_free(plan);
            sf_graph_free(graph);
        }
}

/* Every micro step whose loss decomposes over the batch, in micro-batches that its ranks can split,
 * is checked rank by rank. */
static void test_micro_steps_are_checked(void **state)
{
    (void)state;
    int cut = 0;
    for (int s = 0; test_steps[s]; s++) {
        sf_graph *graph = test_step(test_steps[s]);
        sf_plan *plan = plan_in_turns(graph, "dp", 2, 2);
        sf_diag *diag = sf_diag_new();
        sf_local *local;
        if (sf_local_new(graph, plan, 1, diag, &local) == SF_OK) {
            cut++;
            assert_int_equal(sf_check_local(local, NULL), SF_OK);
            sf_local_free(local);
        } else {
            assert_non_null(strstr(sf_diag_text(diag, 0), "micro-batches: "));
        }
        sf_diag_free(diag);
        sf_plan_free(plan);
        sf_graph_free(graph);
    }
    assert_true(cut > 0);
}

static void expect_refused(const char *text, int microbatches, const char *why)
{
    sf_graph *graph = test_step_text(text);
    sf_plan *plan = plan_in_turns(graph, NULL, 1, microbatches);
    sf_diag *diag = sf_diag_new();
    sf_local *local;
    assert_int_equal(sf_local_new(graph, plan, 0, diag, &local), SF_EMISMATCH);
    if (!strstr(sf_diag_text(diag, 0), why))
        fail_msg("\"%s\" lacks \"%s\"", sf_diag_text(diag, 0), why);
    sf_diag_free(diag);
    sf_plan_free(plan);
    sf_graph_free(graph);
}

static void test_what_is_no_sum_is_refused(void **state)
{
    (void)state;
    /* Each row against each other: a contrastive loss. */
    expect_refused(HEAD BODY
                   "  %t = stablehlo.dot_general %p, %p, contracting_dims = [1] x [1] : "
                   "(tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x16xf32>\n"
                   "  %loss = stablehlo.reduce(%t init: %zero) applies stablehlo.maximum across "
                   "dimensions = [0, 1] : (tensor<16x16xf32>, tensor<f32>) -> tensor<f32>\n"
                   "  %b = stablehlo.dot_general %t, %p, contracting_dims = [1] x [0] : "
                   "(tensor<16x16xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>\n" GRADIENT("b")
                       UPDATE TAIL,
                   2, "dot_general reads dot_general of the whole batch");
    /* A norm over the batch after a product of such a norm's result. */
    expect_refused(
        HEAD BODY SUM("s", "p") ALL("a", "s")
            EACH("subtract", "c", "p",
                 "a") "  %y = stablehlo.dot_general %c, %w, contracting_dims = [1] x [1] : "
                      "(tensor<16x4xf32>, tensor<8x4xf32>) -> tensor<16x8xf32>\n"
                      "  %z = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : "
                      "(tensor<16x8xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>\n" SUM("zs", "z")
                          ALL("za", "zs") EACH("subtract", "h", "z", "za")
                              EACH("multiply", "hh", "h", "h") SUM("loss", "hh") GRADIENT("h")
                                  UPDATE TAIL,
        2, "of the whole batch");
    expect_refused(cases[0].text, 3, "does not split into 3 equal parts");
}

/* 16 bits are added up in 32. */
static void test_sums_are_wide(void **state)
{
    (void)state;
    sf_graph *graph = test_step("gpt-bf16-micro");
    sf_plan *plan = plan_in_turns(graph, NULL, 1, 2);
    sf_local *local = test_local(graph, plan, 0);
    const sf_node *loop = test_node(local->graph, SF_OP_WHILE, 0);
    for (uint32_t r = 0; r < loop->nresults; r++) {
        sf_dtype dtype = sf_type_of(local->graph, loop->result + r)->dtype;
        assert_true(dtype != SF_BF16 && dtype != SF_F16);
    }
    sf_local_free(local);
    sf_plan_free(plan);
    sf_graph_free(graph);
}

/* Gradients that are wanted in shards are kept in shards. */
static void test_sums_in_pieces(void **state)
{
    (void)state;
    int64_t held[2] = {0};
    const char *const recipes[] = {"dp", "zero2"};
    for (int i = 0; i < 2; i++) {
        sf_graph *graph = test_step("gpt-micro");
        sf_plan *plan = plan_in_turns(graph, recipes[i], 2, 2);
        sf_local *local = test_local(graph, plan, 0);
        const sf_node *loop = test_node(local->graph, SF_OP_WHILE, 0);
        for (uint32_t r = 0; r < loop->nresults; r++)
            held[i] += sf_type_bytes(sf_type_of(local->graph, loop->result + r));
        sf_local_free(local);
        sf_plan_free(plan);
        sf_graph_free(graph);
    }
    assert_true((double)held[1] < 0.6 * (double)held[0]);
}

/* A loop that reads a value by a long chain of views. */
static void test_long_chains_of_views(void **state)
{
    (void)state;
    enum { LENGTH = 200000 };
    sf_graph *graph;
    sf_buf text = {0};
    sf_buf_puts(
        &text,
        "func.func @main(%w: tensor<8x8xf32>, %x: tensor<8x8xf32>) -> (tensor<8x8xf32>, "
        "tensor<f32>) {\n"
        "%y0 = stablehlo.transpose %w, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>\n");
    for (int i = 1; i < LENGTH; i++)
        sf_buf_printf(&text,
                      i % 2 ? "%%y%d = stablehlo.reverse %%y%d, dims = [0] : tensor<8x8xf32>\n"
                            : "%%y%d = stablehlo.transpose %%y%d, dims = [1, 0] : "
                              "(tensor<8x8xf32>) -> tensor<8x8xf32>\n",
                      i, i - 1);
    sf_buf_printf(&text,
                  "%%d = stablehlo.dot_general %%x, %%y%d, contracting_dims = [1] x [0] : "
                  "(tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\n"
                  "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                  "%%l = stablehlo.reduce(%%d init: %%z) applies stablehlo.add across dimensions = "
                  "[0, 1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>\n"
                  "%%g = stablehlo.dot_general %%x, %%d, contracting_dims = [0] x [0] : "
                  "(tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\n"
                  "%%n = stablehlo.subtract %%w, %%g : tensor<8x8xf32>\n"
                  "return %%n, %%l : tensor<8x8xf32>, tensor<f32>\n}\n",
                  LENGTH - 1);
    assert_int_equal(sf_load_text(text.text, text.length, "chain", NULL, NULL, &graph), SF_OK);
    assert_true(graph->top->nnodes > LENGTH / 2);
    sf_plan *plan = plan_in_turns(graph, NULL, 1, 2);
    sf_local *local = test_local(graph, plan, 0);
    assert_non_null(test_node(local->graph, SF_OP_WHILE, 0));
    sf_local_free(local);
    sf_plan_free(plan);
    sf_graph_free(graph);
    sf_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_compute_the_step),
        cmocka_unit_test(test_turns_of_ranks_are_checked),
        cmocka_unit_test(test_micro_steps_are_checked),
        cmocka_unit_test(test_what_is_no_sum_is_refused),
        cmocka_unit_test(test_sums_are_wide),
        cmocka_unit_test(test_sums_in_pieces),
        cmocka_unit_test(test_long_chains_of_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
