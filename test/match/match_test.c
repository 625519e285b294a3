/* Matching against brute force: small random graphs, small random sketches, all assignments of ops to nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "match/match.h"
#include "sheaf/sheaf.h"

enum { NODES = 12, OPS = 3, CASES = 400 };

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static const char *const names[] = {"add", "multiply", "subtract", "tanh"};

/* A step of ops on two arguments and on each other, all of which it returns. */
static sf_graph *make_graph(uint32_t *state)
{
    char text[8192], types[1024] = "", results[1024] = "";
    size_t at = 0;
    for (int n = 0; n < NODES; n++) {
        snprintf(types + strlen(types), sizeof types - strlen(types), "%stensor<4xf32>",
                 n > 0 ? ", " : "");
        snprintf(results + strlen(results), sizeof results - strlen(results), "%s%%v%d",
                 n > 0 ? ", " : "", n + 2);
    }
    at += (size_t)snprintf(text, sizeof text,
                           "func.func @main(%%v0: tensor<4xf32>, %%v1: tensor<4xf32>) -> (%s) {\n",
                           types);
    for (int n = 0; n < NODES; n++) {
        uint32_t op = next_random(state) % 4, a = next_random(state) % (uint32_t)(n + 2),
                 b = next_random(state) % (uint32_t)(n + 2);
        at +=
            (size_t)(op == 3 ? snprintf(text + at, sizeof text - at,
                                        "%%v%d = stablehlo.tanh %%v%u : tensor<4xf32>\n", n + 2, a)
                             : snprintf(text + at, sizeof text - at,
                                        "%%v%d = stablehlo.%s %%v%u, %%v%u : tensor<4xf32>\n",
                                        n + 2, names[op], a, b));
    }
    snprintf(text + at, sizeof text - at, "return %s : %s\n}\n", results, types);
    sf_graph *graph;
    sf_diag *diag = sf_diag_new();
    sf_status status = sf_load_text(text, strlen(text), "random",
                                    &(sf_load_options){.state = "none"}, diag, &graph);
    if (status != SF_OK)
        print_message("%s\n%s", text, sf_diag_text(diag, 0));
    assert_int_equal(status, SF_OK);
    sf_diag_free(diag);
    return graph;
}

/* A sketch of up to OPS ops on up to three inputs, which all lead to its result; NULL where they do not. */
static sf_sketch *make_sketch(uint32_t *state)
{
    sf_sketch *sketch;
    int number, inputs = 1 + (int)(next_random(state) % 3),
                ops = 1 + (int)(next_random(state) % OPS);
    assert_int_equal(sf_sketch_new(NULL, &sketch), SF_OK);
    for (int i = 0; i < inputs; i++)
        sf_sketch_input(sketch, NULL, &number);
    for (int n = 0; n < ops; n++) {
        uint32_t op = next_random(state) % 4;
        int operands[2] = {(int)(next_random(state) % (uint32_t)sketch->count),
                           (int)(next_random(state) % (uint32_t)sketch->count)};
        assert_int_equal(sf_sketch_op(sketch, names[op], op == 3 ? 1 : 2, operands, 0, NULL, -1,
                                      NULL, NULL, NULL, &number),
                         SF_OK);
    }
    int last = sketch->count - 1;
    if (sketch->nodes[last].kind == SF_SKETCH_OP &&
        sf_sketch_return(sketch, 1, &last, NULL) == SF_OK) {
        bool leads[SF_SKETCH_NODES] = {false}, all = true;
        leads[last] = true;
        for (int n = last; n >= 0; n--)
            for (int i = 0; leads[n] && i < sketch->nodes[n].noperands; i++)
                leads[sketch->nodes[n].operands[i]] = true;
        for (int n = 0; n <= last; n++)
            all = all && leads[n];
        if (all)
            return sketch;
    }
    sf_sketch_free(sketch);
    return NULL;
}

/* Whether values by node of the sketch are a match, by the definition alone. */
static bool is_match(const sf_graph *graph, const sf_sketch *sketch, const sf_value *values)
{
    for (int n = 0; n < sketch->count; n++) {
        const sf_sketch_node *node = &sketch->nodes[n];
        if (node->kind != SF_SKETCH_OP)
            continue;
        const sf_node *maker = sf_maker(graph, values[n]);
        if (!maker || maker->def != node->def)
            return false;
        bool straight = true, swapped = node->def->commutative;
        for (int i = 0; i < node->noperands; i++) {
            straight = straight && maker->operands[i] == values[node->operands[i]];
            swapped =
                swapped && maker->operands[node->noperands - 1 - i] == values[node->operands[i]];
        }
        if (!straight && !swapped)
            return false;
        for (int k = 0; k < n; k++)
            if (sketch->nodes[k].kind == SF_SKETCH_OP && values[k] == values[n])
                return false;
    }
    return true;
}

