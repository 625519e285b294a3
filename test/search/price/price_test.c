/* Prices and estimates: both have the collectives that a rank runs, tensor by tensor and bucket by bucket; the memory
 * of a price is that of the program, an estimate is near; the two streams by hand. */
#include "search/price/estimate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "op/op.h"
#include "op/slots.h"
#include "plan/co_shard.h"
#include "plan/recipe/recipe.h"
#include "prog/check_program.h"
#include "run/engine/engine.h"
#include "run/runner.h"
#include "shard/strategy.h"
#include "sheaf/sheaf.h"
#include "sim/sim.h"
#include "support/plans.h"
#include "support/run.h"
#include "support/sanitized.h"

/* A step with all that prices need. */
typedef struct fixture {
    sf_graph *graph;
    sf_arena arena;
    sf_efforts *efforts;
    sf_cluster *cluster;
    const sf_target *target; /* for which programs are priced and lowered */
    sf_diag *diag;
} fixture;

static void open_fixture(fixture *f, sf_graph *graph, const char *cluster)
{
    *f = (fixture){.graph = graph, .diag = sf_diag_new()};
    if (sf_cluster_make(sf_str_of(cluster), f->diag, &f->cluster) != SF_OK)
        fail_msg("%s", sf_diag_text(f->diag, 0));
    f->target = sf_engine_target(NULL);
    f->efforts = sf_efforts_new(graph, f->target, &f->arena);
}

static void close_fixture(fixture *f)
{
    sf_cluster_free(f->cluster);
    sf_diag_free(f->diag);
    sf_arena_free(&f->arena);
    sf_graph_free(f->graph);
}

static sf_costs *costs_of(fixture *f, const sf_mesh *mesh)
{
    sf_costs *costs;
    if (sf_mesh_costs(f->cluster, mesh, &f->arena, f->diag, &costs) != SF_OK)
        fail_msg("%s", sf_diag_text(f->diag, 0));
    return costs;
}

static sf_price price(fixture *f, const sf_plan *plan, sf_see_reshard *see, void *context)
{
    sf_price out;
    if (sf_price_plan(f->graph, plan, f->target, costs_of(f, &plan->mesh), see, context, f->diag,
                      &out) != SF_OK)
        fail_msg("%s", sf_diag_text(f->diag, 0));
    return out;
}

static sf_price estimate(fixture *f, const sf_plan *plan, sf_see_reshard *see, void *context)
{
    sf_price out;
    if (sf_estimate_plan(f->efforts, plan, costs_of(f, &plan->mesh), see, context, f->diag, &out) !=
        SF_OK)
        fail_msg("%s", sf_diag_text(f->diag, 0));
    return out;
}

/* A tensor in a collective. */
typedef struct moved {
    int kind; /* opcode */
    sf_axes axes;
    sf_phase phase;
    double bytes;
} moved;

enum { MOST_MOVED = 1 << 15 };
typedef struct moved_list {
    int count;
    moved at[MOST_MOVED];
} moved_list;

static void add_moved(moved_list *list, moved m)
{
    assert_true(list->count < MOST_MOVED);
    list->at[list->count++] = m;
}

