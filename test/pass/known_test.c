/* Prefetch and unshard on a program whose answers are worked out by hand: four weights, each used
 * by a product on the way there and by one on the way back, and gathered for each.
 *
 *     a = x p;  b = a q;  c = b r;  d = c s;   e = d s;  f = e r;  g = f q;  h = g p
 *
 * Programs are written as a word: a product is the capital letter of its result, a gather the letter of its weight, those
 * that go as one in brackets. A weight takes 16 KiB once gathered, a quarter of the batch 4 KiB. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pass/passes.h"
#include "prog/buffer_content.h"
#include "prog/check_program.h"
#include "prog/edit_program.h"
#include "sheaf/sheaf.h"
#include "support/passed.h"
#include "support/plans.h"

/* Weights p and s are square, q and r as wide as is said. */
static sf_graph *make_chain(int wide)
{
    static const struct {
        const char to, from, weight;
        int back; /* the dimension of the weight that is summed over */
    } products[] = {{'a', 'x', 'p', 0}, {'b', 'a', 'q', 0}, {'c', 'b', 'r', 0}, {'d', 'c', 's', 0},
                    {'e', 'd', 's', 1}, {'f', 'e', 'r', 1}, {'g', 'f', 'q', 1}, {'h', 'g', 'p', 1}};
    const char *square = "tensor<64x64xf32>";
    char q[32], r[32];
    sf_buf text = {0};
    snprintf(q, sizeof q, "tensor<64x%dxf32>", wide);
    snprintf(r, sizeof r, "tensor<%dx64xf32>", wide);
    sf_buf_printf(&text,
                  "func.func public @main(%%x: %s, %%p: %s, %%q: %s, %%r: %s, %%s: %s) -> %s {\n",
                  square, square, q, r, square, square);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        char to = products[i].to, from = products[i].from, weight = products[i].weight;
        sf_buf_printf(&text,
                      "%%%c = stablehlo.dot_general %%%c, %%%c, contracting_dims = [1] x [%d] : "
                      "(%s, %s) -> %s\n",
                      to, from, weight, products[i].back, from == 'b' || from == 'f' ? q : square,
                      weight == 'q'   ? q
                      : weight == 'r' ? r
                                      : square,
                      to == 'b' || to == 'f' ? q : square);
    }
    sf_buf_printf(&text, "return %%h : %s\n}\n", square);
    sf_graph *graph = test_step_text(text.text);
    sf_buf_free(&text);
    return graph;
}

enum { RANKS = 4, WEIGHT = 64 * 64 * 4, PIECE = WEIGHT / RANKS };

static bool is_gather_of_weight(const sf_program *p, uint32_t i)
{
    const sf_inst *inst = &p->insts[i];
    return inst->kind == SF_INST_COMM && inst->exchange->kind == SF_ALL_GATHER &&
           p->buffers[inst->in[0].buffer].home == SF_HOME_ARGUMENT;
}

/* Every gather is right before its product; the second use of a weight has one of its own. */
static void gather_twice(test_passed *k)
{
    sf_program *p = k->program;
    uint32_t *order = SF_ARRAY(&k->arena, 2 * p->ninsts, uint32_t);
    size_t count = p->ninsts, at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const sf_inst *inst = &p->insts[i];
        for (uint32_t g = 0; inst->kind == SF_INST_DOT && g < count; g++) {
            uint32_t gathered = p->insts[g].out[0].buffer;
            if (!is_gather_of_weight(p, g) ||
                (inst->in[0].buffer != gathered && inst->in[1].buffer != gathered))
                continue;
            bool is_first = true;
            for (size_t o = 0; o < at; o++)
                is_first = is_first && order[o] != g;
            if (is_first) {
                order[at++] = g;
                continue;
            }
            sf_inst recomputed = p->insts[g];
            recomputed.in = sf_arena_copy(&p->arena, recomputed.in, sizeof *recomputed.in);
            recomputed.out = sf_arena_copy(&p->arena, recomputed.out, sizeof *recomputed.out);
            recomputed.exchange =
                sf_arena_copy(&p->arena, recomputed.exchange, sizeof *recomputed.exchange);
            recomputed.out[0].buffer =
                sf_program_add_buffer(p, p->buffers[gathered].bytes, SF_NONE);
            sf_program_read_instead(p, i - 1, gathered, recomputed.out[0].buffer);
            order[at++] = sf_program_add(p, &recomputed);
            break;
        }
        if (!is_gather_of_weight(p, i))
            order[at++] = i;
    }
    sf_program_arrange(p, order, at);
    sf_program_number(p);
    sf_program_settle(p);
    assert_int_equal(sf_program_check(p, k->diag), SF_OK);
}

