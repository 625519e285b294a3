/* Recompute in the text: which nodes have the note, that the step is then the one without, and that
 * nodes that only look like a clone are none. A table of texts: two layers, of which the backward
 * pass of the second computes its own values. */
#include "front/remat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ir/opdef.h"
#include "ir/print_graph.h"
#include "op/eval.h"
#include "op/node_builder.h"
#include "op/op.h"
#include "plan/recompute_policy.h"
#include "support/plans.h"

#define T "tensor<4x4xf32>"
#define DOT(out, a, b)                                                                             \
    "  %" out " = stablehlo.dot_general %" a ", %" b ", contracting_dims = [1] x [0] : (" T ", " T \
    ") -> " T "\n"
#define ONE(out, op, a) "  %" out " = stablehlo." op " %" a " : " T "\n"
#define TWO(out, op, a, b) "  %" out " = stablehlo." op " %" a ", %" b " : " T "\n"

#define HEAD                                                                                       \
    "func.func @main(%v: " T ", %w: " T ", %x: " T ", %k: tensor<2xui64>) -> (" T ", " T           \
    ", tensor<f32>, tensor<2xui64>) {\n"                                                           \
    "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"                                      \
    "  %half = stablehlo.constant dense<0.5> : " T "\n"                                            \
    "  %third = stablehlo.constant dense<0.25> : " T "\n"

#define FORWARD                                                                                    \
    DOT("a", "x", "v")                                                                             \
    ONE("b", "tanh", "a")                                                                          \
    DOT("c", "b", "w")                                                                             \
    TWO("d", "multiply", "c", "half")                                                              \
    ONE("e", "tanh", "d")

/* From the second layer's values: %e2, its result, %b2, its operand, and %w2. */
#define REST                                                                                       \
    TWO("s", "multiply", "e", "e")                                                                 \
    "  %loss = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0, "    \
    "1] : (" T ", tensor<f32>) -> tensor<f32>\n" TWO("g", "multiply", "e2", "e2")                  \
        TWO("h", "subtract", "half", "g") DOT("gw", "b2", "h") DOT("ct", "h", "w2")                \
            DOT("gv", "x", "ct") TWO("w3", "subtract", "w", "gw")                                  \
                TWO("v3", "subtract", "v", "gv") "  return %v3, %w3, %loss, %k : " T ", " T        \
                                                 ", tensor<f32>, tensor<2xui64>\n}\n"

#define BARRIER_PAIR                                                                               \
    "  %p:2 = stablehlo.optimization_barrier %w, %b : " T ", " T "\n"                              \
    "  %w2 = stablehlo.optimization_barrier %p#0 : " T "\n"                                        \
    "  %b2 = stablehlo.optimization_barrier %p#1 : " T "\n"
#define RANDOM(out)                                                                                \
    "  %" out "k, %" out "r = stablehlo.rng_bit_generator %k, algorithm = THREE_FRY : "            \
    "(tensor<2xui64>) -> (tensor<2xui64>, tensor<4x4xui32>)\n"                                     \
    "  %" out " = stablehlo.convert %" out "r : (tensor<4x4xui32>) -> " T "\n"
#define RESHAPE(out, from, to, a)                                                                  \
    "  %" out " = stablehlo.reshape %" a " : (tensor<" from "xf32>) -> tensor<" to "xf32>\n"

typedef struct text_case {
    const char *name, *text;
    const char *plain; /* the same without recompute; NULL: there is none */
    const char *noted; /* ops, in order */
    int barriers;      /* that stay */
} text_case;

#define USES(b, e) /* operands of REST */                                                          \
    TWO("b2", "multiply", b, "half")                                                               \
    TWO("e2", "multiply", e, "half") TWO("w2", "multiply", "w", "half")
#define TWIN_OF(first, constant)                                                                   \
    DOT("c2", first, "wb") TWO("d2", "multiply", "c2", constant) ONE("eb", "tanh", "d2")
