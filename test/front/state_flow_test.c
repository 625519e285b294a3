/* State links by the flow of data: which result the updates of an argument lead to decides before aliases, names and order.
 * One step in many signatures: descent with momentum, an average, old weights, a trained number, a scale of the loss, a buffer
 * and a hidden state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "front/put_text.h"
#include "ir/graph.h"
#include "sheaf/sheaf.h"

#define N "tensor<f32>"
#define V "tensor<3xf32>"
#define B "tensor<6xf32>"
#define X "tensor<6x3xf32>"
#define Q "tensor<12xf32>"

/* RESULT OP A B TYPE: ops on single elements, `sum` of all elements and `tanh` (without B); or a line of the text. */
static const char *const body[] = {
    "%z = stablehlo.constant dense<0.0> : " N,
    "%zi = stablehlo.constant dense<0> : tensor<i32>",
    "%t = stablehlo.constant dense<0.1> : " N,
    "%tv = stablehlo.constant dense<0.1> : " V,
    "%tb = stablehlo.constant dense<0.1> : " B,
    "%p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (" X ", " V ") -> " B,
    /* The loss has the trained number s in a product and in a sum. */
    "d subtract p y " B,
    "%g = stablehlo.dot_general %d, %x, contracting_dims = [0] x [0] : (" B ", " X ") -> " V,
    "dd multiply d d " B,
    "r sum dd - " B,
    "%es = stablehlo.exponential %s : " N,
    "rs multiply r es " N,
    "l add rs s " N,
    "J add rs t " N,
    "js multiply J t " N,
    "S subtract s js " N,
    /* A loss of two such numbers. */
    "%ea = stablehlo.exponential %a : " N,
    "la multiply r ea " N,
    "al add la a " N,
    "T add l al " N,
    "at multiply la t " N,
    "A subtract a at " N,
    /* A loss out of its scale. */
    "lc multiply l c " N,
    "L divide lc c " N,
    "c2 add c c " N,
    "c0 multiply c t " N,
    "%big = stablehlo.compare GT, %lc, %t : (" N ", " N ") -> tensor<i1>",
    "%C = stablehlo.select %big, %c2, %c0 : tensor<i1>, " N,
    /* Momentum, and an average of the weights. */
    "m0 multiply m tv " V,
    "M add m0 g " V,
    "u multiply M tv " V,
    "W subtract w u " V,
    "e0 multiply e tv " V,
    "e1 multiply W tv " V,
    "E add e0 e1 " V,
    /* A gradient that draws w to v. */
    "wv subtract w v " V,
    "gv multiply wv tv " V,
    "G add g gv " V,
    "uG multiply G tv " V,
    "Z subtract w uG " V,
    /* Made anew, and a decoy of its type. */
    "H tanh p - " B,
    "D subtract y H " B,
    /* What is carried, and a loss that reads it. */
    "k0 multiply k tb " B,
    "K add k0 p " B,
    "O tanh K - " B,
    "OO multiply O O " B,
    "o sum OO - " B,
    /* A buffer, and a loss that reads it. */
    "%Q = stablehlo.dynamic_update_slice %q, %p, %zi : (" Q ", " B ", tensor<i32>) -> " Q,
    "QQ multiply Q Q " Q,
    "n sum QQ - " Q,
};

static const struct {
    char letter;
    const char *type, *shape;
} tensors[] = {{'w', V, "[3]"},    {'m', V, "[3]"}, {'e', V, "[3]"},  {'v', V, "[3]"},
               {'x', X, "[6, 3]"}, {'y', B, "[6]"}, {'s', N, "[]"},   {'c', N, "[]"},
               {'h', B, "[6]"},    {'k', B, "[6]"}, {'q', Q, "[12]"}, {'W', V, NULL},
               {'M', V, NULL},     {'E', V, NULL},  {'G', V, NULL},   {'Z', V, NULL},
               {'l', N, NULL},     {'L', N, NULL},  {'J', N, NULL},   {'S', N, NULL},
               {'C', N, NULL},     {'H', B, NULL},  {'D', B, NULL},   {'K', B, NULL},
               {'O', B, NULL},     {'Q', Q, NULL},  {'a', N, "[]"},   {'A', N, NULL},
               {'T', N, NULL},     {'n', N, NULL},  {'o', N, NULL}};
enum { NTENSORS = sizeof tensors / sizeof *tensors, MOST = 12 };

