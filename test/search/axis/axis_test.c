/* What sf_axis_solve finds is the best there is, on graphs small enough to try everything; on training
 * steps, the plans that it makes keep to the rules and compute the step, on one axis and on two. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/value_files.h"
#include "base/mem.h"
#include "local/check_local.h"
#include "op/eval.h"
#include "op/op.h"
#include "run/runner.h"
#include "search/axis/axis.h"
#include "search/price/estimate.h"
#include "search/price/move_cost.h"
#include "sheaf/cluster.h"
#include "sheaf/sheaf.h"
#include "support/judge.h"
#include "support/plans.h"
#include "support/ranks.h"
#include "support/sanitized.h"

/* A step on a cluster, with all that a search needs. */
typedef struct setting {
    sf_graph *graph;
    sf_cluster *cluster;
    sf_mesh mesh;
    sf_arena arena;
    sf_costs *costs;
    sf_efforts *efforts;
    sf_classes classes;
    sf_axis_space *spaces[SF_MAX_AXES];
    sf_plan *plan;
} setting;

static void open_setting(setting *s, sf_graph *graph, const char *cluster, int a, int b)
{
    sf_diag *diag = sf_diag_new();
    int sizes[] = {a, b};
    *s = (setting){.graph = graph, .mesh = {.naxes = b ? 2 : 1, .axes = {{"x", a}, {"y", b}}}};
    if (sf_cluster_open(cluster, diag, &s->cluster) != SF_OK ||
        sf_costs_new(s->cluster, s->mesh.naxes, sizes, 0, &s->arena, diag, &s->costs) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    s->efforts = sf_efforts_new(graph, sf_engine_target(NULL), &s->arena);
    s->classes = sf_classes_of(graph, &s->arena);
    for (int i = 0; i < s->mesh.naxes; i++)
        s->spaces[i] = sf_axis_space_new(graph, sizes[i], &s->arena);
    s->plan = sf_plan_new(graph, &s->mesh);
    sf_diag_free(diag);
}

static void close_setting(setting *s)
{
    sf_plan_free(s->plan);
    sf_arena_free(&s->arena);
    sf_cluster_free(s->cluster);
    sf_graph_free(s->graph);
}

static sf_axis_result solve_axis(setting *s, sf_axis_options options)
{
    sf_diag *diag = sf_diag_new();
    sf_axis_result result;
    if (!options.work)
        options.work = 100000000;
    if (sf_axis_solve(s->efforts, s->spaces[options.axis], &s->classes, s->costs, &options, s->plan,
                      diag, &result) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return result;
}

/* Brute force */

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 33) % below);
}

enum { ARGUMENTS = 2, MOST_NODES = 5, MOST_SHARES = 16 };

/* Products, element-wise ops and transposes of square matrices; values that nobody reads are results. */
static void write_node(sf_buf *text, uint32_t number, const char *type, const bool *read)
{
    static const char *const names[] = {"add", "multiply", "dot_general", "tanh", "transpose"};
    uint32_t kind = draw(5), a = draw(number), b = draw(number);
    /* Rather what nobody reads yet. */
    if (draw(3))
        for (uint32_t v = ARGUMENTS; v < number; v++)
            a = read[v] ? a : v;
    sf_buf_printf(text, "%%v%u = stablehlo.%s %%v%u", number, names[kind], a);
    if (kind < 3)
        sf_buf_printf(text, ", %%v%u", b);
    if (kind == 2)
        sf_buf_printf(text, ", contracting_dims = [1] x [0] : (%s, %s) -> %s\n", type, type, type);
    else if (kind == 4)
        sf_buf_printf(text, ", dims = [1, 0] : (%s) -> %s\n", type, type);
    else
        sf_buf_printf(text, " : %s\n", type);
}

static void find_read(const char *text, bool *read)
{
    for (const char *at = text; (at = strstr(at, " %v")); at++)
        read[at[3] - '0'] = true;
}

