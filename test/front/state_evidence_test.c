/* What is known beats what is guessed: aliases in the text and roles of the sidecar bind, and what a step reports of each
 * sample is nobody's next state. One step, descent on a weighted square error with momentum, in many signatures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "front/put_text.h"
#include "ir/graph.h"
#include "sheaf/sheaf.h"

#define B "tensor<6xf32>"
#define V "tensor<3xf32>"
#define BODY                                                                                       \
    "  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<6x3xf32>, " V     \
    ") -> " B "\n"                                                                                 \
    "  %d = stablehlo.subtract %p, %y : " B "\n"                                                   \
    "  %s = stablehlo.multiply %d, %d : " B "\n"                                                   \
    "  %i = stablehlo.multiply %s, %q : " B "\n"                                                   \
    "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"                                         \
    "  %l = stablehlo.reduce(%i init: %z) applies stablehlo.add across dimensions = [0] : "        \
    "(" B ", tensor<f32>) -> tensor<f32>\n"                                                        \
    "  %dq = stablehlo.multiply %d, %q : " B "\n"                                                  \
    "  %g = stablehlo.dot_general %dq, %x, contracting_dims = [0] x [0] : (" B                     \
    ", tensor<6x3xf32>) -> " V "\n"                                                                \
    "  %gg = stablehlo.multiply %g, %g : " V "\n"                                                  \
    "  %n = stablehlo.reduce(%gg init: %z) applies stablehlo.add across dimensions = [0] : "       \
    "(" V ", tensor<f32>) -> tensor<f32>\n"                                                        \
    "  %c = stablehlo.constant dense<0.1> : " V "\n"                                               \
    "  %m0 = stablehlo.multiply %m, %c : " V "\n"                                                  \
    "  %M = stablehlo.add %m0, %g : " V "\n"                                                       \
    "  %u = stablehlo.multiply %M, %c : " V "\n"                                                   \
    "  %W = stablehlo.subtract %w, %u : " V "\n"                                                   \
    "  %T = stablehlo.abs %d : " B "\n"                                                            \
    "  %b = stablehlo.constant dense<0.1> : " B "\n"                                               \
    "  %q0 = stablehlo.multiply %q, %b : " B "\n"                                                  \
    "  %P = stablehlo.add %q0, %T : " B "\n"                                                       \
    "  %e0 = stablehlo.multiply %e, %b : " B "\n"                                                  \
    "  %e1 = stablehlo.multiply %y, %b : " B "\n"                                                  \
    "  %E = stablehlo.add %e0, %e1 : " B "\n"                                                      \
    "  %r0 = stablehlo.multiply %r, %b : " B "\n"                                                  \
    "  %R = stablehlo.add %r0, %s : " B "\n"                                                       \
    "  %N = stablehlo.multiply %y, %b : " B "\n"

/* By letter: small ones are arguments, others what the step makes. */
static const struct {
    char letter;
    const char *type, *name;
} tensors[] = {
    {'w', V, "params['w']"},
    {'m', V, "opt.mu['w']"},
    {'x', "tensor<6x3xf32>", "batch['x']"},
    {'y', B, "batch['y']"},
    {'q', B, "batch['priority']"},
    {'e', B, "stats['ema']"}, /* of the batch, with its shape */
    {'r', B, "stats['error']"},
    {'W', V, "[0]['w']"},
    {'M', V, "[1].mu['w']"},
    {'l', "tensor<f32>", "[2]"},
    {'n', "tensor<f32>", "[3]['norm']"},
    {'T', B, "[3]['priority']"}, /* new ones, from errors */
    {'P', B, "[3]['priority']"}, /* new ones, from errors and the old */
    {'i', B, "[3]['y']"},        /* losses of samples */
    {'s', B, "[3]['squares']"},
    {'E', B, "[4]['ema']"},
    {'R', B, "[4]['error']"},
    {'N', B, "[3]['y']"}, /* the batch in other units, which the loss does not read */
    {'g', V, "[5]['w']"},
};
enum { NTENSORS = sizeof tensors / sizeof *tensors, MOST = 16 };

typedef struct signature {
    const char *what, *arguments, *results;
    bool named;
    const char *aliases; /* pairs of letters, as in "wW" */
    const char *roles;   /* by argument: p, o, b, x (other); "": no sidecar, or outputs alone */
    const char *outputs; /* letters */
    const char *links;   /* pairs of letters */
    int told;            /* contradictions */
} signature;

