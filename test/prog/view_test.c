/* Views against the ops themselves: chains of reshapes, transposes, broadcasts, slices and
 * reverses are drawn and evaluated by the oracle on numbers that equal their positions, so that
 * every element of a view can be looked up. A reshape must be a view exactly if strides can
 * express it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ir/opdef.h"
#include "sheaf/sheaf.h"
#include "support/indexing.h"
#include "support/plans.h"
#include "support/programs.h"
#include "support/run.h"

enum { CHAINS = 1500, LONGEST = 6, MOST = 5 };

/* Drawing */

typedef struct chain {
    test_random random;
    sf_buf text, types, names;
    int rank;
    int64_t dims[SF_MAX_RANK];
    int count;
} chain;

static int64_t pick(chain *c, int64_t low, int64_t high)
{
    return test_draw(&c->random, low, high);
}

static void put_type(sf_buf *out, int rank, const int64_t *dims)
{
    sf_buf_puts(out, "tensor<");
    for (int i = 0; i < rank; i++)
        sf_buf_printf(out, "%lldx", (long long)dims[i]);
    sf_buf_puts(out, "i32>");
}

static void put_ints(sf_buf *out, int count, const int64_t *at)
{
    for (int i = 0; i < count; i++)
        sf_buf_printf(out, "%s%lld", i ? ", " : "", (long long)at[i]);
}