typedef struct signature {
    const char *what, *arguments, *results; /* letters */
    bool named;          /* arguments are called a['w'], b['w'], ..., results result[0]['w'], ... */
    const char *aliases; /* pairs of letters */
    const char *roles;   /* by argument: p, o, b; "": no sidecar */
    const char *state;   /* as --state */
    const char *links;   /* pairs of letters */
    char loss;
    int told; /* contradictions */
    int lost; /* arguments and results */
} signature;

static const signature signatures[] = {
    {"momentum first", "wmxy", "lMW", true, "", "", NULL, "wWmM", 'l', 0, 0},
    {"momentum first, aliased by type", "wmxy", "lMW", true, "wMmW", "", NULL, "wWmM", 'l', 1, 0},
    {"the same without names", "wmxy", "lMW", false, "wMmW", "", NULL, "wWmM", 'l', 1, 0},
    {"the same with roles", "wmxy", "lMW", true, "", "pobb", NULL, "wWmM", 'l', 0, 0},
    {"arguments the other way", "mwxy", "WMl", true, "mWwM", "", NULL, "wWmM", 'l', 1, 0},
    {"aliases that are right", "wmxy", "lMW", true, "wWmM", "", NULL, "wWmM", 'l', 0, 0},
    {"an average first", "wexy", "lEW", true, "", "", NULL, "wWeE", 'l', 0, 0},
    {"an average, aliased by type", "wexy", "lEW", true, "wEeW", "", NULL, "wWeE", 'l', 1, 0},
    {"an average, with roles", "wexy", "lEW", true, "", "pobb", NULL, "wWeE", 'l', 0, 0},
    {"momentum and an average", "emwxy", "WlEM", true, "", "", NULL, "eEmMwW", 'l', 0, 0},
    {"old weights", "wvxy", "Zwl", true, "", "", NULL, "wZvw", 'l', 0, 0},
    {"old weights first", "wvxy", "wZl", true, "wwvZ", "", NULL, "wZvw", 'l', 1, 0},
    {"what draws the weights, and their gradient", "wvxy", "ZlG", true, "", "", NULL, "wZ", 'l', 0,
     1},
    {"a trained number first", "wsxy", "SWl", true, "", "", NULL, "wWsS", 'l', 0, 0},
    {"after the weights", "wsxy", "WSl", true, "", "", NULL, "wWsS", 'l', 0, 0},
    {"after the loss", "wsxy", "WlS", true, "", "", NULL, "wWsS", 'l', 0, 0},
    {"after the loss, with roles", "wsxy", "lWS", true, "", "ppbb", NULL, "wWsS", 'l', 0, 0},
    {"aliased to the loss", "wsxy", "lWS", true, "wWsl", "", NULL, "wWsS", 'l', 1, 0},
    {"with its gradient", "wsxy", "WJSl", true, "", "", NULL, "wWsS", 'l', 0, 0},
    {"with its gradient last", "wsxy", "WSlJ", true, "", "", NULL, "wWsS", 'l', 0, 0},
    {"two trained numbers, the loss between", "sawxy", "ATSW", true, "", "", NULL, "sSaAwW", 'T', 0,
     0},
    {"two trained numbers, with roles", "sawxy", "TWAS", true, "", "pppbb", NULL, "sSaAwW", 'T', 0,
     0},
    {"a scale of the loss", "wcxy", "LWC", true, "", "", NULL, "wWcC", 'L', 0, 0},
    {"a scale, aliased to the loss", "wcxy", "LWC", true, "wWcL", "", NULL, "wWcC", 'L', 1, 0},
    {"a scale, with roles", "wcxy", "LWC", true, "", "pobb", NULL, "wWcC", 'L', 0, 0},
    {"a buffer that the loss reads", "wqxy", "nWQ", true, "", "", NULL, "wWqQ", 'n', 0, 0},
    {"what is carried, and read by the loss", "wkxy", "oWOK", true, "", "", NULL, "wW", 'o', 0, 2},
    {"the same with roles", "wkxy", "oWOK", true, "", "pobb", NULL, "wWkK", 'o', 0, 0},
    {"the same aliased by type", "wkxy", "oWOK", true, "wWkO", "", NULL, "wWkK", 'o', 1, 0},
    {"made anew", "whxy", "WHl", true, "", "pobb", NULL, "wWhH", 'l', 0, 0},
    {"made anew, or the decoy", "whxy", "WHDl", true, "", "pobb", NULL, "wW", 'l', 0, 1},
    {"made anew, or the decoy, aliased", "whxy", "WHDl", true, "wWhH", "", NULL, "wWhH", 'l', 1, 0},
    {"the batch of the step before", "whxy", "Wyl", true, "", "pobb", NULL, "wWhy", 'l', 0, 0},
    {"nobody says so", "whxy", "Wyl", true, "", "", NULL, "wW", 'l', 0, 1},
    {"one link is said", "whxy", "WHDl", true, "", "", "1=1", "wWhH", 'l', 0, 0},
    {"one link is said against the flow", "wmxy", "lMW", true, "", "", "0=1", "wM", 'l', 0, 1},
    {"it is said that nothing becomes it", "wmxy", "WMl", true, "", "", "1=none", "wW", 'l', 0, 0},
    {"against an alias, too", "wmxy", "WMl", true, "wWmM", "", "1=none", "wW", 'l', 0, 0},
    {"it is said that there are none", "wmxy", "WMl", true, "wWmM", "", "none", "", 'l', 0, 0},
    {"no step: all arguments come back", "wm", "WM", false, "", "", NULL, "", 0, 0, 0},
};
enum { NSIGNATURES = sizeof signatures / sizeof *signatures };