static const signature signatures[] = {
    {"priorities beside known state", "wmxyqer", "WMlTER", true, "wWmMeErR", "pobboox", "T",
     "wWmMeErR", 1},
    {"priorities, sidecar and aliases", "wmxyq", "WMlT", true, "wWmM", "pobbb", "", "wWmM", 1},
    {"the same, and it is said", "wmxyq", "WMlT", true, "wWmM", "pobbb", "T", "wWmM", 0},
    {"priorities, aliases alone", "wmxyq", "WMlT", true, "wWmM", "", "", "wWmM", 0},
    {"priorities, sidecar alone", "wmxyq", "WMlT", true, "", "pobbb", "T", "wWmM", 0},
    {"priorities, names alone", "wmxyq", "WMlT", true, "", "", "", "wWmM", 0},
    {"priorities that grow, names alone", "wmxyq", "WMlP", true, "", "", "", "wWmM", 0},
    {"priorities that grow, no names", "wmxyq", "WMlP", false, "", "", "", "wWmM", 0},
    {"priorities that grow, before the loss", "wmxyq", "WMPl", false, "", "", "", "wWmM", 0},
    {"a buffer of priorities that the text carries", "wmxyq", "WMlP", true, "wWmMqP", "", "",
     "wWmMqP", 1},
    {"and that the sidecar calls state", "wmxyq", "WMlP", true, "", "pobbo", "", "wWmMqP", 0},
    {"and without names", "wmxyq", "WMlP", false, "", "pobbo", "", "wWmMqP", 0},
    {"priorities made anew, that the sidecar calls state", "wmxyq", "WMlT", true, "", "pobbo", "",
     "wWmMqT", 0},
    {"losses of samples, names alone", "wmxyq", "WMli", true, "", "", "", "wWmM", 0},
    {"losses of samples, no names", "wmxyq", "WMli", false, "", "", "", "wWmM", 0},
    {"errors of samples, no names", "wmxyq", "WMls", false, "", "", "", "wWmM", 0},
    {"errors of samples first, no names", "yqxwm", "sWMl", false, "", "", "", "wWmM", 0},
    {"two results of one shape", "wmxyq", "WMlTs", false, "", "", "", "wWmM", 0},
    {"two results of one shape, named", "wmxyq", "WMlPi", true, "", "", "", "wWmM", 0},
    {"two of one shape and one is state", "wmxyqe", "WMlTE", true, "", "", "", "wWmMeE", 0},
    {"averages of the batch", "wmexyq", "WMEl", true, "", "", "", "wWmMeE", 0},
    {"averages of the batch, no names", "wmexyq", "WMEl", false, "", "", "", "wWmMeE", 0},
    {"averages, aliased", "wmexyq", "WMEl", false, "wWmMeE", "", "", "wWmMeE", 0},
    {"running errors, aliased", "wmrxyq", "WMRl", true, "wWmMrR", "", "", "wWmMrR", 0},
    {"running errors among averages", "wmerxyq", "WMERl", true, "", "", "", "wWmMeErR", 0},
    {"running errors, sidecar against aliases", "wmrxyq", "WMRl", true, "wWmMrR", "pobbbb", "",
     "wWmMrR", 1},
    {"running errors, outputs against aliases", "wmrxyq", "WMRl", true, "wWmMrR", "", "R", "wWmM",
     1},
    {"the batch in other units", "wmxyq", "WMlN", true, "", "pobbb", "N", "wWmM", 0},
    {"the same, and nobody says so", "wmxyq", "WMlN", true, "", "pobbb", "", "wWmM", 1},
    {"parameters alone are donated", "wmxyq", "WMlT", true, "wW", "", "", "wWmM", 0},
    {"parameters alone are donated, no names", "wmxyq", "WMlT", false, "wW", "", "", "wWmM", 0},
    {"aliases cross, as order has it", "wmxyq", "MWl", true, "wMmW", "", "", "wWmM", 1},
    {"gradients come first and take the alias", "wmxyq", "gWMl", true, "wgmW", "", "", "wWmM", 1},
    {"aliases cross, and no name says otherwise", "wmxyq", "MWl", false, "wMmW", "", "", "wWmM", 1},
    {"a donated batch", "wmxyq", "WMli", true, "wWmMyi", "", "", "wWmMyi", 1},
    {"a donated batch, sidecar", "wmxyq", "WMli", true, "wWmMyi", "pobbb", "", "wWmMyi", 1},
};
enum { NSIGNATURES = sizeof signatures / sizeof *signatures };