static void draw_order(chain *c, int count, int64_t *order)
{
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        int j = (int)pick(c, 0, i);
        int64_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

static void put_transpose(chain *c, int64_t *to)
{
    int64_t order[SF_MAX_RANK];
    draw_order(c, c->rank, order);
    sf_buf_printf(&c->text, "stablehlo.transpose %%v%d, dims = [", c->count);
    put_ints(&c->text, c->rank, order);
    sf_buf_puts(&c->text, "]");
    for (int i = 0; i < c->rank; i++)
        to[i] = c->dims[order[i]];
}

static void put_reverse(chain *c, int64_t *to)
{
    int64_t order[SF_MAX_RANK];
    draw_order(c, c->rank, order);
    sf_buf_printf(&c->text, "stablehlo.reverse %%v%d, dims = [", c->count);
    put_ints(&c->text, (int)pick(c, 0, c->rank), order);
    sf_buf_puts(&c->text, "]");
    memcpy(to, c->dims, sizeof c->dims);
}

static void put_slice(chain *c, int64_t *to)
{
    sf_buf_printf(&c->text, "stablehlo.slice %%v%d [", c->count);
    for (int i = 0; i < c->rank; i++) {
        int64_t start = pick(c, 0, c->dims[i] / 2), limit = pick(c, start, c->dims[i]);
        int64_t step = pick(c, 1, 3);
        if (limit == start && pick(c, 0, 9) > 0)
            limit = c->dims[i];
        sf_buf_printf(&c->text, "%s%lld:%lld:%lld", i ? ", " : "", (long long)start,
                      (long long)limit, (long long)step);
        to[i] = (limit - start + step - 1) / step;
    }
    sf_buf_puts(&c->text, "]");
}

/* Dimensions of the result that the operand's go to; dimensions of 1 may grow, others are new. */
static int put_broadcast(chain *c, int64_t *to)
{
    int rank = c->rank + (int)pick(c, 0, c->rank < MOST ? 1 : 0), added = (int)pick(c, 0, c->rank);
    int64_t dims[SF_MAX_RANK];
    for (int i = 0, at = 0; i < rank; i++) {
        if (rank > c->rank && i == added) {
            to[i] = pick(c, 1, 3);
            continue;
        }
        to[i] = c->dims[at] == 1 ? pick(c, 1, 3) : c->dims[at];
        dims[at++] = i;
    }
    sf_buf_printf(&c->text, "stablehlo.broadcast_in_dim %%v%d, dims = [", c->count);
    put_ints(&c->text, c->rank, dims);
    sf_buf_puts(&c->text, "]");
    return rank;
}

/* Dimensions are merged or split at random, and some of 1 put in. */
static int put_reshape(chain *c, int64_t *to)
{
    int64_t left = 1;
    int rank = 0;
    for (int i = 0; i < c->rank; i++)
        left *= c->dims[i];
    while (left != 1 && rank < MOST - 1) {
        int64_t divisor = left == 0 ? 0 : pick(c, 2, left < 6 ? left : 6);
        while (left > 0 && left % divisor != 0)
            divisor++;
        to[rank++] = divisor;
        left = left == 0 ? 1 : left / divisor;
    }
    if (left != 1 || pick(c, 0, 2) == 0)
        to[rank++] = left;
    sf_buf_printf(&c->text, "stablehlo.reshape %%v%d", c->count);
    return rank;
}

static void put_op(chain *c)
{
    int64_t to[SF_MAX_RANK] = {0};
    int rank = c->rank;
    sf_buf_printf(&c->text, "%%v%d = ", c->count + 1);
    switch (pick(c, 0, 5)) {
    case 0:
        put_transpose(c, to);
        break;
    case 1:
        put_reverse(c, to);
        break;
    case 2:
        put_slice(c, to);
        break;
    case 3:
        rank = put_broadcast(c, to);
        break;
    default:
        rank = put_reshape(c, to);
    }
    sf_buf_puts(&c->text, " : (");
    put_type(&c->text, c->rank, c->dims);
    sf_buf_puts(&c->text, ") -> ");
    put_type(&c->text, rank, to);
    sf_buf_puts(&c->text, "\n");
    c->rank = rank;
    memcpy(c->dims, to, sizeof to);
    c->count++;
    sf_buf_printf(&c->names, "%s%%v%d", c->count > 1 ? ", " : "", c->count);
    sf_buf_puts(&c->types, c->count > 1 ? ", " : "");
    put_type(&c->types, rank, to);
}

static sf_graph *draw_chain(uint32_t seed)
{
    chain c = {.random = {.key = seed}};
    sf_buf all = {0};
    c.rank = (int)pick(&c, 0, 4);
    for (int i = 0; i < c.rank; i++)
        c.dims[i] = pick(&c, 1, 6);
    sf_buf_puts(&all, "func.func public @main(%v0: ");
    put_type(&all, c.rank, c.dims);
    for (int64_t left = pick(&c, 1, LONGEST); left > 0; left--)
        put_op(&c);
    sf_buf_printf(&all, ") -> (%s) {\n%sreturn %s : %s\n}\n", c.types.text, c.text.text,
                  c.names.text, c.types.text);
    sf_graph *graph = test_step_text(all.text);
    sf_buf_free(&all);
    sf_buf_free(&c.text);
    sf_buf_free(&c.types);
    sf_buf_free(&c.names);
    return graph;
}

/* Judging */

static int64_t place_of(const sf_view *view, int64_t element)
{
    int64_t at = view->offset;
    for (int i = view->rank - 1; i >= 0; i--) {
        at += element % view->dims[i] * view->strides[i];
        element /= view->dims[i];
    }
    return at;
}

/* The op's own result against the view of a buffer. */
static bool shows(const sf_view *view, const int32_t *buffer, int64_t bytes, const sf_tensor *truth)
{
    int64_t count = sf_view_count(view);
    bool good = count == truth->type->count && view->rank == truth->type->rank;
    for (int64_t e = 0; good && e < count; e++) {
        int64_t at = place_of(view, e);
        good = at >= 0 && at < bytes / 4 && buffer[at] == ((const int32_t *)truth->data)[e];
    }
    return good;
}

/* Whether strides can say it: those between the first element and its neighbours do, or none. */
static bool has_strides(const sf_tensor *truth)
{
    const sf_type *type = truth->type;
    const int32_t *data = truth->data;
    sf_view view = sf_view_whole(0, type);
    int64_t step = 1;
    if (type->count == 0)
        return true;
    view.offset = data[0];
    for (int i = type->rank - 1; i >= 0; i--) {
        view.strides[i] = type->dims[i] > 1 ? data[step] - data[0] : 0;
        step *= type->dims[i];
    }
    for (int64_t e = 0; e < type->count; e++)
        if (place_of(&view, e) != data[e])
            return false;
    return true;
}

static bool is_row_major(const sf_view *view)
{
    for (int64_t e = 0; e < sf_view_count(view); e++)
        if (place_of(view, e) != view->offset + e)
            return false;
    return true;
}

typedef struct tally {
    int views, copies, straight;
} tally;

/* The element of the buffer that each is: numbers of the buffer are all different, and there are few. */
static sf_tensor find_places(const int32_t *buffer, int64_t bytes, const sf_tensor *truth)
{
    sf_tensor places = *truth;
    int32_t *at = sf_alloc((size_t)(truth->type->count + 1) * sizeof *at);
    for (int64_t e = 0; e < truth->type->count; e++)
        for (at[e] = 0; buffer[at[e]] != ((const int32_t *)truth->data)[e]; at[e]++)
            assert_true(at[e] < bytes / 4);
    places.data = at;
    return places;
}

/* The view of the node's result, out of the operand's. False where it is a copy. */
static bool check_op(sf_graph *graph, const sf_node *node, const sf_view *view,
                     const int32_t *buffer, int64_t bytes, const sf_tensor *truth, sf_view *out)
{
    const sf_type *types[2];
    sf_op op = sf_op_of(graph, node, types);
    bool done = sf_view_of_op(&op, view, out);
    sf_tensor places = find_places(buffer, bytes, truth);
    if (done != has_strides(&places))
        fail_msg("%s: %s", node->def->name, done ? "no view can be that" : "it could be a view");
    if (done && !shows(out, buffer, bytes, truth))
        fail_msg("%s: the view shows something else", node->def->name);
    if (done && sf_view_count(out) > 0 && sf_view_is_contiguous(out) != is_row_major(out))
        fail_msg("%s: it is row by row, or is not", node->def->name);
    sf_free(places.data);
    return done;
}

/* Reading a text may decompose an op, and intermediate values are no results. */
static bool find_result(const sf_runner *runner, const sf_graph *graph, sf_value value,
                        sf_tensor *out)
{
    uint32_t i = 0;
    while (i < graph->top->nresults && graph->top->results[i] != value)
        i++;
    if (i < graph->top->nresults)
        *out = test_result(runner->engine, i);
    return i < graph->top->nresults;
}

/* Ops after a copy are skipped: their numbers may repeat, and do not equal their positions. */
static void check_chain(uint32_t seed, tally *n)
{
    sf_graph *graph = draw_chain(seed);
    sf_runner runner = test_open_engine(graph, "oracle", 1, NULL);
    sf_tensor argument = test_argument(runner.engine, 0);
    int32_t *buffer = sf_alloc((size_t)(argument.type->count + 1) * sizeof *buffer);
    sf_view *views = sf_alloc(graph->nvalues * sizeof *views);
    bool *known = sf_alloc(graph->nvalues * sizeof *known);
    for (int64_t e = 0; e < argument.type->count; e++)
        buffer[e] = ((int32_t *)argument.data)[e] = (int32_t)e;
    assert_int_equal(sf_engine_step(runner.engine, NULL), SF_OK);
    memset(known, 0, graph->nvalues * sizeof *known);
    known[graph->top->arguments[0]] = true;
    views[graph->top->arguments[0]] = sf_view_whole(0, argument.type);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        sf_tensor truth = {0};
        if (!known[node->operands[0]] || !find_result(&runner, graph, node->result, &truth))
            continue;
        sf_view *out = &views[node->result];
        bool done = check_op(graph, node, &views[node->operands[0]], buffer,
                             sf_type_bytes(argument.type), &truth, out);
        known[node->result] = done;
        n->views += done;
        n->copies += !done;
        n->straight += done && sf_view_is_contiguous(out);
    }
    sf_free(known);
    sf_free(views);
    sf_free(buffer);
    sf_runner_close(&runner);
    sf_graph_free(graph);
}