static test_passed open_plan(sf_graph *graph, sf_plan *plan, int ranks)
{
    sf_cluster *cluster;
    assert_int_equal(sf_cluster_open("4xH100-80GB-SXM5", NULL, &cluster), SF_OK);
    return test_passed_open(graph, plan, cluster, ranks);
}

static test_passed open_known(int wide)
{
    static const char *const pins[] = {"x=S(0)@d", "*=S(0)@d", NULL};
    sf_graph *graph = make_chain(wide);
    test_passed k = open_plan(graph, test_plan(graph, NULL, 0, "d=4", pins), RANKS);
    gather_twice(&k);
    return k;
}

static int by_letter(const void *a, const void *b)
{
    return *(const char *)a - *(const char *)b;
}

/* Letters of a gather's weights, by the alphabet: their order has no meaning. */
static void put_gather(const sf_program *p, const sf_inst *inst, sf_buf *out)
{
    char letters[16] = "";
    for (uint32_t j = 0; j < inst->nin; j++)
        letters[j] = (char)('p' + (int)p->buffers[inst->in[j].buffer].argument - 1);
    qsort(letters, inst->nin, 1, by_letter);
    sf_buf_printf(out, inst->nin > 1 ? "(%s)" : "%s", letters);
}

static const char *word_of(test_passed *k)
{
    const sf_program *p = k->program;
    sf_buf out = {0};
    char product = 'A';
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        if (inst->kind == SF_INST_DOT)
            sf_buf_printf(&out, "%c", product++);
        if (is_gather_of_weight(p, i))
            put_gather(p, inst, &out);
    }
    const char *word = sf_arena_string(&k->arena, out.text, out.length);
    sf_buf_free(&out);
    return word;
}

/* One way of a pass, without the checks around it; the program is then as it was. */
static const char *word_behind(test_passed *k, const char *name, int variant, int64_t limit,
                               const double *options)
{
    sf_program *p = k->program;
    sf_kept *before = sf_program_keep(p, &k->arena);
    uint64_t meaning = sf_program_meaning(p);
    uint32_t at;
    sf_buf note = {0};
    sf_passing passing = {.program = p,
                          .costs = k->costs,
                          .limit = limit,
                          .variant = variant,
                          .scratch = &k->arena,
                          .note = &note,
                          .diag = k->diag};
    memcpy(passing.options, options, sizeof passing.options);
    sf_simulate(p, k->costs, &k->arena, &passing.profile.sim);
    sf_live_bytes(p, &k->arena, &passing.profile.memory, &at);
    int index = 0;
    while (strcmp(sf_pass_at(index)->name, name) != 0)
        index++;
    assert_int_equal(sf_pass_at(index)->run(&passing), SF_OK);
    const char *word = word_of(k);
    sf_program_number(p);
    sf_program_settle(p);
    assert_int_equal(sf_program_check(p, k->diag), SF_OK);
    assert_true(sf_program_meaning(p) == meaning);
    sf_buf_free(&note);
    sf_program_put_back(p, before);
    sf_program_settle(p);
    return word;
}

/* Memory at each product: arguments, its operand, its result, its weight. */
enum { AROUND = 5 * PIECE + 2 * PIECE + WEIGHT };

typedef struct known_case {
    int way;
    int group; /* weights */
    double alpha;
    int64_t limit;
    const char *word;
} known_case;

static void expect_words(int wide, const char *pass, const known_case *cases, size_t count)
{
    test_passed k = open_known(wide);
    assert_string_equal(word_of(&k), "pAqBrCsDsErFqGpH");
    for (size_t i = 0; i < count; i++) {
        double options[SF_PASS_OPTIONS] = {(double)cases[i].group * WEIGHT, cases[i].alpha};
        const char *word = word_behind(&k, pass, cases[i].way, cases[i].limit, options);
        if (strcmp(word, cases[i].word) != 0)
            fail_msg("%s, case %zu: %s, not %s", pass, i, word, cases[i].word);
    }
    test_passed_close(&k);
}

