/* Invariants of lists of passes, drawn at random, on programs of drawn steps, splits and
 * micro-batches, under drawn limits; by an independent check of memory that uses only the
 * instructions, and not their lives and events, and by the bits of real ranks.
 *
 * It runs the list on memory with owners. A collective or a copy writes from when it begins until
 * an instruction has waited for it: reading its result before that, or using memory that has
 * another owner, fails. So no use precedes the end of its gather, and no memory is freed before its
 * last use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "pass/pass.h"
#include "prog/buffer_content.h"
#include "prog/check_program.h"
#include "prog/edit_program.h"
#include "run/cpu/cpu_target.h"
#include "sheaf/sheaf.h"
#include "support/indexing.h"
#include "support/plans.h"
#include "support/sanitized.h"
#include "support/slow.h"

/* The judge */

enum { GRAIN = 16 };

typedef struct judging {
    const sf_program *p;
    char *fault; /* the first, or "" */
    sf_arena arena;
    uint32_t *owners
        [SF_SPACE_COUNT]; /* by grain of the arena: the buffer whose contents are there, plus one */
    uint32_t *writers;    /* by buffer: how many are still writing it */
    bool *open;           /* by instruction: it is under way */
} judging;

enum { FAULT = 100 };

static void find_fault(const judging *j, uint32_t inst, const char *what, uint32_t which)
{
    if (!*j->fault)
        snprintf(j->fault, FAULT, "instruction %u: %s %u", inst, what, which);
}

static void own(judging *j, uint32_t buffer)
{
    const sf_buffer *b = &j->p->buffers[buffer];
    for (int64_t at = b->offset; sf_in_arena(b) && at < b->offset + b->bytes; at += GRAIN)
        j->owners[b->space][at / GRAIN] = buffer + 1;
}

static void expect_own(const judging *j, uint32_t inst, uint32_t buffer)
{
    const sf_buffer *b = &j->p->buffers[buffer];
    for (int64_t at = b->offset; sf_in_arena(b) && at < b->offset + b->bytes; at += GRAIN)
        if (j->owners[b->space][at / GRAIN] != buffer + 1)
            find_fault(j, inst, "not there is buffer", buffer);
}

static void end_inst(judging *j, uint32_t inst)
{
    const sf_inst *i = &j->p->insts[inst];
    if (!j->open[inst])
        return;
    j->open[inst] = false;
    for (uint32_t k = 0; k < i->nin; k++)
        expect_own(j, inst, i->in[k].buffer);
    for (uint32_t k = 0; k < i->nout; k++) {
        expect_own(j, inst, i->out[k].buffer);
        j->writers[i->out[k].buffer]--;
    }
}

/* Operands of an epilogue from its own product. */
static bool makes(const sf_inst *inst, uint32_t buffer)
{
    return inst->loop && inst->nout > 0 && inst->kind != SF_INST_LOOP &&
           inst->out[0].buffer == buffer;
}

/* Element by element. */
static bool have_one_in_common(const sf_view *a, const sf_view *b, int64_t bytes)
{
    char *touched = sf_alloc((size_t)bytes + 1);
    int64_t index[SF_MAX_RANK] = {0}, width = sf_dtype_get(a->dtype)->bytes;
    bool common = false;
    for (int pass = 0; pass < 2; pass++) {
        const sf_view *view = pass == 0 ? a : b;
        do {
            int64_t at = view->offset;
            for (int d = 0; d < view->rank; d++)
                at += index[d] * view->strides[d];
            common = common || (pass == 1 && touched[at * width]);
            touched[at * width] = 1;
        } while (sf_next_index(view->rank, view->dims, index));
    }
    sf_free(touched);
    return common;
}

/* The asynchronous writer of the view's data; SF_NONE: none. Chunks of one instruction are of one
 * buffer. */
static uint32_t writer_of(const judging *j, uint32_t inst, const sf_view *view)
{
    for (uint32_t other = 0; other < inst && j->writers[view->buffer] > 0; other++) {
        const sf_inst *w = &j->p->insts[other];
        for (uint32_t k = 0; k < w->nout && j->open[other]; k++)
            if (w->out[k].buffer == view->buffer &&
                (!w->piece || !j->p->insts[inst].piece ||
                 have_one_in_common(&w->out[k], view, j->p->buffers[view->buffer].bytes)))
                return other;
    }
    return SF_NONE;
}

