/* From a text to the graph and back: imported loops, spellings, roles and phases, on steps small
 * enough to read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/str.h"
#include "ir/opdef.h"
#include "ir/print_graph.h"
#include "op/op.h"
#include "op/slots.h"
#include "sheaf/sheaf.h"

static sf_graph *load_with(const char *text, const sf_load_options *options)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    if (sf_load_text(text, strlen(text), "t", options, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return graph;
}

static sf_graph *load(const char *text)
{
    return load_with(text, NULL);
}

static uint64_t hash_of(const char *text)
{
    sf_graph *graph = load(text);
    uint64_t hash = sf_graph_hash(graph);
    sf_graph_free(graph);
    return hash;
}

/* The text of the graph; it must read back as the same graph and print to the same text. */
static char *print(const sf_graph *graph, sf_buf *out)
{
    sf_buf recomputed = {0};
    sf_print_stablehlo(graph, out);
    sf_graph *copy = load(out->text);
    assert_true(sf_graph_hash(copy) == sf_graph_hash(graph));
    sf_print_stablehlo(copy, &recomputed);
    assert_string_equal(recomputed.text, out->text);
    sf_graph_free(copy);
    sf_buf_free(&recomputed);
    return out->text;
}

static void check_printed(const char *text, const char *expected)
{
    sf_buf out = {0};
    sf_graph *graph = load(text);
    if (!strstr(print(graph, &out), expected))
        fail_msg("\"%s\" is not in %s", expected, out.text);
    sf_graph_free(graph);
    sf_buf_free(&out);
}

static int count_op(const sf_graph *graph, sf_opcode code)
{
    int count = 0;
    for (size_t i = 0; i < graph->nnodes; i++)
        count += sf_is(graph->nodes[i], code);
    return count;
}

static const sf_node *find_op(const sf_graph *graph, sf_opcode code)
{
    for (size_t i = 0; i < graph->nnodes; i++)
        if (sf_is(graph->nodes[i], code))
            return graph->nodes[i];
    fail_msg("there is no %s", sf_opdef_get(code)->name);
    return NULL;
}

#define MAIN(arguments, result, body)                                                              \
    "func.func @main(" arguments ") -> " result " {\n" body "  return %r : " result "\n}\n"
#define ENTRY(body) "HloModule m\n\nENTRY e {\n" body "}\n"

/* Pairs of texts that say the same thing. */
static void test_equal_hashes(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        /* The operands of commutative ops, in either order. */
        {MAIN("%a: tensor<2xf32>, %b: tensor<2xf32>", "tensor<2xf32>",
              "  %r = stablehlo.add %a, %b : tensor<2xf32>\n"),
         MAIN("%a: tensor<2xf32>, %b: tensor<2xf32>", "tensor<2xf32>",
              "  %r = stablehlo.add %b, %a : tensor<2xf32>\n")},
        /* A transpose that moves a dimension of size 1. */
        {MAIN("%a: tensor<1x8xf32>", "tensor<8x1xf32>",
              "  %r = stablehlo.transpose %a, dims = [1, 0] : (tensor<1x8xf32>) -> "
              "tensor<8x1xf32>\n"),
         ENTRY("  x = f32[1,8]{1,0} parameter(0)\n  ROOT y = f32[8,1]{1,0} reshape(x)\n")},
        /* Blanks between precisions. */
        {MAIN("%a: tensor<2x2xf32>", "tensor<2x2xf32>",
              "  %r = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0], precision = "
              "[HIGHEST, HIGH] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>\n"),
         ENTRY("  x = f32[2,2]{1,0} parameter(0)\n  ROOT y = f32[2,2]{1,0} dot(x, x), "
               "lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
               "operand_precision={highest,high}\n")},
        /* The two ways in which JAX writes the configuration of a typed call. */
        {MAIN("%a: tensor<2xf32>", "tensor<2xf32>",
              "  %r = stablehlo.custom_call @f(%a) {backend_config = \"\", mhlo.backend_config = "
              "{uplo = 76 : ui8}} : (tensor<2xf32>) -> tensor<2xf32>\n"),
         ENTRY("  x = f32[2]{0} parameter(0)\n  ROOT y = f32[2]{0} custom-call(x), "
               "custom_call_target=\"f\", api_version=API_VERSION_TYPED_FFI, "
               "backend_config={uplo = 76 : ui8}\n")},
        /* Bits read as another type, and in another layout. */
        {MAIN("%a: tensor<2xf32>", "tensor<2xi32>",
              "  %r = stablehlo.bitcast_convert %a : (tensor<2xf32>) -> tensor<2xi32>\n"),
         ENTRY("  x = f32[2]{0} parameter(0)\n  ROOT y = s32[2]{0} bitcast(x)\n")},
        {MAIN("%a: tensor<8xf32>", "tensor<8x1x1xf32>",
              "  %r = stablehlo.reshape %a : (tensor<8xf32>) -> tensor<8x1x1xf32>\n"),
         ENTRY("  x = f32[8]{0} parameter(0)\n  ROOT y = f32[8,1,1]{0,2,1} bitcast(x)\n")},
        {MAIN("%a: tensor<2x3xf32>", "tensor<3x2xf32>",
              "  %r = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> "
              "tensor<3x2xf32>\n"),
         ENTRY("  x = f32[2,3]{1,0} parameter(0)\n  ROOT y = f32[3,2]{0,1} bitcast(x)\n")},
        {MAIN("%a: tensor<2x3xf32>", "tensor<6xf32>",
              "  %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> "
              "tensor<3x2xf32>\n  %r = stablehlo.reshape %t : (tensor<3x2xf32>) -> "
              "tensor<6xf32>\n"),
         ENTRY("  x = f32[2,3]{0,1} parameter(0)\n  ROOT y = f32[6]{0} bitcast(x)\n")},
        /* A mark in front of the text. */
        {ENTRY("  ROOT x = f32[8]{0} parameter(0)\n"),
         "\xEF\xBB\xBF" ENTRY("  ROOT x = f32[8]{0} parameter(0)\n")},
        {MAIN("%r: tensor<2xf32>", "tensor<2xf32>", ""),
         "\xEF\xBB\xBF" MAIN("%r: tensor<2xf32>", "tensor<2xf32>", "")},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (hash_of(pairs[i][0]) != hash_of(pairs[i][1]))
            fail_msg("pair %zu has two hashes", i);
}

