/* Strategies follow from factors: every op of the table, at random sizes, in every way that it can be cut,
 * forth and back; which splits an op can take, against brute force over indices; and splits that go
 * through chains of reshapes, element by element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "op/op.h"
#include "shard/strategy.h"
#include "sheaf/sheaf.h"
#include "support/draw.h"

static const int all_parts[] = {2, 3, 4, 8};
enum { NPARTS = sizeof all_parts / sizeof *all_parts, SEEDS = 30 };

static int cuts, splits, refused, linears;

static int ntensors(const sf_op *op)
{
    return op->noperands + op->nresults;
}

static const sf_type *type_of(const sf_op *op, int tensor)
{
    return tensor < op->noperands ? op->in[tensor] : op->out[tensor - op->noperands];
}

/* The share of every tensor fits it, and from every split of them the same strategy is found again. */
static void check_cut(const sf_op *op, const sf_factoring *f, const sf_strategy *s, int parts)
{
    sf_mesh mesh = {.naxes = 1, .axes = {{"x", parts}}};
    int found = 0;
    cuts++;
    for (int t = 0; t < ntensors(op); t++) {
        sf_layout layout = {{sf_strategy_share(op, f, s, t)}};
        sf_share share = layout.axes[0];
        char why[SF_WHY_TEXT];
        if (!sf_layout_fits(&layout, &mesh, type_of(op, t)->rank, type_of(op, t)->dims, why))
            fail_msg("%s, tensor %d: %s", op->def->name, t, why);
        assert_true(share.kind != SF_PARTIAL || t >= op->noperands);
        found += share.kind != SF_REPLICATED;
        if (share.kind != SF_SPLIT)
            continue;
        sf_strategy back;
        assert_true(sf_strategy_of_split(f, t, share, parts, &back));
        assert_int_equal(back.kind, SF_RUN_FACTOR);
        assert_int_equal(back.factor, s->factor);
        assert_int_equal(back.period, s->period);
    }
    assert_true(found > 0);
}

/* One that its operands in the mask determine, and that needs one of them. */
static void check_linear(const sf_op *op, const sf_factoring *f, const sf_strategy *s)
{
    linears++;
    assert_true(s->mask != 0);
    assert_true(op->noperands >= 32 || s->mask >> op->noperands == 0);
    for (int t = 0; t < ntensors(op); t++) {
        sf_share share = sf_strategy_share(op, f, s, t);
        bool partial = t >= op->noperands || s->mask >> t & 1;
        assert_int_equal(share.kind, partial ? SF_PARTIAL : SF_REPLICATED);
        assert_int_equal(share.monoid, partial ? SF_MONOID_ADD : SF_MONOID_NONE);
    }
}

static void check_strategies(const sf_op *op, const sf_factoring *f, int parts, sf_arena *arena)
{
    sf_strategy *list;
    int count = sf_strategies(op, f, parts, arena, &list);
    assert_true(count > 0);
    assert_int_equal(list[0].kind, SF_RUN_WHOLE);
    for (int t = 0; t < ntensors(op); t++)
        assert_int_equal(sf_strategy_share(op, f, &list[0], t).kind, SF_REPLICATED);
    for (int i = 1; i < count; i++) {
        assert_int_not_equal(list[i].kind, SF_RUN_WHOLE);
        if (list[i].kind == SF_RUN_LINEAR) {
            check_linear(op, f, &list[i]);
            continue;
        }
        int64_t size = list[i].period;
        assert_int_equal(size, f->factors[list[i].factor].size);
        for (int64_t period = parts; period <= size; period += parts) {
            sf_strategy strided = list[i];
            strided.period = period;
            if (size % period == 0)
                check_cut(op, f, &strided, parts);
        }
    }
}

static int64_t coordinate(int64_t index, int64_t period, int parts)
{
    return index % period / (period / parts);
}

/* Whether the coordinate of an index is a matter of the factor's index alone. */
static bool decides(const sf_factoring *f, const sf_walk *walk, int at, int64_t size,
                    int64_t period, int parts)
{
    int64_t unit = 1, seen[512];
    const sf_factor *factor = &f->factors[walk->factors[at]];
    for (int i = at + 1; i < walk->count; i++)
        unit *= f->factors[walk->factors[i]].size;
    memset(seen, -1, sizeof seen);
    for (int64_t g = 0; g < size; g++) {
        int64_t *c = &seen[g / unit % factor->size], own = coordinate(g, period, parts);
        if (*c >= 0 && *c != own)
            return false;
        *c = own;
    }
    return true;
}

static bool is_cuttable(const sf_factor *factor)
{
    return factor->role == SF_MAP ||
           (factor->role == SF_REDUCE && factor->monoid != SF_MONOID_NONE &&
            factor->monoid != SF_MONOID_SECOND);
}

/* Every split of every dimension: taken exactly when one factor that can be cut decides it. */
static void check_splits(const sf_op *op, const sf_factoring *f, int parts)
{
    for (int t = 0; t < ntensors(op); t++)
        for (int d = 0; d < type_of(op, t)->rank; d++) {
            int64_t size = type_of(op, t)->dims[d];
            const sf_walk *walk = &f->walks[t][d];
            for (int64_t period = parts; period <= size && size <= 512; period += parts) {
                sf_share share = {.kind = SF_SPLIT, .dim = d, .period = period};
                sf_strategy s;
                bool can = false;
                if (size % period != 0)
                    continue;
                for (int i = 0; i < walk->count; i++)
                    can = can || (is_cuttable(&f->factors[walk->factors[i]]) &&
                                  decides(f, walk, i, size, period, parts));
                splits++;
                refused += !can;
                assert_int_equal(sf_strategy_of_split(f, t, share, parts, &s), can);
                if (can)
                    assert_true(sf_share_equal(sf_strategy_share(op, f, &s, t), share));
            }
        }
}