static int find(char letter)
{
    for (int i = 0; i < NTENSORS; i++)
        if (tensors[i].letter == letter)
            return i;
    fail_msg("no tensor '%c'", letter);
    return 0;
}

static char partner(const char *pairs, char letter)
{
    for (; *pairs; pairs += 2)
        if (*pairs == letter)
            return pairs[1];
    return 0;
}

/* Arguments of BODY that the signature does not name are constants of it. `donors`: donation without aliases. */
static void write_step(const signature *s, bool donors, char *text)
{
    *text = 0;
    put(text, "func.func public @main(");
    for (const char *a = s->arguments; *a; a++) {
        char result = partner(s->aliases, *a);
        put(text, "%s%%%c: %s", a > s->arguments ? ", " : "", *a, tensors[find(*a)].type);
        if (donors)
            put(text, " {jax.buffer_donor = true}");
        else if (result)
            put(text, " {tf.aliasing_output = %d : i32}",
                (int)(strchr(s->results, result) - s->results));
        if (s->named)
            put(text, " loc(\"%s\")", tensors[find(*a)].name);
        else
            put(text, " loc(\"arg%d\")", (int)(a - s->arguments));
    }
    put(text, ") -> (");
    for (const char *r = s->results; *r; r++) {
        put(text, "%s%s", r > s->results ? ", " : "", tensors[find(*r)].type);
        if (s->named)
            put(text, " {jax.result_info = \"result%s\"}", tensors[find(*r)].name);
    }
    put(text, ") {\n");
    for (const char *c = "wmxyqer"; *c; c++)
        if (!strchr(s->arguments, *c))
            put(text, "  %%%c = stablehlo.constant dense<0.5> : %s\n", *c, tensors[find(*c)].type);
    put(text, "%s  return ", BODY);
    for (const char *r = s->results; *r; r++)
        put(text, "%s%%%c", r > s->results ? ", " : "", *r);
    put(text, " : ");
    for (const char *r = s->results; *r; r++)
        put(text, "%s%s", r > s->results ? ", " : "", tensors[find(*r)].type);
    put(text, "\n}\n");
}

static void write_sidecar(const signature *s, char *json)
{
    static const struct {
        char letter;
        const char *name;
    } roles[] = {{'p', "param"}, {'o', "opt_state"}, {'b', "batch"}, {'x', "other"}};
    *json = 0;
    put(json, "{");
    for (int i = 0; s->roles[i]; i++)
        for (size_t r = 0; r < sizeof roles / sizeof *roles; r++) {
            const char *type = tensors[find(s->arguments[i])].type;
            if (roles[r].letter == s->roles[i])
                put(json, "%s{\"role\": \"%s\", \"shape\": %s}", i ? ", " : "\"args\": [",
                    roles[r].name,
                    strcmp(type, B) == 0   ? "[6]"
                    : strcmp(type, V) == 0 ? "[3]"
                                           : "[6, 3]");
        }
    put(json, "%s\"outputs\": [", *s->roles ? "], " : "");
    for (const char *o = s->outputs; *o; o++)
        put(json, "%s%d", o > s->outputs ? ", " : "", (int)(strchr(s->results, *o) - s->results));
    put(json, "]}");
}

static sf_status load(const signature *s, bool donors, bool strict, sf_diag *diag, sf_graph **out)
{
    static char text[TEXT], json[TEXT];
    char path[] = "/tmp/sheaf-evidence-XXXXXX";
    bool has_sidecar = *s->roles || *s->outputs;
    sf_load_options options = {
        .size = sizeof options, .sidecar = has_sidecar ? path : NULL, .strict = strict};
    write_step(s, donors, text);
    if (has_sidecar) {
        write_sidecar(s, json);
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, json, strlen(json)), (ssize_t)strlen(json));
        close(fd);
    }
    sf_status status = sf_load_text(text, strlen(text), "t", &options, diag, out);
    if (has_sidecar)
        unlink(path);
    return status;
}

static void check_links(const signature *s, const sf_graph *graph, const char *aliases)
{
    char found[3 * MOST] = "";
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_argument *argument = &graph->arguments[i];
        if (argument->next == SF_NONE)
            continue;
        char pair[] = {s->arguments[i], s->results[argument->next], 0};
        strcat(found, pair);
        if (sf_source_is_known(argument->next_from) !=
            (partner(aliases, s->arguments[i]) == s->results[argument->next]))
            fail_msg("%s: %s is from %s", s->what, pair, sf_source_name(argument->next_from));
    }
    bool same = strlen(found) == strlen(s->links);
    for (const char *pair = s->links; *pair; pair += 2)
        same = same && partner(found, *pair) == pair[1];
    if (!same)
        fail_msg("%s: links are '%s', not '%s'", s->what, found, s->links);
}

