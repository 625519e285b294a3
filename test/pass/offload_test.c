/* Adaptive offload: on programs with known answers, and invariants on the programs of all micro
 * steps, at all limits: it fits if possible, computes the same bits, copies no more than necessary,
 * and takes no longer than waiting for everything. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "pass/offload.h"
#include "prog/buffer_content.h"
#include "prog/check_program.h"
#include "prog/edit_program.h"
#include "run/cpu/cpu_target.h"
#include "sheaf/sheaf.h"
#include "support/indexing.h"
#include "support/programs.h"
#include "support/run.h"
#include "support/sanitized.h"

typedef struct holding {
    sf_cluster *cluster, *far; /* whose hosts are, where the latter's links to them are slow */
    sf_diag *diag;
    int seen, runs, fits, recomputed;
} holding;

static holding open_holding(void)
{
    holding h = {.diag = sf_diag_new()};
    assert_int_equal(sf_cluster_open("4xH100-80GB-SXM5", h.diag, &h.cluster), SF_OK);
    assert_int_equal(sf_cluster_open("4xH100-80GB-SXM5", h.diag, &h.far), SF_OK);
    for (int k = 0; k < h.far->nkinds; k++)
        h.far->kinds[k].host_bandwidth = 1e6;
    return h;
}

static void close_holding(holding *h)
{
    sf_cluster_free(h->cluster);
    sf_cluster_free(h->far);
    sf_diag_free(h->diag);
}

static sf_costs *costs_of(const holding *h, const sf_program *p, sf_arena *arena)
{
    int sizes[SF_MAX_AXES];
    sf_costs *costs;
    for (int a = 0; a < p->mesh.naxes; a++)
        sizes[a] = p->mesh.axes[a].size;
    assert_int_equal(sf_costs_new(h->cluster, p->mesh.naxes, sizes, 0, arena, h->diag, &costs),
                     SF_OK);
    return costs;
}

static sf_simulation simulate(const holding *h, const sf_program *p, sf_arena *arena)
{
    sf_simulation sim;
    sf_simulate(p, costs_of(h, p, arena), arena, &sim);
    return sim;
}

/* Runs one pass; the program is checked, and its meaning compared. */
static void run_pass(const holding *h, const char *what, sf_program *p, const char *pass,
                     int64_t limit)
{
    sf_arena arena = {0};
    sf_pass_list list;
    uint64_t meaning = sf_program_meaning(p);
    assert_int_equal(sf_pass_list_read(pass, &arena, h->diag, &list), SF_OK);
    sf_pass_run run = {&list, costs_of(h, p, &arena), limit, &arena};
    if (sf_passes_run(p, &run, h->diag, NULL, NULL) != SF_OK ||
        sf_program_check(p, h->diag) != SF_OK)
        fail_msg("%s, %s: %s", what, pass, sf_diag_text(h->diag, 0));
    assert_true(sf_program_meaning(p) == meaning);
    sf_arena_free(&arena);
}

/* Bits of a step of each, on the same arguments. */
static void expect_same_bits(const char *what, const sf_program *a, const sf_program *b,
                             sf_diag *diag)
{
    sf_engine_options options = {.threads = 1};
    sf_engine *x, *y;
    assert_int_equal(sf_engine_open(a, &options, diag, &x), SF_OK);
    assert_int_equal(sf_engine_open(b, &options, diag, &y), SF_OK);
    for (uint32_t i = 0; i < a->narguments; i++) {
        sf_tensor t = test_argument(x, i), u = test_argument(y, i);
        test_random random = {.key = i};
        int64_t bytes = sf_type_bytes(t.type);
        for (int64_t k = 0; t.type->dtype == SF_F32 && k < bytes / 4; k++)
            ((float *)t.data)[k] = (float)test_draw(&random, -50, 50) / 64;
        memcpy(u.data, t.data, (size_t)bytes);
    }
    for (int step = 0; step < 2; step++) {
        assert_int_equal(sf_engine_step(x, diag), SF_OK);
        assert_int_equal(sf_engine_step(y, diag), SF_OK);
    }
    for (uint32_t r = 0; r < a->nresults; r++) {
        sf_tensor t = test_result(x, r), u = test_result(y, r);
        if (memcmp(t.data, u.data, (size_t)sf_type_bytes(t.type)) != 0)
            fail_msg("%s: result %u differs", what, r);
    }
    sf_engine_free(x);
    sf_engine_free(y);
}

static size_t count_computing(const sf_program *p)
{
    size_t count = 0;
    for (size_t i = 0; i < p->ninsts; i++)
        count += p->insts[i].kind == SF_INST_LOOP || p->insts[i].kind == SF_INST_DOT;
    return count;
}

