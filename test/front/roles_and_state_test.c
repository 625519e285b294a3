/* State and roles from the computation of a step: the same computation under other names, in
 * other orders, with state that is returned in another place, and with values that only look
 * like state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ir/graph.h"
#include "sheaf/graph.h"

/* Gradient descent on x w = y; state is updated in all ways that optimizers have. */
#define BODY                                                                                       \
    "  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "                         \
    "(tensor<6x3xf32>, tensor<3xf32>) -> tensor<6xf32>\n"                                          \
    "  %pt = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : "                        \
    "(tensor<6x3xf32>, tensor<3xf32>) -> tensor<6xf32>\n"                                          \
    "  %e0 = stablehlo.subtract %p, %y : tensor<6xf32>\n"                                          \
    "  %e = stablehlo.subtract %e0, %pt : tensor<6xf32>\n"                                         \
    "  %q = stablehlo.multiply %e, %e : tensor<6xf32>\n"                                           \
    "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"                                         \
    "  %loss = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0] : "     \
    "(tensor<6xf32>, tensor<f32>) -> tensor<f32>\n"                                                \
    "  %grad = stablehlo.dot_general %e, %x, contracting_dims = [0] x [0] : "                      \
    "(tensor<6xf32>, tensor<6x3xf32>) -> tensor<3xf32>\n"                                          \
    "  %gg = stablehlo.multiply %grad, %grad : tensor<3xf32>\n"                                    \
    "  %norm = stablehlo.reduce(%gg init: %z) applies stablehlo.add across dimensions = [0] : "    \
    "(tensor<3xf32>, tensor<f32>) -> tensor<f32>\n"                                                \
    "  %c = stablehlo.constant dense<0.1> : tensor<3xf32>\n"                                       \
    "  %acc1 = stablehlo.add %acc, %gg : tensor<3xf32>\n"                                          \
    "  %m0 = stablehlo.multiply %m, %c : tensor<3xf32>\n"                                          \
    "  %m1 = stablehlo.add %m0, %grad : tensor<3xf32>\n"                                           \
    "  %d = stablehlo.multiply %m1, %c : tensor<3xf32>\n"                                          \
    "  %w1 = stablehlo.subtract %w, %d : tensor<3xf32>\n"                                          \
    "  %ema0 = stablehlo.multiply %ema, %c : tensor<3xf32>\n"                                      \
    "  %ema1 = stablehlo.add %ema0, %w1 : tensor<3xf32>\n"                                         \
    "  %t0 = stablehlo.multiply %t, %c : tensor<3xf32>\n"                                          \
    "  %t1 = stablehlo.add %t0, %w1 : tensor<3xf32>\n"                                             \
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"                                         \
    "  %n1 = stablehlo.add %n, %one : tensor<i32>\n"                                               \
    "  %key1 = stablehlo.reverse %key, dims = [0] : tensor<2xui32>\n"

/* An argument of the body, the user's name of it, the user's name of its next value ("" for none),
 * and its role. */
typedef struct tensor {
    const char *value, *type, *name, *next, *result;
    sf_role role;
} tensor;

#define VECTOR "tensor<3xf32>"
enum { MOST = 12 };

typedef struct variant {
    const char *what;
    tensor tensors[MOST];
} variant;

#define FED                                                                                        \
    {"x", "tensor<6x3xf32>", "batch[0]", "", "", SF_ROLE_BATCH},                                   \
    {                                                                                              \
        "y", "tensor<6xf32>", "batch[1]", "", "", SF_ROLE_BATCH                                    \
    }