static void test_links(void **state)
{
    (void)state;
    for (int n = 0; n < NSIGNATURES; n++) {
        const signature *s = &signatures[n];
        sf_diag *diag = sf_diag_new();
        sf_graph *graph;
        if (load(s, false, false, diag, &graph) != SF_OK)
            fail_msg("%s: %s", s->what, sf_diag_text(diag, 0));
        check_links(s, graph, s->aliases);
        if (sf_diag_count(diag) != s->told)
            fail_msg("%s: %d warnings, not %d: %s", s->what, sf_diag_count(diag), s->told,
                     sf_diag_count(diag) ? sf_diag_text(diag, 0) : "");
        for (uint32_t r = 0; r < graph->top->nresults; r++)
            assert_int_equal(graph->results[r].is_loss, s->results[r] == 'l');
        sf_diag_free(diag);
        sf_graph_free(graph);
    }
}

/* What is a warning is an error for who wants it so. */
static void test_strict(void **state)
{
    (void)state;
    for (int n = 0; n < NSIGNATURES; n++) {
        sf_diag *diag = sf_diag_new();
        sf_graph *graph;
        sf_status status = load(&signatures[n], false, true, diag, &graph);
        if (status != (signatures[n].told ? SF_EINPUT : SF_OK))
            fail_msg("%s: %s", signatures[n].what, sf_status_name(status));
        assert_int_equal(sf_diag_count(diag), signatures[n].told);
        sf_diag_free(diag);
        sf_graph_free(graph);
    }
}

/* Donation alone aliases nothing: links are as without it. */
static void test_donors(void **state)
{
    (void)state;
    for (int n = 0; n < NSIGNATURES; n++) {
        signature plain = signatures[n];
        plain.aliases = "";
        sf_graph *with, *without;
        assert_int_equal(load(&plain, true, false, NULL, &with), SF_OK);
        assert_int_equal(load(&plain, false, false, NULL, &without), SF_OK);
        for (uint32_t i = 0; i < with->top->narguments; i++) {
            assert_int_equal(with->arguments[i].next, without->arguments[i].next);
            assert_false(with->arguments[i].next_from == SF_FROM_ALIAS);
        }
        sf_graph_free(with);
        sf_graph_free(without);
    }
}

/* Whatever else is known or not: no guess makes state of what the sidecar calls batch. */
static void test_batch_is_batch(void **state)
{
    (void)state;
    for (int n = 0; n < NSIGNATURES; n++)
        for (int named = 0; named < 2; named++) {
            signature s = signatures[n];
            char roles[MOST] = "";
            for (const char *a = s.arguments; *a; a++)
                strcat(roles, *a == 'w' ? "p" : *a == 'm' ? "o" : strchr("er", *a) ? "o" : "b");
            s.named = named;
            s.roles = roles;
            s.aliases = s.outputs = "";
            sf_graph *graph;
            assert_int_equal(load(&s, false, false, NULL, &graph), SF_OK);
            for (uint32_t i = 0; i < graph->top->narguments; i++)
                if (roles[i] == 'b' && graph->arguments[i].next != SF_NONE)
                    fail_msg("%s: argument %u becomes something", s.what, i);
            sf_graph_free(graph);
        }
}

/* What the user calls the loss is the loss. */
static void test_said_loss(void **state)
{
    (void)state;
    static const signature s = {"norm", "wmxyq", "WMln", true, "", "", "", "wWmM", 0};
    static const struct {
        const char *json;
        sf_status status;
        uint32_t loss;
    } cases[] = {
        {"{\"loss\": 3}", SF_OK, 3},
        {"{\"loss\": 2}", SF_OK, 2},
        {"{\"loss\": \"result[3]['norm']\"}", SF_OK, 3},
        {"{\"loss\": 0}", SF_EINPUT, 0},
        {"{\"loss\": 7}", SF_EINPUT, 0},
        {"{\"outputs\": []}", SF_OK, 2},
    };
    static char text[TEXT];
    write_step(&s, false, text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[] = "/tmp/sheaf-evidence-XXXXXX";
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, cases[i].json, strlen(cases[i].json)),
                         (ssize_t)strlen(cases[i].json));
        close(fd);
        sf_graph *graph;
        sf_load_options options = {.size = sizeof options, .sidecar = path};
        assert_int_equal(sf_load_text(text, strlen(text), "t", &options, NULL, &graph),
                         cases[i].status);
        for (uint32_t r = 0; graph && r < graph->top->nresults; r++)
            assert_int_equal(graph->results[r].is_loss, r == cases[i].loss);
        sf_graph_free(graph);
        unlink(path);
    }
}