#define BEHIND                                                                                     \
    "  %wb = stablehlo.optimization_barrier %w : " T "\n"                                          \
    "  %bb = stablehlo.optimization_barrier %b : " T "\n"
#define KEPT HEAD FORWARD USES("b", "e") REST

static const text_case cases[] = {
    {"nothing", KEPT, KEPT, "", 0},
    {"a layer", HEAD FORWARD BEHIND TWIN_OF("bb", "half") USES("bb", "eb") REST, KEPT,
     "dot_general multiply tanh ", 0},
    {"barriers one behind the other, and of several values",
     HEAD FORWARD BARRIER_PAIR "  %wb = stablehlo.optimization_barrier %w2 : " T "\n" TWIN_OF(
         "b2", "half") TWO("w4", "multiply", "w", "half") TWO("b4", "multiply", "b2", "half")
         TWO("e2", "multiply", "eb", "half") TWO("g", "multiply", "e2", "e2")
             TWO("h", "subtract", "half", "g") DOT("gw", "b4", "h") DOT("ct", "h", "w4") DOT(
                 "gv", "x", "ct") TWO("w3", "subtract", "w", "gw") TWO("v3", "subtract", "v", "gv")
                 TWO("s", "multiply", "e",
                     "e") "  %loss = stablehlo.reduce(%s init: %zero) applies "
                          "stablehlo.add across dimensions = [0, 1] : (" T
                          ", tensor<f32>) -> tensor<f32>\n"
                          "  return %v3, %w3, %loss, %k : " T ", " T
                          ", tensor<f32>, tensor<2xui64>\n}\n",
     KEPT, "dot_general multiply tanh ", 0},
    {"a policy that keeps the product",
     HEAD FORWARD "  %cb = stablehlo.optimization_barrier %c : " T "\n" TWO(
         "d2", "multiply", "cb", "half") ONE("eb", "tanh", "d2") USES("b", "eb") REST,
     KEPT, "multiply tanh ", 0},
    {"a product that a policy marks as kept",
     HEAD DOT("a", "x", "v") ONE("b", "tanh", "a")
         DOT("c0", "b", "w") "  %c = stablehlo.reduce_precision %c0, format = e8m23 : " T "\n" TWO(
             "d", "multiply", "c", "half")
             ONE("e", "tanh", "d") "  %cb = stablehlo.optimization_barrier %c : " T "\n" TWO(
                 "d2", "multiply", "cb", "half") ONE("eb", "tanh", "d2") USES("b", "eb") REST,
     KEPT, "multiply tanh ", 0},
    {"all, from the first value on",
     HEAD FORWARD "  %xb = stablehlo.optimization_barrier %x : " T "\n"
                  "  %vb = stablehlo.optimization_barrier %v : " T "\n"
                  "  %wb = stablehlo.optimization_barrier %w : " T "\n" DOT("ab", "xb", "vb")
                      ONE("bb", "tanh", "ab") TWIN_OF("bb", "half") USES("bb", "eb") REST,
     KEPT, "dot_general tanh dot_general multiply tanh ", 0},
    {"a value that the text keeps as well",
     HEAD FORWARD BEHIND TWIN_OF("bb", "half") TWO("f", "add", "e", "eb")
         TWO("both", "multiply", "f", "half") USES("bb", "both") REST,
     HEAD FORWARD TWO("f", "add", "e", "e") TWO("both", "multiply", "f", "half") USES("b", "both")
         REST,
     "", 0},
    {"checkpoints within each other",
     HEAD FORWARD BEHIND TWIN_OF(
         "bb", "half") "  %db = stablehlo.optimization_barrier %d2 : " T
                       "\n" ONE("e4", "tanh", "db") TWO("f", "add", "e4", "eb")
                           TWO("both", "multiply", "f", "half") USES("bb", "both") REST,
     HEAD FORWARD TWO("f", "add", "e", "e") TWO("both", "multiply", "f", "half") USES("b", "both")
         REST,
     "dot_general multiply tanh ", 0},
    {"shapes that normal form joins behind a barrier",
     HEAD FORWARD RESHAPE("r", "4x4", "16", "e")
         RESHAPE("q", "16", "2x8", "r") "  %u = stablehlo.tanh %q : tensor<2x8xf32>\n" RESHAPE(
             "u2", "2x8", "4x4",
             "u") "  %rb = stablehlo.optimization_barrier %r : "
                  "tensor<16xf32>\n" RESHAPE(
                      "qb", "16", "2x8",
                      "rb") "  %ub = stablehlo.tanh %qb : "
                            "tensor<2x8xf32>\n" RESHAPE("ur", "2x8", "4x4", "ub") USES("b", "ur")
                                TWO("s", "multiply", "u2",
                                    "u2") "  %loss = "
                                          "stablehlo.reduce(%"
                                          "s init: %zero) "
                                          "applies "
                                          "stablehlo.add "
                                          "across "
                                          "dimensions = [0, "
                                          "1] : (" T ", tensor<f32>) -> "
                                          "tensor<f32>\n" TWO("g", "multiply", "e2", "e2")
                                              TWO("h",
                                                  "subtr"
                                                  "act",
                                                  "half", "g") DOT("gw", "b2", "h")
                                                  TWO("w3",
                                                      "subtrac"
                                                      "t",
                                                      "w", "gw") " "
                                                                 " "
                                                                 "r"
                                                                 "e"
                                                                 "t"
                                                                 "u"
                                                                 "r"
                                                                 "n"
                                                                 " "
                                                                 "%"
                                                                 "v"
                                                                 ","
                                                                 " "
                                                                 "%"
                                                                 "w"
                                                                 "3"
                                                                 ","
                                                                 " "
                                                                 "%"
                                                                 "l"
                                                                 "o"
                                                                 "s"
                                                                 "s"
                                                                 ","
                                                                 " "
                                                                 "%"
                                                                 "k"
                                                                 " "
                                                                 ":"
                                                                 " " T ","
                                                                 " " T ","
                                                                 " "
                                                                 "t"
                                                                 "e"
                                                                 "n"
                                                                 "s"
                                                                 "o"
                                                                 "r"
                                                                 "<"
                                                                 "f"
                                                                 "3"
                                                                 "2"
                                                                 ">"
                                                                 ","
                                                                 " "
                                                                 "t"
                                                                 "e"
                                                                 "n"
                                                                 "s"
                                                                 "o"
                                                                 "r"
                                                                 "<"
                                                                 "2"
                                                                 "x"
                                                                 "u"
                                                                 "i"
                                                                 "6"
                                                                 "4"
                                                                 ">"
                                                                 "\n}\n",
     NULL, "tanh reshape ", 0},
    {"random bits",
     HEAD DOT("a", "x", "v") ONE("b", "tanh", "a") DOT("c", "b", "w") RANDOM("n")
         TWO("d", "multiply", "c", "n")
             ONE("e", "tanh",
                 "d") "  %cb = stablehlo.optimization_barrier %c : " T "\n"
                      "  %kb = stablehlo.optimization_barrier %k : tensor<2xui64>\n"
                      "  %mk, %mr = stablehlo.rng_bit_generator %kb, algorithm = THREE_FRY : "
                      "(tensor<2xui64>) -> (tensor<2xui64>, tensor<4x4xui32>)\n"
                      "  %m = stablehlo.convert %mr : (tensor<4x4xui32>) -> " T "\n" TWO(
                          "d2", "multiply", "cb", "m") ONE("eb", "tanh", "d2") USES("b", "eb") REST,
     HEAD DOT("a", "x", "v") ONE("b", "tanh", "a") DOT("c", "b", "w") RANDOM("n")
         TWO("d", "multiply", "c", "n") ONE("e", "tanh", "d") USES("b", "e") REST,
     "rng_bit_generator convert multiply tanh ", 0},
    /* Nodes that only look like clones. */
    {"another number", HEAD FORWARD BEHIND TWIN_OF("bb", "third") USES("bb", "eb") REST, NULL,
     "dot_general ", 0},
    {"another operand", HEAD FORWARD BEHIND TWIN_OF("x", "half") USES("bb", "eb") REST, NULL, "",
     0},
    {"another op",
     HEAD FORWARD BEHIND DOT("c2", "bb", "wb") TWO("d2", "add", "c2", "half")
         ONE("eb", "tanh", "d2") USES("bb", "eb") REST,
     NULL, "dot_general ", 0},
    {"without a barrier",
     HEAD FORWARD DOT("c2", "b", "w") TWO("d2", "multiply", "c2", "half") ONE("eb", "tanh", "d2")
         USES("b", "eb") REST,
     KEPT, "", 0},
    {"a barrier in the forward pass",
     HEAD DOT("a", "x", "v") ONE(
         "b", "tanh", "a") "  %bf = stablehlo.optimization_barrier %b : " T "\n" DOT("c", "bf", "w")
         TWO("d", "multiply", "c", "half") ONE("e", "tanh", "d") USES("b", "e") REST,
     NULL, "", 1},
    {"no training",
     "func.func @main(%x: " T ") -> " T
     " {\n" ONE("a", "tanh", "x") "  %xb = stablehlo.optimization_barrier %x : " T "\n" ONE(
         "b", "tanh", "xb") TWO("c", "add", "a", "b") "  return %c : " T "\n}\n",
     NULL, "", 1},
};
enum { CASES = sizeof cases / sizeof *cases };