#define SOLVE(config)                                                                              \
    MAIN("%a: tensor<2xf32>", "tensor<2xf32>",                                                     \
         "  %r = stablehlo.custom_call @f(%a) {" config "} : (tensor<2xf32>) -> tensor<2xf32>\n")

/* Pairs that differ in one thing. */
static void test_different_hashes(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {SOLVE("mhlo.backend_config = {uplo = 76 : ui8}"),
         SOLVE("mhlo.backend_config = {uplo = 85 : ui8}")},
        {SOLVE("backend_config = \"a\""), SOLVE("backend_config = \"b\"")},
        {MAIN("%a: tensor<2xf32>, %b: tensor<2xf32>", "tensor<2xf32>",
              "  %r = stablehlo.subtract %a, %b : tensor<2xf32>\n"),
         MAIN("%a: tensor<2xf32>, %b: tensor<2xf32>", "tensor<2xf32>",
              "  %r = stablehlo.subtract %b, %a : tensor<2xf32>\n")},
        {MAIN("%a: tensor<2x2xf32>", "tensor<2x2xf32>",
              "  %r = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x2xf32>) -> "
              "tensor<2x2xf32>\n"),
         MAIN("%r: tensor<2x2xf32>", "tensor<2x2xf32>", "")},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (hash_of(pairs[i][0]) == hash_of(pairs[i][1]))
            fail_msg("pair %zu has one hash", i);
}

/* Requirements of MLIR on printed text. */
static void test_printed(void **state)
{
    (void)state;
    check_printed(SOLVE("backend_config = \"\", mhlo.backend_config = {uplo = 76 : ui8}"),
                  "backend_config = {uplo = 76 : ui8}, api_version = 4 : i32");
    check_printed(SOLVE("backend_config = \"{\", api_version = 4 : i32"),
                  "backend_config = \"{\", api_version = 4 : i32");
    check_printed(SOLVE("backend_config = \"{a = 1}\""), "backend_config = \"{a = 1}\"");
    check_printed(MAIN("%a: tensor<2xi1>, %c: tensor<i1>", "tensor<2xi1>",
                       "  %r = stablehlo.reduce(%a init: %c) applies stablehlo.or across "
                       "dimensions = [] : (tensor<2xi1>, tensor<i1>) -> tensor<2xi1>\n"),
                  "dimensions = array<i64>");
    check_printed(MAIN("%a: tensor<2xf32>", "tensor<2xi32>",
                       "  %r = stablehlo.bitcast_convert %a : (tensor<2xf32>) -> tensor<2xi32>\n"),
                  "stablehlo.bitcast_convert %arg0 : (tensor<2xf32>) -> tensor<2xi32>");
    check_printed(MAIN("%a: tensor<2x2xf32>", "tensor<2x2xf32>",
                       "  %r = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0], "
                       "precision = [HIGHEST,  HIGH] : (tensor<2x2xf32>, tensor<2x2xf32>) -> "
                       "tensor<2x2xf32>\n"),
                  "[#stablehlo<precision HIGHEST>, #stablehlo<precision HIGH>]");
}

