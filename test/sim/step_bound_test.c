/* The bound of a step is above no plan: every layout of small graphs, lowered and simulated on 2 and 4 devices, and recipes and any
 * layouts of the micro steps. */
#include "sim/step_bound.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cluster/cluster.h"
#include "plan/recipe/recipe.h"
#include "run/runner.h"
#include "search/price/price.h"
#include "shard/strategy.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"
#include "support/sanitized.h"

/* A gradient that goes back through a rectifier: its sum is the gradient of a bias, and another product reads it. Loops follow the
 * product that makes it, or stand alone, by how the step is sharded. */
static const char rectified[] =
    "func.func @main(%x: tensor<4096x4096xf32>, %w: tensor<4096x4096xf32>, %b: tensor<4096xf32>,"
    " %y: tensor<4096x4096xf32>) -> (tensor<4096xf32>, tensor<4096x4096xf32>) {\n"
    "  %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<4096x4096xf32>\n"
    "  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :"
    " (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>\n"
    "  %1 = stablehlo.compare GT, %y, %z : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) ->"
    " tensor<4096x4096xi1>\n"
    "  %2 = stablehlo.select %1, %0, %z : tensor<4096x4096xi1>, tensor<4096x4096xf32>\n"
    "  %3 = stablehlo.reduce(%2 init: %c) applies stablehlo.add across dimensions = [0] :"
    " (tensor<4096x4096xf32>, tensor<f32>) -> tensor<4096xf32>\n"
    "  %4 = stablehlo.add %b, %3 : tensor<4096xf32>\n"
    "  %5 = stablehlo.dot_general %x, %2, contracting_dims = [0] x [0] :"
    " (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>\n"
    "  %6 = stablehlo.subtract %w, %5 : tensor<4096x4096xf32>\n"
    "  return %4, %6 : tensor<4096xf32>, tensor<4096x4096xf32>\n"
    "}\n";

/* The same behind a convolution, whose images are cut as well. */
static const char images[] =
    "func.func @main(%x: tensor<64x32x32x128xf32>, %w: tensor<3x3x128x128xf32>, %b: "
    "tensor<128xf32>, %y: tensor<64x32x32x128xf32>, %d: tensor<64x32x32x128xf32>) -> "
    "(tensor<128xf32>, tensor<3x3x128x128xf32>) {\n"
    "  %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<64x32x32x128xf32>\n"
    "  %r = stablehlo.constant dense<0.1> : tensor<128xf32>\n"
    "  %0 = stablehlo.convolution(%d, %w) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f],"
    " window = {stride = [1, 1], pad = [[1, 1], [1, 1]]}"
    " {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<64x32x32x128xf32>, "
    "tensor<3x3x128x128xf32>) -> tensor<64x32x32x128xf32>\n"
    "  %1 = stablehlo.compare GT, %y, %z : (tensor<64x32x32x128xf32>, tensor<64x32x32x128xf32>) -> "
    "tensor<64x32x32x128xi1>\n"
    "  %2 = stablehlo.select %1, %0, %z : tensor<64x32x32x128xi1>, tensor<64x32x32x128xf32>\n"
    "  %3 = stablehlo.reduce(%2 init: %c) applies stablehlo.add across dimensions = [0, 1, 2] :"
    " (tensor<64x32x32x128xf32>, tensor<f32>) -> tensor<128xf32>\n"
    "  %4 = stablehlo.multiply %3, %r : tensor<128xf32>\n"
    "  %5 = stablehlo.add %b, %4 : tensor<128xf32>\n"
    "  %6 = stablehlo.convolution(%x, %2) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f],"
    " window = {stride = [1, 1], pad = [[1, 1], [1, 1]]}"
    " {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<64x32x32x128xf32>, "
    "tensor<64x32x32x128xf32>) -> tensor<3x3x128x128xf32>\n"
    "  %7 = stablehlo.subtract %w, %6 : tensor<3x3x128x128xf32>\n"
    "  return %5, %7 : tensor<128xf32>, tensor<3x3x128x128xf32>\n"
    "}\n";