static int by_all(const void *left, const void *right)
{
    const moved *a = left, *b = right;
    if (a->kind != b->kind)
        return a->kind - b->kind;
    if (a->axes != b->axes)
        return a->axes < b->axes ? -1 : 1;
    if (a->phase != b->phase)
        return (int)a->phase - (int)b->phase;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static void see(void *context, const sf_simulated_reshard *reshard)
{
    static const sf_opcode codes[] = {
        [SF_RESHARD_GATHER] = SF_OP_ALL_GATHER,      [SF_RESHARD_REDUCE] = SF_OP_ALL_REDUCE,
        [SF_RESHARD_SCATTER] = SF_OP_REDUCE_SCATTER, [SF_RESHARD_EXCHANGE] = SF_OP_ALL_TO_ALL,
        [SF_RESHARD_SWAP] = SF_OP_PERMUTE,
    };
    add_moved(context,
              (moved){(int)codes[reshard->kind], reshard->axes, reshard->phase, reshard->bytes});
}

/* Returns the number of nodes. */
static int list_real(const sf_local *local, moved_list *list)
{
    const sf_node *node;
    int count = 0;
    for (; (node = test_collective(local, count)) != NULL; count++)
        for (uint32_t o = 0; o < node->noperands; o++) {
            double in = (double)sf_type_bytes(sf_type_of(local->graph, node->operands[o]));
            double out = (double)sf_type_bytes(sf_type_of(local->graph, node->result + o));
            add_moved(list,
                      (moved){node->def->id, (sf_axes)node->attrs[SF_COLLECTIVE_AXES]->integer,
                              node->phase, in > out ? in : out});
        }
    return count;
}

static void compare_moves(const sf_local *local, const sf_price *p, moved_list *priced,
                          const char *what)
{
    static moved_list real;
    real.count = 0;
    int nodes = list_real(local, &real);
    qsort(real.at, (size_t)real.count, sizeof *real.at, by_all);
    qsort(priced->at, (size_t)priced->count, sizeof *priced->at, by_all);
    if (real.count != priced->count || nodes != p->ncollectives)
        fail_msg("%s: %d tensors in %d collectives are priced, %d in %d run", what, priced->count,
                 p->ncollectives, real.count, nodes);
    for (int i = 0; i < real.count; i++)
        if (by_all(&real.at[i], &priced->at[i]) != 0)
            fail_msg("%s: collective %d: kind %d axes %u phase %d bytes %.0f is priced, "
                     "kind %d axes %u phase %d bytes %.0f runs",
                     what, i, priced->at[i].kind, priced->at[i].axes, (int)priced->at[i].phase,
                     priced->at[i].bytes, real.at[i].kind, real.at[i].axes, (int)real.at[i].phase,
                     real.at[i].bytes);
}

/* How far an estimate may be from the price, of that. Tiny steps are cut off at 64 bytes, and their collectives
 * all go together. */
typedef struct margin {
    double below, above;
} margin;
typedef struct margins {
    margin memory, seconds;
} margins;
static const margins tiny = {{0.2, 0.3}, {0.35, 0.35}};

static void check_near(double estimated, double priced, margin most, const char *of,
                       const char *what)
{
    double ratio = estimated / priced;
    if (getenv("SHEAF_SHOW_RATIOS"))
        print_message("%-32s %-8s %.3f\n", what, of, ratio);
    if (ratio < 1 - most.below || ratio > 1 + most.above)
        fail_msg("%s: %s is estimated at %g, and priced at %g", what, of, estimated, priced);
}

/* A price is what the program takes, and what its kernels work in. */
static void check_memory(fixture *f, const sf_local *local, const sf_price *p, const char *what)
{
    sf_lower_options options = {.target = f->target, .mesh = &local->plan->mesh};
    sf_program *program = sf_lower(local->graph, &options, NULL);
    sf_diag *diag = sf_diag_new();
    if (sf_program_check(program, diag) != SF_OK)
        fail_msg("%s: %s", what, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    int64_t scratch = sf_scratch_bytes(program, costs_of(f, &local->plan->mesh));
    int64_t real = sf_program_bytes(program) + scratch, sum = 0;
    for (int k = 0; k < SF_MEMORY_KIND_COUNT; k++)
        sum += p->by_kind[k];
    assert_int_equal(sum, p->memory);
    if (p->memory != real)
        fail_msg("%s: memory of %.0f bytes is priced, the program takes %.0f", what,
                 (double)p->memory, (double)real);
    sf_program_free(program);
}

/* Where it is known how many threads a rank has, what the engine reserves is known, too. */
static void test_scratch(void **state)
{
    (void)state;
    int64_t most = 0;
    for (int i = 0; test_steps[i]; i++) {
        fixture f;
        open_fixture(&f, test_step(test_steps[i]), "1x2xCPU-core");
        for (int threads = 1; threads <= 3; threads++) {
            test_refusal refusal;
            sf_engine *engine;
            sf_plan *plan = test_pin(f.graph, "dp", 2, NULL, NULL, &refusal);
            if (!plan)
                continue;
            f.cluster->kinds[0].threads = threads;
            sf_price p = price(&f, plan, NULL, NULL);
            sf_local *local = test_local(f.graph, plan, 0);
            sf_lower_options options = {.target = sf_engine_target(NULL), .mesh = &plan->mesh};
            sf_program *program = sf_lower(local->graph, &options, NULL);
            sf_engine_options with = {.threads = threads};
            assert_int_equal(sf_engine_open(program, &with, f.diag, &engine), SF_OK);
            assert_int_equal(p.memory, sf_engine_memory(engine));
            assert_int_equal(p.memory, sf_program_bytes(program) + p.by_kind[SF_MEMORY_SCRATCH]);
            if (p.by_kind[SF_MEMORY_SCRATCH] > most)
                most = p.by_kind[SF_MEMORY_SCRATCH];
            sf_engine_free(engine);
            sf_program_free(program);
            sf_local_free(local);
            sf_plan_free(plan);
        }
        close_fixture(&f);
    }
    assert_true(most > 0);
}

static void check_plan(fixture *f, const sf_plan *plan, const margins *most, const char *what)
{
    static moved_list seen;
    sf_local *local = test_local(f->graph, plan, 0);
    seen.count = 0;
    sf_price p = price(f, plan, see, &seen);
    compare_moves(local, &p, &seen, what);
    check_memory(f, local, &p, what);
    seen.count = 0;
    sf_price e = estimate(f, plan, see, &seen);
    compare_moves(local, &e, &seen, what);
    assert_true(e.traffic == p.traffic);
    if (most) {
        check_near((double)e.memory, (double)p.memory, most->memory, "memory", what);
        check_near(e.seconds, p.seconds, most->seconds, "time", what);
    }
    sf_local_free(local);
}

/* Every recipe that applies to the step. */
static int check_recipes(fixture *f, const char *step, int ranks, const margins *most)
{
    int count = 0;
    const sf_recipe *recipe;
    for (int i = 0; (recipe = sf_recipe_nth(i)) != NULL; i++) {
        test_refusal refusal;
        char what[200];
        sf_plan *plan = test_pin(f->graph, recipe->name, ranks, NULL, NULL, &refusal);
        if (!plan)
            continue;
        snprintf(what, sizeof what, "%s, %s, %d", step, recipe->name, ranks);
        check_plan(f, plan, most, what);
        sf_plan_free(plan);
        count++;
    }
    return count;
}

static int check_recipes_of(const char *folder, const char *step, int ranks, const margins *most)
{
    fixture f;
    open_fixture(&f, test_step_of(folder, step), "1x8xV100");
    int count = check_recipes(&f, step, ranks, most);
    close_fixture(&f);
    return count;
}

/* What a search finds without stages, whose ranks all run the same, and what it predicts: the price. */
static void check_searched(fixture *f, const char *step, const margins *most)
{
    char what[200];
    sf_plan *plan;
    sf_plan_spec spec = {.size = sizeof spec, .stages = "1"};
    sf_plan_options options = {.size = sizeof options, .cluster = f->cluster, .level = 2};
    if (sf_plan_search(f->graph, &spec, &options, f->diag, &plan) != SF_OK)
        fail_msg("%s: %s", step, sf_diag_text(f->diag, 0));
    snprintf(what, sizeof what, "%s, searched", step);
    check_plan(f, plan, most, what);
    f->target = sf_cluster_target(f->cluster);
    sf_price p = price(f, plan, NULL, NULL);
    assert_true(p.seconds == plan->predicted->seconds);
    assert_int_equal(p.memory, plan->predicted->memory);
    sf_plan_free(plan);
}

static void sum_reshards(void *context, const sf_simulated_reshard *reshard)
{
    double *sums = context;
    sums[0] += reshard->bytes;
    sums[1] += reshard->seconds;
    sums[2] += reshard->exposed;
}

/* What is told of each tensor adds up to the price, whatever loops the collectives are in. */
static void test_rows_add_up(void **state)
{
    (void)state;
    static const char *const steps[] = {"gpt-micro", "moe-micro"};
    static const char *const recipes[] = {"dp", "zero3", "megatron", "2d"};
    int told = 0;
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        fixture f;
        open_fixture(&f, test_step(steps[s]), "1x4xCPU");
        for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++)
            for (int way = 0; way < 4; way++) {
                sf_plan *plan = test_plan(f.graph, recipes[r], 4, NULL, NULL);
                sf_co_shard halves = {.by = "megatron", .in = "", .chunks = 2};
                double sums[3] = {0};
                if (way & 1)
                    sf_plan_co_shard(plan, 1, &halves);
                plan->micro_batches = way & 2 ? 2 : 1;
                sf_price p;
                sf_status status = sf_price_plan(f.graph, plan, f.target, costs_of(&f, &plan->mesh),
                                                 sum_reshards, sums, NULL, &p);
                told += status == SF_OK;
                if (status == SF_OK && (fabs(sums[0] - p.traffic) > 1e-6 * p.traffic ||
                                        fabs(sums[1] - p.exposed - p.hidden) > 1e-6 * sums[1] ||
                                        fabs(sums[2] - p.exposed) > 1e-6 * sums[1]))
                    fail_msg("%s, %s, way %d: rows have %g B, %g s, %g s exposed; the price %g, "
                             "%g, %g",
                             steps[s], recipes[r], way, sums[0], sums[1], sums[2], p.traffic,
                             p.exposed + p.hidden, p.exposed);
                sf_plan_free(plan);
            }
        close_fixture(&f);
    }
    assert_true(told > 20);
}