/* Bits that keep their type are the same bits. */
static void test_same_bits(void **state)
{
    (void)state;
    sf_graph *graph = load(ENTRY("  a = u32[2]{0} parameter(0)\n"
                                 "  ROOT b = u32[2]{0} bitcast-convert(a)\n"));
    assert_int_equal(graph->nnodes, 0);
    sf_graph_free(graph);
}

static void test_shardy(void **state)
{
    (void)state;
    static const char text[] =
        "module {\n  sdy.mesh @mesh = <[\"d\"=1]>\n"
        "  func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}]>}) -> "
        "tensor<4xf32> {\n"
        "    %0 = sdy.sharding_constraint %x <@mesh, [{\"d\"}]> : tensor<4xf32>\n"
        "    %1 = \"sdy.sharding_constraint\"(%0) <{sharding = #sdy.sharding<@mesh, [{}]>}> : "
        "(tensor<4xf32>) -> tensor<4xf32>\n"
        "    return %1 : tensor<4xf32>\n  }\n}\n";
    sf_graph *graph = load(text);
    sf_buf out = {0};
    assert_int_equal(count_op(graph, SF_OP_CUSTOM_CALL), 2);
    const sf_node *node = find_op(graph, SF_OP_CUSTOM_CALL);
    assert_string_equal(node->attrs[SF_CUSTOM_TARGET]->text, "Sharding");
    assert_string_equal(node->attrs[SF_CUSTOM_SHARDING]->text, "#sdy.sharding<@mesh, [{\"d\"}]>");
    assert_string_equal(graph->arguments[0].sharding, "#sdy.sharding<@mesh, [{\"d\"}]>");
    print(graph, &out);
    assert_null(strstr(out.text, "mhlo.sharding")); /* it would have to be one of HLO */
    assert_non_null(strstr(out.text, "sheaf.sharding"));
    sf_graph_free(graph);
    sf_buf_free(&out);
    check_printed(SOLVE("mhlo.sharding = \"{replicated}\""),
                  "\"mhlo.sharding\" = \"{replicated}\"");
}

/* A loop that counts to %n, or never stops; the counter is carried with it. */
#define LOOP(limit, step)                                                                          \
    "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"                                      \
    "  %z = stablehlo.constant dense<0> : tensor<i32>\n"                                           \
    "  %n = stablehlo.constant dense<" limit "> : tensor<i32>\n"                                   \
    "  %0:2 = stablehlo.while(%i = %z, %v = %x) : tensor<i32>, tensor<4xf32>\n"                    \
    "  cond {\n"                                                                                   \
    "    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"           \
    "    stablehlo.return %c : tensor<i1>\n"                                                       \
    "  } do {\n"                                                                                   \
    "    %s = stablehlo.constant dense<" step "> : tensor<i32>\n"                                  \
    "    %j = stablehlo.add %i, %s : tensor<i32>\n"                                                \
    "    %w = stablehlo.add %v, %v : tensor<4xf32>\n"                                              \
    "    stablehlo.return %j, %w : tensor<i32>, tensor<4xf32>\n  }\n"                              \
    "  return %0#1 : tensor<4xf32>\n}\n"

static void test_trip_counts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t unroll, trips; /* -1: not known, 0: unrolled */
    } cases[] = {
        {LOOP("256", "1"), 0, 0},    {LOOP("257", "1"), 256, 257}, {LOOP("257", "2"), 256, 0},
        {LOOP("2048", "1"), 0, 0},   {LOOP("2049", "1"), 0, 2049}, {LOOP("65000", "1"), 0, 65000},
        {LOOP("80000", "1"), 0, -1}, {LOOP("5", "1"), -1, 5},      {LOOP("5", "0"), 0, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_load_options options = {.size = sizeof options, .unroll = cases[i].unroll};
        sf_graph *graph = load_with(cases[i].text, &options);
        if (cases[i].trips == 0) {
            assert_int_equal(count_op(graph, SF_OP_WHILE), 0);
        } else {
            const sf_attr *trips = find_op(graph, SF_OP_WHILE)->attrs[SF_WHILE_TRIPS];
            assert_int_equal(trips ? trips->integer : -1, cases[i].trips);
        }
        sf_graph_free(graph);
    }
}

