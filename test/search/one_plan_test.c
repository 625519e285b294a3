/* One computation has one plan: whatever the text, shuffled or HLO, the search finds the same plan, byte for byte,
 * at the same price, and every rank gets the same program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "run/cpu/cpu_target.h"
#include "search/price/price.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"
#include "support/sanitized.h"
#include "support/shuffle.h"

enum { RANKS = 4, SMALL = 400 /* nodes */ };

/* A text's plan, and all that follows from it. */
typedef struct answer {
    sf_graph *graph;
    sf_plan *plan;
    sf_arena arena;
    sf_str file;
    sf_price price;
} answer;

/* As a file says it, but for where the step was read from. */
static sf_str write_plan(answer *a)
{
    sf_buf text = {0};
    sf_plan_write(a->plan, a->graph, NULL, &text);
    sf_str copy = {sf_arena_string(&a->arena, text.text, text.length), text.length};
    sf_buf_free(&text);
    return copy;
}

static void search(answer *a, const char *what)
{
    sf_diag *diag = sf_diag_new();
    sf_cluster *cluster;
    sf_costs *costs;
    assert_int_equal(sf_cluster_open("1x4xV100", diag, &cluster), SF_OK);
    sf_plan_options options = {.size = sizeof options, .cluster = cluster, .level = 2};
    if (sf_plan_search(a->graph, NULL, &options, diag, &a->plan) != SF_OK)
        fail_msg("%s: %s", what, sf_diag_text(diag, 0));
    assert_int_equal(sf_mesh_costs(cluster, &a->plan->mesh, &a->arena, diag, &costs), SF_OK);
    if (sf_price_plan(a->graph, a->plan, &sf_target_cpu, costs, NULL, NULL, diag, &a->price) !=
        SF_OK)
        fail_msg("%s: %s", what, sf_diag_text(diag, 0));
    a->file = write_plan(a);
    sf_cluster_free(cluster);
    sf_diag_free(diag);
}

static sf_program *lower_rank(const answer *a, int rank)
{
    sf_local *local = test_local(a->graph, a->plan, rank);
    sf_lower_options options = {.target = &sf_target_cpu, .mesh = &a->plan->mesh, .rank = rank};
    sf_program *program = sf_lower(local->graph, &options, NULL);
    sf_local_free(local);
    return program;
}

static void expect_same(const char *what, const answer *a, const answer *b)
{
    if (sf_graph_hash(a->graph) != sf_graph_hash(b->graph))
        fail_msg("%s: another hash", what);
    size_t at = 0, length = a->file.length < b->file.length ? a->file.length : b->file.length;
    while (at < length && a->file.at[at] == b->file.at[at])
        at++;
    if (at < length || a->file.length != b->file.length)
        fail_msg("%s: another plan, from byte %zu: %.80s and %.80s", what, at, a->file.at + at,
                 b->file.at + at);
    const sf_price *p = &a->price, *q = &b->price;
    if (p->seconds != q->seconds || p->exposed != q->exposed || p->traffic != q->traffic ||
        p->memory != q->memory || p->ncollectives != q->ncollectives)
        fail_msg("%s: %.17g seconds and %.17g", what, p->seconds, q->seconds);
    for (int rank = 0; rank < RANKS; rank += RANKS - 1) {
        sf_program *x = lower_rank(a, rank), *y = lower_rank(b, rank);
        test_same_program(what, x, y);
        sf_program_free(x);
        sf_program_free(y);
    }
}

static void free_answer(answer *a)
{
    sf_plan_free(a->plan);
    sf_graph_free(a->graph);
    sf_arena_free(&a->arena);
}

/* That all texts become one graph, node by node, is another test's (front/canon): one other text is enough here, and
 * two of the small steps. */
static void test_one_plan(void **state)
{
    (void)state;
    for (int i = 0; test_steps[i]; i++) {
        if (test_short() && i % 11 != 0)
            continue;
        answer plain = {.graph = test_step(test_steps[i])};
        search(&plain, test_steps[i]);
        for (int k = 1; k <= (plain.graph->nnodes > SMALL || test_short() ? 1 : 2); k++) {
            const char *form = k % 2 ? "hlo" : "stablehlo.mlir";
            char what[100];
            snprintf(what, sizeof what, "%s, %s, shuffle %d", test_steps[i], form, k);
            answer other = {.graph = test_shuffled(test_steps[i], form, (uint64_t)k)};
            search(&other, what);
            expect_same(what, &plain, &other);
            free_answer(&other);
        }
        free_answer(&plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