static void test_searched(void **state)
{
    (void)state;
    for (int i = 0; test_steps[i]; i++) {
        fixture f;
        if (!test_takes(i))
            continue;
        open_fixture(&f, test_step(test_steps[i]), i % 2 ? "1x4xV100" : "2x2xH100");
        check_searched(&f, test_steps[i], &tiny);
        close_fixture(&f);
    }
}

static void test_recipes(void **state)
{
    (void)state;
    int count = 0;
    for (int i = 0; test_steps[i]; i++)
        for (int ranks = 2; ranks <= 4 && test_takes(i); ranks *= 2)
            count += check_recipes_of("micro", test_steps[i], ranks, &tiny);
    assert_true(count > (test_short() ? 30 : 100));
}

/* Steps of a size for which memory matters. */
static void test_large_steps(void **state)
{
    (void)state;
    static const margins large = {{0.05, 0.25}, {0.1, 0.25}};
    static const char *const steps[] = {"gpt-batch", "gpt-wide", "gpt-long"};
    int count = 0;
    for (int i = 0; i < 3; i++)
        for (int ranks = 2; ranks <= 8; ranks *= 2)
            if (!test_short() || ranks == 2 << i)
                count += check_recipes_of("plan", steps[i], ranks, &large);
    assert_true(count > (test_short() ? 5 : 15));
}

