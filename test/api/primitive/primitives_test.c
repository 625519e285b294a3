/* Primitives from C: the modules that they find, their plans, and lists that run out of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "plan/plan.h"
#include "sheaf/sheaf.h"

#define STEP "examples/gpt-micro.stablehlo.mlir"

static int load_step(void **state)
{
    return sf_load(STEP, NULL, NULL, (sf_graph **)state) != SF_OK;
}

static int free_step(void **state)
{
    sf_graph_free(*state);
    return 0;
}

static const sf_primitive mesh = {.size = sizeof mesh,
                                  .kind = SF_PRIMITIVE_SET,
                                  .name = "mesh",
                                  .value = "model=2",
                                  .file = "c",
                                  .line = 1};
static const sf_primitive up = {.size = sizeof up,
                                .kind = SF_PRIMITIVE_SHARD,
                                .module = "layer_?.mlp.up",
                                .param = "kernel",
                                .dim = 1};
static const sf_primitive down = {.size = sizeof down,
                                  .kind = SF_PRIMITIVE_SHARD,
                                  .module = "layer_?/mlp/down",
                                  .param = "kernel",
                                  .dim = 0};
static const sf_primitive sum = {
    .size = sizeof sum, .kind = SF_PRIMITIVE_SYNC, .module = "layer_?.mlp"};

static void test_finds(void **state)
{
    sf_primitives *list;
    const char *found[64];
    assert_int_equal(sf_primitives_new(*state, NULL, &list), SF_OK);
    assert_int_equal(sf_primitives_modules(list, "layer_?", 64, found), 2);
    assert_string_equal(found[1], "layer_1");
    assert_int_equal(sf_primitives_modules(list, "layer_0.attn.q", 64, found), 1);
    assert_string_equal(found[0], "layer_0/attn/q");
    assert_int_equal(sf_primitives_modules(list, "nothing", 64, found), 0);
    assert_int_equal(sf_primitives_params(list, "wte.attend", NULL, 64, found), 1);
    assert_string_equal(found[0], "params/wte/embedding");
    assert_int_equal(sf_primitives_params(list, "layer_?", "kernel", 64, found), 12);
    sf_primitives_free(list);
}

static void test_plans(void **state)
{
    sf_primitives *list;
    sf_plan *plan;
    int first, argument;
    char text[SF_LAYOUT_TEXT];
    assert_int_equal(sf_primitives_new(*state, NULL, &list), SF_OK);
    assert_int_equal(sf_primitives_add(list, &sum, NULL, NULL), SF_EMISMATCH);
    assert_int_equal(sf_primitives_add(list, &mesh, NULL, NULL), SF_OK);
    assert_int_equal(sf_primitives_add(list, &up, NULL, &first), SF_OK);
    assert_int_equal(sf_primitives_add(list, &down, NULL, NULL), SF_OK);
    assert_int_equal(sf_primitives_add(list, &sum, NULL, NULL), SF_OK);
    assert_int_equal(sf_primitives_undo(list, first, NULL), SF_OK); /* the other is enough */
    assert_int_equal(sf_primitives_count(list), 3);
    assert_string_equal(sf_primitives_text(list, 2),
                        "layer_?.mlp: sync forward, all_reduce over model");
    assert_int_equal(sf_primitives_pin(list, NULL, NULL, &plan), SF_OK);
    assert_int_equal(sf_plan_check(plan, *state, 0, NULL), SF_OK);
    argument = sf_graph_find_argument(*state, "opt/0/mu/params/layer_1/mlp/down/kernel");
    assert_string_equal(sf_plan_argument_layout(plan, *state, argument, text), "[S(0)]");
    assert_int_equal(plan->nsaid, 3);
    assert_string_equal(plan->said[0], "c:1: mesh model=2");
    sf_plan_free(plan);
    sf_primitives_free(list);
}