static void test_prefetch(void **state)
{
    (void)state;
    /* which gathers are placed: all pending ones, as in the paper; or the one needed last */
    enum { ALL, LAST };
    enum { NEVER = 100, ALWAYS = 0 }; /* joined */
    static const known_case cases[] = {
        /* All is in hand at the beginning. */
        {ALL, 8, NEVER, INT64_MAX, "pqrssrqpABCDEFGH"},
        {ALL, 8, ALWAYS, INT64_MAX, "(ppqqrrss)ABCDEFGH"},
        {LAST, 8, NEVER, INT64_MAX, "pqrssrqpABCDEFGH"},
        /* Two at a time: the third one met places both, right after itself. */
        {ALL, 2, NEVER, INT64_MAX, "pqArsBCsrDEqpFGH"},
        {ALL, 2, ALWAYS, INT64_MAX, "(pq)A(rs)BC(rs)DE(pq)FGH"},
        /* Only the one that is needed last. */
        {LAST, 2, NEVER, INT64_MAX, "pqrAsBsCrDqEpFGH"},
        /* One at a time: the next is gathered beside each product. */
        {ALL, 1, NEVER, INT64_MAX, "pqArBsCsDrEqFpGH"},
        /* No room but for its own weight at any product: nothing moves. */
        {ALL, 8, NEVER, AROUND, "pAqBrCsDsErFqGpH"},
        /* Nor with nearly room for one, but at A, which reads an argument. */
        {LAST, 8, NEVER, AROUND + WEIGHT - 1, "pqABrCsDsErFqGpH"},
        /* Room for one more, and for two. */
        {LAST, 8, NEVER, AROUND + WEIGHT, "pqArBsCsDrEqFpGH"},
        {ALL, 8, NEVER, AROUND + 2 * WEIGHT, "pqABrssCDErqpFGH"},
        {LAST, 8, NEVER, AROUND + 2 * WEIGHT, "pqrAsBsCrDqEpFGH"},
    };
    expect_words(64, "prefetch", cases, sizeof cases / sizeof *cases);
}

/* Kept weights are not gathered once more; s costs nothing, since nothing is between its two uses.
 * All save the same, so the first goes first. */
static void test_unshard(void **state)
{
    (void)state;
    static const known_case cases[] = {
        {.limit = AROUND, .word = "pAqBrCsDErFqGpH"},
        {.limit = AROUND + WEIGHT - 1, .word = "pAqBrCsDErFqGpH"},
        {.limit = AROUND + WEIGHT, .word = "pAqBrCsDErFqGH"},
        {.limit = AROUND + 2 * WEIGHT, .word = "pAqBrCsDErFGH"},
        {.limit = AROUND + 3 * WEIGHT, .word = "pAqBrCsDEFGH"},
        {.limit = INT64_MAX, .word = "pAqBrCsDEFGH"},
    };
    expect_words(64, "unshard", cases, sizeof cases / sizeof *cases);
}

/* A gather of a quarter of the bytes takes nearly as long: q and r save most per byte, and p, which
 * would fit alone, has no room with both. The peak is at D, beside a square weight. */
static void test_small_first(void **state)
{
    (void)state;
    enum { SMALL = WEIGHT / 4, ALL = 3 * PIECE + 2 * PIECE / 4 + 2 * PIECE + WEIGHT };
    static const known_case cases[] = {
        {.limit = ALL, .word = "pAqBrCsDErFqGpH"},
        {.limit = ALL + SMALL, .word = "pAqBrCsDErFGpH"},
        {.limit = ALL + 2 * SMALL, .word = "pAqBrCsDEFGpH"},
        {.limit = ALL + WEIGHT, .word = "pAqBrCsDEFGpH"},
        {.limit = ALL + WEIGHT + 2 * SMALL - 1, .word = "pAqBrCsDEFGpH"},
        {.limit = ALL + WEIGHT + 2 * SMALL, .word = "pAqBrCsDEFGH"},
    };
    expect_words(16, "unshard", cases, sizeof cases / sizeof *cases);
}

/* Micro-batches */

static int count_gathers(const sf_program *p)
{
    int count = 0;
    for (uint32_t i = 0; i < p->ninsts; i++)
        count += is_gather_of_weight(p, i) ? (int)p->insts[i].nin : 0;
    return count;
}