static void put_body(char *text)
{
    for (size_t i = 0; i < sizeof body / sizeof *body; i++) {
        char result[8], op[16], a[8], b[8], type[24];
        if (*body[i] == '%')
            put(text, "  %s\n", body[i]);
        else if (sscanf(body[i], "%7s %15s %7s %7s %23s", result, op, a, b, type) != 5)
            fail_msg("%s", body[i]);
        else if (strcmp(op, "sum") == 0)
            put(text,
                "  %%%s = stablehlo.reduce(%%%s init: %%z) applies stablehlo.add across dimensions "
                "= [0] : (%s, " N ") -> " N "\n",
                result, a, type);
        else if (strcmp(op, "tanh") == 0)
            put(text, "  %%%s = stablehlo.tanh %%%s : %s\n", result, a, type);
        else
            put(text, "  %%%s = stablehlo.%s %%%s, %%%s : %s\n", result, op, a, b, type);
    }
}

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

/* Arguments of the body that the signature does not name are constants of it. */
static void write_step(const signature *s, char *text)
{
    *text = 0;
    put(text, "func.func public @main(");
    for (const char *a = s->arguments; *a; a++) {
        const char *type = tensors[find(*a)].type;
        char result = partner(s->aliases, *a);
        put(text, "%s%%%c: %s", a > s->arguments ? ", " : "", *a, type);
        if (result)
            put(text, " {tf.aliasing_output = %d : i32}",
                (int)(strchr(s->results, result) - s->results));
        if (s->named) /* trees of one shape, and arrays */
            put(text, " loc(\"%s%c%s\")", strchr("xy", *a) ? "batch_" : "", *a,
                strcmp(type, V) == 0 ? "['w']" : "");
    }
    put(text, ") -> (");
    for (const char *r = s->results; *r; r++) {
        const char *type = tensors[find(*r)].type;
        put(text, "%s%s", r > s->results ? ", " : "", type);
        if (s->named)
            put(text, " {jax.result_info = \"result[%d]%s\"}", (int)(r - s->results),
                strcmp(type, V) == 0 ? "['w']" : "");
    }
    put(text, ") {\n");
    for (const char *c = "wmevxyschkqa"; *c; c++)
        if (!strchr(s->arguments, *c))
            put(text, "  %%%c = stablehlo.constant dense<0.5> : %s\n", *c, tensors[find(*c)].type);
    put_body(text);
    put(text, "  return ");
    for (const char *r = s->results; *r; r++)
        put(text, "%s%%%c", r > s->results ? ", " : "", *r);
    put(text, " : ");
    for (const char *r = s->results; *r; r++)
        put(text, "%s%s", r > s->results ? ", " : "", tensors[find(*r)].type);
    put(text, "\n}\n");
}

static void write_sidecar(const signature *s, const char *rest, char *json)
{
    *json = 0;
    put(json, "{\"args\": [");
    for (int i = 0; s->arguments[i]; i++) {
        char role = s->roles[i];
        put(json, "%s{%s\"shape\": %s}", i ? ", " : "",
            role == 'p'   ? "\"role\": \"param\", "
            : role == 'o' ? "\"role\": \"opt_state\", "
                          : "\"role\": \"batch\", ",
            tensors[find(s->arguments[i])].shape);
    }
    put(json, "]%s}", rest);
}