/* Numbers of subgraphs that nobody looks at are refused: a list with them cannot be planned. */
static void test_subgraphs(void **state)
{
    static const int numbers[] = {1, 1 << 20, -5};
    sf_primitives *list;
    sf_plan *plan;
    assert_int_equal(sf_primitives_new(*state, NULL, &list), SF_OK);
    for (int kind = SF_PRIMITIVE_SET; kind <= SF_PRIMITIVE_FORK_RNG; kind++)
        for (int count = -1; count <= 3; count += 2) {
            sf_primitive said = {.size = sizeof said,
                                 .kind = (sf_primitive_kind)kind,
                                 .module = "layer_1",
                                 .param = "q/kernel",
                                 .name = kind == SF_PRIMITIVE_SET ? "recipe" : "a",
                                 .value = kind == SF_PRIMITIVE_FUSE ? "vm" : "dp",
                                 .subgraphs = numbers,
                                 .nsubgraphs = count};
            assert_int_not_equal(sf_primitives_add(list, &said, NULL, NULL), SF_OK);
            said.nsubgraphs = 0, said.ndevices = -1;
            assert_int_not_equal(sf_primitives_add(list, &said, NULL, NULL), SF_OK);
        }
    assert_int_equal(sf_primitives_count(list), 0);
    assert_int_equal(sf_primitives_add(list, &mesh, NULL, NULL), SF_OK);
    assert_int_equal(sf_primitives_pin(list, NULL, NULL, &plan), SF_OK);
    sf_plan_free(plan);
    sf_primitives_free(list);
}

static bool change_list(void *context, const sf_op_view *op)
{
    sf_primitives *list = context;
    int first, count;
    assert_non_null(op->op);
    assert_int_equal(sf_primitives_add(list, &up, NULL, NULL), SF_EUSAGE);
    assert_int_equal(sf_primitives_undo(list, -1, NULL), SF_EUSAGE);
    assert_int_equal(sf_primitives_find_modules(list, "layer_0", NULL, &first, &count), SF_EUSAGE);
    sf_primitives_free(list);
    return true;
}

/* The function that chooses ops does not change the list, and does not free it. */
static void test_callback(void **state)
{
    static const sf_primitive trace = {
        .size = sizeof trace, .kind = SF_PRIMITIVE_TRACE, .module = "layer_?"};
    sf_primitives *list;
    int first, count;
    assert_int_equal(sf_primitives_new(*state, NULL, &list), SF_OK);
    assert_int_equal(sf_primitives_add(list, &trace, NULL, NULL), SF_OK);
    assert_int_equal(
        sf_primitives_find_where(list, "layer_?", change_list, list, NULL, &first, &count), SF_OK);
    assert_true(count > 0);
    assert_int_equal(sf_primitives_count(list), 1);
    sf_primitives_free(list);
}

/* Whichever allocation fails, the list is as it was, and goes on. */
static void test_memory(void **state)
{
    sf_primitives *list;
    sf_status status = SF_ENOMEM;
    size_t live = sf_mem_live();
    assert_int_equal(sf_primitives_new(*state, NULL, &list), SF_OK);
    assert_int_equal(sf_primitives_add(list, &mesh, NULL, NULL), SF_OK);
    for (long n = 0; status != SF_OK; n++) {
        sf_mem_fail_after(n);
        status = sf_primitives_add(list, &up, NULL, NULL);
        sf_mem_fail_after(-1);
        assert_true(status == SF_OK || status == SF_ENOMEM);
        assert_int_equal(sf_primitives_count(list), status == SF_OK ? 2 : 1);
    }
    for (int i = 0; i < 200; i++) { /* a failure leaves no memory */
        sf_primitive wrong = {
            .size = sizeof wrong, .kind = SF_PRIMITIVE_SHARD, .module = "wte", .param = "none"};
        assert_int_equal(sf_primitives_add(list, &wrong, NULL, NULL), SF_EUSAGE);
    }
    assert_int_equal(sf_primitives_add(list, &down, NULL, NULL), SF_OK);
    assert_int_equal(sf_primitives_undo(list, -1, NULL), SF_OK);
    sf_primitives_free(list);
    assert_int_equal(sf_mem_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds),     cmocka_unit_test(test_plans),
        cmocka_unit_test(test_subgraphs), cmocka_unit_test(test_callback),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, load_step, free_step);
}
