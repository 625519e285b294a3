/* Every op is held to its word: inference agrees with evaluation, every dimension of every tensor is
 * walked, splitting any factor and joining the pieces gives the whole, what is said to be linear or to
 * commute does, and the text that is printed reads back as the same graph. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "front/import.h"
#include "ir/print_graph.h"
#include "op/eval.h"
#include "op/node_builder.h"
#include "op/samples.h"
#include "op/util.h"
#include "support/draw.h"
#include "support/pieces.h"

static int seen[SF_OP_COUNT]; /* how often each op was tested */
static int splits, linear_checks;

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static const char *describe(const sf_op *op)
{
    static char text[256];
    char type[SF_TYPE_TEXT];
    snprintf(text, sizeof text, "%s.%s %s", op->def->dialect, op->def->name,
             op->noperands ? sf_type_text(op->in[0], type) : "");
    return text;
}

#define CHECK(op, condition, ...)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("%s: ", describe(op));                                                     \
            print_error(__VA_ARGS__);                                                              \
            print_error("\n");                                                                     \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

/* Powers of two, so that products and quotients, and sums of a few, are exact in every float type. */
static void fill(sf_tensor *tensor)
{
    static const double numbers[] = {1, 2, -1, -2, 0.5, 4, 1, -4};
    sf_dtype dtype = sf_part_of(tensor->type->dtype);
    int64_t count = tensor->type->count * sf_parts_of(tensor->type->dtype);
    for (int64_t i = 0; i < count; i++) {
        uint64_t r = next_random();
        if (sf_is_float(dtype))
            sf_store_f64(dtype, tensor->data, i, numbers[r % 8]);
        else
            sf_store_i64(dtype, tensor->data, i, (int64_t)(r % 9) - 2);
    }
}

static sf_tensor new_tensor(const sf_type *type)
{
    return (sf_tensor){.type = type, .data = sf_alloc((size_t)sf_type_bytes(type))};
}

static const sf_type *type_of_tensor(const sf_op *op, int tensor)
{
    return tensor < op->noperands ? op->in[tensor] : op->out[tensor - op->noperands];
}

/* Quotients of complex numbers are hardly ever exact, nor are transforms. */
static double rounding_of(const sf_op *op, sf_dtype dtype)
{
    bool rounds = false;
    for (int i = 0; i < op->noperands + op->nresults; i++)
        rounds = rounds || sf_is_complex(type_of_tensor(op, i)->dtype);
    return rounds && sf_is_inexact(dtype) ? ldexp(1, 6 - sf_dtype_get(dtype)->mantissa) : 0;
}

static bool same_element(const sf_op *op, const sf_tensor *a, const sf_tensor *b, int64_t i)
{
    if (!sf_is_inexact(a->type->dtype))
        return sf_get_i64(a, i) == sf_get_i64(b, i);
    double most = rounding_of(op, a->type->dtype) * (1 + test_get_size(b, i));
    for (int part = 0; part < 2; part++) {
        double x = test_get_part(a, i, part), y = test_get_part(b, i, part);
        if (x != y && !(isnan(x) && isnan(y)) && !(fabs(x - y) <= most))
            return false;
    }
    return true;
}

static void check_same(const sf_op *op, const char *what, const sf_tensor *a, const sf_tensor *b)
{
    CHECK(op, a->type == b->type, "%s: types differ", what);
    for (int64_t i = 0; i < a->type->count; i++)
        CHECK(op, same_element(op, a, b, i), "%s: element %d is %g, expected %g", what, (int)i,
              sf_get_f64(a, i), sf_get_f64(b, i));
}

static bool walks(const sf_factoring *f, int tensor, int rank, int factor)
{
    for (int d = 0; d < rank; d++)
        for (int i = 0; i < f->walks[tensor][d].count; i++)
            if (f->walks[tensor][d].factors[i] == factor)
                return true;
    return false;
}

/* Sizes multiply to the dimension; a window has one factor; no factor is idle; a reduced factor is
 * in no result, the others, unless whole, are in some result. */