/* The trip count follows from the other attributes, so it is in neither the hash nor the text. */
static void test_trip_count_is_a_note(void **state)
{
    (void)state;
    sf_buf out = {0};
    sf_graph *graph = load(LOOP("3000", "1"));
    assert_null(strstr(print(graph, &out), "trip"));
    uint64_t hash = sf_graph_hash(graph);
    ((const sf_attr **)find_op(graph, SF_OP_WHILE)->attrs)[SF_WHILE_TRIPS] = NULL;
    assert_true(sf_graph_hash(graph) == hash);
    sf_graph_free(graph);
    sf_buf_free(&out);
}

/* A step of gradient descent on x w = y, without any names. */
#define DESCENT(arguments, results, returned, types)                                               \
    "func.func @main(" arguments ") -> " results " {\n"                                            \
    "  %p = stablehlo.dot_general %arg1, %arg0, contracting_dims = [1] x [0] : "                   \
    "(tensor<6x3xf32>, tensor<3xf32>) -> tensor<6xf32>\n"                                          \
    "  %e = stablehlo.subtract %p, %arg2 : tensor<6xf32>\n"                                        \
    "  %q = stablehlo.multiply %e, %e : tensor<6xf32>\n"                                           \
    "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"                                         \
    "  %l = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0] : "        \
    "(tensor<6xf32>, tensor<f32>) -> tensor<f32>\n"                                                \
    "  %g = stablehlo.dot_general %e, %arg1, contracting_dims = [0] x [0] : "                      \
    "(tensor<6xf32>, tensor<6x3xf32>) -> tensor<3xf32>\n"                                          \
    "  %c = stablehlo.constant dense<0.1> : tensor<3xf32>\n"                                       \
    "  %d = stablehlo.multiply %g, %c : tensor<3xf32>\n"                                           \
    "  %w = stablehlo.subtract %arg0, %d : tensor<3xf32>\n"                                        \
    "  return " returned " : " types "\n}\n"
#define WEIGHTS "%arg0: tensor<3xf32>, "
#define DATA "%arg1: tensor<6x3xf32>, %arg2: tensor<6xf32>"

static sf_phase phase_of(const sf_graph *graph, sf_opcode code, uint32_t which)
{
    uint32_t seen = 0;
    for (size_t i = 0; i < graph->nnodes; i++)
        if (sf_is(graph->nodes[i], code) && seen++ == which)
            return graph->nodes[i]->phase;
    fail_msg("there is no %s %u", sf_opdef_get(code)->name, which);
    return SF_FORWARD;
}

static void test_phases_without_names(void **state)
{
    (void)state;
    sf_graph *graph = load(DESCENT(WEIGHTS DATA, "(tensor<3xf32>, tensor<f32>)", "%w, %l",
                                   "tensor<3xf32>, tensor<f32>"));
    assert_int_equal(graph->arguments[0].next, 0);
    assert_int_equal(graph->arguments[0].role, SF_ROLE_PARAM);
    assert_int_equal(graph->arguments[1].role, SF_ROLE_BATCH);
    assert_int_equal(phase_of(graph, SF_OP_DOT_GENERAL, 0), SF_FORWARD);
    assert_int_equal(phase_of(graph, SF_OP_DOT_GENERAL, 1), SF_BACKWARD);
    assert_int_equal(phase_of(graph, SF_OP_MULTIPLY, 0), SF_FORWARD);
    assert_int_equal(phase_of(graph, SF_OP_MULTIPLY, 1), SF_UPDATE);
    assert_int_equal(phase_of(graph, SF_OP_SUBTRACT, 0), SF_FORWARD);
    assert_int_equal(phase_of(graph, SF_OP_SUBTRACT, 1), SF_UPDATE);
    assert_int_equal(phase_of(graph, SF_OP_CONSTANT, 0), SF_FORWARD);
    assert_int_equal(phase_of(graph, SF_OP_CONSTANT, 1), SF_UPDATE);
    sf_graph_free(graph);
}

/* Weights that the loss reads and no update changes are no state of the optimizer: gradients
 * through them are backward. */
