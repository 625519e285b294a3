/* Pipeline ranks that are simulated together: bubbles of the named schedules are those of their
 * closed forms if stages are equal and messages take no time; memory at the peak is that of the
 * micro-batches in flight; and pipeline ranks that wait for each other are found, with the
 * message. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cluster/cluster.h"
#include "plan/pipeline/schedules.h"
#include "run/runner.h"
#include "search/price/price.h"
#include "search/price/price_pipeline.h"
#include "sheaf/sheaf.h"
#include "sim/instruction_work.h"
#include "sim/sim.h"
#include "support/chain.h"

enum { MOST_GROUPS = 8, AXIS = 1 };

/* A cluster whose links take no time, and one CPU for each group. */
typedef struct ground {
    sf_arena arena;
    sf_cluster *cluster;
    sf_costs *costs;
} ground;

static void open_ground(ground *g, int groups)
{
    char name[32];
    *g = (ground){0};
    snprintf(name, sizeof name, "1x%dxCPU", groups);
    assert_int_equal(sf_cluster_open(name, NULL, &g->cluster), SF_OK);
    g->cluster->nmeasured = 0;
    g->cluster->kinds[0].drag = 0;
    g->cluster->nodes[0].inside = (sf_link){.latency = 0, .bandwidth = 1e30};
    assert_int_equal(sf_costs_new(g->cluster, 1, &groups, 0, &g->arena, NULL, &g->costs), SF_OK);
}

static void close_ground(ground *g)
{
    sf_cluster_free(g->cluster);
    sf_arena_free(&g->arena);
}

/* Programs by hand ----------------------------------------------------------------------------- */

typedef struct maker {
    sf_arena *arena;
    sf_program *programs[MOST_GROUPS];
} maker;

static void open_programs(maker *m, uint32_t count, sf_arena *arena)
{
    *m = (maker){.arena = arena};
    for (uint32_t g = 0; g < count; g++) {
        m->programs[g] = SF_NEW(arena, sf_program);
        m->programs[g]->target = sf_engine_target(NULL);
    }
}

static sf_inst *add_inst(maker *m, uint32_t group, sf_inst inst)
{
    sf_program *p = m->programs[group];
    SF_PUSH(m->arena, p->insts, p->ninsts, p->inst_capacity, inst);
    return &p->insts[p->ninsts - 1];
}

/* A unit of time: a loop over a row. */
static sf_inst unit_of(sf_arena *arena)
{
    sf_loop *loop = SF_NEW(arena, sf_loop);
    sf_view *views = SF_ARRAY(arena, 2, sf_view);
    sf_access *accesses = SF_ARRAY(arena, 2, sf_access);
    sf_loop_step *steps = SF_ARRAY(arena, 2, sf_loop_step);
    for (int i = 0; i < 2; i++) {
        views[i].dtype = accesses[i].dtype = steps[i].dtype = SF_F32;
        accesses[i].strides[0] = 1;
        steps[i].kind = i ? SF_STEP_STORE : SF_STEP_LOAD;
        steps[i].access = (uint32_t)i;
    }
    *loop = (sf_loop){.rank = 1,
                      .rows = 1,
                      .columns = 64,
                      .dims = {64},
                      .nsteps = 2,
                      .steps = steps,
                      .naccesses = 2,
                      .accesses = accesses};
    return (sf_inst){.kind = SF_INST_LOOP,
                     .raises = SF_NONE,
                     .nin = 1,
                     .nout = 1,
                     .in = &views[0],
                     .out = &views[1],
                     .loop = loop};
}

static sf_exchange *exchange_of(maker *m, int from, int to, const char *what)
{
    sf_exchange *exchange = SF_NEW(m->arena, sf_exchange);
    *exchange = (sf_exchange){
        .kind = SF_PERMUTE, .axes = AXIS, .size = 2, .from = from, .to = to, .what = what};
    return exchange;
}

static void add_send(maker *m, uint32_t group, uint32_t to, const char *what)
{
    add_inst(m, group,
             (sf_inst){.kind = SF_INST_COMM,
                       .stream = 1,
                       .raises = SF_NONE,
                       .exchange = exchange_of(m, -1, (int)to, what)});
}

/* Returns the event that it raises. */
static uint32_t add_receive(maker *m, uint32_t group, uint32_t from, const char *what)
{
    uint32_t event = m->programs[group]->nevents++;
    add_inst(m, group,
             (sf_inst){.kind = SF_INST_COMM,
                       .stream = 1,
                       .raises = event,
                       .exchange = exchange_of(m, (int)from, -1, what)});
    return event;
}