static sf_status load(const signature *s, const char *rest, bool strict, sf_diag *diag,
                      sf_graph **out)
{
    static char text[TEXT], json[TEXT];
    char path[] = "/tmp/sheaf-flow-XXXXXX";
    sf_load_options options = {.size = sizeof options,
                               .sidecar = *s->roles ? path : NULL,
                               .state = s->state,
                               .strict = strict};
    write_step(s, text);
    if (*s->roles) {
        write_sidecar(s, rest, json);
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, json, strlen(json)), (ssize_t)strlen(json));
        close(fd);
    }
    sf_status status = sf_load_text(text, strlen(text), "t", &options, diag, out);
    if (*s->roles)
        unlink(path);
    return status;
}

static void check_links(const signature *s, const sf_graph *graph, const char *links)
{
    char found[3 * MOST] = "";
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE) {
            char pair[] = {s->arguments[i], s->results[graph->arguments[i].next], 0};
            strcat(found, pair);
        }
    bool same = strlen(found) == strlen(links);
    for (const char *pair = links; *pair; pair += 2)
        same = same && partner(found, *pair) == pair[1];
    if (!same)
        fail_msg("%s: links are '%s', not '%s'", s->what, found, links);
}

static void test_links(void **state)
{
    (void)state;
    for (int n = 0; n < NSIGNATURES; n++) {
        const signature *s = &signatures[n];
        sf_diag *diag = sf_diag_new();
        sf_graph *graph;
        int lost = 0;
        if (load(s, "", false, diag, &graph) != SF_OK)
            fail_msg("%s: %s", s->what, sf_diag_text(diag, 0));
        check_links(s, graph, s->links);
        for (uint32_t i = 0; i < graph->top->narguments; i++)
            lost += graph->arguments[i].is_loose;
        for (uint32_t r = 0; r < graph->top->nresults; r++) {
            lost += graph->results[r].is_loose;
            if (graph->results[r].is_loss != (s->results[r] == s->loss))
                fail_msg("%s: result %u and the loss", s->what, r);
        }
        if (sf_diag_count(diag) != s->told || lost != s->lost)
            fail_msg("%s: %d told, not %d, %d lost, not %d: %s", s->what, (int)sf_diag_count(diag),
                     s->told, lost, s->lost, sf_diag_count(diag) ? sf_diag_text(diag, 0) : "");
        sf_diag_free(diag);
        sf_graph_free(graph);
    }
}

/* What is told is an error for who wants it so. */
static void test_strict(void **state)
{
    (void)state;
    for (int n = 0; n < NSIGNATURES; n++) {
        sf_diag *diag = sf_diag_new();
        sf_graph *graph;
        sf_status status = load(&signatures[n], "", true, diag, &graph);
        if (status != (signatures[n].told ? SF_EINPUT : SF_OK))
            fail_msg("%s: %s", signatures[n].what, sf_status_name(status));
        sf_diag_free(diag);
        sf_graph_free(graph);
    }
}

/* Links in the sidecar are all that there are, whatever the text aliases; those of --state come before them. */
static void test_sidecar(void **state)
{
    (void)state;
    static const char rest[] = ", \"state\": \"0=2,1=1\"";
    signature s = {
        "the sidecar has links", "wexy", "lEW", true, "wEeW", "pobb", NULL, "", 'l', 0, 0};
    static const struct {
        const char *said, *links;
    } cases[] = {{NULL, "wWeE"}, {"1=none", "wW"}, {"0=none", "eE"}, {"none", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_graph *graph;
        s.state = cases[i].said;
        assert_int_equal(load(&s, rest, true, NULL, &graph), SF_OK);
        check_links(&s, graph, cases[i].links);
        if (!s.state)
            assert_int_equal(graph->arguments[0].next_from, SF_FROM_SIDECAR);
        sf_graph_free(graph);
    }
    sf_graph *graph;
    s.state = NULL;
    assert_int_equal(load(&s, ", \"state\": \"1=1\"", true, NULL, &graph), SF_OK);
    check_links(&s, graph, "eE");
    assert_true(graph->arguments[0].is_loose); /* a parameter that would stay as it is */
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_strict),
        cmocka_unit_test(test_sidecar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