static const sf_program *loop_of(const sf_program *p)
{
    for (size_t i = 0; i < p->ninsts; i++)
        if (p->insts[i].kind == SF_INST_WHILE)
            return p->insts[i].nest->bodies[1];
    fail_msg("there is no loop");
    return NULL;
}

static int behind_passes(test_passed *k, const char *passes, int64_t limit)
{
    sf_pass_list list;
    assert_int_equal(sf_pass_list_read(passes, &k->arena, k->diag, &list), SF_OK);
    sf_pass_run run = {&list, k->costs, limit, &k->arena};
    assert_int_equal(sf_passes_run(k->program, &run, k->diag, NULL, NULL), SF_OK);
    return count_gathers(loop_of(k->program));
}

/* A step of five sharded weights, in two micro-batches: seven gathers in each, two of them for the
 * backward pass. With all the memory, five are before the loop, and none in it; with less, no more
 * than fit. */
static void test_turns(void **state)
{
    (void)state;
    enum { WEIGHTS = 5, GATHERS = 7, ROOMS = 16, ROOM = 1024 };
    int before = 0;
    sf_graph *graph = test_step("mlp-micro");
    sf_plan *plan = test_plan(graph, "zero3", 2, NULL, NULL);
    plan->micro_batches = 2;
    test_passed k = open_plan(graph, plan, 2);
    sf_kept *kept = sf_program_keep(k.program, &k.arena);
    assert_int_equal(behind_passes(&k, "fsdp", INT64_MAX), GATHERS);
    int64_t least = sf_program_bytes(k.program);
    for (int room = 0; room <= ROOMS; room++) {
        int64_t limit = room < ROOMS ? least + room * ROOM : INT64_MAX;
        sf_program_put_back(k.program, kept);
        int inside = behind_passes(&k, "fsdp,unshard", limit);
        int top = count_gathers(k.program);
        print_message("%d KiB more: %d before the loop, %d in it\n", room, top, inside);
        assert_true(sf_program_bytes(k.program) <= limit);
        assert_true(top >= before && inside >= WEIGHTS - top && inside <= GATHERS - top);
        before = top;
    }
    assert_int_equal(before, WEIGHTS);
    assert_int_equal(count_gathers(loop_of(k.program)), 0);
    test_passed_close(&k);
}

/* Balance */

/* The second gather of each weight of the set is dropped: its product reads the result of the
 * first. */
static void keep_set(test_passed *k, unsigned set)
{
    sf_program *p = k->program;
    uint32_t first[5] = {0}, order[64];
    size_t count = 0;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        uint32_t weight = 0;
        if (is_gather_of_weight(p, i))
            weight = p->buffers[p->insts[i].in[0].buffer].argument;
        if (weight > 0 && first[weight] > 0 && set >> (weight - 1) & 1) {
            sf_program_read_instead(p, i, p->insts[i].out[0].buffer, first[weight] - 1);
            continue;
        }
        if (weight > 0)
            first[weight] = p->insts[i].out[0].buffer + 1;
        order[count++] = i;
    }
    sf_program_arrange(p, order, count);
    sf_program_number(p);
    sf_program_settle(p);
}

/* The time of a list under the limit; infinity if it does not fit. */
static double seconds_behind(test_passed *k, const char *passes, int64_t limit)
{
    sf_pass_list list;
    sf_simulation sim;
    assert_int_equal(sf_pass_list_read(passes, &k->arena, k->diag, &list), SF_OK);
    sf_pass_run run = {&list, k->costs, limit, &k->arena};
    assert_int_equal(sf_passes_run(k->program, &run, k->diag, NULL, NULL), SF_OK);
    sf_simulate(k->program, k->costs, &k->arena, &sim);
    return sf_program_bytes(k->program) <= limit ? sim.seconds : (double)INFINITY;
}

/* The independent search tries all sets of weights that may be kept, and offloads buffers that do
 * not fit. The pass finds the best of these, and is better than unshard if memory is between two
 * numbers of weights. */