static void test_phases_with_frozen_weights(void **state)
{
    (void)state;
    sf_graph *graph = load(
        "func.func @main(%a: tensor<3x3xf32> loc(\"params['a']\"), %f: tensor<3x3xf32> "
        "loc(\"stats['f']\"), %x: tensor<6x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>, "
        "tensor<f32>) {\n"
        "  %h = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0] : (tensor<6x3xf32>, "
        "tensor<3x3xf32>) -> tensor<6x3xf32>\n"
        "  %p = stablehlo.dot_general %h, %f, contracting_dims = [1] x [0] : (tensor<6x3xf32>, "
        "tensor<3x3xf32>) -> tensor<6x3xf32>\n"
        "  %q = stablehlo.multiply %p, %p : tensor<6x3xf32>\n"
        "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "  %l = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0, 1] : "
        "(tensor<6x3xf32>, tensor<f32>) -> tensor<f32>\n"
        "  %d = stablehlo.dot_general %p, %f, contracting_dims = [1] x [1] : (tensor<6x3xf32>, "
        "tensor<3x3xf32>) -> tensor<6x3xf32>\n"
        "  %g = stablehlo.dot_general %x, %d, contracting_dims = [0] x [0] : (tensor<6x3xf32>, "
        "tensor<6x3xf32>) -> tensor<3x3xf32>\n"
        "  %n = stablehlo.subtract %a, %g : tensor<3x3xf32>\n"
        "  return %n, %f, %l : tensor<3x3xf32>, tensor<3x3xf32>, tensor<f32>\n}\n");
    assert_int_equal(graph->arguments[0].role, SF_ROLE_PARAM);
    assert_int_equal(graph->arguments[1].role, SF_ROLE_STATE);
    assert_int_equal(graph->arguments[1].next, 1);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(phase_of(graph, SF_OP_DOT_GENERAL, i), i < 2 ? SF_FORWARD : SF_BACKWARD);
    assert_int_equal(phase_of(graph, SF_OP_SUBTRACT, 0), SF_UPDATE);
    assert_true(graph->arguments[0].gradient != SF_NONE);
    sf_graph_free(graph);
}

/* An update that is skipped if the gradient is not finite: the branches are update, their operands
 * are backward. */
static void test_phases_with_an_update_left_out(void **state)
{
    (void)state;
    sf_graph *graph = load(
        "func.func @main(%w: tensor<3xf32> loc(\"params['w']\"), %m: tensor<3xf32> "
        "loc(\"opt['mu']\"), %x: tensor<6x3xf32>) -> (tensor<3xf32>, tensor<3xf32>, "
        "tensor<f32>) {\n"
        "  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<6x3xf32>, "
        "tensor<3xf32>) -> tensor<6xf32>\n"
        "  %q = stablehlo.multiply %p, %p : tensor<6xf32>\n"
        "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "  %l = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0] : "
        "(tensor<6xf32>, tensor<f32>) -> tensor<f32>\n"
        "  %g = stablehlo.dot_general %p, %x, contracting_dims = [0] x [0] : (tensor<6xf32>, "
        "tensor<6x3xf32>) -> tensor<3xf32>\n"
        "  %f = stablehlo.is_finite %g : (tensor<3xf32>) -> tensor<3xi1>\n"
        "  %t = stablehlo.constant dense<true> : tensor<i1>\n"
        "  %a = stablehlo.reduce(%f init: %t) applies stablehlo.and across dimensions = [0] : "
        "(tensor<3xi1>, tensor<i1>) -> tensor<i1>\n"
        "  %i = stablehlo.convert %a : (tensor<i1>) -> tensor<i32>\n"
        "  %c:2 = \"stablehlo.case\"(%i) ({\n"
        "    stablehlo.return %w, %m : tensor<3xf32>, tensor<3xf32>\n"
        "  }, {\n"
        "    %s = stablehlo.add %m, %g : tensor<3xf32>\n"
        "    %n = stablehlo.subtract %w, %s : tensor<3xf32>\n"
        "    stablehlo.return %n, %s : tensor<3xf32>, tensor<3xf32>\n"
        "  }) : (tensor<i32>) -> (tensor<3xf32>, tensor<3xf32>)\n"
        "  return %c#0, %c#1, %l : tensor<3xf32>, tensor<3xf32>, tensor<f32>\n}\n");
    assert_true(graph->arguments[0].gradient != SF_NONE);
    const sf_node *gradient = sf_maker(graph, graph->arguments[0].gradient);
    assert_true(sf_is(gradient, SF_OP_DOT_GENERAL));
    assert_int_equal(gradient->phase, SF_BACKWARD);
    assert_int_equal(phase_of(graph, SF_OP_IS_FINITE, 0), SF_UPDATE);
    assert_int_equal(phase_of(graph, SF_OP_CASE, 0), SF_UPDATE);
    sf_graph_free(graph);
}