static void run_inst(judging *j, uint32_t inst)
{
    const sf_inst *i = &j->p->insts[inst];
    for (uint32_t w = 0; w < i->nwaits; w++)
        for (uint32_t other = 0; other < inst; other++)
            if (j->p->insts[other].raises == i->waits[w])
                end_inst(j, other);
    for (uint32_t k = 0; k < i->nin; k++) {
        uint32_t writer = writer_of(j, inst, &i->in[k]);
        if (writer != SF_NONE)
            find_fault(j, inst, "reads what is being written by", writer);
        if (!makes(i, i->in[k].buffer))
            expect_own(j, inst, i->in[k].buffer);
    }
    for (uint32_t k = 0; k < i->nout; k++)
        own(j, i->out[k].buffer);
    j->open[inst] = sf_goes_beside(i);
    for (uint32_t k = 0; k < i->nout; k++)
        j->writers[i->out[k].buffer] += j->open[inst];
}

static void judge(const sf_program *p, char *fault)
{
    judging j = {.p = p, .fault = fault};
    for (int s = 0; s < SF_SPACE_COUNT; s++)
        j.owners[s] = SF_ARRAY(&j.arena, p->arena_bytes[s] / GRAIN + 1, uint32_t);
    j.writers = SF_ARRAY(&j.arena, p->nbuffers, uint32_t);
    j.open = SF_ARRAY(&j.arena, p->ninsts, bool);
    for (uint32_t b = 0; b < p->nbuffers; b++)
        if (p->buffers[b].home == SF_HOME_ARGUMENT && p->buffers[b].is_lent)
            own(&j, b);
    for (uint32_t i = 0; i < p->ninsts; i++) {
        run_inst(&j, i);
        for (uint32_t b = 0; b < sf_body_count(&p->insts[i]); b++)
            judge(p->insts[i].nest->bodies[b], fault);
    }
    for (uint32_t i = 0; i < p->ninsts; i++)
        end_inst(&j, i);
    for (uint32_t r = 0; r < p->nresults; r++)
        expect_own(&j, (uint32_t)p->ninsts, p->results[r].buffer);
    sf_arena_free(&j.arena);
}

/* Detected mistakes: a gather that no instruction waits for, and a buffer in the place of
 * another. */
static bool finds_mistakes(sf_program *p)
{
    char late[FAULT] = "", moved[FAULT] = "";
    uint32_t first = 0;
    while (first < p->ninsts && (p->insts[first].nwaits == 0 || sf_goes_beside(&p->insts[first])))
        first++;
    if (first == p->ninsts)
        return false;
    uint32_t waits = p->insts[first].nwaits;
    p->insts[first].nwaits = 0;
    judge(p, late);
    p->insts[first].nwaits = waits;
    for (uint32_t b = 0; b < p->nbuffers && !*moved; b++) {
        int64_t offset = p->buffers[b].offset;
        if (p->buffers[b].home != SF_HOME_ARENA || p->buffers[b].space != SF_SPACE_DEVICE)
            continue;
        p->buffers[b].offset = 0;
        judge(p, moved);
        p->buffers[b].offset = offset;
    }
    return *late && *moved;
}

/* Drawn inputs */

typedef struct drawn {
    test_random random;
    sf_diag *diag;
    sf_cluster *cluster;     /* the one of the two at hand: */
    sf_cluster *clusters[2]; /* links that are fast relative to compute, and slow ones */
    sf_graph *graph;
    sf_plan *plan;
    char list[200], what[400];
    int runs, tight, offloads, cut, found;
    double hidden, hideable; /* seconds, of prefetch right after fsdp */
} drawn;

static const char *const steps[] = {"mlp-micro", "gpt-micro", "llama-micro", "moe-micro"};
static const char *const recipes[] = {"zero3",    "zero3",    "zero3",    "zero1",   "dp",
                                      "megatron", "megatron", "sequence", "megatron"};
#define PICK(d, list) list[test_draw(&(d)->random, 0, (int64_t)(sizeof list / sizeof *list) - 1)]

static void draw_list(drawn *d)
{
    static const char *const rest[] = {"prefetch",
                                       "prefetch:group=4K",
                                       "prefetch:group=9K:alpha=1",
                                       "unshard",
                                       "defer-gradient-readers",
                                       "offload:min=1",
                                       "offload:min=1:recompute=1",
                                       "overlap",
                                       "balance",
                                       "overlap:chunks=2",
                                       "fsdp"};
    bool slow = d->cluster == d->clusters[1]; /* where micro-batches pay */
    size_t length = (size_t)snprintf(d->list, sizeof d->list, "fsdp%s",
                                     slow && test_draw(&d->random, 0, 1) ? ",overlap" : "");
    for (int64_t n = test_draw(&d->random, 1, 3); n > 0; n--)
        length += (size_t)snprintf(d->list + length, sizeof d->list - length, ",%s", PICK(d, rest));
}

