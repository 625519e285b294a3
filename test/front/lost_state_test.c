/* Lost state: which is reported, which is not, and how the user fixes it. One step, gradient
 * descent with two moments, in many signatures: with names or without, with few or many of its
 * results, and aliases for some. */
#include "front/lost_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "front/put_text.h"
#include "sheaf/sheaf.h"

#define V "tensor<3xf32>"
#define BODY                                                                                       \
    "  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<6x3xf32>, " V     \
    ") -> tensor<6xf32>\n"                                                                         \
    "  %e = stablehlo.subtract %p, %y : tensor<6xf32>\n"                                           \
    "  %q = stablehlo.multiply %e, %e : tensor<6xf32>\n"                                           \
    "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"                                         \
    "  %loss = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0] : "     \
    "(tensor<6xf32>, tensor<f32>) -> tensor<f32>\n"                                                \
    "  %grad = stablehlo.dot_general %e, %x, contracting_dims = [0] x [0] : (tensor<6xf32>, "      \
    "tensor<6x3xf32>) -> " V "\n"                                                                  \
    "  %c = stablehlo.constant dense<0.1> : " V "\n"                                               \
    "  %m0 = stablehlo.multiply %m, %c : " V "\n"                                                  \
    "  %m1 = stablehlo.add %m0, %grad : " V "\n"                                                   \
    "  %gg = stablehlo.multiply %grad, %grad : " V "\n"                                            \
    "  %v0 = stablehlo.add %v, %gg : " V "\n"                                                      \
    "  %v1 = stablehlo.add %v0, %c : " V "\n"                                                      \
    "  %d = stablehlo.divide %m1, %v1 : " V "\n"                                                   \
    "  %w1 = stablehlo.subtract %w, %d : " V "\n"                                                  \
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"                                         \
    "  %n1 = stablehlo.add %n, %one : tensor<i32>\n"                                               \
    "  %key1 = stablehlo.reverse %key, dims = [0] : tensor<2xui32>\n"

static const struct {
    const char *value, *type, *name;
} arguments[] = {
    {"w", V, "params['w']"},
    {"m", V, "opt[0].mu['w']"},
    {"v", V, "opt[0].nu['w']"},
    {"n", "tensor<i32>", "opt[0].count"},
    {"key", "tensor<2xui32>", "key"},
    {"x", "tensor<6x3xf32>", "batch['x']"},
    {"y", "tensor<6xf32>", "batch['y']"},
};

enum { NARGUMENTS = sizeof arguments / sizeof *arguments, NRESULTS = 10 };

static const struct {
    const char *value, *type, *name;
} all_results[NRESULTS] = {
    {"w1", V, "[0]['w']"},
    {"m1", V, "[1][0].mu['w']"},
    {"v1", V, "[1][0].nu['w']"},
    {"n1", "tensor<i32>", "[1][0].count"},
    {"key1", "tensor<2xui32>", "[2]"},
    {"loss", "tensor<f32>", "[3]"},
    {"grad", V, "[4]['grads']['w']"},
    {"d", V, "[4]['updates']['w']"},
    {"e", "tensor<6xf32>", "[4]['residual']"},
    {"n", "tensor<i32>", "[4]['step']"},
};

/* A signature: which results it gives, as digits; which arguments are aliases of them; with names or not. */
typedef struct signature {
    const char *what, *results;
    bool named;
    const char *aliases; /* "argument result" in digits, pairs one after the other */
    const char *sidecar, *state;
    const char *loose; /* "" or the results and arguments (as letters, a: 0) that are loose */
} signature;