static const variant variants[] = {
    {"state in one dictionary, with words of parameters everywhere",
     {{"acc", VECTOR, "state['opt'].sum_of_squares['params']['w']", "acc1",
       "[0]['opt'].sum_of_squares['params']['w']", SF_ROLE_STATE},
      {"ema", VECTOR, "state['ema']['params']['w']", "ema1", "[0]['ema']['params']['w']",
       SF_ROLE_STATE},
      {"m", VECTOR, "state['opt'].z['params']['w']", "m1", "[0]['opt'].z['params']['w']",
       SF_ROLE_STATE},
      {"w", VECTOR, "state['params']['w']", "w1", "[0]['params']['w']", SF_ROLE_PARAM},
      {"n", "tensor<i32>", "state['step']", "n1", "[0]['step']", SF_ROLE_STATE},
      {"key", "tensor<2xui32>", "state['rng']", "key1", "[0]['rng']", SF_ROLE_KEY},
      {"t", VECTOR, "state['target']['w']", "t1", "[0]['target']['w']", SF_ROLE_STATE},
      FED}},
    {"trees of one shape, told apart by their place",
     {{"w", VECTOR, "a['w']", "w1", "[0]['w']", SF_ROLE_PARAM},
      {"m", VECTOR, "b['w']", "m1", "[1]['w']", SF_ROLE_STATE},
      {"acc", VECTOR, "c['w']", "acc1", "[2]['w']", SF_ROLE_STATE},
      {"ema", VECTOR, "d['w']", "ema1", "[3]['w']", SF_ROLE_STATE},
      {"t", VECTOR, "e['w']", "t1", "[4]['w']", SF_ROLE_STATE},
      {"n", "tensor<i32>", "f", "n1", "[5]", SF_ROLE_STATE},
      {"key", "tensor<2xui32>", "g['k']", "key1", "[6]['k']", SF_ROLE_KEY},
      FED}},
    {"what is not trained stands first and does not come back",
     {{"t", VECTOR, "p['w']", "", "", SF_ROLE_PARAM},
      {"w", VECTOR, "q['w']", "w1", "[0]['w']", SF_ROLE_PARAM},
      {"m", VECTOR, "r['w']", "m1", "[1]['w']", SF_ROLE_STATE},
      {"acc", VECTOR, "s['w']", "acc1", "[2]['w']", SF_ROLE_STATE},
      {"ema", VECTOR, "u['w']", "ema1", "[3]['w']", SF_ROLE_STATE},
      {"n", "tensor<i32>", "v['n']", "n1", "[4]['n']", SF_ROLE_STATE},
      {"key", "tensor<2xui32>", "key", "", "", SF_ROLE_KEY},
      FED}},
    {"plain tensors, in another order than their results, without names",
     {{"m", VECTOR, "", "m1", "", SF_ROLE_STATE},
      {"w", VECTOR, "", "w1", "", SF_ROLE_PARAM},
      {"acc", VECTOR, "", "acc1", "", SF_ROLE_STATE},
      {"key", "tensor<2xui32>", "", "key1", "", SF_ROLE_KEY},
      {"ema", VECTOR, "", "ema1", "", SF_ROLE_STATE},
      {"t", VECTOR, "", "t1", "", SF_ROLE_STATE},
      {"n", "tensor<i32>", "", "n1", "", SF_ROLE_STATE},
      FED}},
};
enum { NVARIANTS = sizeof variants / sizeof *variants };

/* Reports come last: a norm of the gradient, and the loss before it or after it. */
static void write_step(const variant *v, bool loss_last, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "func.func @main(");
    const char *reports[] = {loss_last ? "norm" : "loss", loss_last ? "loss" : "norm"};
    for (int i = 0; i < MOST && v->tensors[i].value; i++) {
        const tensor *t = &v->tensors[i];
        at += (size_t)snprintf(out + at, size - at, "%s%%%s: %s", i ? ", " : "", t->value, t->type);
        if (*t->name)
            at += (size_t)snprintf(out + at, size - at, " loc(\"%s\")", t->name);
    }
    at += (size_t)snprintf(out + at, size - at, ") -> (");
    for (int i = 0; i < MOST && v->tensors[i].value; i++) {
        const tensor *t = &v->tensors[i];
        if (*t->next && *t->result)
            at += (size_t)snprintf(out + at, size - at, "%s {jax.result_info = \"result%s\"}, ",
                                   t->type, t->result);
        else if (*t->next)
            at += (size_t)snprintf(out + at, size - at, "%s, ", t->type);
    }
    at += (size_t)snprintf(out + at, size - at, "tensor<f32>, tensor<f32>) {\n%s  return ", BODY);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < MOST && v->tensors[i].value; i++)
            if (*v->tensors[i].next)
                at += (size_t)snprintf(out + at, size - at, "%s%s, ", pass ? "" : "%",
                                       pass ? v->tensors[i].type : v->tensors[i].next);
        at += (size_t)snprintf(out + at, size - at,
                               pass ? "tensor<f32>, tensor<f32>\n}\n" : "%%%s, %%%s : ", reports[0],
                               reports[1]);
    }
}

static sf_graph *load(const char *text, const sf_load_options *options)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    if (sf_load_text(text, strlen(text), "step", options, diag, &graph) != SF_OK)
        fail_msg("%s\n%s", text, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return graph;
}

