/* Overlap on programs of one product and one collective, with answers worked out by hand.
 *
 * A product of 64 x 32 and 32 x 16 on 2 or 4 ranks. Programs are written as a word: D is a product
 * or a chunk of one, R a reduction, G a gather, or a chunk of it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pass/pass.h"
#include "prog/buffer_content.h"
#include "prog/check_program.h"
#include "prog/edit_program.h"
#include "prog/split_instruction.h"
#include "sheaf/sheaf.h"
#include "support/passed.h"
#include "support/plans.h"
#include "support/slow.h"

enum { ROWS = 64, DEEP = 32, WIDE = 16 };

static const char reduced[] =
    "func.func public @main(%x: tensor<64x32xf32>, %w: tensor<32x16xf32>) -> tensor<64x16xf32> {\n"
    "%y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "
    "(tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>\n"
    "%z = stablehlo.sine %y : tensor<64x16xf32>\n"
    "return %z : tensor<64x16xf32>\n}\n";

static const char scattered[] =
    "func.func public @main(%x: tensor<64x32xf32>, %w: tensor<32x16xf32>, %r: tensor<64x16xf32>) "
    "-> tensor<64x16xf32> {\n"
    "%y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "
    "(tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>\n"
    "%s = stablehlo.sine %y : tensor<64x16xf32>\n"
    "%z = stablehlo.multiply %s, %r : tensor<64x16xf32>\n"
    "return %z : tensor<64x16xf32>\n}\n";

static test_passed open_beside(const char *text, int ranks, const char *const *pins)
{
    sf_graph *graph = test_step_text(text);
    char mesh[16];
    snprintf(mesh, sizeof mesh, "d=%d", ranks);
    return test_passed_open(graph, test_plan(graph, NULL, 0, mesh, pins),
                            test_slow_links(ranks, 1e9), ranks);
}

static const char *word_of(test_passed *b)
{
    sf_buf out = {0};
    for (uint32_t i = 0; i < b->program->ninsts; i++) {
        const sf_inst *inst = &b->program->insts[i];
        if (inst->kind == SF_INST_DOT)
            sf_buf_puts(&out, "D");
        if (inst->kind == SF_INST_COMM)
            sf_buf_puts(&out, inst->exchange->kind == SF_ALL_GATHER ? "G" : "R");
    }
    const char *word = sf_arena_string(&b->arena, out.text ? out.text : "", out.length);
    sf_buf_free(&out);
    return word;
}

/* The list on the program; seconds before and after it. */
static void run_list(test_passed *b, const char *text, double *before, double *after)
{
    sf_pass_list list;
    sf_pass_outcome out[SF_PASSES_MOST + 2];
    int count;
    uint64_t meaning = sf_program_meaning(b->program);
    assert_int_equal(sf_pass_list_read(text, &b->arena, b->diag, &list), SF_OK);
    sf_pass_run run = {&list, b->costs, INT64_MAX, &b->arena};
    if (sf_passes_run(b->program, &run, b->diag, out, &count) != SF_OK ||
        sf_program_check(b->program, b->diag) != SF_OK)
        fail_msg("%s: %s", text, sf_diag_text(b->diag, 0));
    assert_true(sf_program_meaning(b->program) == meaning);
    *before = out[0].seconds;
    *after = out[count - 1].seconds;
}