static sf_graph *draw_graph(uint32_t nodes)
{
    static const char *const all[] = {"tensor<256x256xf32>", "tensor<1024x1024xf32>",
                                      "tensor<4096x4096xf32>"};
    const char *type = all[draw(3)];
    bool read[ARGUMENTS + MOST_NODES] = {0};
    sf_buf body = {0}, results = {0}, types = {0}, text = {0};
    for (uint32_t n = 0; n < nodes; n++) {
        write_node(&body, ARGUMENTS + n, type, read);
        find_read(body.text, read);
    }
    for (uint32_t n = ARGUMENTS; n < ARGUMENTS + nodes; n++)
        if (!read[n]) {
            sf_buf_printf(&results, "%s%%v%u", results.length ? ", " : "", n);
            sf_buf_printf(&types, "%s%s", types.length ? ", " : "", type);
        }
    sf_buf_printf(&text,
                  "func.func public @main(%%v0: %s, %%v1: %s) -> (%s) {\n%sreturn %s : %s\n}\n",
                  type, type, types.text, body.text, results.text, types.text);
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    if (sf_load_text(text.text, text.length, "drawn", NULL, diag, &graph) != SF_OK)
        fail_msg("%s\n%s", text.text, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    sf_buf_free(&body);
    sf_buf_free(&results);
    sf_buf_free(&types);
    sf_buf_free(&text);
    return graph;
}

/* All choices for all nodes and arguments are gone through; a value that several read is moved to what is
 * best for all of them. Written from search/axis/axis.h, for one axis and one phase. */
typedef struct brute {
    const setting *s;
    uint32_t node_choice[64], argument_choice[ARGUMENTS];
    double best;
    double reshards[MOST_SHARES][MOST_SHARES]; /* between shares, all values being of one type */
    bool sends[MOST_SHARES][MOST_SHARES];
    sf_share shares[MOST_SHARES];
    int nshares;
} brute;

static int number_of(brute *b, sf_share share)
{
    for (int i = 0; i < b->nshares; i++)
        if (sf_share_equal(b->shares[i], share))
            return i;
    assert_true(b->nshares < MOST_SHARES);
    b->shares[b->nshares] = share;
    return b->nshares++;
}

static void find_moves(brute *b)
{
    const setting *s = b->s;
    const sf_type *type = sf_argument_type(s->graph, 0);
    for (uint32_t i = 0; i < s->graph->top->nnodes; i++) {
        const sf_node_space *space = &s->spaces[0]->nodes[s->graph->top->nodes[i]];
        for (uint32_t k = 0; k < space->nstrategies * space->ntensors; k++)
            number_of(b, space->shares[k]);
    }
    for (int i = 0; i < b->nshares; i++)
        for (int k = 0; k < b->nshares; k++) {
            sf_layout from = {.axes = {b->shares[i]}}, to = {.axes = {b->shares[k]}};
            sf_path path;
            assert_true(sf_reshard(&s->mesh, type, &from, &to, sf_move_seconds, s->costs, &path));
            b->reshards[i][k] = path.cost;
            for (int m = 0; m < path.count; m++)
                b->sends[i][k] |= path.reshards[m].kind != SF_RESHARD_SLICE &&
                                  path.reshards[m].kind != SF_RESHARD_MASK;
        }
}

static sf_share share_at(const brute *b, const sf_node *node, uint32_t tensor)
{
    const sf_node_space *space = &b->s->spaces[0]->nodes[node->id];
    return space->shares[b->node_choice[node->id] * space->ntensors + tensor];
}

/* The readers of a value: what they want now, and everything that they could want. */
static int readers_of(brute *b, sf_value value, int *wanted, bool *could)
{
    const sf_block *top = b->s->graph->top;
    int count = 0;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = b->s->graph->nodes[top->nodes[i]];
        const sf_node_space *space = &b->s->spaces[0]->nodes[node->id];
        for (uint32_t o = 0; o < node->noperands; o++)
            if (node->operands[o] == value) {
                wanted[count++] = number_of(b, share_at(b, node, o));
                for (uint32_t k = 0; k < space->nstrategies; k++)
                    could[number_of(b, space->shares[k * space->ntensors + o])] = true;
            }
    }
    for (uint32_t r = 0; r < top->nresults; r++)
        if (top->results[r] == value) {
            wanted[count++] = number_of(b, (sf_share){0});
            could[number_of(b, (sf_share){0})] = true;
        }
    return count;
}