/* Whether some assignment is a match that has none of the nodes that are taken. */
static bool any_match(const sf_graph *graph, const sf_sketch *sketch, const bool *taken,
                      sf_value *values, int from)
{
    if (from == sketch->count)
        return is_match(graph, sketch, values);
    for (sf_value v = 0; v < graph->nvalues; v++) {
        const sf_node *maker = sf_maker(graph, v);
        bool op = sketch->nodes[from].kind == SF_SKETCH_OP;
        if (op && (!maker || taken[maker->id] || maker->def != sketch->nodes[from].def))
            continue;
        values[from] = v;
        if (any_match(graph, sketch, taken, values, from + 1))
            return true;
    }
    return false;
}

static void check_case(const sf_graph *graph, const sf_sketch *sketch, size_t *found)
{
    sf_arena arena = {0};
    size_t count;
    sf_match *matches;
    bool taken[64] = {false};
    sf_value values[SF_SKETCH_NODES];
    sf_matching matching = {.graph = graph, .sketch = sketch};
    assert_int_equal(sf_match_all(&matching, &arena, NULL, &count, &matches), SF_OK);
    for (size_t m = 0; m < count; m++) {
        assert_true(is_match(graph, sketch, matches[m].values));
        for (int n = 0; n < sketch->count; n++)
            if (sketch->nodes[n].kind == SF_SKETCH_OP) {
                uint32_t id = graph->values[matches[m].values[n]].node;
                assert_false(taken[id]);
                taken[id] = true;
            }
    }
    assert_false(any_match(graph, sketch, taken, values, 0));
    *found += count;
    sf_arena_free(&arena);
}

static void test_random(void **state)
{
    (void)state;
    uint32_t dice = 1;
    size_t found = 0, cases = 0;
    for (int i = 0; i < CASES; i++) {
        sf_graph *graph = make_graph(&dice);
        sf_sketch *sketch = make_sketch(&dice);
        if (sketch) {
            check_case(graph, sketch, &found);
            cases++;
        }
        sf_sketch_free(sketch);
        sf_graph_free(graph);
    }
    print_message("%zu matches in %zu cases\n", found, cases);
    assert_true(cases > CASES / 10 && found > cases / 2);
}

static void test_sketches(void **state)
{
    (void)state;
    sf_sketch *sketch;
    int x, y, a, b, one, other;
    assert_int_equal(sf_sketch_new(NULL, &sketch), SF_OK);
    assert_int_equal(sf_sketch_input(sketch, NULL, &x), SF_OK);
    assert_int_equal(sf_sketch_input(sketch, NULL, &y), SF_OK);
    assert_int_equal(sf_sketch_number(sketch, 1, NULL, &one), SF_OK);
    assert_int_equal(sf_sketch_number(sketch, 1, NULL, &other), SF_OK);
    assert_int_equal(
        sf_sketch_op(sketch, "add", 2, (int[]){x, one}, 0, NULL, -1, NULL, NULL, NULL, &a), SF_OK);
    assert_int_equal(
        sf_sketch_op(sketch, "add", 2, (int[]){other, x}, 0, NULL, -1, NULL, NULL, NULL, &b),
        SF_OK);
    assert_int_equal(a, b); /* the same op on the same operands */
    assert_int_equal(
        sf_sketch_op(sketch, "subtract", 2, (int[]){x, one}, 0, NULL, -1, NULL, NULL, NULL, &a),
        SF_OK);
    assert_int_equal(
        sf_sketch_op(sketch, "subtract", 2, (int[]){one, x}, 0, NULL, -1, NULL, NULL, NULL, &b),
        SF_OK);
    assert_int_not_equal(a, b);
    assert_int_equal(
        sf_sketch_op(sketch, "add", 2, (int[]){x, 99}, 0, NULL, -1, NULL, NULL, NULL, &b),
        SF_EUSAGE);
    assert_int_equal(
        sf_sketch_op(sketch, "ad", 2, (int[]){x, x}, 0, NULL, -1, NULL, NULL, NULL, &b), SF_EUSAGE);
    assert_int_equal(sf_sketch_op(sketch, "add", 1, (int[]){x}, 0, NULL, -1, NULL, NULL, NULL, &b),
                     SF_EUSAGE);
    assert_int_equal(
        sf_sketch_op(sketch, "convert", 1, (int[]){x}, 0, NULL, -1, NULL, "f31", NULL, &b),
        SF_EUSAGE);
    assert_int_equal(sf_sketch_op(sketch, "tanh", 1, (int[]){y}, 0, NULL, -1, NULL, NULL, NULL, &b),
                     SF_OK);
    assert_int_equal(sf_sketch_return(sketch, 2, (int[]){a, b}, NULL),
                     SF_EMISMATCH); /* two pieces */
    sf_sketch_free(sketch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_sketches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
