/* Kinds of state that steps carry, and what looks like them: numbers, queues, old weights, statistics, frozen weights,
 * gradients, weights of samples. One step, descent on a square error, in many signatures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "front/put_text.h"
#include "ir/graph.h"
#include "sheaf/sheaf.h"

#define N "tensor<f32>"
#define V "tensor<3xf32>"
#define B "tensor<6xf32>"
#define X "tensor<6x3xf32>"
#define Q "tensor<12xf32>"
#define BODY                                                                                       \
    "  %p0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (" X ", " V ") -> " B    \
    "\n"                                                                                           \
    "  %pf = stablehlo.dot_general %x, %f, contracting_dims = [1] x [0] : (" X ", " V ") -> " B    \
    "\n"                                                                                           \
    "  %p = stablehlo.add %p0, %pf : " B "\n"                                                      \
    "  %d = stablehlo.subtract %p, %y : " B "\n"                                                   \
    "  %e0 = stablehlo.multiply %d, %d : " B "\n"                                                  \
    "  %E = stablehlo.multiply %e0, %k : " B "\n"                                                  \
    "  %z = stablehlo.constant dense<0.0> : " N "\n"                                               \
    "  %zi = stablehlo.constant dense<0> : tensor<i32>\n"                                          \
    "  %l0 = stablehlo.reduce(%E init: %z) applies stablehlo.add across dimensions = [0] : (" B    \
    ", " N ") -> " N "\n"                                                                          \
    "  %ww = stablehlo.multiply %w, %w : " V "\n"                                                  \
    "  %n = stablehlo.reduce(%ww init: %z) applies stablehlo.add across dimensions = [0] : (" V    \
    ", " N ") -> " N "\n"                                                                          \
    "  %nc = stablehlo.multiply %n, %c : " N "\n"                                                  \
    "  %l = stablehlo.add %l0, %nc : " N "\n"                                                      \
    "  %G = stablehlo.dot_general %d, %x, contracting_dims = [0] x [0] : (" B ", " X ") -> " V     \
    "\n"                                                                                           \
    "  %b = stablehlo.constant dense<0.1> : " V "\n"                                               \
    "  %t = stablehlo.constant dense<0.1> : " N "\n"                                               \
    "  %v0 = stablehlo.multiply %v, %b : " V "\n"                                                  \
    "  %V = stablehlo.add %v0, %G : " V "\n"                                                       \
    "  %u = stablehlo.multiply %V, %b : " V "\n"                                                   \
    "  %W = stablehlo.subtract %w, %u : " V "\n"                                                   \
    "  %s0 = stablehlo.multiply %s, %t : " N "\n"                                                  \
    "  %l1 = stablehlo.multiply %l, %t : " N "\n"                                                  \
    "  %S = stablehlo.add %s0, %l1 : " N "\n"                                                      \
    "  %D = stablehlo.multiply %l, %t : " N "\n"                                                   \
    "  %Q = stablehlo.dynamic_update_slice %q, %p, %zi : (" Q ", " B ", tensor<i32>) -> " Q "\n"   \
    "  %H = stablehlo.tanh %p : " B "\n"

static const struct {
    char letter;
    const char *type;
} tensors[] = {{'w', V}, {'v', V}, {'f', V}, {'x', X}, {'y', B}, {'k', B}, {'s', N},
               {'c', N}, {'q', Q}, {'W', V}, {'V', V}, {'G', V}, {'l', N}, {'S', N},
               {'D', N}, {'Q', Q}, {'H', B}, {'n', N}, {'h', B}};
enum { NTENSORS = sizeof tensors / sizeof *tensors, MOST = 12 };

/* "w=params['w'] x y": letters of tensors, and names where they have some. */
typedef struct signature {
    const char *what, *arguments, *results;
    const char *aliases, *links; /* pairs of letters */
    int told;
} signature;

static const signature signatures[] = {
    {"a running loss before the loss", "w=params s=ema x=x y=y", "W=[0] S=[1] l=[2]", "", "wWsS",
     0},
    {"after the loss", "w=params s=ema x=x y=y", "W=[0] l=[1] S=[2]", "", "wWsS", 0},
    {"without names", "w s x y", "W S l", "", "wWsS", 0},
    {"after the loss, without names: it may be reported", "w s x y", "W l S", "", "wW", 1},
    {"JAX aliases it to the loss", "w=params s=ema x=x y=y", "W=[0] l=[1] S=[2]", "wWsl", "wWsS",
     1},
    {"the same without names", "w s x y", "W l S", "wWsl", "wWsS", 1},
    {"a number beside the loss", "w=params s=rate x=x y=y", "W=[0] l=[1]['loss'] S=[1]['rate']", "",
     "wW", 0},
    {"a coefficient of the loss", "w=params c=decay x=x y=y", "W=[0] n=[1] l=[2]", "", "wW", 0},
    {"a multiple of the loss is not the loss", "w=params x=x y=y",
     "W=[0] D=[1]['double'] l=[1]['loss']", "", "wW", 0},
    {"a queue", "w=params q=queue x=x y=y", "W=[0] Q=[1] l=[2]", "", "wWqQ", 0},
    {"a queue, without names", "w q x y", "W Q l", "", "wWqQ", 0},
    {"old weights", "w=now v=before x=x y=y", "W=[0] w=[1] l=[2]", "", "wWvw", 0},
    {"old weights, without names", "w v x y", "W w l", "", "wW", 1},
    {"weights and old ones swapped in one tree", "v=s['a'] w=s['b'] x=x y=y",
     "w=[0]['a'] W=[0]['b'] l=[1]", "", "vwwW", 0},
    {"a hidden state", "w=params h=h x=x y=y", "W=[0] H=[1] l=[2]", "", "wW", 1},
    {"a hidden state, aliased", "w=params h=h x=x y=y", "W=[0] H=[1] l=[2]", "wWhH", "wWhH", 0},
    {"a prediction after the loss", "w=params h=h x=x y=y", "W=[0] l=[1] H=[2]", "", "wW", 0},
    {"a prediction in the place of state, like the batch", "w=params x=x y=y", "W=[0] H=[1] l=[2]",
     "", "wW", 0},
    {"statistics of batches", "w=params['w'] v=batch_stats['m'] x=x y=y",
     "W=[0]['w'] V=[1]['m'] l=[2]", "", "wWvV", 0},
    {"gradients beside frozen weights of their shape", "w=params['w'] f=ref['w'] x=x y=y",
     "W=[0]['w'] l=[1] G=[2]['w']", "", "wW", 0},
    {"aliases cross", "v w x y", "W V l", "vWwV", "vVwW", 1},
    {"aliases leave one out", "v w x y", "G W V l", "vGwW", "vVwW", 1},
    {"the batch first and no names", "x y w v", "W V G l", "", "wWvV", 0},
    {"results alone have names", "w v x y", "W=[0]['w'] V=[1]['w'] l=[2]['loss']", "", "wWvV", 0},
    {"a tree of results, and what is reported before it", "x y w v",
     "l=[0]['loss'] W=[1]['w'] V=[1]['v']", "", "wWvV", 0},
};
enum { NSIGNATURES = sizeof signatures / sizeof *signatures };