/* If the host is slow, resting buffers are recomputed: the same bits, no later than with copies
 * alone. */
static void hold_again(holding *h, const char *what, const sf_program *plain, int64_t limit)
{
    static const char *const lists[] = {"offload:min=1", "offload:min=1:recompute=1"};
    double seconds[2];
    holding far = *h;
    far.cluster = h->far;
    for (int i = 0; i < 2; i++) {
        sf_arena arena = {0};
        test_copy copy;
        test_copy_program(plain, &copy);
        run_pass(&far, what, &copy.p, lists[i], limit);
        seconds[i] = sf_program_bytes(&copy.p) <= limit ? simulate(&far, &copy.p, &arena).seconds
                                                        : (double)INFINITY;
        if (i == 1) {
            expect_same_bits(what, plain, &copy.p, h->diag);
            h->recomputed += count_computing(&copy.p) > count_computing(plain);
        }
        test_copy_free(&copy);
        sf_arena_free(&arena);
    }
    assert_true(seconds[1] <= seconds[0]);
}

static void hold_limit(holding *h, const char *what, const sf_program *plain, int64_t limit)
{
    test_copy adaptive;
    test_copy_program(plain, &adaptive);
    int64_t before = sf_program_bytes(plain);
    run_pass(h, what, &adaptive.p, "offload:min=1", limit);
    assert_true(sf_program_bytes(&adaptive.p) <= before);
    if (plain->mesh.naxes == 0) {
        expect_same_bits(what, plain, &adaptive.p, h->diag);
        hold_again(h, what, plain, limit);
    }
    h->runs++;
    h->fits += sf_program_bytes(&adaptive.p) <= limit;
    test_copy_free(&adaptive);
}

static void hold(void *context, const char *what, const sf_program *program,
                 const sf_program *other)
{
    static const double shares[] = {1.0, 0.9, 0.6};
    (void)other;
    holding *h = context;
    const int each = test_short() ? 12 : 6; /* of programs: all take minutes */
    if (h->seen++ % each != 0)
        return;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        hold_limit(context, what, program,
                   (int64_t)(shares[i] * (double)sf_program_bytes(program)));
}

static void test_all_programs(void **state)
{
    (void)state;
    holding h = open_holding();
    test_each_program(hold, &h);
    print_message("%d runs, of which %d fit, and %d compute again\n", h.runs, h.fits, h.recomputed);
    assert_true(h.recomputed > 0);
    assert_true(h.runs > (test_short() ? 25 : 50) && h.fits > h.runs * 7 / 10);
    close_holding(&h);
}

/* Four products, three of whose results are kept until a second round of products uses them the other way round; and two
 * states that the end adds to. All tensors are of 16 KiB.
 *
 *     a = x x;  b = a x;  c = b x;  d = c x;   e = d c;  f = e b;  g = f a;   m += g;  n += m */
#define T "tensor<64x64xf32>"
#define DOT(to, l, r)                                                                              \
    "%" to " = stablehlo.dot_general %" l ", %" r ", contracting_dims = [1] x [0] : (" T ", " T    \
    ") -> " T "\n"
static const char rounds_text[] =
    "func.func public @main(%x: " T ", %m: " T " {tf.aliasing_output = 0 : i32}, %n: " T
    " {tf.aliasing_output = 1 : i32}) -> (" T ", " T ") {\n" DOT("a", "x", "x") DOT("b", "a", "x")
        DOT("c", "b", "x") DOT("d", "c", "x") DOT("e", "d", "c") DOT("f", "e", "b")
            DOT("g", "f", "a") DOT("h", "g", "m") DOT("i", "h", "n") "return %h, %i : " T ", " T
                                                                     "\n}\n";

/* How many rests are taken, and of which buffers. */
static size_t choose(const holding *h, const sf_program *p, int64_t limit, uint32_t *buffers)
{
    sf_arena arena = {0};
    uint32_t at;
    sf_simulation sim = simulate(h, p, &arena);
    sf_offload o = {.program = (sf_program *)p,
                    .sim = &sim,
                    .costs = costs_of(h, p, &arena),
                    .limit = limit,
                    .least = 1,
                    .arena = &arena};
    sf_live_bytes(p, &arena, &o.curve, &at);
    for (size_t i = 0; i < p->ninsts; i++)
        o.curve[i] += p->state_bytes + p->constant_bytes;
    sf_offload_find(&o);
    sf_offload_choose(&o);
    sf_rest **list;
    size_t count = sf_offload_taken(&o, &list);
    for (size_t i = 0; i < count; i++)
        buffers[i] = list[i]->buffer;
    sf_arena_free(&arena);
    return count;
}