static void check_walks(const sf_op *op, const sf_factoring *f)
{
    for (int t = 0; t < f->ntensors; t++) {
        const sf_type *type = type_of_tensor(op, t);
        for (int d = 0; d < type->rank; d++) {
            const sf_walk *walk = &f->walks[t][d];
            int64_t product = 1;
            for (int i = 0; i < walk->count; i++)
                product *= f->factors[walk->factors[i]].size;
            if (walk->halo)
                CHECK(op, walk->count == 1 && op->def->halo, "tensor %d dim %d: bad window", t, d);
            else
                CHECK(op, product == type->dims[d], "tensor %d dim %d: factors give %d, not %d", t,
                      d, (int)product, (int)type->dims[d]);
        }
    }
    for (int k = 0; k < f->nfactors; k++) {
        bool in_operand = false, in_result = false;
        for (int t = 0; t < f->ntensors; t++)
            if (walks(f, t, type_of_tensor(op, t)->rank, k))
                *(t < op->noperands ? &in_operand : &in_result) = true;
        CHECK(op, in_operand || in_result, "factor %d walks nothing", k);
        if (f->factors[k].role == SF_REDUCE)
            CHECK(op, !in_result && f->factors[k].monoid != SF_MONOID_NONE, "factor %d", k);
        /* A loop may be cut along what it is given, and reduce inside; what is sent comes out elsewhere. */
        if ((f->factors[k].role == SF_MAP || f->factors[k].role == SF_WINDOW) &&
            !op->def->control && op->nresults > 0)
            CHECK(op, in_result, "map factor %d is in no result", k);
    }
}

static sf_tensor piece_of(const sf_op *op, const sf_factoring *f, int factor, int64_t first,
                          int64_t end, int tensor, const sf_tensor *whole)
{
    const sf_type *type = type_of_tensor(op, tensor);
    sf_span *spans = sf_alloc(sizeof *spans * (size_t)(type->rank + 1));
    int64_t dims[SF_MAX_RANK];
    test_op_piece(op, f, factor, first, end, tensor, spans);
    for (int d = 0; d < type->rank; d++)
        dims[d] = test_span_size(spans[d]);
    sf_tensor piece = {.type = sf_type_get(op->pool, type->dtype, type->rank, dims),
                       .spans = spans};
    if (whole) {
        piece.data = sf_alloc((size_t)sf_type_bytes(piece.type));
        sf_tensor_cut(whole, &piece);
    }
    return piece;
}

static void free_piece(sf_tensor *piece)
{
    sf_free(piece->data);
    sf_free((void *)(uintptr_t)piece->spans);
}

/* One piece: cut the operands, evaluate, and put the result where it belongs. */
static void run_piece(const sf_op *op, const sf_factoring *f, int factor, int64_t first,
                      int64_t end, const sf_tensor *in, const sf_tensor *whole, sf_tensor *joined)
{
    sf_diag *diag = sf_diag_new();
    sf_tensor cut[16] = {0}, out[16] = {0};
    for (int i = 0; i < op->noperands; i++)
        cut[i] = piece_of(op, f, factor, first, end, i, &in[i]);
    for (int i = 0; i < op->nresults; i++)
        out[i] = piece_of(op, f, factor, first, end, op->noperands + i, NULL);
    sf_status status = sf_eval_op(op, cut, out, diag);
    CHECK(op, status == SF_OK, "piece [%d, %d) of factor %d: %s", (int)first, (int)end, factor,
          sf_diag_text(diag, 0));
    for (int i = 0; i < op->nresults; i++) {
        if (walks(f, op->noperands + i, op->out[i]->rank, factor))
            test_paste(&out[i], &joined[i]);
        else if (f->factors[factor].role != SF_REDUCE)
            check_same(op, "a result without the factor", &out[i], &whole[i]);
        else if (first == 0)
            memcpy(joined[i].data, out[i].data, (size_t)sf_type_bytes(out[i].type));
        else
            sf_combine(f->factors[factor].monoid, &joined[i], &out[i]);
        free_piece(&out[i]);
    }
    for (int i = 0; i < op->noperands; i++)
        free_piece(&cut[i]);
    sf_diag_free(diag);
}