static const char *type_of(char letter)
{
    for (int i = 0; i < NTENSORS; i++)
        if (tensors[i].letter == letter)
            return tensors[i].type;
    fail_msg("no tensor '%c'", letter);
    return NULL;
}

/* The letters of a list, and where each begins. */
static int split(const char *list, char *letters, const char **at)
{
    int count = 0;
    for (; *list; list += strcspn(list, " "), list += *list == ' ') {
        at[count] = list;
        letters[count++] = *list;
    }
    letters[count] = 0;
    return count;
}

static char partner(const char *pairs, char letter)
{
    for (; *pairs; pairs += 2)
        if (*pairs == letter)
            return pairs[1];
    return 0;
}

static void write_step(const signature *s, char *text, char *arguments, char *results)
{
    const char *at[MOST];
    int count = split(s->results, results, at);
    *text = 0;
    put(text, "func.func public @main(");
    count = split(s->arguments, arguments, at);
    for (int i = 0; i < count; i++) {
        char result = partner(s->aliases, arguments[i]);
        put(text, "%s%%%c: %s", i ? ", " : "", arguments[i], type_of(arguments[i]));
        if (result)
            put(text, " {tf.aliasing_output = %d : i32}", (int)(strchr(results, result) - results));
        if (at[i][1] == '=')
            put(text, " loc(\"%.*s\")", (int)strcspn(at[i] + 2, " "), at[i] + 2);
    }
    put(text, ") -> (");
    count = split(s->results, results, at);
    for (int i = 0; i < count; i++) {
        put(text, "%s%s", i ? ", " : "", type_of(results[i]));
        if (at[i][1] == '=')
            put(text, " {jax.result_info = \"result%.*s\"}", (int)strcspn(at[i] + 2, " "),
                at[i] + 2);
    }
    put(text, ") {\n");
    for (const char *c = "wvfxykscq"; *c; c++)
        if (!strchr(arguments, *c))
            put(text, "  %%%c = stablehlo.constant dense<0.5> : %s\n", *c, type_of(*c));
    put(text, "%s", BODY);
    if (strchr(arguments, 'h'))
        put(text, "  %%h1 = stablehlo.add %%h, %%p : " B "\n");
    put(text, "  return ");
    for (int i = 0; i < count; i++)
        put(text, "%s%%%c", i ? ", " : "", results[i]);
    put(text, " : ");
    for (int i = 0; i < count; i++)
        put(text, "%s%s", i ? ", " : "", type_of(results[i]));
    put(text, "\n}\n");
}

static void check(const signature *s, const sf_graph *graph, const char *arguments,
                  const char *results)
{
    char found[3 * MOST] = "";
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE) {
            char pair[] = {arguments[i], results[graph->arguments[i].next], 0};
            strcat(found, pair);
        }
    bool same = strlen(found) == strlen(s->links);
    for (const char *pair = s->links; *pair; pair += 2)
        same = same && partner(found, *pair) == pair[1];
    if (!same)
        fail_msg("%s: links are '%s', not '%s'", s->what, found, s->links);
    for (uint32_t r = 0; r < graph->top->nresults; r++)
        if (graph->results[r].is_loss != (results[r] == 'l'))
            fail_msg("%s: result %u and the loss", s->what, r);
}

/* With `strict`, what is told of links is an error; what only may be lost is told by who asks. */
static void test_links(void **state)
{
    (void)state;
    for (int n = 0; n < NSIGNATURES; n++) {
        static char text[TEXT];
        char arguments[MOST + 1], results[MOST + 1];
        const signature *s = &signatures[n];
        write_step(s, text, arguments, results);
        sf_diag *diag = sf_diag_new();
        sf_graph *graph;
        if (sf_load_text(text, strlen(text), "t", NULL, diag, &graph) != SF_OK)
            fail_msg("%s: %s", s->what, sf_diag_text(diag, 0));
        check(s, graph, arguments, results);
        int told = (int)sf_diag_count(diag);
        for (uint32_t r = 0; r < graph->top->nresults; r++)
            told += graph->results[r].is_loose;
        if (told != s->told)
            fail_msg("%s: %d told, not %d: %s", s->what, told, s->told,
                     sf_diag_count(diag) ? sf_diag_text(diag, 0) : "");
        sf_diag_free(diag);
        sf_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_links)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