/* Plans that nobody would choose */

static uint64_t random_state;

static uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static void draw_node(sf_plan *plan, const sf_graph *graph, const sf_node *node, sf_arena *arena)
{
    uint32_t count = node->noperands + node->nresults;
    const sf_type **types = SF_ARRAY(arena, count, const sf_type *);
    sf_op op = sf_op_of(graph, node, types);
    sf_factoring f;
    sf_op_factors(&op, arena, &f);
    for (int axis = 0; axis < plan->mesh.naxes && !sf_is_transparent(node); axis++) {
        sf_layout *layouts = plan->nodes[node->id];
        sf_strategy *ways;
        if (plan->mesh.axes[axis].size == 1)
            continue;
        int nways = sf_strategies(&op, &f, plan->mesh.axes[axis].size, arena, &ways);
        const sf_strategy *way = &ways[draw() % (uint64_t)nways];
        bool fits = true;
        for (uint32_t t = 0; t < count; t++) {
            layouts[t].axes[axis] = sf_strategy_share(&op, &f, way, (int)t);
            fits = fits &&
                   sf_layout_fits(&layouts[t], &plan->mesh, types[t]->rank, types[t]->dims, NULL);
        }
        for (uint32_t t = 0; t < count && !fits; t++)
            layouts[t].axes[axis] = (sf_share){0};
    }
}

static sf_plan *draw_plan(const sf_graph *graph, const sf_mesh *mesh)
{
    sf_plan *plan = sf_plan_new(graph, mesh);
    sf_arena arena = {0};
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        draw_node(plan, graph, graph->nodes[graph->top->nodes[i]], &arena);
    sf_arena_free(&arena);
    return plan;
}

