/* Ops that no step can have: each is refused by one message, whatever other errors the text has;
 * notes about sharding are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/graph.h"
#include "sheaf/graph.h"

/* The line in question comes after valid lines, and before other invalid ones. */
#define STABLEHLO(line)                                                                            \
    "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"                               \
    "  %y = stablehlo.negate %x : tensor<4xf32>\n" line "\n"                                       \
    "  %w = stablehlo.nonsense %z : tensor<4xf32>\n  return %w : tensor<4xf32>\n}\n"
#define HLO(line)                                                                                  \
    "HloModule m\n\nENTRY e {\n  x = f32[4] parameter(0)\n" line "\n"                              \
    "  v = f32[4] nonsense(x)\n  ROOT w = f32[4] negate(v)\n}\n"

#define SPLIT "says how the step is split"
#define HOST "reaches outside of the step"
#define DYNAMIC "has a size that is not known"

static const struct {
    const char *text, *said, *why;
} cases[] = {
    {STABLEHLO("  %z = sdy.manual_computation(%y) in_shardings=[<@mesh, [{\"x\"}]>] "
               "out_shardings=[<@mesh, [{}]>] manual_axes={\"x\"} (%arg2: tensor<2xf32>) {\n"
               "    sdy.return %arg2 : tensor<2xf32>\n  } : (tensor<4xf32>) -> tensor<4xf32>"),
     "t:3:8: error: sdy.manual_computation", SPLIT},
    {STABLEHLO("  %z = stablehlo.custom_call @SPMDFullToShardShape(%y) {mhlo.sharding = "
               "\"{manual}\"} : (tensor<4xf32>) -> tensor<2xf32>"),
     "t:3:8: error: custom call @SPMDFullToShardShape", SPLIT},
    {STABLEHLO("  %z = \"stablehlo.custom_call\"(%y) <{call_target_name = "
               "\"SPMDShardToFullShape\"}> : (tensor<4xf32>) -> tensor<2xf32>"),
     "t:3:8: error: custom call @SPMDShardToFullShape", SPLIT},
    {STABLEHLO("  %z = \"stablehlo.all_reduce\"(%y) <{replica_groups = dense<0> : "
               "tensor<1x1xi64>}> ({}) : (tensor<4xf32>) -> tensor<4xf32>"),
     "t:3:8: error: stablehlo.all_reduce", SPLIT},
    {STABLEHLO("  %z = stablehlo.partition_id : tensor<ui32>"),
     "t:3:8: error: stablehlo.partition_id", SPLIT},
    {STABLEHLO("  %z = stablehlo.custom_call @xla_ffi_python_cpu_callback(%y) {api_version = 4 : "
               "i32, mhlo.backend_config = {index = 0 : ui64}} : (tensor<4xf32>) -> tensor<4xf32>"),
     "t:3:8: error: custom call @xla_ffi_python_cpu_callback", HOST},
    {STABLEHLO("  stablehlo.custom_call @xla_python_gpu_callback(%y) {has_side_effect = true} : "
               "(tensor<4xf32>) -> ()"),
     "t:3:3: error: custom call @xla_python_gpu_callback", HOST},
    {STABLEHLO("  stablehlo.custom_call @xla_ffi_partitioned_python_gpu_callback(%y) "
               "{has_side_effect = true} : (tensor<4xf32>) -> ()"),
     "t:3:3: error: custom call @xla_ffi_partitioned_python_gpu_callback", HOST},
    {STABLEHLO("  %z = stablehlo.convert %y : (tensor<4xf32>) -> !stablehlo.token"),
     "error: the type !stablehlo.token", HOST},
    {STABLEHLO("  %z = stablehlo.convert %y : (tensor<4xf32>) -> tensor<?xbf16>"),
     "t:3:50: error: the type tensor<?xbf16>", DYNAMIC},
    {STABLEHLO("  %z = stablehlo.convert %y : (tensor<4xf32>) -> tensor<*xbf16>"),
     "error: the type tensor<*xbf16>", DYNAMIC},
    {STABLEHLO("  %z = stablehlo.convert %y : (tensor<4xf32>) -> tensor<?xbf16, "
               "#stablehlo.bounds<8>>"),
     "error: the type tensor<?xbf16, #stablehlo.bounds<8>>", DYNAMIC},
    {STABLEHLO("  %z = stablehlo.get_dimension_size %y, dim = 0 : (tensor<4xf32>) -> tensor<i32>"),
     "t:3:8: error: stablehlo.get_dimension_size", DYNAMIC},
    {STABLEHLO("  %z = stablehlo.dynamic_broadcast_in_dim %y, %y, dims = [0] : (tensor<4xf32>, "
               "tensor<1xi32>) -> tensor<4xf32>"),
     "error: stablehlo.dynamic_broadcast_in_dim", DYNAMIC},
    {HLO("  z = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add"),
     "t:5:14: error: all-reduce", SPLIT},
    {HLO("  z = f32[8] all-gather-start(x), dimensions={0}"), "error: all-gather-start", SPLIT},
    {HLO("  z = u32[] partition-id()"), "error: partition-id", SPLIT},
    {HLO("  z = f32[2] custom-call(x), custom_call_target=\"SPMDFullToShardShape\", "
         "sharding={manual}"),
     "t:5:3: error: custom call @SPMDFullToShardShape", SPLIT},
    {HLO("  z = f32[2] custom-call(x), custom_call_target=\"xla.sdy.GlobalToLocalShape\""),
     "error: custom call @xla.sdy.GlobalToLocalShape", SPLIT},
    {HLO("  z = f32[4] custom-call(x), custom_call_target=\"xla_ffi_python_cpu_callback\", "
         "api_version=API_VERSION_TYPED_FFI"),
     "error: custom call @xla_ffi_python_cpu_callback", HOST},
    {HLO("  z = token[] after-all()"), "t:5:7: error: the type token", HOST},
    {HLO("  z = (f32[4], u32[], token[]) send(x), channel_id=1"), "error: the type token", HOST},
    {HLO("  z = f32[4] outfeed(x)"), "error: outfeed", HOST},
    {HLO("  z = f32[<=4] negate(x)"), "t:5:7: error: the type f32[<=4]", DYNAMIC},
    {HLO("  z = f32[2,?]{1,0} negate(x)"), "t:5:7: error: the type f32[2,?]", DYNAMIC},
    {HLO("  z = f32[4] set-dimension-size(x, x), dimensions={0}"), "error: set-dimension-size",
     DYNAMIC},
};