static void check(const variant *v, const sf_graph *graph, bool loss_last)
{
    uint32_t result = 0;
    for (uint32_t i = 0; i < MOST && v->tensors[i].value; i++) {
        const tensor *t = &v->tensors[i];
        uint32_t next = *t->next ? result++ : SF_NONE;
        if (graph->arguments[i].next != next)
            fail_msg("%s: %%%s becomes %d, not %d", v->what, t->value,
                     (int)graph->arguments[i].next, (int)next);
        if (graph->arguments[i].role != t->role)
            fail_msg("%s: %%%s is %s, not %s", v->what, t->value,
                     sf_role_name(graph->arguments[i].role), sf_role_name(t->role));
    }
    assert_true(graph->results[result + loss_last].is_loss);
    assert_false(graph->results[result + !loss_last].is_loss);
}

static void test_variants(void **state)
{
    (void)state;
    for (int i = 0; i < NVARIANTS; i++)
        for (int loss_last = 0; loss_last < 2; loss_last++) {
            static char text[16384];
            write_step(&variants[i], loss_last, text, sizeof text);
            sf_graph *graph = load(text, NULL);
            check(&variants[i], graph, loss_last);
            sf_graph_free(graph);
        }
}

/* A sidecar of the variant, with roles or without, that ends in `rest`; the step that it makes of the text. */
static sf_graph *load_with_sidecar(const variant *v, bool roles, const char *rest)
{
    char path[] = "/tmp/sheaf-state-XXXXXX", json[4096] = "{\"args\": [", role[64] = "";
    static char text[16384];
    for (int i = 0; i < MOST && v->tensors[i].value; i++) {
        const tensor *t = &v->tensors[i];
        const char *shape = strcmp(t->type, VECTOR) == 0            ? "[3]"
                            : strcmp(t->type, "tensor<i32>") == 0   ? "[]"
                            : strcmp(t->type, "tensor<6xf32>") == 0 ? "[6]"
                            : strcmp(t->value, "key") == 0          ? "[2]"
                                                                    : "[6, 3]";
        size_t at = strlen(json);
        if (roles)
            snprintf(role, sizeof role, "\"role\": \"%s\", ", sf_role_name(t->role));
        snprintf(json + at, sizeof json - at, "%s{%s\"shape\": %s}", i ? ", " : "", role, shape);
    }
    snprintf(json + strlen(json), sizeof json - strlen(json), "]%s}", rest);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, json, strlen(json)), (ssize_t)strlen(json));
    close(fd);
    write_step(v, true, text, sizeof text);
    sf_graph *graph = load(text, &SF_OPTIONS(sf_load_options, .sidecar = path));
    unlink(path);
    return graph;
}

/* A sidecar has roles: the links are those without it, keys or not. */
static void test_sidecar_keeps_links(void **state)
{
    (void)state;
    sf_graph *graph = load_with_sidecar(&variants[0], true, "");
    check(&variants[0], graph, true);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        assert_int_equal(graph->arguments[i].role_from, SF_FROM_SIDECAR);
    sf_graph_free(graph);
}

/* A sidecar has links, and no roles: there are no other links, and roles follow from the flow of data. */
static void test_sidecar_has_links(void **state)
{
    (void)state;
    sf_graph *graph = load_with_sidecar(&variants[0], false, ", \"state\": \"3=3,0=1\"");
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        uint32_t next = i == 3 ? 3 : i == 0 ? 1 : SF_NONE;
        assert_int_equal(graph->arguments[i].next, next);
        assert_int_equal(graph->arguments[i].next_from,
                         next == SF_NONE ? SF_FROM_NOTHING : SF_FROM_SIDECAR);
        assert_int_not_equal(graph->arguments[i].role_from, SF_FROM_SIDECAR);
    }
    assert_int_equal(graph->arguments[3].role, SF_ROLE_PARAM);
    sf_graph_free(graph);
}

/* Gradients have the names and types of parameters, but do not become them. */
static void test_gradients_are_no_state(void **state)
{
    (void)state;
    static const variant gradients = {
        "gradients",
        {{"w", VECTOR, "params['w']", "grad", "[0]['w']", SF_ROLE_PARAM},
         {"t", VECTOR, "t", "", "", SF_ROLE_PARAM},
         {"m", VECTOR, "m", "", "", SF_ROLE_STATE},
         {"acc", VECTOR, "acc", "", "", SF_ROLE_STATE},
         {"ema", VECTOR, "ema", "", "", SF_ROLE_STATE},
         {"n", "tensor<i32>", "n", "", "", SF_ROLE_STATE},
         {"key", "tensor<2xui32>", "key", "", "", SF_ROLE_KEY},
         FED}};
    static char text[16384];
    write_step(&gradients, true, text, sizeof text);
    sf_graph *graph = load(text, NULL);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        assert_int_equal(graph->arguments[i].next, SF_NONE);
    sf_graph_free(graph);
}