static void test_words(void **state)
{
    (void)state;
    static const char *const sums[] = {"x=S(1)@d", "w=S(0)@d", NULL},
                             *const parts[] = {"x=S(1)@d", "w=S(0)@d", "r=S(0)@d", NULL},
                             *const pieces[] = {"w=S(1)@d", "x=S(0)@d", NULL};
    static const struct {
        const char *text;
        int ranks;
        const char *const *pins;
        const char *list, *before, *after;
    } cases[] = {
        /* Sums of two are those of any order: chunks are contiguous rows. */
        {reduced, 2, sums, "overlap:chunks=2", "DR", "DRDR"},
        {reduced, 2, sums, "overlap:chunks=4", "DR", "DRDRDRDR"},
        /* Rows of each of four segments. */
        {reduced, 4, sums, "overlap:chunks=2", "DR", "DDDDRDDDDR"},
        /* Five chunks do not divide the rows; nor do 32. */
        {reduced, 2, sums, "overlap:chunks=5", "DR", "DR"},
        {reduced, 2, sums, "overlap:chunks=32", "DR", "DR"},
        {scattered, 2, parts, "overlap:chunks=2", "DRG", "DDRDDRG"},
        {scattered, 4, parts, "overlap:chunks=2", "DRG", "DDDDRDDDDRG"},
        {reduced, 2, pieces, "overlap:chunks=2", "GDG", "GGDDDDG"},
        {reduced, 4, pieces, "overlap:chunks=2", "GDG", "GGDDDDDDDDG"},
        {reduced, 2, sums, "none", "DR", "DR"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_passed b = open_beside(cases[i].text, cases[i].ranks, cases[i].pins);
        double before, after;
        const char *first = word_of(&b);
        run_list(&b, cases[i].list, &before, &after);
        if (strcmp(first, cases[i].before) != 0 || strcmp(word_of(&b), cases[i].after) != 0)
            fail_msg("case %zu: %s became %s", i, first, word_of(&b));
        test_passed_close(&b);
    }
}

/* The messages of a chunk overlap with the next chunk's compute; of the product, or of the
 * collective, whichever is shorter, all is hidden but for one chunk. */
static void test_seconds(void **state)
{
    (void)state;
    static const char *const sums[] = {"x=S(1)@d", "w=S(0)@d", NULL};
    for (int turns = 2; turns <= 8; turns *= 2) {
        test_passed b = open_beside(reduced, 2, sums);
        sf_simulation sim;
        char list[40];
        double before, after, product = 0, reduction = 0;
        sf_simulate(b.program, b.costs, &b.arena, &sim);
        for (uint32_t i = 0; i < b.program->ninsts; i++) {
            double seconds = sim.insts[i].end - sim.insts[i].start;
            product += b.program->insts[i].kind == SF_INST_DOT ? seconds : 0;
            reduction += b.program->insts[i].kind == SF_INST_COMM ? seconds : 0;
        }
        snprintf(list, sizeof list, "overlap:chunks=%d", turns);
        run_list(&b, list, &before, &after);
        double saved = fmin(product, reduction) * (1 - 1.0 / turns);
        print_message("%d turns: %g us less of %g\n", turns, 1e6 * (before - after), 1e6 * before);
        assert_true(fabs(before - after - saved) < 0.01 * saved);
        test_passed_close(&b);
    }
}

/* Chunks that are not what they claim, that are missing, or that precede their operands, are
 * found. */
static void test_mistakes(void **state)
{
    (void)state;
    static const char *const sums[] = {"x=S(1)@d", "w=S(0)@d", NULL};
    test_passed b = open_beside(reduced, 4, sums);
    sf_program *p = b.program;
    double before, after;
    uint64_t meaning = sf_program_meaning(p);
    run_list(&b, "overlap:chunks=2", &before, &after);
    sf_kept *kept = sf_program_keep(p, &b.arena);
    int moved = 0, missing = 0;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        if (!p->insts[i].piece)
            continue;
        p->insts[i].out[0].offset += WIDE;
        sf_program_settle(p);
        moved += sf_program_check(p, b.diag) == SF_EMISMATCH;
        sf_program_put_back(p, kept);
        uint32_t order[64], count = 0;
        for (uint32_t j = 0; j < p->ninsts; j++)
            if (j != i)
                order[count++] = j;
        sf_program_arrange(p, order, count);
        missing += sf_program_meaning(p) != meaning;
        sf_program_put_back(p, kept);
    }
    assert_int_equal(moved, 10);
    assert_int_equal(missing, 10);
    uint32_t order[64], reduction = 0;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        order[i] = i;
        if (p->insts[i].kind == SF_INST_COMM && reduction == 0)
            reduction = i;
    }
    order[reduction] = reduction - 1; /* before the last product whose rows it has */
    order[reduction - 1] = reduction;
    sf_program_arrange(p, order, p->ninsts);
    assert_true(sf_program_meaning(p) != meaning);
    test_passed_close(&b);
}

/* If links are fast enough, or all of it is hidden in any case, nothing is split. */
static void test_not_worth_it(void **state)
{
    (void)state;
    static const char *const sums[] = {"x=S(1)@d", "w=S(0)@d", NULL};
    test_passed b = open_beside(reduced, 2, sums);
    sf_cluster_free(b.cluster);
    int ranks = 2;
    double before, after;
    assert_int_equal(sf_cluster_open("2xH100", b.diag, &b.cluster), SF_OK);
    assert_int_equal(sf_costs_new(b.cluster, 1, &ranks, 0, &b.arena, b.diag, &b.costs), SF_OK);
    run_list(&b, "overlap", &before, &after);
    assert_string_equal(word_of(&b), "DR");
    assert_true(before == after);
    test_passed_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_not_worth_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