/* A softmax between two products. */
static const char weighted[] =
    "func.func @main(%q: tensor<64x1024x128xf32>, %k: tensor<64x1024x128xf32>, %v: "
    "tensor<64x1024x128xf32>)"
    " -> tensor<64x1024x128xf32> {\n"
    "  %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %0 = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] :"
    " (tensor<64x1024x128xf32>, tensor<64x1024x128xf32>) -> tensor<64x1024x1024xf32>\n"
    "  %1 = stablehlo.exponential %0 : tensor<64x1024x1024xf32>\n"
    "  %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [2] :"
    " (tensor<64x1024x1024xf32>, tensor<f32>) -> tensor<64x1024xf32>\n"
    "  %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<64x1024xf32>) ->"
    " tensor<64x1024x1024xf32>\n"
    "  %4 = stablehlo.divide %1, %3 : tensor<64x1024x1024xf32>\n"
    "  %5 = stablehlo.dot_general %4, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] :"
    " (tensor<64x1024x1024xf32>, tensor<64x1024x128xf32>) -> tensor<64x1024x128xf32>\n"
    "  return %5 : tensor<64x1024x128xf32>\n"
    "}\n";

/* No product: memory is all that counts. */
static const char updated[] =
    "func.func @main(%p: tensor<8192x8192xf32>, %m: tensor<8192x8192xf32>,"
    " %g: tensor<8192x8192xf32>) -> (tensor<8192x8192xf32>, tensor<8192x8192xf32>) {\n"
    "  %0 = stablehlo.add %m, %g : tensor<8192x8192xf32>\n"
    "  %1 = stablehlo.subtract %p, %0 : tensor<8192x8192xf32>\n"
    "  return %1, %0 : tensor<8192x8192xf32>, tensor<8192x8192xf32>\n"
    "}\n";

static const char *const clusters[] = {"4xV100", "4xH100", "4xCPU", "2xH100+2xV100"};

/* A cluster with a bound for the step on all of it. */
typedef struct bounded {
    const sf_graph *graph;
    const char *name;
    sf_cluster *cluster;
    const sf_target *target;
    sf_step_bound bound;
    double nearest; /* the least share of a step above the bound */
    sf_arena arena;
} bounded;

/* Links and launches take no time, and next to none passes in loops: what is left is what the bound counts. */
static void sharpen(sf_cluster *cluster)
{
    for (int k = 0; k < cluster->nkinds; k++) {
        sf_device_kind *kind = &cluster->kinds[k];
        kind->launch = 1e-15;
        kind->ramp = 0;
        kind->bandwidth = kind->vector_flops = 1e18;
    }
    for (int r = 0; r < cluster->nruns; r++)
        cluster->nodes[r].inside = cluster->nodes[r].network = (sf_link){1e-15, 1e18, 0, 0};
}

static void open_bounded(bounded *b, const sf_graph *graph, const char *name, int devices,
                         bool is_sharp)
{
    sf_costs *costs;
    *b = (bounded){.graph = graph, .name = name, .nearest = 1};
    assert_int_equal(sf_cluster_make(sf_str_of(name), NULL, &b->cluster), SF_OK);
    if (is_sharp)
        sharpen(b->cluster);
    b->target = sf_cluster_target(b->cluster);
    sf_mesh all = {.naxes = 1, .axes = {{"all", devices}}};
    assert_int_equal(sf_mesh_costs(b->cluster, &all, &b->arena, NULL, &costs), SF_OK);
    b->bound = sf_step_bound_of(graph, b->target, costs);
    assert_true(b->bound.seconds > 0 && b->bound.seconds <= b->bound.unstaged);
}

static void close_bounded(bounded *b)
{
    sf_cluster_free(b->cluster);
    sf_arena_free(&b->arena);
}