static double seconds_of_value(brute *b, sf_value value, sf_share made, const sf_node *maker)
{
    int wanted[2 * MOST_NODES + 2], from = number_of(b, made);
    bool could[MOST_SHARES] = {0};
    int count = readers_of(b, value, wanted, could);
    double best = HUGE_VAL;
    if (count == 0)
        return 0;
    bool reshards = !maker || b->s->efforts->stored[value] || maker->def->id == SF_OP_DOT_GENERAL;
    if (count == 1 || !reshards) {
        double sum = 0;
        for (int i = 0; i < count; i++)
            sum += b->sends[from][wanted[i]] && !reshards ? HUGE_VAL : b->reshards[from][wanted[i]];
        return sum;
    }
    for (int v = 0; v < b->nshares; v++) {
        double sum = b->reshards[from][v];
        for (int i = 0; i < count; i++)
            sum += b->reshards[v][wanted[i]];
        best = could[v] ? fmin(best, sum) : best;
    }
    return best;
}

static double seconds_of_all(brute *b)
{
    const setting *s = b->s;
    const sf_block *top = s->graph->top;
    double sum = 0;
    for (uint32_t i = 0; i < top->narguments; i++)
        sum += seconds_of_value(b, top->arguments[i],
                                s->spaces[0]->arguments[i].shares[b->argument_choice[i]], NULL);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = s->graph->nodes[top->nodes[i]];
        sf_layout layouts[3] = {{{{0}}}};
        for (uint32_t t = 0; t <= node->noperands; t++)
            layouts[t].axes[0] = share_at(b, node, t);
        sum += sf_effort_seconds(s->efforts, node, layouts, &s->mesh, s->costs);
        sum += seconds_of_value(b, node->result, share_at(b, node, node->noperands), node);
    }
    return sum;
}

static void try_nodes(brute *b, uint32_t at)
{
    const sf_block *top = b->s->graph->top;
    if (at == top->nnodes) {
        b->best = fmin(b->best, seconds_of_all(b));
        return;
    }
    uint32_t id = top->nodes[at];
    for (uint32_t k = 0; k < b->s->spaces[0]->nodes[id].nstrategies; k++) {
        b->node_choice[id] = k;
        try_nodes(b, at + 1);
    }
}

static void try_arguments(brute *b, uint32_t at)
{
    if (at == ARGUMENTS) {
        try_nodes(b, 0);
        return;
    }
    for (uint32_t k = 0; k < b->s->spaces[0]->arguments[at].nshares; k++) {
        b->argument_choice[at] = k;
        try_arguments(b, at + 1);
    }
}

static void test_brute_force(void **state)
{
    (void)state;
    static const char *const clusters[] = {"1x4xV100", "2x2xH100", "1x4xCPU"};
    random_state = 88172645463325252u;
    int split = 0;
    for (int round = 0; round < 60; round++) {
        setting s;
        open_setting(&s, draw_graph(2 + draw(3)), clusters[round % 3], 4, 0);
        brute b = {.s = &s, .best = HUGE_VAL};
        find_moves(&b);
        try_arguments(&b, 0);
        sf_axis_result result = solve_axis(&s, (sf_axis_options){.exposed = 1});
        assert_true(result.feasible);
        if (fabs(result.seconds - b.best) > 1e-10)
            fail_msg("round %d: %.12f, by trying all %.12f", round, result.seconds, b.best);
        assert_true(result.bound <= result.seconds);
        for (uint32_t i = 0; i < s.graph->top->nnodes; i++)
            split += !sf_layout_is_replicated(&s.plan->nodes[s.graph->top->nodes[i]][0]);
        close_setting(&s);
    }
    assert_true(split > 40);
}

/* Training steps */

typedef struct step {
    const char *name;
    setting s;
    sf_tensor *arguments, *results;
} step;

