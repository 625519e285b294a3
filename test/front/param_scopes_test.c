/* Modules from paths of parameters: steps without the scopes of their text against the same steps with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "ir/graph.h"
#include "ir/opdef.h"
#include "op/op.h"
#include "plan/recompute_policy.h"
#include "sheaf/graph.h"

/* Whose layers are modules of their own, not slices of one that is scanned. */
static const char *const steps[] = {"mlp-micro", "gpt-micro",      "llama-micro",      "bert-micro",
                                    "t5-micro",  "unet-micro",     "wresnet-micro",    "swin-micro",
                                    "moe-micro", "gpt-bf16-micro", "gpt-dropout-micro"};
enum { NSTEPS = sizeof steps / sizeof *steps };

/* Of products that the text puts into a module, so many of a hundred are in the same one: what reads tied embeddings has a
 * scope of its own in the text. */
enum { SAME = 80 };

/* Names of ops become "x"; those of arguments stay. */
static void strip(char *text)
{
    for (char *at = text; (at = strstr(at, "loc(\"jit("));) {
        char *from = at + 5, *end = strchr(from, '"');
        memset(from, ' ', (size_t)(end - from));
        *from = 'x';
        memmove(from + 1, end, 1);
        from[1] = '"';
        for (char *gap = from + 2; gap <= end; gap++)
            *gap = ' ';
        at = end;
    }
}

static const sf_scope *outermost(const sf_scope *scope)
{
    while (scope->depth > 1)
        scope = scope->parent;
    return scope;
}

static void compare(const char *name)
{
    char path[200], sidecar[200];
    sf_graph *with, *without;
    sf_arena arena = {0};
    sf_str text;
    snprintf(path, sizeof path, "test/data/micro/%s.stablehlo.mlir.xz", name);
    snprintf(sidecar, sizeof sidecar, "test/data/micro/%s.json", name);
    sf_load_options options = {.size = sizeof options, .sidecar = sidecar};
    assert_int_equal(sf_load(path, &options, NULL, &with), SF_OK);
    assert_int_equal(sf_file_read(path, &arena, 0, &text, NULL), SF_OK);
    strip((char *)(uintptr_t)text.at);
    assert_int_equal(sf_load_text(text.at, text.length, name, &options, NULL, &without), SF_OK);
    assert_true(without->scopes_guessed);
    assert_false(with->scopes_guessed);
    assert_int_equal(with->top->nnodes, without->top->nnodes);
    uint32_t same = 0, all = 0;
    for (uint32_t n = 0; n < with->top->nnodes; n++) {
        const sf_node *a = sf_top_node(with, n), *b = sf_top_node(without, n);
        if (!(sf_is(a, SF_OP_DOT_GENERAL) || sf_is(a, SF_OP_CONVOLUTION)) || !a->scope->parent)
            continue;
        all++;
        same += strcmp(outermost(a->scope)->path, outermost(b->scope)->path) == 0;
    }
    if (100 * same < SAME * all)
        fail_msg("%s: %u of %u products are in the same module", name, same, all);
    if (sf_count_layers(with) != sf_count_layers(without))
        fail_msg("%s: %u layers, not %u", name, sf_count_layers(without), sf_count_layers(with));
    sf_graph_free(with);
    sf_graph_free(without);
    sf_arena_free(&arena);
}

static void test_without_scopes(void **state)
{
    (void)state;
    for (int i = 0; i < NSTEPS; i++)
        compare(steps[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_without_scopes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