/* Adam on two tensors, whose arguments have no names: parameters, and two moments, in any order on both sides. A moment grows
 * from itself alone, a parameter from all three. */
static void write_unnamed(const int *in, const int *out, sf_buf *text)
{
    static const char *const letters = "mvp", *const types[] = {"tensor<3xf32>", "tensor<5xf32>"};
    sf_buf_puts(text, "func.func public @main(");
    for (int k = 0; k < 6; k++)
        sf_buf_printf(text, "%%%c%d: %s, ", letters[in[k / 2]], k % 2, types[k % 2]);
    sf_buf_puts(text, "%x: tensor<3xf32>) -> (");
    for (int k = 0; k < 6; k++)
        sf_buf_printf(text, "%s {jax.result_info = \"result[%d]['%c']\"}, ", types[k % 2], k / 2,
                      'a' + k % 2);
    sf_buf_puts(text,
                "tensor<f32> {jax.result_info = \"result[3]\"}) {\n"
                "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                "%y = stablehlo.multiply %p0, %x : tensor<3xf32>\n"
                "%s0 = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions "
                "= [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>\n"
                "%s1 = stablehlo.reduce(%p1 init: %z) applies stablehlo.add across dimensions "
                "= [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>\n"
                "%l = stablehlo.multiply %s0, %s1 : tensor<f32>\n");
    for (int k = 0; k < 2; k++) {
        const char *t = types[k];
        sf_buf_printf(text,
                      "%%g%d = stablehlo.broadcast_in_dim %%s%d, dims = [] : (tensor<f32>) -> "
                      "%s\n",
                      k, 1 - k, t);
        sf_buf_printf(text, "%%c%d = stablehlo.constant dense<0.9> : %s\n", k, t);
        sf_buf_printf(text, "%%h%d = stablehlo.multiply %%m%d, %%c%d : %s\n", k, k, k, t);
        sf_buf_printf(text, "%%M%d = stablehlo.add %%h%d, %%g%d : %s\n", k, k, k, t);
        sf_buf_printf(text, "%%q%d = stablehlo.multiply %%g%d, %%g%d : %s\n", k, k, k, t);
        sf_buf_printf(text, "%%i%d = stablehlo.multiply %%v%d, %%c%d : %s\n", k, k, k, t);
        sf_buf_printf(text, "%%V%d = stablehlo.add %%i%d, %%q%d : %s\n", k, k, k, t);
        sf_buf_printf(text, "%%u%d = stablehlo.divide %%M%d, %%V%d : %s\n", k, k, k, t);
        sf_buf_printf(text, "%%P%d = stablehlo.subtract %%p%d, %%u%d : %s\n", k, k, k, t);
    }
    sf_buf_puts(text, "return ");
    for (int k = 0; k < 6; k++)
        sf_buf_printf(text, "%%%c%d, ", letters[out[k / 2]] - 'a' + 'A', k % 2);
    sf_buf_puts(text, "%l : ");
    for (int k = 0; k < 6; k++)
        sf_buf_printf(text, "%s, ", types[k % 2]);
    sf_buf_puts(text, "tensor<f32>\n}\n");
}

static void test_orders(void **state)
{
    (void)state;
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int both = 0; both < 36; both++) {
        const int *in = orders[both / 6], *out = orders[both % 6];
        sf_buf text = {0};
        sf_graph *graph;
        write_unnamed(in, out, &text);
        assert_int_equal(sf_load_text(text.text, text.length, "t", NULL, NULL, &graph), SF_OK);
        for (uint32_t i = 0; i < 6; i++) {
            uint32_t next = graph->arguments[i].next;
            if (next >= 6 || out[next / 2] != in[i / 2] || next % 2 != i % 2)
                fail_msg("argument %u of\n%s becomes %u", i, text.text, next);
            assert_int_equal(graph->arguments[i].role,
                             in[i / 2] == 2 ? SF_ROLE_PARAM : SF_ROLE_STATE);
        }
        sf_graph_free(graph);
        sf_buf_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links),     cmocka_unit_test(test_strict),
        cmocka_unit_test(test_donors),    cmocka_unit_test(test_batch_is_batch),
        cmocka_unit_test(test_said_loss), cmocka_unit_test(test_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