/* A plan with micro-batches if the batch has as many; false: the recipe does not suit the step. */
static bool draw_plan(drawn *d, const char *step)
{
    int ranks = test_draw(&d->random, 0, 1) ? 2 : 4;
    const char *recipe = PICK(d, recipes);
    sf_plan_spec options = {.size = sizeof options,
                            .recipe = recipe,
                            .ranks = ranks,
                            .micro_batches = (int)test_draw(&d->random, 1, 2)};
    bool is_good = sf_pin_step(d->graph, &options, d->diag, &d->plan) == SF_OK;
    snprintf(d->what, sizeof d->what, "%s, %s on %d, %d turns", step, recipe, ranks,
             options.micro_batches);
    return is_good;
}

/* Of the first rank; NULL: its share of the batch does not split into micro-batches. */
static sf_program *lower(const drawn *d)
{
    sf_local *local;
    sf_lower_options options = {.target = &sf_target_cpu, .mesh = &d->plan->mesh};
    if (sf_local_new(d->graph, d->plan, 0, d->diag, &local) != SF_OK)
        return NULL;
    sf_program *program = sf_lower(local->graph, &options, NULL);
    sf_local_free(local);
    return program;
}

static bool has_pieces(const sf_program *p)
{
    for (size_t i = 0; i < p->ninsts; i++) {
        if (p->insts[i].piece)
            return true;
        for (uint32_t b = 0; b < sf_body_count(&p->insts[i]); b++)
            if (has_pieces(p->insts[i].nest->bodies[b]))
                return true;
    }
    return false;
}

/* Passes that move gathers hide no more than is possible; with enough memory, nearly that. */
static void expect_hidden(drawn *d, const sf_pass_outcome *out, int count, int64_t limit)
{
    for (int i = 1; i < count; i++) {
        const sf_pass_outcome *o = &out[i], *before = &out[i - 1];
        bool fits = before->bytes <= limit; /* else a pass for time is one for memory */
        if (fits && o->hides > o->could_hide * (1 + 1e-9) + 1e-12)
            fail_msg("%s, %s: %s hides %g s of %g", d->what, d->list, o->name, o->hides,
                     o->could_hide);
        if (strcmp(o->name, "prefetch") == 0 && strcmp(before->name, "fsdp") == 0 && fits) {
            d->hidden += o->hides;
            d->hideable += o->could_hide;
        }
    }
}

/* The list on the program, under a limit that may be less than it takes by itself. */
static void hold(drawn *d, sf_program *p, int64_t limit)
{
    sf_arena arena = {0};
    sf_pass_list list;
    sf_pass_outcome out[SF_PASSES_MOST + 2];
    sf_costs *costs;
    int sizes[SF_MAX_AXES], count;
    char fault[FAULT] = "";
    uint64_t meaning = sf_program_meaning(p);
    for (int a = 0; a < p->mesh.naxes; a++)
        sizes[a] = p->mesh.axes[a].size;
    assert_int_equal(sf_costs_new(d->cluster, p->mesh.naxes, sizes, 0, &arena, d->diag, &costs),
                     SF_OK);
    assert_int_equal(sf_pass_list_read(d->list, &arena, d->diag, &list), SF_OK);
    sf_pass_run run = {&list, costs, limit, &arena};
    if (sf_passes_run(p, &run, d->diag, out, &count) != SF_OK ||
        sf_program_check(p, d->diag) != SF_OK)
        fail_msg("%s, %s: %s", d->what, d->list, sf_diag_text(d->diag, 0));
    assert_true(sf_program_meaning(p) == meaning);
    judge(p, fault);
    if (*fault)
        fail_msg("%s, %s: %s", d->what, d->list, fault);
    d->found += finds_mistakes(p);
    const sf_pass_outcome *last = &out[count - 1];
    assert_int_equal(last->bytes, sf_program_bytes(p));
    if (out[0].bytes <= limit && (last->bytes > limit || last->seconds > out[0].seconds))
        fail_msg("%s, %s: %g s and %ld bytes, before %g s and %ld", d->what, d->list, last->seconds,
                 (long)last->bytes, out[0].seconds, (long)out[0].bytes);
    if (out[0].bytes > limit && last->bytes > out[0].bytes)
        fail_msg("%s, %s: it does not fit, and takes more than before", d->what, d->list);
    expect_hidden(d, out, count, limit);
    d->tight += out[0].bytes > limit && last->bytes <= limit;
    d->offloads += sf_program_host_bytes(p) > 0;
    d->cut += has_pieces(p);
    d->runs++;
    sf_arena_free(&arena);
}