static void add_work(maker *m, uint32_t group, uint32_t units, uint32_t wait)
{
    for (uint32_t i = 0; i < units; i++) {
        sf_inst *inst = add_inst(m, group, unit_of(m->arena));
        if (i == 0 && wait != SF_NONE) {
            inst->waits = SF_ARRAY(m->arena, 1, uint32_t);
            inst->waits[0] = wait;
            inst->nwaits = 1;
        }
    }
}

/* Schedules as programs ------------------------------------------------------------------------ */

/* Units that the passes of a pipeline rank take in a micro-batch. */
typedef struct even {
    uint32_t f, b, w;
} even;

static uint32_t host_of(const sf_pipe *pipe, uint32_t stage, uint32_t microbatch)
{
    uint32_t group = 0;
    while (!(sf_pipe_hosts(pipe, stage, microbatch) >> group & 1))
        group++;
    return group;
}

static uint32_t task_index(const sf_pipe *pipe, sf_stage_task task)
{
    return (task.stage * SF_PASSES + task.pass) * pipe->nmicrobatches + task.microbatch;
}

/* The task that goes on from the result of another, in a chain of stages; whether another group has it. */
static bool sends_to(const sf_pipe *pipe, sf_stage_task task, sf_stage_task *to)
{
    *to = task;
    if (task.pass == SF_PASS_FORWARD && task.stage + 1 < pipe->nstages)
        to->stage++;
    else if (task.pass == SF_PASS_BACKWARD && task.stage > 0)
        to->stage--;
    return host_of(pipe, to->stage, task.microbatch) != host_of(pipe, task.stage, task.microbatch);
}

/* Receives come first, as lowering lets them begin early: those of a pair of groups in the order in which they are sent. */
static void add_receives(maker *m, const sf_schedule *s, uint32_t group, uint32_t *events)
{
    for (uint32_t from = 0; from < s->pipe.ngroups; from++)
        for (uint32_t i = 0; i < s->ntasks[from]; i++) {
            sf_stage_task to;
            if (sends_to(&s->pipe, s->tasks[from][i], &to) &&
                host_of(&s->pipe, to.stage, to.microbatch) == group)
                events[task_index(&s->pipe, to)] = add_receive(m, group, from, "rows");
        }
}

static void add_schedule(maker *m, const sf_schedule *s, even of, uint32_t chunks)
{
    const uint32_t units[SF_PASSES] = {of.f, of.b, of.w};
    for (uint32_t g = 0; g < s->pipe.ngroups; g++) {
        uint32_t *events =
            SF_ARRAY(m->arena, s->pipe.nstages * SF_PASSES * s->pipe.nmicrobatches, uint32_t);
        for (uint32_t i = 0; i < s->pipe.nstages * SF_PASSES * s->pipe.nmicrobatches; i++)
            events[i] = SF_NONE;
        add_receives(m, s, g, events);
        for (uint32_t i = 0; i < s->ntasks[g]; i++) {
            sf_stage_task task = s->tasks[g][i], to;
            add_work(m, g, units[task.pass] / chunks, events[task_index(&s->pipe, task)]);
            if (sends_to(&s->pipe, task, &to))
                add_send(m, g, host_of(&s->pipe, to.stage, to.microbatch), "rows");
        }
    }
}