/* Along an axis of one rank all layouts are the same. */
static void draw_arguments(sf_plan *plan, const sf_graph *graph)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_type *type = sf_argument_type(graph, i);
        for (int axis = 0; axis < plan->mesh.naxes && type->rank > 0; axis++)
            if (plan->mesh.axes[axis].size == 1)
                plan->arguments[i].axes[axis] =
                    (sf_share){.kind = SF_SPLIT, .dim = 0, .period = type->dims[0]};
        if (graph->arguments[i].next != SF_NONE)
            plan->results[graph->arguments[i].next] = plan->arguments[i];
    }
}

/* Moves of every kind, of what is stored and of what is not. */
static void test_any_plan(void **state)
{
    (void)state;
    static const sf_mesh meshes[] = {{.naxes = 1, .axes = {{"x", 2}}},
                                     {.naxes = 2, .axes = {{"x", 2}, {"y", 2}}},
                                     {.naxes = 2, .axes = {{"x", 4}, {"y", 1}}}};
    for (int i = 0; test_steps[i]; i++) {
        fixture f;
        if (!test_takes(i))
            continue;
        open_fixture(&f, test_step(test_steps[i]), "1x8xV100");
        for (int m = 0; m < 3; m++) {
            random_state = 77 + (uint64_t)i;
            sf_plan *plan = draw_plan(f.graph, &meshes[m]);
            draw_arguments(plan, f.graph);
            f.target = m % 2 ? sf_engine_target(NULL) : sf_cluster_target(f.cluster);
            check_plan(&f, plan, NULL, test_steps[i]);
            sf_plan_free(plan);
        }
        close_fixture(&f);
    }
}

/* Two streams, by hand */

enum { N = 2048, TOO_LARGE = 16 << 20 }; /* bytes of N x N, more than a bucket takes */

static const sf_mesh pair = {.naxes = 1, .axes = {{"x", 2}}};

/* Of a dimension of size N, or of another. */
static void split(sf_layout *layout, int dim, int64_t size)
{
    layout->axes[0] = (sf_share){.kind = SF_SPLIT, .dim = dim, .period = size};
}

/* Contracts a split dimension: the result is a partial sum. */
static void contract(sf_plan *plan, const sf_graph *graph, const sf_node *dot, int64_t size)
{
    sf_layout *layouts = plan->nodes[dot->id];
    split(&layouts[0], 1, size);
    split(&layouts[1], 0, size);
    layouts[2].axes[0] = (sf_share){.kind = SF_PARTIAL, .monoid = SF_MONOID_ADD};
    for (int o = 0; o < 2; o++)
        if (!sf_maker(graph, dot->operands[o]))
            plan->arguments[graph->values[dot->operands[o]].index] = layouts[o];
}

/* A product of m x k and k x n in float32, and the time of an element-wise op on so many tensors of m x n. */
static double product_seconds(const sf_costs *costs, double m, double k, double n)
{
    return sf_costs_op(costs, &(sf_effort){.product = true,
                                           .math = SF_MATH_TF32,
                                           .flops = 2 * m * k * n,
                                           .bytes = 4 * (m * k + k * n + m * n)});
}

static double loop_seconds(const sf_costs *costs, double m, double n, int tensors)
{
    return sf_costs_op(costs, &(sf_effort){.flops = m * n, .bytes = 4 * m * n * tensors});
}