static void test_known(void **state)
{
    (void)state;
    enum { TENSOR = 64 * 64 * 4 };
    holding h = open_holding();
    sf_program *p = test_lower_text(rounds_text, NULL);
    int64_t whole = sf_program_bytes(p);
    uint32_t taken[32];
    /* It fits: no copies. One tensor too much: one of the states, and the one used last, n. Two:
     * both. */
    assert_int_equal(choose(&h, p, whole, taken), 0);
    assert_int_equal(choose(&h, p, whole - 1, taken), 1);
    assert_int_equal(taken[0], 2);
    assert_int_equal(choose(&h, p, whole - TENSOR, taken), 1);
    assert_int_equal(choose(&h, p, whole - TENSOR - 1, taken), 2);
    assert_true(taken[0] < 3 && taken[1] < 3 && taken[0] != taken[1]);
    /* More than the states: something else has to go, too, for a while. */
    assert_true(choose(&h, p, whole - 2 * TENSOR - 1, taken) > 2);
    for (int less = 0; less <= 4; less++) {
        test_copy copy;
        test_copy_program(p, &copy);
        run_pass(&h, "rounds", &copy.p, "offload:min=1", whole - less * TENSOR);
        print_message("%d tensors less: %" PRId64 " of %" PRId64 " bytes\n", less,
                      sf_program_bytes(&copy.p), whole - less * TENSOR);
        assert_true(sf_program_bytes(&copy.p) <= whole - less * TENSOR || less > 3);
        expect_same_bits("rounds", p, &copy.p, h.diag);
        test_copy_free(&copy);
    }
    sf_program_free(p);
    close_holding(&h);
}

/* All sets of rests of a small program that fit, each put into time in the same way: the time of the best. */
static double best_of_all(const holding *h, const sf_program *p, int64_t limit, int *sets)
{
    sf_arena arena = {0};
    double best = HUGE_VAL;
    uint32_t at;
    sf_simulation sim = simulate(h, p, &arena);
    size_t nrests = 1;
    *sets = 0;
    for (uint32_t turn = 0; turn < 2u << nrests; turn++) {
        uint32_t set = turn / 2;
        bool guests = turn % 2;
        test_copy copy;
        test_copy_program(p, &copy);
        sf_offload o = {.program = &copy.p,
                        .sim = &sim,
                        .costs = costs_of(h, p, &arena),
                        .limit = limit,
                        .least = 1,
                        .arena = &arena};
        sf_live_bytes(p, &arena, &o.curve, &at);
        for (size_t i = 0; i < p->ninsts; i++)
            o.curve[i] += p->state_bytes + p->constant_bytes;
        sf_offload_find(&o);
        nrests = o.nrests < 14 ? o.nrests : 14;
        for (size_t r = 0; r < nrests; r++)
            if (set >> r & 1 && !o.rests[r].is_housed && o.rests[r].first < o.rests[r].after)
                sf_offload_take(&o, &o.rests[r]);
        o.with_guests = guests;
        sf_offload_schedule(&o);
        sf_offload_insert(&o);
        sf_program_settle(&copy.p);
        if (sf_program_bytes(&copy.p) <= limit) {
            sf_simulation s = simulate(h, &copy.p, &arena);
            best = s.seconds < best ? s.seconds : best;
            (*sets)++;
        }
        test_copy_free(&copy);
    }
    sf_arena_free(&arena);
    return best;
}

static void test_against_exact(void **state)
{
    (void)state;
    enum { TENSOR = 64 * 64 * 4 };
    holding h = open_holding();
    sf_program *p = test_lower_text(rounds_text, NULL);
    for (int less = 0; less <= 3; less++) {
        sf_arena arena = {0};
        int64_t limit = sf_program_bytes(p) - less * TENSOR;
        int sets;
        double best = best_of_all(&h, p, limit, &sets);
        test_copy copy;
        test_copy_program(p, &copy);
        run_pass(&h, "rounds", &copy.p, "offload:min=1", limit);
        double ours = simulate(&h, &copy.p, &arena).seconds;
        print_message("%d less: %.3g s, the best of %d sets takes %.3g s\n", less, ours, sets,
                      best);
        assert_true(sets > 0 && ours <= 1.1 * best);
        test_copy_free(&copy);
        sf_arena_free(&arena);
    }
    sf_program_free(p);
    close_holding(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_against_exact),
        cmocka_unit_test(test_all_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