static const signature signatures[] = {
    {"all of it, by name", "012345", true, "", NULL, NULL, ""},
    {"all of it, by order", "012345", false, "", NULL, NULL, ""},
    {"all of it, by alias", "012345", false, "0011223344", NULL, NULL, ""},
    {"with gradients, updates, residuals and the old step", "0123456789", true, "", NULL, NULL, ""},
    {"the same by alias", "0123456789", false, "0011223344", NULL, NULL, ""},
    {"only parameters are donated", "012345", false, "00", NULL, NULL, ""},
    {"all but a moment", "012345", false, "00113344", NULL, NULL, ""},
    {"all but the count", "012345", false, "00112244", NULL, NULL, ""},
    {"all but the key", "012345", false, "00112233", NULL, NULL, ""},
    {"all but the key, with gradients", "0123456", false, "00112233", NULL, NULL, ""},
    {"one key, two new ones", "01234475", false, "00112233", NULL, NULL, "45"},
    {"a moment does not come back", "01345", true, "", NULL, NULL, "c"},
    {"neither moment does", "045", true, "", NULL, NULL, "bcd"},
    {"gradients alone", "56", true, "", NULL, NULL, ""},
    {"by hand", "012345", false, "", NULL, "0=0,1=1", ""},
    {"it is said by number", "012345", false, "00113344", "{\"outputs\": [2]}", NULL, ""},
    {"it is said by name", "012345", true, "", "{\"outputs\": [\"result[1][0].nu['w']\"]}", NULL,
     "c"},
    {"not all is said", "012345", false, "00", "{\"outputs\": [1, 3, 4]}", NULL, ""},
    {"roles alone", "012345", true, "",
     "{\"args\": [{\"role\": \"param\", \"shape\": [3]}, {\"role\": \"opt_state\", \"shape\": [3]},"
     " {\"role\": \"opt_state\", \"shape\": [3]}, {\"role\": \"opt_state\", \"shape\": []},"
     " {\"role\": \"key\", \"shape\": [2]}, {\"role\": \"batch\", \"shape\": [6, 3]},"
     " {\"role\": \"batch\", \"shape\": [6]}]}",
     NULL, ""},
    {"roles, and a moment that is fed", "01345", true, "",
     "{\"args\": [{\"role\": \"param\", \"shape\": [3]}, {\"role\": \"opt_state\", \"shape\": [3]},"
     " {\"role\": \"other\", \"shape\": [3]}, {\"role\": \"opt_state\", \"shape\": []},"
     " {\"role\": \"key\", \"shape\": [2]}, {\"role\": \"batch\", \"shape\": [6, 3]},"
     " {\"role\": \"batch\", \"shape\": [6]}]}",
     NULL, ""},
};

enum { NSIGNATURES = sizeof signatures / sizeof *signatures };

static void write_step(const signature *s, char *text)
{
    *text = 0;
    put(text, "func.func public @main(");
    for (int i = 0; i < NARGUMENTS; i++) {
        put(text, "%s%%%s: %s", i ? ", " : "", arguments[i].value, arguments[i].type);
        for (const char *pair = s->aliases; *pair; pair += 2)
            if (pair[0] - '0' == i)
                put(text, " {tf.aliasing_output = %c : i32}", pair[1]);
        if (s->named)
            put(text, " loc(\"%s\")", arguments[i].name);
        else
            put(text, " loc(\"arg%d\")", i);
    }
    put(text, ") -> (");
    for (const char *r = s->results; *r; r++) {
        put(text, "%s%s", r > s->results ? ", " : "", all_results[*r - '0'].type);
        if (s->named)
            put(text, " {jax.result_info = \"result%s\"}", all_results[*r - '0'].name);
    }
    put(text, ") {\n%s  return ", BODY);
    for (const char *r = s->results; *r; r++)
        put(text, "%s%%%s", r > s->results ? ", " : "", all_results[*r - '0'].value);
    put(text, " : ");
    for (const char *r = s->results; *r; r++)
        put(text, "%s%s", r > s->results ? ", " : "", all_results[*r - '0'].type);
    put(text, "\n}\n");
}