static void check_split(const sf_op *op, const sf_factoring *f, int factor, int ways,
                        const sf_tensor *in, const sf_tensor *whole)
{
    int64_t size = f->factors[factor].size;
    sf_tensor joined[16];
    for (int i = 0; i < op->nresults; i++)
        joined[i] = new_tensor(op->out[i]);
    for (int64_t w = 0; w < ways; w++)
        run_piece(op, f, factor, size * w / ways, size * (w + 1) / ways, in, whole, joined);
    for (int i = 0; i < op->nresults; i++) {
        bool split = walks(f, op->noperands + i, op->out[i]->rank, factor) ||
                     f->factors[factor].role == SF_REDUCE;
        char what[64];
        snprintf(what, sizeof what, "factor %d (%s) split %d ways", factor,
                 test_role_name(f->factors[factor].role), ways);
        if (split)
            check_same(op, what, &joined[i], &whole[i]);
        sf_free(joined[i].data);
    }
    splits++;
}

/* Whether sums of the test values, of which there may be many, are exact in all tensors. */
static bool sums_are_exact(const sf_op *op)
{
    for (int i = 0; i < op->noperands + op->nresults; i++) {
        sf_dtype dtype = type_of_tensor(op, i)->dtype;
        if (sf_is_float(dtype) && sf_dtype_get(dtype)->bits < 32)
            return false;
    }
    return true;
}

/* f(x + y) = f(x) + f(y) in the operands of the mask, the others held fixed. */
static void check_linear(const sf_op *op, uint32_t mask, const sf_tensor *in)
{
    sf_tensor other[16], sum[16], out_in[16] = {0}, out_other[16] = {0}, out_sum[16] = {0};
    for (int i = 0; i < op->noperands; i++) {
        other[i] = sum[i] = in[i];
        if (!(mask >> i & 1))
            continue;
        other[i] = new_tensor(op->in[i]);
        sum[i] = new_tensor(op->in[i]);
        fill(&other[i]);
        memcpy(sum[i].data, in[i].data, (size_t)sf_type_bytes(op->in[i]));
        sf_combine(SF_MONOID_ADD, &sum[i], &other[i]);
    }
    assert_int_equal(sf_eval_op(op, in, out_in, NULL), SF_OK);
    assert_int_equal(sf_eval_op(op, other, out_other, NULL), SF_OK);
    assert_int_equal(sf_eval_op(op, sum, out_sum, NULL), SF_OK);
    for (int i = 0; i < op->nresults; i++) {
        sf_combine(SF_MONOID_ADD, &out_in[i], &out_other[i]);
        check_same(op, "linearity", &out_in[i], &out_sum[i]);
        sf_free(out_in[i].data), sf_free(out_other[i].data), sf_free(out_sum[i].data);
    }
    for (int i = 0; i < op->noperands; i++)
        if (mask >> i & 1)
            sf_free(other[i].data), sf_free(sum[i].data);
    linear_checks++;
}

static void check_commutes(const sf_op *op, const sf_tensor *in, const sf_tensor *whole)
{
    sf_tensor swapped[2] = {in[1], in[0]}, out = {0};
    CHECK(op, op->noperands == 2 && op->in[0] == op->in[1], "operands of different types");
    assert_int_equal(sf_eval_op(op, swapped, &out, NULL), SF_OK);
    check_same(op, "commutation", &out, whole);
    sf_free(out.data);
}