/* Of a plan on as many devices as the bound is of; false: it cannot be. */
static bool check_plan(bounded *b, const sf_plan *plan, const char *what)
{
    sf_arena arena = {0};
    sf_costs *costs;
    sf_price price;
    assert_int_equal(sf_mesh_costs(b->cluster, &plan->mesh, &arena, NULL, &costs), SF_OK);
    sf_status status = sf_price_plan(b->graph, plan, b->target, costs, NULL, NULL, NULL, &price);
    if (status == SF_OK && !(b->bound.unstaged <= price.seconds * (1 + 1e-9)))
        fail_msg("%s on %s: the bound is %g s, and a plan takes %g s", what, b->name,
                 b->bound.unstaged, price.seconds);
    double gap = status == SF_OK ? 1 - b->bound.unstaged / price.seconds : 1;
    b->nearest = gap < b->nearest ? gap : b->nearest;
    sf_arena_free(&arena);
    return status == SF_OK;
}

/* Layouts ------------------------------------------------------------------------------------------ */

/* The ways of a node along one axis. */
typedef struct ways {
    const sf_node *node;
    sf_op op;
    sf_factoring factoring;
    int count;
    sf_strategy *at;
} ways;

static ways ways_of(const sf_graph *graph, const sf_node *node, int parts, sf_arena *arena)
{
    uint32_t count = node->noperands + node->nresults;
    ways w = {.node = node, .count = 1};
    const sf_type **types = SF_ARRAY(arena, count, const sf_type *);
    w.op = sf_op_of(graph, node, types);
    if (sf_is_transparent(node))
        return w;
    sf_op_factors(&w.op, arena, &w.factoring);
    w.count = sf_strategies(&w.op, &w.factoring, parts, arena, &w.at);
    return w;
}

/* False where the shares do not fit beside those of other axes. */
static bool put_way(sf_plan *plan, const ways *w, int axis, int number)
{
    sf_layout *layouts = plan->nodes[w->node->id];
    uint32_t count = w->node->noperands + w->node->nresults;
    for (uint32_t t = 0; w->at && t < count; t++) {
        const sf_type *type =
            t < w->node->noperands ? w->op.in[t] : w->op.out[t - w->node->noperands];
        layouts[t].axes[axis] = sf_strategy_share(&w->op, &w->factoring, &w->at[number], (int)t);
        if (!sf_layout_fits(&layouts[t], &plan->mesh, type->rank, type->dims, NULL))
            return false;
    }
    return true;
}

static uint64_t product_of(const ways *w, uint32_t nnodes, int axis, int naxes)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < nnodes; i++)
        count *= (uint64_t)w[i * (uint32_t)naxes + (uint32_t)axis].count;
    return count;
}

/* Which `number` of all layouts, by the mixed radix of the ways; false: they do not fit. */
static bool put_layouts(sf_plan *plan, const ways *w, uint32_t nnodes, int naxes, uint64_t number)
{
    bool fits = true;
    for (int axis = 0; axis < naxes; axis++)
        for (uint32_t i = 0; i < nnodes && fits; i++) {
            const ways *at = &w[i * (uint32_t)naxes + (uint32_t)axis];
            fits = put_way(plan, at, axis, (int)(number % (uint64_t)at->count));
            number /= (uint64_t)at->count;
        }
    return fits;
}

static sf_layout *layout_of(sf_plan *plan, const sf_node *node, uint32_t tensor)
{
    return &plan->nodes[node->id][tensor];
}

/* Arguments are as the first node that reads them wants them, and results as they are made. */
static void put_ends(sf_plan *plan, const sf_graph *graph)
{
    const sf_block *top = graph->top;
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(graph, i);
        for (uint32_t o = 0; o < node->noperands; o++)
            if (node->operands[o] < top->narguments)
                plan->arguments[node->operands[o]] = *layout_of(plan, node, o);
    }
    for (uint32_t r = 0; r < top->nresults; r++) {
        const sf_node *maker = sf_maker(graph, top->results[r]);
        if (maker)
            plan->results[r] =
                *layout_of(plan, maker, maker->noperands + top->results[r] - maker->result);
    }
}