static void test_chains(void **state)
{
    (void)state;
    tally n = {0};
    for (uint32_t seed = 1; seed <= CHAINS; seed++)
        check_chain(seed, &n);
    print_message("%d views, %d of them row by row, %d copies\n", n.views, n.straight, n.copies);
    assert_true(n.views > 500 && n.straight > 100 && n.copies > 50);
}

/* In programs: a view costs nothing, a copy is a loop of its own. */

static void test_programs(void **state)
{
    (void)state;
    static const struct {
        const char *name, *op, *from, *to;
        size_t insts;
    } cases[] = {
        {"transpose", "transpose %x, dims = [1, 0, 2]", "4x6x8", "6x4x8", 1},
        {"broadcast", "broadcast_in_dim %x, dims = [1, 2, 0]", "4x6x8", "8x4x6", 1},
        {"slice", "slice %x [1:3, 0:6:2, 2:8]", "4x6x8", "2x3x6", 1},
        {"reverse", "reverse %x, dims = [0, 2]", "4x6x8", "4x6x8", 1},
        {"reshape", "reshape %x", "4x6x8", "2x12x8", 1},
        {"pad", "pad %x, %z, low = [0, 0, 1], high = [0, 0, 0], interior = [0, 0, 0]", "4x6x8",
         "4x6x9", 2},
        {"concatenate", "concatenate %x, %x, dim = 0", "4x6x8", "8x6x8", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1000], types[200];
        bool is_join = strstr(cases[i].op, "concatenate"), is_pad = strstr(cases[i].op, "pad");
        snprintf(types, sizeof types, "(tensor<%sxf32>%s%s%s) -> tensor<%sxf32>", cases[i].from,
                 is_join ? ", tensor<" : "", is_join ? cases[i].from : "",
                 is_join  ? "xf32>"
                 : is_pad ? ", tensor<f32>"
                          : "",
                 cases[i].to);
        snprintf(text, sizeof text,
                 "func.func public @main(%%x: tensor<%sxf32>, %%z: tensor<f32>) -> tensor<%sxf32> "
                 "{\n%%y = stablehlo.%s : %s\n%%t = stablehlo.tanh %%y : tensor<%sxf32>\n"
                 "return %%t : tensor<%sxf32>\n}\n",
                 cases[i].from, cases[i].to, cases[i].op, types, cases[i].to, cases[i].to);
        sf_program *p = test_lower_text(text, NULL);
        if (p->ninsts != cases[i].insts)
            fail_msg("%s: %zu instructions", cases[i].name, p->ninsts);
        sf_program_free(p);
    }
}