static void check_op(const sf_op *op)
{
    sf_arena arena = {0};
    sf_factoring f;
    sf_tensor in[16], out[16] = {0};
    assert_true(op->noperands <= 16 && op->nresults <= 16);
    for (int i = 0; i < op->noperands; i++) {
        in[i] = new_tensor(op->in[i]);
        fill(&in[i]);
    }
    sf_diag *diag = sf_diag_new();
    sf_status status = sf_eval_op(op, in, out, diag);
    CHECK(op, status == SF_OK, "evaluation: %s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    sf_op_factors(op, &arena, &f);
    check_walks(op, &f);
    /* Pieces of loops and branches are made of those of the ops inside: local/ joins them. */
    for (int k = 0; k < f.nfactors && op->def->control == SF_CONTROL_NONE; k++)
        for (int ways = 2; ways <= 3; ways++)
            if (f.factors[k].role != SF_WHOLE && f.factors[k].size >= ways)
                check_split(op, &f, k, ways, in, out);
    uint32_t masks[SF_MAX_LINEAR];
    int nmasks = op->def->linear ? op->def->linear(op, masks) : 0;
    /* The sums of test values do not fit in floats of fewer than 16 bits. */
    bool is_wide = op->nresults > 0 &&
                   (sf_dtype_get(op->out[0]->dtype)->bits >= 16 || !sf_is_float(op->out[0]->dtype));
    for (int i = 0; is_wide && i < nmasks; i++)
        check_linear(op, masks[i], in);
    if (op->def->commutative)
        check_commutes(op, in, &out[0]);
    double flops = sf_op_flops(op), bytes = sf_op_bytes(op);
    CHECK(op, flops >= 0 && isfinite(flops) && bytes >= 0 && isfinite(bytes), "costs");
    for (int i = 0; i < op->noperands; i++)
        sf_free(in[i].data);
    for (int i = 0; i < op->nresults; i++)
        sf_free(out[i].data);
    sf_arena_free(&arena);
    seen[op->def->id]++;
}

static void check_nodes(const sf_graph *graph, const sf_block *block)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]];
        const sf_type *types[32];
        sf_op op = sf_op_of(graph, node, types);
        check_op(&op);
    }
}

static sf_graph *import_text(const char *text, sf_diag *diag, bool check_raw)
{
    static const sf_import_options options = {.unroll = 0, .most_nodes = 10000};
    sf_pool *pool = sf_pool_new();
    sf_module *module = sf_module_new(pool);
    sf_graph *graph = NULL;
    if (sf_stablehlo_read(sf_str_of(text), "sample", module, diag) == SF_OK) {
        if (check_raw)
            check_nodes(module->graph, module->entry->block);
        sf_import(module, &options, diag, &graph);
    }
    sf_module_free(module);
    sf_pool_release(pool);
    return graph;
}

/* Print, read back, print: the same graph and the same text. */
static void check_round_trip(const sf_graph *graph)
{
    sf_buf text = {0}, recomputed = {0};
    sf_diag *diag = sf_diag_new();
    sf_print_stablehlo(graph, &text);
    sf_graph *copy = import_text(text.text, diag, false);
    if (!copy || sf_graph_hash(copy) != sf_graph_hash(graph)) {
        print_error("round trip of\n%s\n%s\n", text.text, copy ? "" : sf_diag_text(diag, 0));
        fail();
    }
    sf_print_stablehlo(copy, &recomputed);
    assert_string_equal(text.text, recomputed.text);
    sf_buf_free(&text);
    sf_buf_free(&recomputed);
    sf_graph_free(copy);
    sf_diag_free(diag);
}

static bool check_text(const char *text, bool must_read)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = import_text(text, diag, true);
    if (!graph && must_read) {
        print_error("%s\n%s\n", text, sf_diag_text(diag, 0));
        fail();
    }
    sf_diag_free(diag);
    if (!graph)
        return false;
    assert_int_equal(sf_graph_verify(graph, NULL), SF_OK);
    check_nodes(graph, graph->top);
    check_round_trip(graph);
    sf_graph_free(graph);
    return true;
}

static void test_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        char text[4096];
        int results = strchr(samples[i].results, ',') ? 2 : 1;
        /* tensor<4x6xf32> has no comma, so a comma separates two results */
        snprintf(text, sizeof text, "func.func public @main(%s) -> (%s) {\n%s\nreturn %s : %s\n}\n",
                 samples[i].arguments, samples[i].results, samples[i].body,
                 results == 2 ? "%r#0, %r#1" : "%r", samples[i].results);
        check_text(text, true);
    }
}