/* All layouts, or, where there are more than `most`, so many that are spread over all of them. */
static void check_layouts(bounded *b, const sf_mesh *mesh, uint64_t most, const char *what)
{
    sf_arena arena = {0};
    uint32_t nnodes = b->graph->top->nnodes;
    int naxes = mesh->naxes;
    ways *w = SF_ARRAY(&arena, nnodes * (uint32_t)naxes, ways);
    uint64_t all = 1, checked = 0;
    for (int axis = 0; axis < naxes; axis++) {
        for (uint32_t i = 0; i < nnodes; i++)
            w[i * (uint32_t)naxes + (uint32_t)axis] =
                ways_of(b->graph, sf_top_node(b->graph, i), mesh->axes[axis].size, &arena);
        all *= product_of(w, nnodes, axis, naxes);
    }
    uint64_t step = all <= most ? 1 : (all / most) | 1;
    for (uint64_t number = 0; number < all; number += step) {
        sf_plan *plan = sf_plan_new(b->graph, mesh);
        if (put_layouts(plan, w, nnodes, naxes, number))
            put_ends(plan, b->graph), checked += check_plan(b, plan, what);
        sf_plan_free(plan);
    }
    assert_true(checked > 10);
    sf_arena_free(&arena);
}

static void check_searched(bounded *b, const char *what)
{
    sf_plan *plan;
    sf_diag *diag = sf_diag_new();
    sf_plan_options options = {.size = sizeof options, .cluster = b->cluster, .level = 2};
    if (sf_plan_search(b->graph, NULL, &options, diag, &plan) != SF_OK)
        fail_msg("%s: %s", what, sf_diag_text(diag, 0));
    assert_true(check_plan(b, plan, what));
    sf_plan_free(plan);
    sf_diag_free(diag);
}

static void test_layouts(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        double near; /* some plan is so near to the bound */
    } steps[] = {{"rectified", rectified, 0.6},
                 {"images", images, 0.75},
                 {"weighted", weighted, 0.6},
                 {"updated", updated, 0.05}};
    static const sf_mesh meshes[] = {{.naxes = 1, .axes = {{"x", 2}}},
                                     {.naxes = 1, .axes = {{"x", 4}}},
                                     {.naxes = 2, .axes = {{"x", 2}, {"y", 2}}}};
    uint64_t most = test_short() ? 1000 : 50000;
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        sf_graph *graph = test_step_text(steps[s].text);
        for (size_t c = 0; c < sizeof clusters / sizeof *clusters; c++) {
            double nearest = 1;
            for (size_t m = 0; m < sizeof meshes / sizeof *meshes; m++) {
                bounded b;
                open_bounded(&b, graph, clusters[c], sf_mesh_size(&meshes[m]), false);
                check_layouts(&b, &meshes[m], most, steps[s].name);
                if (m == 2)
                    check_searched(&b, steps[s].name);
                nearest = b.nearest < nearest ? b.nearest : nearest;
                close_bounded(&b);
            }
            if (nearest > steps[s].near)
                fail_msg("%s on %s: no plan is nearer to the bound than %.1f %%", steps[s].name,
                         clusters[c], 100 * nearest);
        }
        sf_graph_free(graph);
    }
}

static void check_recipes(size_t first, size_t end, bool is_sharp)
{
    for (int i = 0; test_steps[i]; i++) {
        if (!test_takes(i))
            continue;
        sf_graph *graph = test_step(test_steps[i]);
        for (size_t c = first; c < end; c++) {
            bounded b;
            open_bounded(&b, graph, clusters[c], 4, is_sharp);
            for (int r = 0; sf_recipe_name(r); r++) {
                test_refusal refusal;
                sf_plan *plan = test_pin(graph, sf_recipe_name(r), 4, NULL, NULL, &refusal);
                if (plan)
                    check_plan(&b, plan, test_steps[i]);
                sf_plan_free(plan);
            }
            close_bounded(&b);
        }
        sf_graph_free(graph);
    }
}

static void test_recipes(void **state)
{
    (void)state;
    check_recipes(0, sizeof clusters / sizeof *clusters, false);
}

static void test_recipes_without_links(void **state)
{
    (void)state;
    check_recipes(1, 3, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts),
                                       cmocka_unit_test(test_recipes),
                                       cmocka_unit_test(test_recipes_without_links)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