static void test_balance(void **state)
{
    (void)state;
    enum { SETS = 16, LIMITS = 8 };
    int better = 0, exact = 0; /* than unshard alone; as good as any set */
    for (int step = 0; step < LIMITS; step++) {
        test_passed k = open_known(64);
        int64_t limit = AROUND + step * WEIGHT / 2;
        sf_kept *kept = sf_program_keep(k.program, &k.arena);
        double best = (double)INFINITY;
        for (unsigned set = 0; set < SETS; set++) {
            sf_program_put_back(k.program, kept);
            keep_set(&k, set);
            assert_int_equal(sf_program_check(k.program, k.diag), SF_OK);
            best = fmin(best, seconds_behind(&k, "offload", limit));
        }
        sf_program_put_back(k.program, kept);
        sf_program_settle(k.program);
        double alone = seconds_behind(&k, "fsdp,unshard,force", limit);
        sf_program_put_back(k.program, kept);
        sf_program_settle(k.program);
        double found = seconds_behind(&k, "fsdp,balance,force", limit);
        print_message("%ld bytes: exact %g us, balance %g us, unshard %g us\n", (long)limit,
                      1e6 * best, 1e6 * found, 1e6 * alone);
        assert_true(found <= alone);
        better += found < alone;
        exact += found <= best;
        test_passed_close(&k);
    }
    assert_true(better >= 2 && exact == LIMITS);
}

/* The places of instructions in a step after passes. */
typedef struct standing {
    uint32_t updates, early; /* loops of the update, and those before the last reduction */
    uint32_t gathers, late; /* of weights, and those after the first product of the backward pass */
    double traffic, exposed;
} standing;

static standing stand_behind(const char *recipe, const char *passes)
{
    sf_graph *graph = test_step("gpt-micro");
    test_passed k = open_plan(graph, test_plan(graph, recipe, 2, NULL, NULL), 2);
    sf_simulation sim;
    sf_pass_list list;
    sf_pass_run run = {&list, k.costs, INT64_MAX, &k.arena};
    uint32_t last = 0, backward = SF_NONE;
    assert_int_equal(sf_pass_list_read(passes, &k.arena, k.diag, &list), SF_OK);
    assert_int_equal(sf_passes_run(k.program, &run, k.diag, NULL, NULL), SF_OK);
    sf_simulate(k.program, k.costs, &k.arena, &sim);
    standing s = {.traffic = sim.traffic, .exposed = sim.exposed};
    for (uint32_t i = 0; i < k.program->ninsts; i++) {
        const sf_inst *inst = &k.program->insts[i];
        if (inst->kind == SF_INST_COMM && inst->exchange->kind != SF_ALL_GATHER)
            last = i;
        if (inst->kind == SF_INST_DOT && inst->origin.phase == SF_BACKWARD && backward == SF_NONE)
            backward = i;
    }
    for (uint32_t i = 0; i < k.program->ninsts; i++) {
        const sf_inst *inst = &k.program->insts[i];
        bool updating = inst->kind == SF_INST_LOOP && inst->origin.phase == SF_UPDATE;
        s.updates += updating;
        s.early += updating && i < last;
        s.gathers += is_gather_of_weight(k.program, i);
        s.late += is_gather_of_weight(k.program, i) && i > backward;
    }
    print_message("%s: %u of %u updates before the last reduction, %u gathers of %u behind the "
                  "forward pass, %g bytes, %g us exposed\n",
                  recipe, s.early, s.updates, s.late, s.gathers, s.traffic, 1e6 * s.exposed);
    test_passed_close(&k);
    return s;
}

/* Between steps. Updates are where their gradients arrive, before the last reduction; their results
 * are gathered in the forward pass of the next step, each layer's before its own use, concurrent
 * with compute: with the memory for it, once a step, so that no more bytes are sent than if
 * parameters are whole and gathers are at the end. */
static void test_between_steps(void **state)
{
    (void)state;
    static const struct {
        const char *whole, *pieces;
    } rows[] = {{"zero2", "zero3"}, {"zero1", "zero1-between"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        standing whole = stand_behind(rows[i].whole, "none");
        standing pieces = stand_behind(rows[i].pieces, SF_BETWEEN_PASSES);
        assert_true(pieces.gathers > 0 && pieces.late == 0);
        assert_true(pieces.exposed <= whole.exposed);
        assert_true(fabs(pieces.traffic - whole.traffic) < 0.01 * whole.traffic);
    }
    standing full = stand_behind("zero3", SF_FULL_STATE_PASSES);
    assert_true(full.early * 2 > full.updates);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefetch),    cmocka_unit_test(test_unshard),
        cmocka_unit_test(test_small_first), cmocka_unit_test(test_turns),
        cmocka_unit_test(test_balance),     cmocka_unit_test(test_between_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