static sf_graph *load(const signature *s)
{
    static char text[TEXT];
    char path[] = "/tmp/sheaf-loose-XXXXXX";
    sf_load_options options = {
        .size = sizeof options, .state = s->state, .sidecar = s->sidecar ? path : NULL};
    if (s->sidecar) {
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, s->sidecar, strlen(s->sidecar)), (ssize_t)strlen(s->sidecar));
        close(fd);
    }
    write_step(s, text);
    sf_diag *diag = sf_diag_new();
    sf_graph *graph;
    if (sf_load_text(text, strlen(text), "t", &options, diag, &graph) != SF_OK)
        fail_msg("%s: %s\n%s", s->what, sf_diag_text(diag, 0), text);
    sf_diag_free(diag);
    if (s->sidecar)
        unlink(path);
    return graph;
}

static void test_what_is_loose(void **state)
{
    (void)state;
    for (int n = 0; n < NSIGNATURES; n++) {
        const signature *s = &signatures[n];
        sf_graph *graph = load(s);
        char found[40] = "";
        int count = 0;
        for (uint32_t r = 0; r < graph->top->nresults; r++)
            if (graph->results[r].is_loose)
                found[count++] = (char)('0' + r);
        for (uint32_t i = 0; i < graph->top->narguments; i++)
            if (graph->arguments[i].is_loose)
                found[count++] = (char)('a' + i);
        if (strcmp(found, s->loose) != 0)
            fail_msg("%s: '%s' is loose, not '%s'", s->what, found, s->loose);
        sf_graph_free(graph);
    }
}

/* An error for training, a warning for whoever plans. */
static void test_is_told(void **state)
{
    (void)state;
    for (int n = 0; n < NSIGNATURES; n++) {
        const signature *s = &signatures[n];
        sf_graph *graph = load(s);
        sf_diag *diag = sf_diag_new();
        sf_plan_spec pin = {.size = sizeof pin, .mesh = "data=2"};
        sf_plan *plan;
        if (sf_pin_step(graph, &pin, diag, &plan) != SF_OK)
            fail_msg("%s: %s", s->what, sf_diag_text(diag, 0));
        const char *said = sf_diag_text(diag, 0);
        bool is_loose = said && (strstr(said, "is not linked to it") || strstr(said, "no result "));
        assert_int_equal(is_loose, *s->loose != 0);
        sf_plan_free(plan);
        sf_diag_free(diag);
        diag = sf_diag_new();
        sf_train_options options = {
            .size = sizeof options, .steps = 1, .data = "synthetic", .set = NULL};
        sf_status status = sf_train(graph, &options, diag, NULL);
        bool trains = strcmp(s->results, "56") != 0; /* gradients are nothing to train */
        assert_int_equal(status, *s->loose || !trains ? SF_EINPUT : SF_OK);
        sf_diag_free(diag);
        sf_graph_free(graph);
    }
}

static void test_bad_outputs(void **state)
{
    (void)state;
    static const char *const sidecars[][2] = {
        {"{\"outputs\": [9]}", "is no result of the step"},
        {"{\"outputs\": [-1]}", "is no result of the step"},
        {"{\"outputs\": [\"w\"]}", "is no result of the step"},
        {"{\"outputs\": [[1]]}", "is no result of the step"},
        {"{\"outputs\": 3}", "must be an array"},
        {"{\"output\": [3]}", "this is no sidecar"},
    };
    static char text[TEXT];
    write_step(&signatures[0], text);
    for (size_t i = 0; i < sizeof sidecars / sizeof *sidecars; i++) {
        char path[] = "/tmp/sheaf-loose-XXXXXX";
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        size_t length = strlen(sidecars[i][0]);
        assert_int_equal(write(fd, sidecars[i][0], length), (ssize_t)length);
        close(fd);
        sf_load_options options = {.size = sizeof options, .sidecar = path};
        sf_diag *diag = sf_diag_new();
        sf_graph *graph;
        assert_int_equal(sf_load_text(text, strlen(text), "t", &options, diag, &graph), SF_EINPUT);
        assert_non_null(strstr(sf_diag_text(diag, 0), sidecars[i][1]));
        sf_diag_free(diag);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_loose),
        cmocka_unit_test(test_is_told),
        cmocka_unit_test(test_bad_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