static void list_noted(const sf_graph *graph, char out[500], int *barriers)
{
    *out = '\0';
    *barriers = 0;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        *barriers += sf_is(node, SF_OP_OPTIMIZATION_BARRIER);
        if (node->recomputed && sf_can_recompute(graph, node)) {
            strcat(out, node->def->name);
            strcat(out, " ");
        }
    }
}

static sf_tensor *evaluate(const sf_graph *graph)
{
    sf_tensor *arguments = sf_alloc(graph->top->narguments * sizeof *arguments);
    sf_tensor *results = sf_alloc(graph->top->nresults * sizeof *results);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_type *type = sf_argument_type(graph, i);
        arguments[i] = (sf_tensor){.type = type, .data = sf_alloc((size_t)sf_type_bytes(type))};
        for (int64_t j = 0; j < type->count; j++)
            if (sf_is_float(type->dtype))
                sf_store_f64(type->dtype, arguments[i].data, j, (double)((j * 7 + i) % 11) / 8);
            else
                sf_store_i64(type->dtype, arguments[i].data, j, j + 3);
    }
    assert_int_equal(sf_eval_graph(graph, arguments, results, 0, NULL), SF_OK);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        sf_free(arguments[i].data);
    sf_free(arguments);
    return results;
}

static bool same_results(const sf_graph *a, const sf_graph *b)
{
    sf_tensor *x = evaluate(a), *y = evaluate(b);
    bool same = a->top->nresults == b->top->nresults;
    for (uint32_t i = 0; i < a->top->nresults && same; i++)
        same = memcmp(x[i].data, y[i].data, (size_t)sf_type_bytes(x[i].type)) == 0;
    for (uint32_t i = 0; i < a->top->nresults; i++)
        sf_free(x[i].data);
    for (uint32_t i = 0; i < b->top->nresults; i++)
        sf_free(y[i].data);
    sf_free(x);
    sf_free(y);
    return same;
}