static void assert_near(double value, double expected)
{
    if (!(value >= expected * 0.999999 - 1e-12 && value <= expected * 1.000001 + 1e-12))
        fail_msg("%.9g, expected %.9g", value, expected);
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The sum p goes on while q is made. */
static const char beside[] =
    "func.func @main(%a: tensor<2048x2048xf32>, %b: tensor<2048x2048xf32>,\n"
    "    %c: tensor<2048x2048xf32>) -> (tensor<2048x2048xf32>, tensor<2048x2048xf32>) {\n"
    "  %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]\n"
    "      : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>\n"
    "  %q = stablehlo.dot_general %c, %c, contracting_dims = [1] x [0]\n"
    "      : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>\n"
    "  %r = stablehlo.add %p, %q : tensor<2048x2048xf32>\n"
    "  return %r, %q : tensor<2048x2048xf32>, tensor<2048x2048xf32>\n"
    "}\n";

/* `drag`: what q loses for a second of the sum. */
static bool reduce_beside(const char *cluster, double drag)
{
    fixture f;
    open_fixture(&f, test_step_text(beside), cluster);
    f.cluster->kinds[0].drag = drag;
    const sf_node *p = test_node(f.graph, SF_OP_DOT_GENERAL, 0),
                  *r = test_node(f.graph, SF_OP_ADD, 0);
    sf_plan *plan = sf_plan_new(f.graph, &pair);
    sf_costs *costs = costs_of(&f, &pair);
    contract(plan, f.graph, p, N);
    sf_price got = price(&f, plan, NULL, NULL);
    double tp = product_seconds(costs, N, N / 2, N), tq = product_seconds(costs, N, N, N),
           tr = loop_seconds(costs, N, N, 3),
           sum = sf_costs_collective(costs, SF_ALL_REDUCE, 1, 4.0 * N * N);
    assert_near(got.compute, tp + tq + tr);
    double waits = larger(0, sum - tq), hidden = sum - waits;
    assert_near(got.seconds, tp + larger(tq, sum) + tr + drag * hidden);
    assert_near(got.exposed, waits + drag * hidden);
    assert_near(got.hidden, (1 - drag) * hidden);
    assert_near(got.traffic, 4.0 * N * N);
    assert_int_equal(got.ncollectives, 1);
    /* Halves of a and b, c, then p in place of its partial sum, q and r. */
    assert_int_equal(got.memory, (int64_t)4 * N * N * 5);
    assert_int_equal(got.peak.node, r->id);
    sf_plan_free(plan);
    close_fixture(&f);
    return sum > tq;
}

/* Hidden between devices of a node, exposed between nodes. */
static void test_beside(void **state)
{
    (void)state;
    assert_false(reduce_beside("1x2xV100", 0));
    assert_true(reduce_beside("2x1xV100@10G", 0));
    assert_false(reduce_beside("1x2xV100", 0.25));
    assert_true(reduce_beside("2x1xV100@10G", 1));
}

/* A gather starts when it is wanted, and nothing can go on beside it. */
static void test_gather(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f, test_step_text(beside), "2x1xV100@10G");
    sf_plan *plan = sf_plan_new(f.graph, &pair);
    sf_costs *costs = costs_of(&f, &pair);
    split(&plan->arguments[2], 0, N);
    sf_price got = price(&f, plan, NULL, NULL);
    double gather = sf_costs_collective(costs, SF_ALL_GATHER, 1, 4.0 * N * N);
    assert_near(got.exposed, gather);
    assert_near(got.hidden, 0);
    assert_near(got.seconds, got.compute + gather);
    sf_plan_free(plan);
    close_fixture(&f);
}

/* Two sums, and one who wants both. */
static const char sums[] =
    "func.func @main(%%a: tensor<%dx4xf32>, %%b: tensor<4x%dxf32>, %%c: tensor<4x%dxf32>)\n"
    "    -> tensor<%dx%dxf32> {\n"
    "  %%p = stablehlo.dot_general %%a, %%b, contracting_dims = [1] x [0]\n"
    "      : (tensor<%dx4xf32>, tensor<4x%dxf32>) -> tensor<%dx%dxf32>\n"
    "  %%q = stablehlo.dot_general %%a, %%c, contracting_dims = [1] x [0]\n"
    "      : (tensor<%dx4xf32>, tensor<4x%dxf32>) -> tensor<%dx%dxf32>\n"
    "  %%r = stablehlo.multiply %%p, %%q : tensor<%dx%dxf32>\n"
    "  return %%r : tensor<%dx%dxf32>\n"
    "}\n";

static sf_price price_sums(fixture *f, int n, double *tp, double *tq, double *tr, sf_costs **costs)
{
    char text[2000];
    snprintf(text, sizeof text, sums, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n);
    open_fixture(f, test_step_text(text), "2x1xV100@10G");
    const sf_node *p = test_node(f->graph, SF_OP_DOT_GENERAL, 0),
                  *q = test_node(f->graph, SF_OP_DOT_GENERAL, 1);
    sf_plan *plan = sf_plan_new(f->graph, &pair);
    *costs = costs_of(f, &pair);
    contract(plan, f->graph, p, 4);
    contract(plan, f->graph, q, 4);
    sf_price got = price(f, plan, NULL, NULL);
    *tp = *tq = product_seconds(*costs, n, 2, n);
    *tr = loop_seconds(*costs, n, n, 3);
    sf_plan_free(plan);
    return got;
}