static void open_step(step *t, const char *name)
{
    char path[128];
    sf_diag *diag = sf_diag_new();
    sf_safetensors file = {0};
    sf_graph *graph = test_step(name);
    const sf_block *top = graph->top;
    sf_tensor *stored = sf_alloc(top->narguments * sizeof *stored);
    *t = (step){.name = name};
    t->arguments = sf_alloc(top->narguments * sizeof *t->arguments);
    t->results = sf_alloc(top->nresults * sizeof *t->results);
    snprintf(path, sizeof path, "test/data/micro/%s.io.safetensors", name);
    if (sf_safetensors_read(path, diag, &file) != SF_OK ||
        sf_values_arguments(graph, &file, path, diag, stored) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    for (uint32_t i = 0; i < top->narguments; i++) {
        size_t bytes = (size_t)sf_type_bytes(stored[i].type);
        t->arguments[i] = (sf_tensor){.type = stored[i].type, .data = sf_alloc(bytes)};
        memcpy(t->arguments[i].data, stored[i].data, bytes);
    }
    if (sf_eval_graph(graph, t->arguments, t->results, 0, diag) != SF_OK)
        fail_msg("%s: %s", name, sf_diag_text(diag, 0));
    sf_free(stored);
    sf_safetensors_close(&file);
    sf_diag_free(diag);
    t->s.graph = graph;
}

static void close_step(step *t)
{
    for (uint32_t i = 0; i < t->s.graph->top->narguments; i++)
        sf_free(t->arguments[i].data);
    for (uint32_t i = 0; i < t->s.graph->top->nresults; i++)
        sf_free(t->results[i].data);
    sf_free(t->arguments);
    sf_free(t->results);
    close_setting(&t->s);
}

static void check_plan(const step *t)
{
    sf_diag *diag = sf_diag_new();
    sf_local *first = test_local(t->s.graph, t->s.plan, 0);
    for (int rank = 0; rank < sf_mesh_size(&t->s.mesh); rank++) {
        sf_local *local = test_local(t->s.graph, t->s.plan, rank);
        if (sf_check_local(local, diag) != SF_OK || sf_check_match(first, local, diag) != SF_OK)
            fail_msg("%s, rank %d: %s", t->name, rank, sf_diag_text(diag, 0));
        sf_local_free(local);
    }
    sf_local_free(first);
    sf_diag_free(diag);
}

static bool in_16_bits(const sf_graph *graph)
{
    for (size_t i = 0; i < graph->nvalues; i++)
        if (graph->values[i].type->dtype == SF_BF16)
            return true;
    return false;
}

static void compare(void *context, int rank, uint32_t result, const sf_tensor *joined)
{
    sf_tensor **results = context;
    sf_tensor *to = &results[rank][result];
    *to = (sf_tensor){.type = joined->type};
    to->data = sf_alloc((size_t)sf_type_bytes(joined->type));
    memcpy(to->data, joined->data, (size_t)sf_type_bytes(joined->type));
}

static void run_plan(const step *t)
{
    enum { MOST_RANKS = 8 };
    sf_diag *diag = sf_diag_new();
    uint32_t nresults = t->s.graph->top->nresults;
    int ranks = sf_mesh_size(&t->s.mesh);
    sf_tensor *results[MOST_RANKS];
    for (int r = 0; r < ranks; r++)
        results[r] = sf_alloc(nresults * sizeof **results);
    if (test_run_split(t->s.graph, t->s.plan, t->arguments, compare, results, diag) != SF_OK)
        fail_msg("%s: %s", t->name, sf_diag_text(diag, 0));
    bool narrow = in_16_bits(t->s.graph);
    for (int r = 0; r < ranks; r++) {
        sf_arena arena = {0};
        sf_difference *differences = SF_ARRAY(&arena, nresults, sf_difference);
        sf_comparison c = {.graph = t->s.graph,
                           .arguments = t->arguments,
                           .ours = results[r],
                           .theirs = t->results,
                           .tolerance = narrow ? 5e-2 : 2e-3,
                           .on_average = narrow};
        int worst = test_judge(&c, &arena, differences);
        if (!sf_difference_holds(&differences[worst]))
            fail_msg("%s, rank %d: %s differs by %g", t->name, r, differences[worst].name,
                     differences[worst].error);
        sf_arena_free(&arena);
        sf_values_free(nresults, results[r]);
        sf_free(results[r]);
    }
    sf_diag_free(diag);
}

/* On so slow a device that micro steps are worth splitting; folded and not, on one axis and on two. */
static void test_steps_split(void **state)
{
    (void)state;
    static const int meshes[][2] = {{2, 0}, {2, 2}};
    for (int i = 0; test_steps[i]; i++) {
        if (test_short() && i % 2 == 0)
            continue;
        step t;
        open_step(&t, test_steps[i]);
        sf_graph *graph = t.s.graph;
        for (size_t m = 0; m < 2; m++) {
            open_setting(&t.s, graph, "1x4xCPU", meshes[m][0], meshes[m][1]);
            for (int axis = 0; axis < t.s.mesh.naxes; axis++) {
                sf_axis_result result = solve_axis(
                    &t.s, (sf_axis_options){
                              .axis = axis, .exposed = 0.3, .folded = m == 1, .work = 3000000});
                assert_true(result.feasible);
            }
            check_plan(&t);
            run_plan(&t);
            if (m == 0) {
                sf_plan_free(t.s.plan);
                sf_arena_free(&t.s.arena);
                sf_cluster_free(t.s.cluster);
            }
        }
        close_step(&t);
    }
}

/* Solving again from what was found, other axes as they are, is never worse; what is pinned stays so. */
static void test_again_and_pins(void **state)
{
    (void)state;
    setting s;
    open_setting(&s, test_step("gpt-micro"), "1x4xCPU", 2, 2);
    sf_axis_options first = {.axis = 0, .exposed = 1}, second = {.axis = 1, .exposed = 1};
    solve_axis(&s, first);
    sf_axis_result once = solve_axis(&s, second), recomputed = solve_axis(&s, second);
    assert_true(once.seconds == recomputed.seconds);
    sf_fixed fixed = {.pin = SF_ARRAY(&s.arena, s.graph->nvalues, int),
                      .shares = SF_ARRAY(&s.arena, s.graph->nvalues, sf_share)};
    memset(fixed.pin, -1, s.graph->nvalues * sizeof *fixed.pin);
    uint32_t pinned = SF_NONE;
    for (uint32_t i = 0; i < s.graph->top->narguments && pinned == SF_NONE; i++)
        if (strstr(s.graph->arguments[i].name, "mlp") && sf_argument_type(s.graph, i)->rank == 2)
            pinned = i;
    assert_int_not_equal(pinned, SF_NONE);
    sf_value value = s.graph->top->arguments[pinned];
    fixed.pin[value] = 0;
    fixed.shares[value] = (sf_share){.kind = SF_SPLIT, .dim = 1};
    second.fixed = fixed;
    sf_axis_result with = solve_axis(&s, second);
    assert_true(with.feasible && with.seconds >= with.bound && with.seconds >= once.bound);
    sf_share share = s.plan->arguments[pinned].axes[1];
    assert_int_equal(share.kind, SF_SPLIT);
    assert_int_equal(share.dim, 1);
    close_setting(&s);
}

/* Less memory costs more time, and uses less, until nothing fits. */
static void test_memory(void **state)
{
    (void)state;
    setting s;
    open_setting(&s, test_step("gpt-micro"), "1x4xCPU", 4, 0);
    sf_diag *diag = sf_diag_new();
    sf_axis_options options = {.exposed = 1, .folded = true};
    sf_axis_result free = solve_axis(&s, options);
    sf_price price, tight;
    assert_int_equal(sf_estimate_plan(s.efforts, s.plan, s.costs, NULL, NULL, diag, &price), SF_OK);
    options.memory = price.memory * 3 / 4;
    sf_axis_result limited = solve_axis(&s, options);
    assert_true(limited.feasible && limited.seconds >= free.bound);
    assert_int_equal(sf_estimate_plan(s.efforts, s.plan, s.costs, NULL, NULL, diag, &tight), SF_OK);
    assert_true(tight.memory < price.memory);
    /* What is counted is near what the price finds. */
    assert_true(limited.memory <= options.memory);
    double ratio = (double)limited.memory / (double)tight.memory;
    if (ratio < 0.8 || ratio > 1.2)
        fail_msg("counted are %.3f of the price", ratio);
    options.memory = 1;
    sf_plan *before = s.plan;
    sf_axis_result none = solve_axis(&s, options);
    assert_false(none.feasible);
    assert_ptr_equal(before, s.plan);
    sf_diag_free(diag);
    close_setting(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brute_force),
        cmocka_unit_test(test_again_and_pins),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_steps_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
