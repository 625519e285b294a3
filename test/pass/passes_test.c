/* Invariants of every pass, on the programs of all micro steps in all recipes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "pass/pass.h"
#include "prog/buffer_content.h"
#include "prog/check_program.h"
#include "prog/edit_program.h"
#include "sheaf/sheaf.h"
#include "support/programs.h"
#include "support/sanitized.h"

static const char *const lists[] = {"fsdp,force", "fsdp,prefetch,unshard,defer-gradient-readers",
                                    "fsdp,unshard,prefetch:group=3K:alpha=1.1"};
enum { LISTS = sizeof lists / sizeof *lists };

typedef struct holding {
    sf_cluster *cluster;
    sf_diag *diag;
    int runs, faster, given_up, programs;
} holding;

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

/* Time and memory are compared with those before and the limit, after each pass. */
static void hold_outcomes(holding *h, const char *what, const sf_pass_list *list, int64_t limit,
                          const sf_pass_outcome *out, int count)
{
    for (int i = 1; i <= list->count; i++) {
        const sf_program_pass *pass = list->at[i - 1].pass;
        int64_t most = out[i - 1].bytes > limit ? out[i - 1].bytes : limit;
        bool fitted = out[i - 1].bytes <= limit;
        if (pass->aim == SF_PASS_FOR_TIME && fitted && out[i].seconds > out[i - 1].seconds)
            fail_msg("%s: %s takes %g s, before %g s", what, pass->name, out[i].seconds,
                     out[i - 1].seconds);
        if (pass->aim != SF_PASS_TO_BEGIN && out[i].bytes > most)
            fail_msg("%s: %s takes %ld bytes, of %ld", what, pass->name, (long)out[i].bytes,
                     (long)most);
        h->faster += out[i].seconds < out[i - 1].seconds;
    }
    const sf_pass_outcome *end = &out[count - 1];
    bool anyway = strcmp(list->at[list->count - 1].pass->name, "force") == 0;
    bool fitted = out[0].bytes <= limit, given_up = count == list->count + 2;
    assert_true(given_up || count == list->count + 1);
    if (!anyway && fitted && (end->seconds > out[0].seconds || end->bytes > limit))
        fail_msg("%s: the list takes %g s, none %g s", what, end->seconds, out[0].seconds);
    assert_true(!given_up || (end->seconds == out[0].seconds && end->bytes == out[0].bytes));
    h->given_up += given_up;
}

/* The limit is of the program alone: a device has memory for what its kernels work in besides. */
static void run_list(holding *h, const char *what, sf_program *p, const char *text, int64_t limit)
{
    sf_arena arena = {0};
    sf_pass_list list;
    sf_pass_outcome out[SF_PASSES_MOST + 2];
    int count;
    assert_int_equal(sf_pass_list_read(text, &arena, h->diag, &list), SF_OK);
    sf_costs *costs = costs_of(h, p, &arena);
    int64_t scratch = sf_scratch_bytes(p, costs);
    int64_t device = limit < INT64_MAX - scratch ? limit + scratch : INT64_MAX;
    sf_pass_run run = {&list, costs, device, &arena};
    uint64_t meaning = sf_program_meaning(p);
    if (sf_passes_run(p, &run, h->diag, out, &count) != SF_OK ||
        sf_program_check(p, h->diag) != SF_OK)
        fail_msg("%s, %s: %s", what, text, sf_diag_text(h->diag, 0));
    assert_true(sf_program_meaning(p) == meaning);
    hold_outcomes(h, what, &list, limit, out, count);
    h->runs++;
    sf_arena_free(&arena);
}

/* All lists, with all the memory that there is and with little more than there must be; the other rank comes to the same
 * collectives. */
static void hold(void *context, const char *what, const sf_program *program,
                 const sf_program *other)
{
    holding *h = context;
    sf_arena arena = {0};
    if (!other || (test_short() && h->programs++ % 6))
        return;
    sf_program *pair[] = {(sf_program *)program, (sf_program *)other};
    sf_kept *kept[] = {sf_program_keep(pair[0], &arena), sf_program_keep(pair[1], &arena)};
    int64_t limit = sf_program_bytes(pair[0]) * 21 / 20;
    for (int i = 0; i < LISTS; i++)
        for (int tight = 0; tight < 2; tight++) {
            for (int r = 0; r < 2; r++) {
                sf_program_put_back(pair[r], kept[r]);
                run_list(h, what, pair[r], lists[i], tight ? limit : INT64_MAX);
            }
            if (sf_program_match(pair[0], pair[1], h->diag) != SF_OK)
                fail_msg("%s, %s: %s", what, lists[i], sf_diag_text(h->diag, 0));
            assert_true(sf_program_traffic(pair[0]) == sf_program_traffic(pair[1]));
        }
    sf_arena_free(&arena);
}

static void test_all_programs(void **state)
{
    (void)state;
    holding h = {.diag = sf_diag_new()};
    assert_int_equal(sf_cluster_open("4xH100-80GB-SXM5", h.diag, &h.cluster), SF_OK);
    test_each_program(hold, &h);
    print_message("%d runs, %d passes made a program faster, %d lists were given up\n", h.runs,
                  h.faster, h.given_up);
    const int part = test_short() ? 5 : 1;
    assert_true(h.runs > 1000 / part && h.faster > 300 / part && h.given_up > 0);
    sf_cluster_free(h.cluster);
    sf_diag_free(h.diag);
}

static void test_lists(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says; /* NULL: it is good */
    } cases[] = {
        {"", NULL},
        {"none", NULL},
        {"fsdp,prefetch:group=1.5G:alpha=2,fsdp,prefetch", NULL},
        {"prefetch", "pass prefetch needs fsdp before it"},
        {"fsdp,prefech", "there is no pass \"prefech\""},
        {"fsdp,", NULL},
        {",fsdp", "there is no pass \"\""},
        {"fsdp:group=1", "pass fsdp has no option \"group\""},
        {"fsdp,prefetch:group=1Q", "group is a size, such as 64M, not \"1Q\""},
        {"fsdp,prefetch:group", "group is a size"},
        {"fsdp,prefetch:alpha=1..5", "alpha is a number"},
        {"fsdp,prefetch:alpha=-1", "alpha is a number"},
        {"fsdp,prefetch:alpha=", "alpha is a number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_diag *diag = sf_diag_new();
        sf_arena arena = {0};
        sf_pass_list list;
        sf_status status = sf_pass_list_read(cases[i].text, &arena, diag, &list);
        assert_int_equal(status, cases[i].says ? SF_EUSAGE : SF_OK);
        if (cases[i].says && !strstr(sf_diag_text(diag, 0), cases[i].says))
            fail_msg("%s: %s", cases[i].text, sf_diag_text(diag, 0));
        sf_arena_free(&arena);
        sf_diag_free(diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_all_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