/* A function that is no step has no guesses: neither state, nor roles, nor phases. */
static void test_no_step(void **state)
{
    (void)state;
    static const char *const texts[] = {
        DESCENT(WEIGHTS DATA, "tensor<3xf32>", "%g", "tensor<3xf32>"),
        LOOP("1000", "0"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sf_graph *graph = load(texts[i]);
        assert_int_equal(graph->arguments[0].next, SF_NONE);
        if (i == 0)
            assert_int_equal(graph->arguments[0].role, SF_ROLE_OTHER);
        for (size_t j = 0; j < graph->nnodes; j++)
            assert_int_equal(graph->nodes[j]->phase, SF_FORWARD);
        sf_graph_free(graph);
    }
}

/* Integers are not learnt: two words are a key, others are counters of the optimizer. */
static void test_integers_are_no_parameters(void **state)
{
    (void)state;
    static const char text[] =
        "func.func @main(%arg0: tensor<2xui32>, %arg1: tensor<i32>, %arg2: tensor<2xf32>) -> "
        "(tensor<2xui32>, tensor<i32>, tensor<f32>) {\n"
        "  %k = stablehlo.add %arg0, %arg0 : tensor<2xui32>\n"
        "  %i = stablehlo.add %arg1, %arg1 : tensor<i32>\n"
        "  %f = stablehlo.convert %arg0 : (tensor<2xui32>) -> tensor<2xf32>\n"
        "  %g = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>\n"
        "  %h = stablehlo.multiply %f, %arg2 : tensor<2xf32>\n"
        "  %l = stablehlo.reduce(%h init: %g) applies stablehlo.add across dimensions = [0] : "
        "(tensor<2xf32>, tensor<f32>) -> tensor<f32>\n"
        "  return %k, %i, %l : tensor<2xui32>, tensor<i32>, tensor<f32>\n}\n";
    sf_graph *graph = load(text);
    assert_int_equal(graph->arguments[0].role, SF_ROLE_KEY);
    assert_int_equal(graph->arguments[1].role, SF_ROLE_STATE);
    assert_int_equal(graph->arguments[2].role, SF_ROLE_BATCH);
    sf_graph_free(graph);
}

/* An alias is written where the text or the user said so, not where it was inferred. */
static void test_written_aliases(void **state)
{
    (void)state;
    static const char step[] = DESCENT(WEIGHTS DATA, "(tensor<3xf32>, tensor<f32>)", "%w, %l",
                                       "tensor<3xf32>, tensor<f32>");
    sf_load_options by_hand = {.size = sizeof by_hand, .state = "0=0"};
    sf_buf guessed = {0}, said = {0};
    sf_graph *graph = load(step);
    assert_int_equal(graph->arguments[0].next_from, SF_FROM_FLOW);
    assert_null(strstr(print(graph, &guessed), "tf.aliasing_output"));
    sf_graph_free(graph);
    graph = load_with(step, &by_hand);
    assert_non_null(strstr(print(graph, &said), "tf.aliasing_output = 0 : i32"));
    sf_graph_free(graph);
    check_printed(said.text, "tf.aliasing_output = 0 : i32");
    sf_buf_free(&guessed);
    sf_buf_free(&said);
}

static void test_argument_names(void **state)
{
    (void)state;
    sf_graph *graph = load("func.func @main(%first: tensor<f32>, %arg1: tensor<f32>, "
                           "%third: tensor<f32> loc(\"c\")) -> tensor<f32> {\n"
                           "  return %first : tensor<f32>\n}\n");
    assert_string_equal(graph->arguments[0].name, "first");
    assert_string_equal(graph->arguments[1].name, "arg1");
    assert_string_equal(graph->arguments[2].name, "c");
    sf_graph_free(graph);
}

#define LITERAL(text)                                                                              \
    {                                                                                              \
        text, sizeof text - 1                                                                      \
    }

static void test_what_is_no_text(void **state)
{
    (void)state;
    static const struct {
        sf_str text;
        const char *expected;
    } cases[] = {
        {{"ML\xEFR\x01", 5},
         "t: error: this is MLIR bytecode, not text: a step is StableHLO or HLO text\n  hint: "},
        {{"\n\013jit_lr_step\022\006main.4\032", 23},
         "t: error: this is a binary file, not text\n  hint: "},
        {{"\0\0\0\0", 4}, "t: error: this is a binary file, not text\n  hint: "},
        {LITERAL("\xFF\xFEm\0o\0"), "t: error: this is UTF-16, not UTF-8"},
        {LITERAL("\x80\004\x95\0\0"), "t: error: this is a pickle, not text"},
        {LITERAL("PK\003\004\0\0"), "t: error: this is a zip archive"},
        {LITERAL("{ lambda ; a:f32[4]. let b:f32[4] = add a 1.0:f32[] in (b,) }"),
         "t: error: this is a jaxpr"},
        {LITERAL("Exported(fun_name=step, ...)"),
         "t: error: this is what Python prints of a jax.export.Exported"},
        {LITERAL("ExportedProgram:\n    class GraphModule(torch.nn.Module):\n"),
         "t: error: this is what Python prints of a torch.export.ExportedProgram"},
        {LITERAL("# a step\nimport jax\n\ndef step(params):\n    return params\n"),
         "t: error: this is Python source"},
        {LITERAL("module {\n  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n    %0 = "
                 "tosa.abs %a : (tensor<4xf32>) -> tensor<4xf32>\n  }\n}\n"),
         "t: error: this is MLIR of dialect tosa, without StableHLO"},
        {LITERAL("module {\n  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n    %0 = "
                 "\"mhlo.abs\"(%a) : (tensor<4xf32>) -> tensor<4xf32>\n  }\n}\n"),
         "t: error: this is MLIR of dialect mhlo, without StableHLO"},
        {LITERAL("{\"format\": \"sheaf plan\"}"), "t: error: this is JSON"},
        {{"", 0}, "t: error: the file is empty\n  hint: "},
        {{" \n\n", 3}, "t: error: the file is empty\n  hint: "},
        {{"\xEF\xBB\xBF", 3}, "t: error: the file is empty\n  hint: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_diag *diag = sf_diag_new();
        sf_graph *graph = NULL;
        sf_status status =
            sf_load_text(cases[i].text.at, cases[i].text.length, "t", NULL, diag, &graph);
        assert_int_equal(status, SF_EINPUT);
        assert_int_equal(sf_diag_count(diag), 1);
        const char *text = sf_diag_text(diag, 0);
        if (strncmp(text, cases[i].expected, strlen(cases[i].expected)) != 0)
            fail_msg("the message is \"%s\", expected \"%s\"", text, cases[i].expected);
        sf_diag_free(diag);
    }
}

/* Names and locations may say what would be an op of another dialect. */
static void test_names_like_ops(void **state)
{
    (void)state;
    static const char text[] =
        "func.func public @main(%a: tensor<f32> loc(\"= onnx.x\")) -> tensor<f32> {\n"
        "return %a : tensor<f32> loc(\"%1 = tosa.abs\")\n}\n";
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    if (sf_load_text(text, sizeof text - 1, "t", NULL, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_graph_free(graph);
    sf_diag_free(diag);
}

/* Rows in groups of sizes that an argument has, each with a matrix of its own; `masked`: rows of other groups are zero. */
static void test_dense_groups(void **state)
{
    (void)state;
    static const char before
        [] = "%m: tensor<24x4xf32>, %w: tensor<6x4x5xf32>, %s: tensor<6xi32>",
  body[] =
        "  %b = stablehlo.broadcast_in_dim %m, dims = [1, 2] : (tensor<24x4xf32>) -> "
        "tensor<6x24x4xf32>\n"
        "  %i = stablehlo.iota dim = 1 : tensor<6x24x4xi32>\n"
        "  %z = stablehlo.constant dense<0> : tensor<i32>\n"
        "  %e = \"stablehlo.reduce_window\"(%s, %z) <{padding = dense<[[5, 0]]> : tensor<1x2xi64>, "
        "window_dimensions = array<i64: 6>, window_strides = array<i64: 1>}> ({\n"
        "  ^bb0(%x: tensor<i32>, %y: tensor<i32>):\n"
        "    %a = stablehlo.add %x, %y : tensor<i32>\n    stablehlo.return %a : tensor<i32>\n"
        "  }) : (tensor<6xi32>, tensor<i32>) -> tensor<6xi32>\n"
        "  %v = stablehlo.broadcast_in_dim %e, dims = [0] : (tensor<6xi32>) -> tensor<6x24x4xi32>\n"
        "  %c = stablehlo.compare LT, %i, %v : (tensor<6x24x4xi32>, tensor<6x24x4xi32>) -> "
        "tensor<6x24x4xi1>\n"
        "  %f = stablehlo.constant dense<0.0> : tensor<6x24x4xf32>\n"
        "  %g = stablehlo.select %c, %b, %f : tensor<6x24x4xi1>, tensor<6x24x4xf32>\n"
        "  %r = stablehlo.dot_general ";
    for (int masked = 0; masked < 2; masked++) {
        char text[4096];
        snprintf(
            text, sizeof text,
            "func.func @main(%s) -> tensor<24x5xf32> {\n%s%s, %%w, contracting_dims = [2, 0] x "
            "[1, 0] : (tensor<6x24x4xf32>, tensor<6x4x5xf32>) -> tensor<24x5xf32>\n  return %%r : "
            "tensor<24x5xf32>\n}\n",
            before, body, masked ? "%g" : "%b");
        sf_diag *diag = sf_diag_new();
        sf_graph *graph;
        if (sf_load_text(text, strlen(text), "t", NULL, diag, &graph) != SF_OK)
            fail_msg("%s", sf_diag_text(diag, 0));
        assert_int_equal(sf_diag_count(diag), masked);
        if (masked)
            assert_non_null(strstr(sf_diag_text(diag, 0), "all 6 groups"));
        sf_graph_free(graph);
        sf_diag_free(diag);
    }
}

/* Pads whose results have the type of their operands: one moves elements, one spreads them, and one does nothing. */
static void test_pads_of_one_type(void **state)
{
    (void)state;
    static const struct {
        const char *numbers;
        size_t nodes; /* the pad and its constant, or none */
    } cases[] = {{"low = [1], high = [-1], interior = [0]", 2},
                 {"low = [-2], high = [2], interior = [0]", 2},
                 {"low = [0], high = [-3], interior = [1]", 2},
                 {"low = [0], high = [0], interior = [0]", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "func.func public @main(%%a: tensor<4xf32>) -> tensor<4xf32> {\n"
                 "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                 "%%r = stablehlo.pad %%a, %%z, %s : (tensor<4xf32>, tensor<f32>) -> "
                 "tensor<4xf32>\nreturn %%r : tensor<4xf32>\n}\n",
                 cases[i].numbers);
        sf_graph *graph;
        assert_int_equal(sf_load_text(text, strlen(text), "t", NULL, NULL, &graph), SF_OK);
        assert_int_equal(graph->top->nnodes, cases[i].nodes);
        sf_graph_free(graph);
    }
}

static void test_hints(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hint;
    } cases[] = {
        {MAIN("%a: tensor<f32>", "tensor<f32>", "  %r = stablehlo.ad %a, %a : tensor<f32>\n"),
         "did you mean stablehlo.add?"},
        {MAIN("%a: tensor<f32>", "tensor<f32>", "  %r = stablehlo.exp %a : tensor<f32>\n"),
         "did you mean stablehlo.exponential?"},
        {MAIN("%a: tensor<f32>", "tensor<f32>", "  %r = sdy.reshard %a : tensor<f32>\n"),
         "of Shardy only"},
        {ENTRY("  x = f32[] parameter(0)\n  y = f32[] ad(x, x)\n"), "did you mean add?"},
        {ENTRY("  x = f32[] parameter(0)\n  y = f32[] mul(x, x)\n"), "did you mean multiply?"},
        {ENTRY("  x = f32[] parameter(0)\n  y = f32[] zzzzzz(x)\n"), "docs/reference/ops.md"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_diag *diag = sf_diag_new();
        sf_graph *graph = NULL;
        sf_load_text(cases[i].text, strlen(cases[i].text), "t", NULL, diag, &graph);
        assert_null(graph);
        if (!strstr(sf_diag_text(diag, 0), cases[i].hint))
            fail_msg("\"%s\" is not in \"%s\"", cases[i].hint, sf_diag_text(diag, 0));
        sf_diag_free(diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_hashes),
        cmocka_unit_test(test_different_hashes),
        cmocka_unit_test(test_printed),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_shardy),
        cmocka_unit_test(test_trip_counts),
        cmocka_unit_test(test_trip_count_is_a_note),
        cmocka_unit_test(test_phases_without_names),
        cmocka_unit_test(test_phases_with_frozen_weights),
        cmocka_unit_test(test_phases_with_an_update_left_out),
        cmocka_unit_test(test_no_step),
        cmocka_unit_test(test_integers_are_no_parameters),
        cmocka_unit_test(test_written_aliases),
        cmocka_unit_test(test_argument_names),
        cmocka_unit_test(test_what_is_no_text),
        cmocka_unit_test(test_pads_of_one_type),
        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_names_like_ops),
        cmocka_unit_test(test_dense_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