static void test_notes(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const text_case *c = &cases[i];
        sf_graph *graph = test_step_text(c->text);
        char noted[500];
        int barriers;
        list_noted(graph, noted, &barriers);
        if (strcmp(noted, c->noted) != 0 || barriers != c->barriers)
            fail_msg("%s: noted are %s, and %d barriers stay", c->name, noted, barriers);
        assert_int_equal(sf_graph_verify(graph, NULL), SF_OK);
        sf_graph_free(graph);
    }
}

/* With one hash, and to the last bit; and a node that is no clone is not taken for one. */
static void test_it_is_the_step_without(void **state)
{
    (void)state;
    sf_graph *kept = test_step_text(KEPT);
    for (int i = 0; i < CASES; i++) {
        const text_case *c = &cases[i];
        sf_graph *graph = test_step_text(c->text);
        sf_graph *plain = c->plain ? test_step_text(c->plain) : NULL;
        if (plain && (sf_graph_hash(graph) != sf_graph_hash(plain) || !same_results(graph, plain)))
            fail_msg("%s: it is another step", c->name);
        if (!plain && sf_graph_hash(graph) == sf_graph_hash(kept))
            fail_msg("%s: it is taken for the step", c->name);
        if (strncmp(c->name, "another", 7) == 0 && same_results(graph, kept))
            fail_msg("%s: it computes the same", c->name);
        sf_graph_free(plain);
        sf_graph_free(graph);
    }
    sf_graph_free(kept);
}