/* Functions that each call the next one twice and do nothing: 2^60 calls in a few lines. */
static void test_calls_that_multiply(void **state)
{
    (void)state;
    static char text[32768];
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "func.func private @f60(%%a: tensor<f32>) -> tensor<f32> {\n"
                                 "  return %%a : tensor<f32>\n}\n");
    for (int i = 59; i >= 0; i--) {
        char name[24];
        snprintf(name, sizeof name, i ? "private @f%d" : "@main", i);
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "func.func %s(%%a: tensor<f32>) -> tensor<f32> {\n"
                               "  %%0 = func.call @f%d(%%a) : (tensor<f32>) -> tensor<f32>\n"
                               "  %%1 = func.call @f%d(%%0) : (tensor<f32>) -> tensor<f32>\n"
                               "  return %%1 : tensor<f32>\n}\n",
                               name, i + 1, i + 1);
    }
    sf_graph *graph = NULL;
    sf_diag *diag = sf_diag_new();
    assert_int_equal(sf_load_text(text, at, "calls",
                                  &SF_OPTIONS(sf_load_options, .most_nodes = 100000), diag, &graph),
                     SF_EUNSUPPORTED);
    assert_non_null(strstr(sf_diag_text(diag, 0), "go through more than"));
    sf_diag_free(diag);
}

/* State that only the order determines, of so many tensors that a table of all pairs would be too
 * large: descent on the sum of (w_i x)^2. */
static void test_many_tensors(void **state)
{
    (void)state;
    enum { COUNT = 9000 };
    sf_buf text = {0};
    sf_buf_puts(&text, "func.func @main(");
    for (int i = 0; i < COUNT; i++)
        sf_buf_printf(&text, "%%w%d: tensor<2xf32>, ", i);
    sf_buf_puts(&text, "%x: tensor<2xf32>) -> (");
    for (int i = 0; i < COUNT; i++)
        sf_buf_puts(&text, "tensor<2xf32>, ");
    sf_buf_puts(&text, "tensor<f32>) {\n  %l0 = stablehlo.constant dense<0.0> : tensor<2xf32>\n");
    for (int i = 0; i < COUNT; i++)
        sf_buf_printf(&text,
                      "  %%p%d = stablehlo.multiply %%w%d, %%x : tensor<2xf32>\n"
                      "  %%q%d = stablehlo.multiply %%p%d, %%p%d : tensor<2xf32>\n"
                      "  %%l%d = stablehlo.add %%l%d, %%q%d : tensor<2xf32>\n"
                      "  %%g%d = stablehlo.multiply %%p%d, %%x : tensor<2xf32>\n"
                      "  %%n%d = stablehlo.subtract %%w%d, %%g%d : tensor<2xf32>\n",
                      i, i, i, i, i, i + 1, i, i, i, i, i, i, i);
    sf_buf_printf(&text,
                  "  %%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                  "  %%loss = stablehlo.reduce(%%l%d init: %%z) applies stablehlo.add across "
                  "dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>\n",
                  COUNT);
    sf_buf_puts(&text, "  return ");
    for (int i = 0; i < COUNT; i++)
        sf_buf_printf(&text, "%%n%d, ", i);
    sf_buf_puts(&text, "%loss : ");
    for (int i = 0; i < COUNT; i++)
        sf_buf_puts(&text, "tensor<2xf32>, ");
    sf_buf_puts(&text, "tensor<f32>\n}\n");
    sf_graph *graph;
    assert_int_equal(sf_load_text(text.text, text.length, "many", NULL, NULL, &graph), SF_OK);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(graph->arguments[i].next, i);
    assert_int_equal(graph->arguments[COUNT].next, SF_NONE);
    sf_graph_free(graph);
    sf_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_tensors),           cmocka_unit_test(test_variants),
        cmocka_unit_test(test_sidecar_keeps_links),    cmocka_unit_test(test_sidecar_has_links),
        cmocka_unit_test(test_gradients_are_no_state), cmocka_unit_test(test_calls_that_multiply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