static void check_graph(const sf_graph *graph)
{
    sf_arena arena = {0};
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        const sf_type **types = SF_ARRAY(&arena, node->noperands + node->nresults, const sf_type *);
        sf_op op = sf_op_of(graph, node, types);
        sf_factoring f;
        sf_op_factors(&op, &arena, &f);
        for (int p = 0; p < NPARTS; p++) {
            check_strategies(&op, &f, all_parts[p], &arena);
            check_splits(&op, &f, all_parts[p]);
        }
    }
    sf_arena_free(&arena);
}

static void test_every_op(void **state)
{
    (void)state;
    int drawn = 0;
    for (int code = 0; code < SF_OP_COUNT; code++) {
        for (uint32_t seed = 1; seed <= SEEDS && test_can_draw((sf_opcode)code); seed++) {
            test_case c;
            test_case_draw(&c, (sf_opcode)code, seed, true, 2000);
            check_graph(c.graph);
            test_case_free(&c);
        }
        drawn += test_can_draw((sf_opcode)code);
    }
    print_message("%d ops: %d cuts, %d splits of which %d cannot be, %d linear\n", drawn, cuts,
                  splits, refused, linears);
    assert_true(drawn > 60 && cuts > 5000 && splits > 5000 && refused > 500 && linears > 500);
}

/* Reshapes */

static sf_graph *load(const char *text)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph;
    if (sf_load_text(text, strlen(text), "test", NULL, diag, &graph) != SF_OK)
        fail_msg("%s\n%s", text, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return graph;
}

/* The coordinate of an element by its row-major index: reshapes keep that. */
static int64_t coordinate_of_element(const sf_type *type, sf_share share, int parts, int64_t index)
{
    int64_t unit = 1;
    for (int d = type->rank - 1; d > share.dim; d--)
        unit *= type->dims[d];
    return coordinate(index / unit % type->dims[share.dim], share.period, parts);
}

/* Follows a split as far as it goes; returns how many reshapes it passed. */
static int follow(const sf_graph *graph, sf_share share, int parts)
{
    const sf_type *first = sf_argument_type(graph, 0);
    sf_share start = share;
    sf_arena arena = {0};
    uint32_t i = 0;
    for (; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        const sf_type *types[2];
        sf_op op = sf_op_of(graph, node, types);
        sf_factoring f;
        sf_strategy s;
        sf_op_factors(&op, &arena, &f);
        if (!sf_strategy_of_split(&f, 0, share, parts, &s))
            break;
        share = sf_strategy_share(&op, &f, &s, 1);
        assert_int_equal(share.kind, SF_SPLIT);
        for (int64_t e = 0; e < first->count; e++)
            assert_int_equal(coordinate_of_element(types[1], share, parts, e),
                             coordinate_of_element(first, start, parts, e));
    }
    sf_arena_free(&arena);
    return (int)i;
}

static void test_reshapes(void **state)
{
    (void)state;
    static const char *const shapes[] = {"4x6x8", "24x8",    "4x48",    "2x12x8", "192",
                                         "8x24",  "2x2x6x8", "4x6x2x4", "16x2x6", "4x3x16"};
    enum { NSHAPES = sizeof shapes / sizeof *shapes };
    int passed = 0, strided = 0, ended = 0;
    for (int a = 0; a < NSHAPES; a++)
        for (int b = 0; b < NSHAPES; b++)
            for (int c = 0; c < NSHAPES; c++) {
                char text[1024];
                snprintf(text, sizeof text,
                         "func.func public @main(%%a: tensor<%sxf32>) -> tensor<%sxf32> {\n"
                         "%%b = stablehlo.reshape %%a : (tensor<%sxf32>) -> tensor<%sxf32>\n"
                         "%%c = stablehlo.reshape %%b : (tensor<%sxf32>) -> tensor<%sxf32>\n"
                         "return %%c : tensor<%sxf32>\n}\n",
                         shapes[a], shapes[c], shapes[a], shapes[b], shapes[b], shapes[c],
                         shapes[c]);
                sf_graph *graph = load(text);
                const sf_type *type = sf_argument_type(graph, 0);
                for (int p = 0; p < NPARTS; p++)
                    for (int d = 0; d < type->rank; d++)
                        for (int64_t period = all_parts[p]; period <= type->dims[d]; period++) {
                            sf_share share = {.kind = SF_SPLIT, .dim = d, .period = period};
                            if (type->dims[d] % period != 0 || period % all_parts[p] != 0)
                                continue;
                            int length = follow(graph, share, all_parts[p]);
                            passed += length == (int)graph->top->nnodes;
                            ended += length < (int)graph->top->nnodes;
                            strided += period < type->dims[d];
                        }
                sf_graph_free(graph);
            }
    print_message("%d splits passed, %d ended, %d were strided\n", passed, ended, strided);
    assert_true(passed > 5000 && ended > 1000 && strided > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_op),
        cmocka_unit_test(test_reshapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