/* The step as the text has it is the step; written, it reads as it was. */
static void test_as_the_text_has_it(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const text_case *c = &cases[i];
        sf_graph *graph = test_step_text(c->text);
        assert_int_equal(sf_text_has_recompute(graph), *c->noted != '\0');
        if (*c->noted) {
            char noted[500];
            int barriers;
            sf_buf text = {0};
            sf_recomputed_step t = sf_recompute_as_text(graph);
            assert_int_equal(sf_check_recomputed(graph, &t, NULL), SF_OK);
            assert_true(same_results(graph, t.graph));
            sf_print_stablehlo(t.graph, &text);
            sf_graph *read = test_step_text(text.text);
            list_noted(read, noted, &barriers);
            assert_string_equal(noted, c->noted);
            assert_true(sf_graph_hash(read) == sf_graph_hash(graph));
            sf_graph_free(read);
            sf_buf_free(&text);
            sf_recomputed_step_free(&t);
        }
        sf_graph_free(graph);
    }
}

/* Two loops over stacked layers: the second, of the backward pass, computes the same as the first,
 * with no barrier in between. */
static const char loops[] =
    "func.func @main(%w: tensor<3x4x4xf32>, %x: " T ") -> (tensor<3x4x4xf32>, tensor<f32>) {\n"
    "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %none = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %two = stablehlo.constant dense<2> : tensor<i32>\n"
    "  %three = stablehlo.constant dense<3> : tensor<i32>\n"
    "  %stack = stablehlo.constant dense<0.0> : tensor<3x4x4xf32>\n"
    "  %f:3 = stablehlo.while(%i = %none, %h = %x, %kept = %stack) : tensor<i32>, " T
    ", tensor<3x4x4xf32>\n"
    "  cond {\n"
    "    %go = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %go : tensor<i1>\n"
    "  } do {\n"
    "    %ws = stablehlo.dynamic_slice %w, %i, %none, %none, sizes = [1, 4, 4] : "
    "(tensor<3x4x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x4xf32>\n"
    "    %wi = stablehlo.reshape %ws : (tensor<1x4x4xf32>) -> " T "\n"
    "    %hs = stablehlo.reshape %h : (" T ") -> tensor<1x4x4xf32>\n"
    "    %k2 = stablehlo.dynamic_update_slice %kept, %hs, %i, %none, %none : (tensor<3x4x4xf32>, "
    "tensor<1x4x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x4xf32>\n" DOT(
        "a", "h", "wi") ONE("b", "tanh", "a")
        TWO("h2", "add", "h",
            "b") "    %i2 = stablehlo.add %i, %one : tensor<i32>\n"
                 "    stablehlo.return %i2, %h2, %k2 : tensor<i32>, " T ", tensor<3x4x4xf32>\n"
                 "  }\n" TWO(
                     "s", "multiply", "f#1",
                     "f#1") "  %loss = stablehlo.reduce(%s init: %zero) applies stablehlo.add "
                            "across dimensions = "
                            "[0, 1] : (" T ", tensor<f32>) -> tensor<f32>\n"
                            "  %ct0 = stablehlo.add %f#1, %f#1 : " T "\n"
                            "  %r:3 = stablehlo.while(%i = %none, %ct = %ct0, %gw = %stack) : "
                            "tensor<i32>, " T ", tensor<3x4x4xf32>\n"
                            "  cond {\n"
                            "    %go = stablehlo.compare LT, %i, %three : (tensor<i32>, "
                            "tensor<i32>) -> "
                            "tensor<i1>\n"
                            "    stablehlo.return %go : tensor<i1>\n"
                            "  } do {\n"
                            "    %j = stablehlo.subtract %two, %i : tensor<i32>\n"
                            "    %ws = stablehlo.dynamic_slice %w, %j, %none, %none, sizes = [1, "
                            "4, 4] : "
                            "(tensor<3x4x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> "
                            "tensor<1x4x4xf32>\n"
                            "    %wi = stablehlo.reshape %ws : (tensor<1x4x4xf32>) -> " T "\n"
                            "    %hs = stablehlo.dynamic_slice %f#2, %j, %none, %none, sizes = [1, "
                            "4, 4] : "
                            "(tensor<3x4x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> "
                            "tensor<1x4x4xf32>\n"
                            "    %h = stablehlo.reshape %hs : (tensor<1x4x4xf32>) -> " T
                            "\n" DOT("a", "h", "wi") ONE("b", "tanh", "a")
                                TWO("c", "multiply", "b", "ct")
                                    DOT("g", "h",
                                        "c") "    %gs = stablehlo.reshape %g : (" T
                                             ") -> tensor<1x4x4xf32>\n"
                                             "    %gw2 = stablehlo.dynamic_update_slice %gw, %gs, "
                                             "%j, %none, %none : "
                                             "(tensor<3x4x4xf32>, tensor<1x4x4xf32>, tensor<i32>, "
                                             "tensor<i32>, "
                                             "tensor<i32>) -> tensor<3x4x4xf32>\n"
                                             "    %i2 = stablehlo.add %i, %one : tensor<i32>\n"
                                             "    stablehlo.return %i2, %c, %gw2 : tensor<i32>, " T
                                             ", tensor<3x4x4xf32>\n"
                                             "  }\n"
                                             "  %new = stablehlo.subtract %w, %r#2 : "
                                             "tensor<3x4x4xf32>\n"
                                             "  return %new, %loss : tensor<3x4x4xf32>, "
                                             "tensor<f32>\n}\n";

static void test_loops(void **state)
{
    (void)state;
    sf_graph *rolled = test_step_text(loops), *graph = NULL;
    char noted[500];
    int barriers;
    assert_int_equal(sf_load_text(loops, strlen(loops), "loops", NULL, NULL, &graph), SF_OK);
    list_noted(graph, noted, &barriers);
    assert_string_equal(noted, "dot_general tanh dot_general tanh dot_general tanh ");
    sf_recomputed_step t = sf_recompute_as_text(graph);
    assert_int_equal(sf_check_recomputed(graph, &t, NULL), SF_OK);
    assert_true(same_results(rolled, graph));
    assert_true(same_results(rolled, t.graph));
    sf_recomputed_step_free(&t);
    assert_false(sf_text_has_recompute(rolled));
    sf_graph_free(graph);
    sf_graph_free(rolled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_it_is_the_step_without),
        cmocka_unit_test(test_as_the_text_has_it),
        cmocka_unit_test(test_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