static void test_one_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_diag *diag = sf_diag_new();
        sf_graph *graph;
        sf_status status =
            sf_load_text(cases[i].text, strlen(cases[i].text), "t", NULL, diag, &graph);
        assert_int_not_equal(status, SF_OK);
        const char *said = sf_diag_text(diag, 0);
        if (!strstr(said, cases[i].said) || !strstr(said, cases[i].why))
            fail_msg("'%s' lacks '%s' or '%s'", said, cases[i].said, cases[i].why);
        assert_int_equal(status, SF_EUNSUPPORTED);
        assert_int_equal(sf_diag_count(diag), 1);
        assert_non_null(strstr(said, "\n  hint: "));
        sf_diag_free(diag);
    }
}

/* The same step, with and without notes about sharding. */
static void test_notes_pass(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  y = f32[4] negate(x)\n"
        "  ROOT z = f32[4] custom-call(y), custom_call_target=\"xla.sdy.FuncResultSharding\", "
        "frontend_attributes={xla.sdy.sharding=\"#sdy.sharding_per_value<[<@mesh, []>]>\"}\n}\n",
        "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)\n}\n",
        "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  y = f32[4] negate(x)\n"
        "  ROOT z = f32[4] custom-call(y), custom_call_target=\"Sharding\", "
        "sharding={devices=[2]<=[2]}\n}\n",
        "sdy.mesh @mesh = <[\"x\"=2]>\n"
        "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %y = stablehlo.negate %x : tensor<4xf32>\n"
        "  %z = sdy.sharding_constraint %y <@mesh, [{\"x\"}]> : tensor<4xf32>\n"
        "  return %z : tensor<4xf32>\n}\n",
    };
    sf_graph *graphs[4];
    for (int i = 0; i < 4; i++) {
        sf_diag *diag = sf_diag_new();
        if (sf_load_text(texts[i], strlen(texts[i]), "t", NULL, diag, &graphs[i]) != SF_OK)
            fail_msg("%s", sf_diag_text(diag, 0));
        assert_int_equal(sf_diag_count(diag), 0);
        sf_diag_free(diag);
    }
    assert_true(sf_graph_hash(graphs[0]) == sf_graph_hash(graphs[1]));
    for (int i = 0; i < 4; i++)
        sf_graph_free(graphs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_sentence),
        cmocka_unit_test(test_notes_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
