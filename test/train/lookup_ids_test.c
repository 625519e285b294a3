/* Ids at both ends of the range of a table, and past them. */
#include "train/lookup_ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sheaf/sheaf.h"
#include "support/plans.h"

/* Whether the id is found when it is among those of the argument. */
static bool finds(const sf_graph *graph, const char *name, int64_t id, sf_lookup_id *out)
{
    sf_tensor *arguments = calloc(graph->top->narguments, sizeof *arguments);
    int argument = sf_graph_find_argument(graph, name);
    assert_true(argument >= 0);
    sf_tensor *ids = &arguments[argument];
    ids->type = sf_argument_type(graph, (uint32_t)argument);
    ids->data = calloc(1, (size_t)sf_type_bytes(ids->type));
    sf_store_i64(ids->type->dtype, ids->data, ids->type->count - 1, id);
    bool found = sf_find_lookup_id(graph, arguments, out);
    free(ids->data);
    free(arguments);
    return found;
}

static void test_range(void **state)
{
    (void)state;
    static const struct {
        const char *step, *name;
        int64_t rows;
    } steps[] = {{"gpt-micro", "batch/ids", 32},
                 {"llama-micro", "batch/ids", 32},
                 {"moe-micro", "batch/ids", 32}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        sf_graph *graph = test_step(steps[i].step);
        int64_t rows = steps[i].rows;
        sf_lookup_id found;
        assert_false(finds(graph, steps[i].name, rows - 1, &found));
        assert_false(finds(graph, steps[i].name, -rows, &found));
        assert_true(finds(graph, steps[i].name, rows, &found));
        assert_int_equal(found.id, rows);
        assert_int_equal(found.rows, rows);
        assert_int_equal((int)found.argument, sf_graph_find_argument(graph, steps[i].name));
        assert_true(finds(graph, steps[i].name, -rows - 1, &found));
        sf_graph_free(graph);
    }
}

/* Without ids, nothing is found. */
static void test_none(void **state)
{
    (void)state;
    sf_graph *graph = test_step("mlp-micro");
    sf_tensor *arguments = calloc(graph->top->narguments, sizeof *arguments);
    sf_lookup_id found;
    assert_false(sf_find_lookup_id(graph, arguments, &found));
    free(arguments);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