/* State after two steps of all ranks, as threads. */
static void *state_behind(const drawn *d, size_t *bytes)
{
    sf_session_options options = {
        .size = sizeof options, .plan = d->plan, .threads = 1, .check = true};
    sf_session *session;
    sf_buf all = {0};
    sf_status status = sf_session_open(d->graph, &options, d->diag, &session);
    if (status == SF_OK)
        status = sf_session_init(session, NULL, 7, d->diag);
    if (status == SF_OK)
        status = sf_session_run(session, 2, d->diag, NULL);
    if (status != SF_OK)
        fail_msg("%s, %s: %s", d->what, d->list, sf_diag_text(d->diag, 0));
    for (int i = 0; i < sf_graph_arguments(d->graph); i++) {
        size_t own = (size_t)sf_type_bytes(d->graph->values[d->graph->top->arguments[i]].type);
        char *data = sf_alloc(own);
        assert_int_equal(sf_session_read(session, i, data, own, d->diag), SF_OK);
        sf_buf_add(&all, data, own);
        sf_free(data);
    }
    sf_session_close(session);
    *bytes = all.length;
    return all.text;
}

static void expect_same_bits(drawn *d, int64_t limit)
{
    size_t plain_bytes, bytes;
    void *plain = state_behind(d, &plain_bytes);
    assert_int_equal(sf_plan_use_passes(d->plan, d->list, d->cluster, limit, d->diag), SF_OK);
    void *passed = state_behind(d, &bytes);
    assert_int_equal(bytes, plain_bytes);
    if (memcmp(plain, passed, bytes) != 0)
        fail_msg("%s, %s: state differs behind two steps", d->what, d->list);
    sf_free(plain);
    sf_free(passed);
}

static void run_plan(drawn *d, bool on_ranks)
{
    sf_program *p = lower(d);
    if (!p)
        return;
    double share = (double)test_draw(&d->random, 60, 160) / 100;
    int64_t limit = (int64_t)((double)sf_program_bytes(p) * share);
    hold(d, p, limit);
    if (on_ranks || has_pieces(p))
        expect_same_bits(d, limit);
    sf_program_free(p);
}

static void run_case(drawn *d, int number)
{
    enum { EACH = 6 }; /* that runs on ranks */
    const char *step = PICK(d, steps);
    d->graph = test_step(step);
    d->cluster = d->clusters[test_draw(&d->random, 0, 1)];
    draw_list(d);
    if (draw_plan(d, step)) {
        run_plan(d, number % EACH == 0);
        sf_plan_free(d->plan);
    }
    sf_diag_clear(d->diag);
    sf_graph_free(d->graph);
}

static void test_random_programs(void **state)
{
    (void)state;
    const int cases = test_short() ? 30 : 150;
    drawn d = {.random = {.key = 31}, .diag = sf_diag_new()};
    assert_int_equal(sf_cluster_open("4xH100-80GB-SXM5", d.diag, &d.clusters[0]), SF_OK);
    d.clusters[1] = test_slow_links(4, 1e9);
    for (int i = 0; i < cases; i++)
        run_case(&d, i);
    print_message("%d runs, %d made fit, %d with copies, %d in turns, mistakes found in %d\n",
                  d.runs, d.tight, d.offloads, d.cut, d.found);
    print_message("prefetch hides %.0f %% of what could be hidden\n", 100 * d.hidden / d.hideable);
    assert_true(test_short() || (d.hideable > 0 && d.hidden > 0.8 * d.hideable));
    assert_true(d.runs > cases * 2 / 3 && d.tight > cases / 30 && d.offloads > cases / 30);
    assert_true(d.cut > cases / 30 || test_short()); /* few have such a product */
    assert_true(d.found > d.runs / 2);
    sf_cluster_free(d.clusters[0]);
    sf_cluster_free(d.clusters[1]);
    sf_diag_free(d.diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