static double simulate(maker *m, uint32_t groups, const ground *g)
{
    sf_simulation sims[MOST_GROUPS];
    double last = 0;
    const sf_costs *costs[MOST_GROUPS];
    sf_diag *diag = sf_diag_new();
    for (uint32_t i = 0; i < groups; i++)
        costs[i] = g->costs;
    if (sf_simulate_groups((int)groups, m->programs, costs, m->arena, diag, sims) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    for (uint32_t i = 0; i < groups; i++)
        last = fmax(last, sims[i].seconds);
    sf_diag_free(diag);
    return last;
}

static void test_bubbles(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t chunks, bubble; /* in units, for each group but one */
        even of;
    } cases[] = {
        {"gpipe", 1, 12, {4, 8, 0}},        {"1f1b", 1, 12, {4, 8, 0}},
        {"interleaved:2", 2, 6, {4, 8, 0}}, {"interleaved:4", 4, 3, {4, 8, 0}},
        {"zb-h1", 1, 4, {4, 4, 4}}, /* F + B - W */
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (uint32_t p = 2; p <= MOST_GROUPS; p *= 2)
            for (uint32_t microbatches = 2 * p; microbatches <= 4 * p; microbatches *= 2) {
                ground g;
                maker m;
                sf_schedule s;
                sf_schedule_kind kind;
                open_ground(&g, (int)p);
                assert_int_equal(sf_schedule_parse(cases[c].name, &kind, NULL), SF_OK);
                uint32_t nstages = sf_schedule_stages(kind, p);
                sf_pipe pipe = {.nstages = nstages,
                                .nmicrobatches = microbatches,
                                .ngroups = p,
                                .has_backward = sf_pipe_all_backward(nstages, &g.arena),
                                .nedges = nstages - 1,
                                .edges = sf_pipe_chain(nstages, &g.arena)};
                assert_int_equal(sf_schedule_make(kind, &pipe, NULL, &g.arena, &s, NULL), SF_OK);
                open_programs(&m, p, &g.arena);
                add_schedule(&m, &s, cases[c].of, cases[c].chunks);
                sf_inst one = unit_of(&g.arena);
                double unit = sf_inst_seconds(&one, NULL, g.costs);
                uint32_t work = microbatches * (cases[c].of.f + cases[c].of.b + cases[c].of.w);
                double bubble = simulate(&m, p, &g) / unit - work;
                double expected = (p - 1) * cases[c].bubble;
                if (fabs(bubble - expected) > 1e-6 * work)
                    fail_msg("%s, %u pipeline ranks, %u turns: a bubble of %g, not %g",
                             cases[c].name, p, microbatches, bubble, expected);
                close_ground(&g);
            }
}

/* Memory --------------------------------------------------------------------------------------- */

enum { ROWS = 64, WIDTH = 16 }; /* of a micro-batch */

/* Memory at the peak beside arguments, by pipeline rank, of four stages of equal layers. */
static void find_peaks(const char *schedule, int microbatches, int64_t out[4])
{
    sf_graph *graph = test_chain(8, ROWS * microbatches, WIDTH, false);
    sf_plan_spec options = {
        .size = sizeof options, .stages = "4", .schedule = schedule, .micro_batches = microbatches};
    sf_plan *plan;
    sf_group_runs runs;
    assert_int_equal(sf_pin_step(graph, &options, NULL, &plan), SF_OK);
    assert_int_equal(sf_group_runs_new(graph, plan, sf_engine_target(NULL), NULL, NULL, &runs),
                     SF_OK);
    assert_int_equal(runs.count, 4);
    for (int i = 0; i < 4; i++)
        out[i] = runs.at[i].sim.memory - runs.at[i].program->state_bytes;
    sf_group_runs_free(&runs);
    sf_plan_free(plan);
    sf_graph_free(graph);
}

/* All micro-batches are in flight under gpipe, and under 1f1b as many as there are pipeline ranks
 * from here on; gradients are accumulated. */
static void test_peaks(void **state)
{
    (void)state;
    int64_t few[4], many[4], tensor = ROWS * WIDTH * (int64_t)sizeof(float);
    find_peaks("gpipe", 8, few);
    find_peaks("gpipe", 16, many);
    for (int i = 0; i < 4; i++)
        if (many[i] - few[i] < 8 * tensor)
            fail_msg("gpipe, pipeline rank %d: 8 turns more take %d B", i, (int)(many[i] - few[i]));
    find_peaks("1f1b", 8, few);
    find_peaks("1f1b", 16, many);
    for (int i = 0; i < 4; i++)
        if (many[i] != few[i])
            fail_msg("1f1b, pipeline rank %d: 8 turns more take %d B", i, (int)(many[i] - few[i]));
    /* the first keeps no more than the batch, which it has in any case */
    for (int i = 1; i < 3; i++)
        assert_true(few[i] - few[i + 1] >= tensor);
}

/* Links ------------------------------------------------------------------------------------------ */

/* One pipeline rank sends to another at once, and then to a third repeatedly: the first message
 * does not wait for later ones, in whatever order the pipeline ranks are numbered. */
static void test_links_go_by_time(void **state)
{
    (void)state;
    enum { MESSAGES = 10, TAIL = 50, GROUPS = 3 };
    const uint32_t places[][GROUPS] = {{0, 1, 2}, {0, 2, 1}, {2, 1, 0}, {1, 0, 2}};
    int groups = GROUPS;
    ground g;
    maker m;
    open_ground(&g, groups);
    open_programs(&m, 1, &g.arena);
    add_work(&m, 0, 1, SF_NONE);
    double unit = simulate(&m, 1, &g);
    g.cluster->nodes[0].inside.latency = 2 * unit; /* the link is busy until the last has come */
    assert_int_equal(sf_costs_new(g.cluster, 1, &groups, 0, &g.arena, NULL, &g.costs), SF_OK);
    open_programs(&m, 2, &g.arena);
    add_send(&m, 0, 1, "table");
    add_work(&m, 1, TAIL, add_receive(&m, 1, 0, "table"));
    double alone = simulate(&m, 2, &g);
    for (size_t c = 0; c < sizeof places / sizeof *places; c++) {
        uint32_t from = places[c][0], many = places[c][1], once = places[c][2];
        open_programs(&m, GROUPS, &g.arena);
        add_send(&m, from, once, "table");
        add_work(&m, once, TAIL, add_receive(&m, once, from, "table"));
        for (int i = 0; i < MESSAGES; i++) {
            add_work(&m, from, 1, SF_NONE);
            add_send(&m, from, many, "rows");
            add_receive(&m, many, from, "rows");
        }
        double all = simulate(&m, GROUPS, &g);
        if (fabs(all - alone) > unit / 2)
            fail_msg("order %d: %g units, not %g", (int)c, all / unit, alone / unit);
    }
    close_ground(&g);
}

/* Waiting for ever ----------------------------------------------------------------------------- */

static void expect_stuck(maker *m, int count, const char *why)
{
    sf_simulation sims[MOST_GROUPS];
    sf_diag *diag = sf_diag_new();
    assert_int_equal(sf_simulate_groups(count, m->programs, NULL, m->arena, diag, sims),
                     SF_EMISMATCH);
    if (!strstr(sf_diag_text(diag, 0), why))
        fail_msg("\"%s\" lacks \"%s\"", sf_diag_text(diag, 0), why);
    sf_diag_free(diag);
}

/* A collective of the first two pipeline ranks, of one number. */
static void add_shared(maker *m, uint32_t group, sf_collective kind, const char *what,
                       int64_t count)
{
    sf_view *view = SF_NEW(m->arena, sf_view);
    sf_exchange *exchange = SF_NEW(m->arena, sf_exchange);
    *view = (sf_view){.dtype = SF_F32, .rank = 1, .dims = {count}, .strides = {1}};
    *exchange = (sf_exchange){.kind = kind, .axes = AXIS, .size = 2, .groups = 3, .what = what};
    add_inst(m, group,
             (sf_inst){.kind = SF_INST_COMM,
                       .stream = 1,
                       .raises = SF_NONE,
                       .nin = 1,
                       .nout = 1,
                       .in = view,
                       .out = view,
                       .exchange = exchange});
}

static void test_disagreements_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        int64_t count;
        sf_collective kind;
    } others[] = {{"scores", 8, SF_ALL_REDUCE},
                  {"tokens", 16, SF_ALL_REDUCE},
                  {"tokens", 8, SF_ALL_GATHER},
                  {"tokens", 8, SF_ALL_REDUCE}};
    sf_arena arena = {0};
    sf_simulation sims[MOST_GROUPS];
    maker m;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        open_programs(&m, 2, &arena);
        add_shared(&m, 0, SF_ALL_REDUCE, "tokens", 8);
        add_shared(&m, 1, others[i].kind, others[i].what, others[i].count);
        if (i + 1 < sizeof others / sizeof *others)
            expect_stuck(&m, 2, "come to different collectives: rank 0 to all_reduce of tokens");
        else /* the same */
            assert_int_equal(sf_simulate_groups(2, m.programs, NULL, m.arena, NULL, sims), SF_OK);
    }
    sf_arena_free(&arena);
}