/* Ops without attributes whose factors are pointwise need no sample: they are tried on every type. */
static void test_pointwise(void **state)
{
    (void)state;
    for (int code = 0; code < SF_OP_COUNT; code++) {
        const sf_opdef *def = sf_opdef_get((sf_opcode)code);
        if (def->factors != sf_factors_pointwise || def->nattrs || def->max_operands > 2)
            continue;
        int accepted = 0;
        for (int dtype = 0; dtype < SF_DTYPE_COUNT; dtype++)
            for (int kind = 0; kind < 4; kind++) {
                sf_dtype complex, part = sf_part_of((sf_dtype)dtype);
                bool has_complex = sf_complex_of(part, &complex);
                sf_dtype results[] = {(sf_dtype)dtype, SF_PRED, part, has_complex ? complex : part};
                const char *from = sf_dtype_get((sf_dtype)dtype)->name;
                const char *to = sf_dtype_get(results[kind])->name;
                char text[1024];
                bool is_binary = def->max_operands == 2;
                snprintf(text, sizeof text,
                         "func.func public @main(%%a: tensor<4x6x%s>, %%b: tensor<4x6x%s>) -> "
                         "tensor<4x6x%s> {\n%%r = \"%s.%s\"(%%a%s) : (tensor<4x6x%s>%s%s%s) -> "
                         "tensor<4x6x%s>\nreturn %%r : tensor<4x6x%s>\n}\n",
                         from, from, to, def->dialect, def->name, is_binary ? ", %b" : "", from,
                         is_binary ? ", tensor<4x6x" : "", is_binary ? from : "",
                         is_binary ? ">" : "", to, to);
                accepted += check_text(text, false);
            }
        if (!accepted) {
            print_error("%s.%s takes no type at all\n", def->dialect, def->name);
            fail();
        }
    }
}

/* Random instances of every op: the op as it stands in a graph that was built, and the graph as it is
 * read back and brought into normal form. */
static void test_random_instances(void **state)
{
    (void)state;
    enum { CASES = 40, MOST = 60 };
    for (int code = 0; code < SF_OP_COUNT; code++)
        for (uint32_t seed = 0; test_can_draw((sf_opcode)code) && seed < CASES; seed++) {
            test_case c;
            test_case_draw(&c, (sf_opcode)code, seed, true, MOST);
            const sf_type *types[32];
            sf_op op = sf_op_of(c.graph, c.node, types);
            if (sums_are_exact(&op))
                check_op(&op);
            sf_buf text = {0};
            sf_print_stablehlo(c.graph, &text);
            sf_diag *diag = sf_diag_new();
            sf_graph *graph = import_text(text.text, diag, false);
            if (!graph)
                print_error("seed %u: %s\n%s\n", seed, sf_diag_text(diag, 0), text.text);
            assert_non_null(graph);
            assert_int_equal(sf_graph_verify(graph, NULL), SF_OK);
            if (sums_are_exact(&op))
                check_nodes(graph, graph->top);
            check_round_trip(graph);
            sf_graph_free(graph);
            sf_diag_free(diag);
            sf_buf_free(&text);
            test_case_free(&c);
        }
}

/* Import puts something else in its place: a function, or its definition. */
static bool is_replaced(int code)
{
    return code == SF_OP_CALL || code == SF_OP_BATCH_NORM_GRAD ||
           code == SF_OP_BATCH_NORM_INFERENCE || code == SF_OP_BATCH_NORM_TRAINING;
}

static void test_every_op_was_seen(void **state)
{
    (void)state;
    for (int code = 0; code < SF_OP_COUNT; code++) {
        const sf_opdef *def = sf_opdef_get((sf_opcode)code);
        assert_int_equal(def->id, code);
        assert_non_null(def->doc);
        if (!seen[code] && !is_replaced(code)) {
            print_error("%s.%s has no sample\n", def->dialect, def->name);
            fail();
        }
    }
    print_message("%d splits, %d checks of linearity\n", splits, linear_checks);
    assert_true(splits > 1000 && linear_checks > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_pointwise),
        cmocka_unit_test(test_random_instances),
        cmocka_unit_test(test_every_op_was_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