/* Large ones go one after the other, small ones together, when the last is there. */
static void test_queue_and_bucket(void **state)
{
    (void)state;
    fixture f;
    sf_costs *costs;
    double tp, tq, tr;
    sf_price got = price_sums(&f, N, &tp, &tq, &tr, &costs);
    double sum = sf_costs_collective(costs, SF_ALL_REDUCE, 1, TOO_LARGE);
    assert_true(sum > tq);
    assert_int_equal(got.ncollectives, 2);
    assert_near(got.seconds, tp + 2 * sum + tr);
    close_fixture(&f);
    got = price_sums(&f, 64, &tp, &tq, &tr, &costs);
    sum = sf_costs_collective(costs, SF_ALL_REDUCE, 1, 2.0 * 4 * 64 * 64);
    assert_int_equal(got.ncollectives, 1);
    assert_near(got.seconds, tp + tq + sum + tr);
    close_fixture(&f);
}

/* What could be less: parts of the memory are bounds of the whole, and take away what they say. */

/* Returns whether it helps to compute activations again. */
static bool check_relief(fixture *f, const sf_plan *plan)
{
    sf_price p = price(f, plan, NULL, NULL);
    sf_relief relief;
    assert_int_equal(sf_find_relief(f->graph, plan, f->target, NULL, &relief), SF_OK);
    int64_t batch = p.by_kind[SF_MEMORY_ACTIVATION] + p.by_kind[SF_MEMORY_BATCH];
    p.memory -= p.by_kind[SF_MEMORY_GAPS];
    assert_true(relief.batch >= batch && relief.batch <= p.memory);
    assert_true(relief.state >= p.memory - batch && relief.state <= p.memory);
    assert_true(relief.state + relief.batch >= p.memory);
    /* What a step begins with cannot be computed again. */
    assert_true(relief.recomputed <= p.memory + p.by_kind[SF_MEMORY_GAPS]);
    assert_true(relief.recomputed >= p.by_kind[SF_MEMORY_PARAM] + p.by_kind[SF_MEMORY_STATE]);
    return relief.recomputed < p.memory;
}

static void test_relief(void **state)
{
    (void)state;
    int checked = 0, helped = 0;
    for (int i = 0; test_steps[i]; i++) {
        fixture f;
        if (!test_takes(i))
            continue;
        open_fixture(&f, test_step(test_steps[i]), "1x4xV100");
        for (int r = 0; sf_recipe_name(r); r++) {
            test_refusal refusal;
            sf_plan *plan = test_pin(f.graph, sf_recipe_name(r), 4, NULL, NULL, &refusal);
            if (!plan)
                continue;
            helped += check_relief(&f, plan);
            sf_plan_free(plan);
            checked++;
        }
        close_fixture(&f);
    }
    assert_true(checked > 10 && helped > (test_short() ? 3 : 10));
}

static char **files; /* NULL at the end */

static void test_files(void **state)
{
    (void)state;
    for (int i = 0; files[i]; i++) {
        sf_diag *diag = sf_diag_new();
        sf_graph *graph;
        fixture f;
        if (sf_load(files[i], NULL, diag, &graph) != SF_OK)
            fail_msg("%s", sf_diag_text(diag, 0));
        open_fixture(&f, graph, "1x4xV100");
        for (int ranks = 2; ranks <= 4; ranks *= 2)
            assert_true(check_recipes(&f, files[i], ranks, &tiny) > 0);
        check_searched(&f, files[i], &tiny);
        close_fixture(&f);
        sf_diag_free(diag);
    }
}

/* With names of files, those steps alone. */
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recipes),     cmocka_unit_test(test_scratch),
        cmocka_unit_test(test_large_steps), cmocka_unit_test(test_searched),
        cmocka_unit_test(test_any_plan),    cmocka_unit_test(test_beside),
        cmocka_unit_test(test_gather),      cmocka_unit_test(test_queue_and_bucket),
        cmocka_unit_test(test_relief),      cmocka_unit_test(test_rows_add_up),
    };
    const struct CMUnitTest of_files[] = {cmocka_unit_test(test_files)};
    files = test_argv;
    return *files ? cmocka_run_group_tests(of_files, NULL, NULL)
                  : cmocka_run_group_tests(tests, NULL, NULL);
}