/* A reshape after another view. */
static void test_reshapes(void **state)
{
    (void)state;
    static const struct {
        const char *op, *between, *to;
        size_t insts;
    } cases[] = {
        {"transpose %x, dims = [1, 0, 2]", "6x4x8", "24x8", 2},
        {"transpose %x, dims = [1, 0, 2]", "6x4x8", "2x3x4x8", 1},
        {"transpose %x, dims = [2, 0, 1]", "8x4x6", "8x24", 1},
        {"slice %x [1:3, 0:6, 0:8]", "2x6x8", "96", 1},
        {"slice %x [0:4, 0:3, 0:8]", "4x3x8", "12x8", 2},
        {"slice %x [0:4, 0:3, 0:8]", "4x3x8", "4x24", 1},
        {"slice %x [0:4, 0:6:2, 0:8]", "4x3x8", "12x8", 1},
        {"reverse %x, dims = [0, 1]", "4x6x8", "24x8", 1},
        {"reverse %x, dims = [0]", "4x6x8", "24x8", 2},
        {"broadcast_in_dim %x, dims = [1, 2, 3]", "5x4x6x8", "5x192", 1},
        {"broadcast_in_dim %x, dims = [1, 2, 3]", "5x4x6x8", "20x48", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1000];
        snprintf(text, sizeof text,
                 "func.func public @main(%%x: tensor<4x6x8xf32>) -> tensor<%sxf32> {\n"
                 "%%y = stablehlo.%s : (tensor<4x6x8xf32>) -> tensor<%sxf32>\n"
                 "%%r = stablehlo.reshape %%y : (tensor<%sxf32>) -> tensor<%sxf32>\n"
                 "%%t = stablehlo.tanh %%r : tensor<%sxf32>\nreturn %%t : tensor<%sxf32>\n}\n",
                 cases[i].to, cases[i].op, cases[i].between, cases[i].between, cases[i].to,
                 cases[i].to, cases[i].to);
        sf_program *p = test_lower_text(text, NULL);
        if (p->ninsts != cases[i].insts)
            fail_msg("%s to %s: %zu instructions", cases[i].op, cases[i].to, p->ninsts);
        sf_program_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_reshapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