static void test_waits_are_found(void **state)
{
    (void)state;
    sf_arena arena = {0};
    maker m;
    for (uint32_t count = 2; count <= 4; count++) { /* a ring: each receives before it sends */
        open_programs(&m, count, &arena);
        for (uint32_t g = 0; g < count; g++) {
            add_work(&m, g, 1, add_receive(&m, g, (g + count - 1) % count, "tanh of layer_1"));
            add_send(&m, g, (g + 1) % count, "tanh of layer_1");
        }
        expect_stuck(&m, (int)count, "sends, tanh of layer_1: they wait for each other");
    }
    open_programs(&m, 2, &arena);
    add_work(&m, 0, 1, add_receive(&m, 0, 1, "the loss"));
    add_work(&m, 1, 1, SF_NONE);
    expect_stuck(&m, 2, "pipeline rank 0 waits for ever for what pipeline rank 1 sends, the loss");
    open_programs(&m, 2, &arena);
    add_send(&m, 0, 1, "the loss");
    expect_stuck(&m, 2, "pipeline rank 0: a message of the loss has no other end");
    sf_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bubbles),
        cmocka_unit_test(test_peaks),
        cmocka_unit_test(test_links_go_by_time),
        cmocka_unit_test(test_waits_are_found),
        cmocka_unit_test(test_disagreements_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
