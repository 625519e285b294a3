/* The reader of HLO text: its result for each construct, old style and new, and its messages about
 * invalid texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define READER sf_hlo_read
#define FILE_NAME "t.hlo"
#include "front/read_module.h"

/* The text of one instruction sequence, as the body of an entry computation. */
#define ENTRY(body) "HloModule m\n\nENTRY e {\n" body "}\n"
#define ADD                                                                                        \
    "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"

static void check_ints(const sf_node *node, const char *name, int count, const int64_t *expected)
{
    const sf_attr *attr = attr_of(node, name);
    assert_non_null(attr);
    assert_int_equal(attr->count, count);
    assert_memory_equal(attr->ints, expected, (size_t)count * sizeof *expected);
}

#define CHECK_INTS(node, name, ...)                                                                \
    check_ints((node), (name), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),          \
               (const int64_t[]){__VA_ARGS__})

static void check_message(fixture *f, int index, const char *expected)
{
    const char *text = sf_diag_text(f->diag, index);
    if (!text || !strstr(text, expected))
        fail_msg("message %d is \"%s\", expected \"%s\"", index, text ? text : "", expected);
}

/* Two graphs of one shape: equal ops, operands, types, attributes and regions. The pools differ, so
 * attributes are compared by hash. */
static void check_same(const fixture *a, const fixture *b)
{
    const sf_graph *x = a->module->graph, *y = b->module->graph;
    assert_int_equal(x->nnodes, y->nnodes);
    for (size_t i = 0; i < x->nnodes; i++) {
        const sf_node *m = x->nodes[i], *n = y->nodes[i];
        assert_ptr_equal(m->def, n->def);
        assert_int_equal(m->noperands, n->noperands);
        assert_int_equal(m->nregions, n->nregions);
        for (uint32_t k = 0; k < m->noperands; k++)
            assert_int_equal(m->operands[k], n->operands[k]);
        for (int k = 0; k < m->def->nattrs; k++) {
            assert_int_equal(m->attrs[k] != NULL, n->attrs[k] != NULL);
            if (m->attrs[k])
                assert_true(m->attrs[k]->hash == n->attrs[k]->hash);
        }
        char s[SF_TYPE_TEXT], t[SF_TYPE_TEXT];
        assert_string_equal(sf_type_text(sf_type_of(x, m->result), s),
                            sf_type_text(sf_type_of(y, n->result), t));
    }
}

static const char new_style[] =
    "HloModule jit_f, entry_computation_layout={(f32[4,3]{1,0}, f32[3,5]{1,0})->f32[4]{0}}\n\n"
    "region_0.1 {\n"
    "  reduce.1 = f32[] parameter(0)\n"
    "  reduce.2 = f32[] parameter(1)\n"
    "  ROOT reduce.3 = f32[] add(reduce.1, reduce.2)\n"
    "}\n\n"
    "ENTRY main.2 {\n"
    "  x.1 = f32[4,3]{1,0} parameter(0)\n"
    "  w.1 = f32[3,5]{1,0} parameter(1)\n"
    "  dot.1 = f32[4,5]{1,0} dot(x.1, w.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "  zero.1 = f32[] constant(0)\n"
    "  ROOT sum.1 = f32[4]{0} reduce(dot.1, zero.1), dimensions={1}, to_apply=region_0.1\n"
    "}\n";

static const char old_style[] =
    "HloModule jit_f, is_scheduled=true\n\n"
    "%region_0.1 (reduce.1: f32[], reduce.2: f32[]) -> f32[] {\n"
    "  %reduce.1 = f32[] parameter(0), metadata={op_name=\"jit(f)/reduce\"}\n"
    "  %reduce.2 = f32[] parameter(1)\n"
    "  ROOT %reduce.3 = f32[] add(f32[] %reduce.1, f32[] %reduce.2)\n"
    "}\n\n"
    "ENTRY %main.2 (x.1: f32[4,3], w.1: f32[3,5]) -> f32[4] {\n"
    "  %x.1 = f32[4,3]{1,0:T(8,128)} parameter(0)\n"
    "  %w.1 = f32[3,5]{0,1} parameter(1)\n"
    "  %dot.1 = f32[4,5]{1,0} dot(f32[4,3]{1,0:T(8,128)} %x.1, /*index=1*/f32[3,5]{0,1} %w.1), "
    "lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={default,default}, "
    "metadata={op_name=\"jit(f)/dot[\\'a\\']\" source_file=\"f.py\" source_line=3}\n"
    "  %zero.1 = f32[] constant(0)\n"
    "  ROOT %sum.1 = f32[4]{0} reduce(f32[4,5]{1,0} %dot.1, f32[] %zero.1), dimensions={1}, "
    "to_apply=%region_0.1, backend_config={\"a\":\"}\"}\n"
    "}\n";

static void test_old_and_new_style(void **state)
{
    (void)state;
    fixture a = read_good(new_style), b = read_good(old_style);
    check_same(&a, &b);
    assert_null(a.module->paths);
    assert_string_equal(b.module->paths[node_at(&b, 0)->id], "jit(f)/dot['a']");
    assert_null(b.module->paths[node_at(&b, 1)->id]);
    assert_null(attr_of(node_at(&b, 0), "precision_config"));
    assert_string_equal(a.module->entry->name, "main.2");
    assert_string_equal(a.module->entry->arguments[1].name, "w");
    drop(&a);
    drop(&b);
}

static void test_every_truncation(void **state)
{
    (void)state;
    for (size_t length = 0; length < sizeof old_style - 2; length++) {
        fixture f = read_bytes(old_style, length);
        assert_int_not_equal(f.status, SF_OK);
        assert_true(sf_diag_count(f.diag) > 0);
        drop(&f);
    }
}

static void test_every_byte_changed(void **state)
{
    (void)state;
    char text[sizeof old_style];
    static const char changes[] = {'{', '}', '(', ')', '"', '\n', '\0', 'x', '0', ','};
    for (size_t at = 0; at < sizeof old_style - 1; at += 3)
        for (size_t k = 0; k < sizeof changes; k++) {
            memcpy(text, old_style, sizeof text);
            text[at] = changes[k];
            fixture f = read_bytes(text, sizeof old_style - 1);
            assert_int_equal(f.status == SF_OK, sf_diag_count(f.diag) == 0);
            drop(&f);
        }
}

static void test_computation_after_use(void **state)
{
    (void)state;
    fixture f = read_good("HloModule m\nENTRY e {\n"
                          "  x = f32[3]{0} parameter(0)\n  z = f32[] constant(0)\n"
                          "  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add\n}\n" ADD);
    const sf_node *reduce = node_at(&f, 1);
    assert_int_equal(reduce->def->id, SF_OP_REDUCE);
    assert_int_equal(reduce->nregions, 1);
    assert_int_equal(reduce->regions[0]->nnodes, 1);
    drop(&f);
}

static void test_recursion_is_an_error(void **state)
{
    (void)state;
    fixture f = read_text("HloModule m\n"
                          "a {\n  p = f32[] parameter(0)\n  ROOT q = f32[] call(p), to_apply=b\n}\n"
                          "b {\n  p = f32[] parameter(0)\n  ROOT q = f32[] call(p), to_apply=a\n}\n"
                          "ENTRY e {\n  p = f32[] parameter(0)\n"
                          "  ROOT q = f32[] call(p), to_apply=a\n}\n");
    assert_int_equal(f.status, SF_EINPUT);
    assert_int_equal(sf_diag_count(f.diag), 1);
    check_message(&f, 0, "t.hlo:8:36: error: the computation a uses itself");
    drop(&f);
}

static void test_tuples_are_flattened(void **state)
{
    (void)state;
    fixture f = read_good("HloModule m, input_output_alias={ {0,1}: (1, {0}, may-alias) }\n"
                          "ENTRY e {\n"
                          "  p = (f32[2]{0}, (s32[], f32[3]{0})) parameter(1)\n"
                          "  q = f32[3]{0} parameter(0)\n"
                          "  in = (s32[], f32[3]{0}) get-tuple-element(p), index=1\n"
                          "  y = f32[3]{0} get-tuple-element(in), index=1\n"
                          "  x = f32[2]{0} get-tuple-element(p), index=0\n"
                          "  n = f32[3]{0} add(q, y)\n"
                          "  t = (f32[3]{0}, f32[2]{0}) tuple(n, x)\n"
                          "  ROOT u = ((f32[3]{0}, f32[2]{0}), (s32[], f32[3]{0})) tuple(t, in)\n"
                          "}\n");
    const sf_func *entry = f.module->entry;
    assert_int_equal(entry->block->narguments, 4);
    assert_int_equal(entry->block->nresults, 4);
    assert_int_equal(entry->block->nnodes, 1);
    const sf_node *add = node_at(&f, 0);
    assert_int_equal(add->operands[0], entry->block->arguments[0]);
    assert_int_equal(add->operands[1], entry->block->arguments[3]);
    assert_int_equal(entry->block->results[1], entry->block->arguments[1]);
    assert_int_equal(entry->block->results[2], entry->block->arguments[2]);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(f.module->graph->values[entry->block->arguments[i]].index, i);
    assert_string_equal(entry->arguments[0].name, "q");
    assert_string_equal(entry->arguments[3].name, "p[1][1]");
    assert_int_equal(entry->arguments[1].next, 1);
    assert_int_equal(entry->arguments[1].next_from, SF_FROM_ALIAS);
    assert_int_equal(entry->arguments[0].next, SF_NONE);
    drop(&f);
}

static void test_arguments(void **state)
{
    (void)state;
    fixture f =
        read_good(ENTRY("  a.12 = f32[] parameter(1), sharding={devices=[2]<=[2]}\n"
                        "  b.1 = f32[] parameter(0), metadata={op_name=\"params[\\'w\\']\"}\n"
                        "  c = f32[] parameter(2), metadata={op_name=\"jit(f)/jit(main)/pjit\"}\n"
                        "  ROOT t = (f32[], f32[], f32[]) tuple(a.12, b.1, c)\n"));
    const sf_argument *arguments = f.module->entry->arguments;
    assert_string_equal(arguments[0].name, "params['w']");
    assert_string_equal(arguments[1].name, "a");
    assert_string_equal(arguments[1].sharding, "{devices=[2]<=[2]}");
    assert_string_equal(arguments[2].name, "c");
    assert_null(arguments[0].sharding);
    drop(&f);
}

static void test_conditional(void **state)
{
    (void)state;
    fixture f = read_good("HloModule m\n"
                          "yes {\n  x = f32[] parameter(0)\n  ROOT n = f32[] negate(x)\n}\n"
                          "no {\n  x = f32[2]{0} parameter(0)\n  z = f32[] constant(0)\n"
                          "  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add\n}\n" ADD
                          "ENTRY e {\n"
                          "  c = pred[] parameter(0)\n  x = f32[] parameter(1)\n"
                          "  y = f32[2]{0} parameter(2)\n"
                          "  ROOT r = f32[] conditional(c, x, y), true_computation=yes, "
                          "false_computation=no\n}\n");
    assert_int_equal(node_at(&f, 0)->def->id, SF_OP_CONVERT);
    const sf_node *node = node_at(&f, 1);
    assert_int_equal(node->def->id, SF_OP_CASE);
    assert_int_equal(node->nregions, 2);
    const char *callees[] = {"no", "yes"};
    for (uint32_t i = 0; i < 2; i++) {
        const sf_block *region = node->regions[i];
        assert_int_equal(region->narguments, 0);
        const sf_node *call = f.module->graph->nodes[region->nodes[0]];
        assert_string_equal(attr_of(call, "callee")->text, callees[i]);
        assert_int_equal(call->operands[0], f.module->entry->block->arguments[2 - i]);
    }
    drop(&f);
}

static void test_while(void **state)
{
    (void)state;
    fixture f = read_good("HloModule m\n"
                          "c {\n  p = (s32[], f32[2]{0}) parameter(0)\n"
                          "  i = s32[] get-tuple-element(p), index=0\n  n = s32[] constant(3)\n"
                          "  ROOT l = pred[] compare(i, n), direction=LT\n}\n"
                          "b {\n  p = (s32[], f32[2]{0}) parameter(0)\n"
                          "  i = s32[] get-tuple-element(p), index=0\n"
                          "  x = f32[2]{0} get-tuple-element(p), index=1\n"
                          "  j = s32[] add(i, i)\n"
                          "  ROOT t = (s32[], f32[2]{0}) tuple(j, x)\n}\n"
                          "ENTRY e {\n  p = (s32[], f32[2]{0}) parameter(0)\n"
                          "  ROOT w = (s32[], f32[2]{0}) while(p), condition=c, body=b\n}\n");
    const sf_node *node = node_at(&f, 0);
    assert_int_equal(node->def->id, SF_OP_WHILE);
    assert_int_equal(node->noperands, 2);
    assert_int_equal(node->nresults, 2);
    assert_int_equal(node->regions[0]->nresults, 1);
    assert_int_equal(node->regions[1]->nresults, 2);
    drop(&f);
}

static void test_convolution(void **state)
{
    (void)state;
    fixture f = read_good(
        ENTRY("  x = f32[2,8,8,4]{3,2,1,0} parameter(0)\n  k = f32[3,3,4,6]{3,2,1,0} parameter(1)\n"
              "  ROOT a = f32[2,6,4,4]{3,2,1,0} convolution(x, k), window={size=3x3 stride=2x2 "
              "pad=0_1x0_1 rhs_reversal=1x0}, dim_labels=b01f_01io->bf01, "
              "operand_precision={highest,default}\n"));
    const sf_node *node = node_at(&f, 0);
    CHECK_INTS(node, "window_strides", 2, 2);
    CHECK_INTS(node, "padding", 0, 1, 0, 1);
    CHECK_INTS(node, "window_reversal", 1, 0);
    CHECK_INTS(node, "input_spatial_dimensions", 1, 2);
    CHECK_INTS(node, "kernel_spatial_dimensions", 0, 1);
    CHECK_INTS(node, "output_spatial_dimensions", 2, 3);
    assert_int_equal(attr_of(node, "input_feature_dimension")->integer, 3);
    assert_int_equal(attr_of(node, "kernel_input_feature_dimension")->integer, 2);
    assert_int_equal(attr_of(node, "kernel_output_feature_dimension")->integer, 3);
    assert_int_equal(attr_of(node, "output_feature_dimension")->integer, 1);
    assert_string_equal(attr_of(node, "precision_config")->text, "HIGHEST,DEFAULT");
    drop(&f);
}

static void test_packed_attributes(void **state)
{
    (void)state;
    fixture f =
        read_good("HloModule m\n" ADD "ENTRY e {\n"
                  "  x = f32[4,8]{1,0} parameter(0)\n  z = f32[] constant(0)\n"
                  "  s = f32[2,8]{1,0} slice(x), slice={[0:4:2], [0:8]}\n"
                  "  p = f32[5,6]{1,0} pad(s, z), padding=1_1_1x-1_-1\n"
                  "  c = f32[8,8]{1,0} concatenate(x, x), dimensions={0}\n"
                  "  ROOT w = f32[4,8]{1,0} reduce-window(x, z), window={size=1x8 pad=0_0x7_0}, "
                  "to_apply=add\n}\n");
    const sf_node *slice = node_at(&f, 1), *pad = node_at(&f, 2), *window = node_at(&f, 4);
    CHECK_INTS(slice, "start_indices", 0, 0);
    CHECK_INTS(slice, "limit_indices", 4, 8);
    CHECK_INTS(slice, "strides", 2, 1);
    CHECK_INTS(pad, "edge_padding_low", 1, -1);
    CHECK_INTS(pad, "edge_padding_high", 1, -1);
    CHECK_INTS(pad, "interior_padding", 1, 0);
    assert_int_equal(attr_of(node_at(&f, 3), "dimension")->integer, 0);
    CHECK_INTS(window, "window_dimensions", 1, 8);
    CHECK_INTS(window, "padding", 0, 0, 7, 0);
    drop(&f);
}

static void test_literals(void **state)
{
    (void)state;
    fixture f =
        read_good(ENTRY("  a = f32[2,2]{1,0} constant({ { 1, -2.5 }, /*i1=1*/ { 3e-2, -inf } })\n"
                        "  b = pred[2]{0} constant({true, 0})\n"
                        "  c = u64[] constant(18446744073709551615)\n"
                        "  d = s8[2]{0} constant({-128,127})\n"
                        "  n = f32[] constant(-nan)\n"
                        "  g = f64[] constant(0.30000000000000004)\n"
                        "  z = f32[2,0]{1,0} constant({ {}, {} })\n"
                        "  ROOT s = s64[] constant(-9223372036854775808)\n"));
    const sf_dense *dense = &attr_of(node_at(&f, 0), "value")->dense;
    const double expected[] = {1, -2.5, (double)0.03f, -__builtin_inf()};
    for (int i = 0; i < 4; i++)
        assert_true(sf_load_f64(SF_F32, dense->data, i) == expected[i]);
    dense = &attr_of(node_at(&f, 1), "value")->dense;
    assert_int_equal(sf_load_i64(SF_PRED, dense->data, 0), 1);
    assert_int_equal(sf_load_i64(SF_PRED, dense->data, 1), 0);
    dense = &attr_of(node_at(&f, 2), "value")->dense;
    assert_true(sf_load_bits(SF_U64, dense->data, 0) == UINT64_MAX);
    dense = &attr_of(node_at(&f, 3), "value")->dense;
    assert_int_equal(sf_load_i64(SF_S8, dense->data, 0), -128);
    dense = &attr_of(node_at(&f, 4), "value")->dense;
    assert_true(__builtin_isnan(sf_load_f64(SF_F32, dense->data, 0)));
    dense = &attr_of(node_at(&f, 5), "value")->dense;
    assert_true(sf_load_f64(SF_F64, dense->data, 0) == 0.1 + 0.2);
    dense = &attr_of(node_at(&f, 7), "value")->dense;
    assert_true(sf_load_i64(SF_S64, dense->data, 0) == INT64_MIN);
    drop(&f);
}

/* Signs and payloads as XLA prints them; a payload that is none leaves the quiet one. */
static void test_nans(void **state)
{
    (void)state;
    static const struct {
        sf_dtype dtype;
        uint64_t bits[5];
    } cases[] = {
        {SF_F32, {0x7fc00000, 0xffc00000, 0x7f800001, 0xff812345, 0x7fc00000}},
        {SF_F16, {0x7e00, 0xfe00, 0x7c01, 0xff45, 0x7e00}},
        {SF_BF16, {0x7fc0, 0xffc0, 0x7f81, 0xffc5, 0x7fc0}},
        {SF_F64,
         {0x7ff8000000000000, 0xfff8000000000000, 0x7ff0000000000001, 0xfff0000000012345,
          0x7ff8000000000000}},
        {SF_F8E5M2, {0x7e, 0xfe, 0x7d, 0xfd, 0x7e}},
        {SF_F8E4M3FN, {0x7f, 0xff, 0x7f, 0xff, 0x7f}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 ENTRY("  ROOT n = %s[5] constant({nan, -nan, nan(0x1), -nan(0x12345), nan()})\n"),
                 sf_dtype_get(cases[i].dtype)->hlo);
        fixture f = read_good(text);
        const sf_dense *dense = &attr_of(node_at(&f, 0), "value")->dense;
        for (int k = 0; k < 5; k++)
            assert_true(sf_load_bits(cases[i].dtype, dense->data, k) == cases[i].bits[k]);
        drop(&f);
    }
}

static void test_identities(void **state)
{
    (void)state;
    fixture f = read_good(ENTRY("  x = f32[2,3]{1,0} parameter(0)\n"
                                "  y = f32[2,3]{0,1} copy(x)\n"
                                "  z = f32[2,3]{1,0} copy(y)\n"
                                "  b = f32[6]{0} bitcast(z)\n"
                                "  n = s32[] get-dimension-size(b), dimensions={0}\n"
                                "  ROOT t = (f32[6]{0}, s32[]) tuple(b, n)\n"));
    assert_int_equal(f.module->entry->block->nnodes, 2);
    assert_int_equal(node_at(&f, 0)->def->id, SF_OP_RESHAPE);
    assert_int_equal(node_at(&f, 0)->operands[0], f.module->entry->block->arguments[0]);
    const sf_dense *size = &attr_of(node_at(&f, 1), "value")->dense;
    assert_int_equal(sf_load_i64(SF_S32, size->data, 0), 6);
    drop(&f);
}

static void test_map(void **state)
{
    (void)state;
    static const char text[] = "HloModule m\nf {\n  a = f32[] parameter(0)\n"
                               "  b = f32[] parameter(1)\n  ROOT s = f32[] subtract(b, a)\n}\n"
                               "ENTRY e {\n  x = f32[4]{0} parameter(0)\n"
                               "  y = f32[4]{0} parameter(1)\n"
                               "  ROOT m = f32[4]{0} map(x, y), dimensions={0}, to_apply=f\n}\n";
    fixture f = read_good(text);
    const sf_node *node = node_at(&f, 0);
    assert_int_equal(node->def->id, SF_OP_SUBTRACT);
    assert_int_equal(node->operands[0], f.module->entry->block->arguments[1]);
    drop(&f);
}

static void test_custom_call(void **state)
{
    (void)state;
    fixture f = read_good(ENTRY("  x = f32[8,4]{1,0} parameter(0)\n"
                                "  ROOT s = f32[8,4]{1,0} custom-call(x), "
                                "custom_call_target=\"Sharding\", sharding={devices=[8,1]<=[8]}, "
                                "custom_call_has_side_effect=true, backend_config=\"a\\\"b\"\n"));
    const sf_node *node = node_at(&f, 0);
    assert_string_equal(attr_of(node, "call_target_name")->text, "Sharding");
    assert_string_equal(attr_of(node, "mhlo.sharding")->text, "{devices=[8,1]<=[8]}");
    assert_string_equal(attr_of(node, "backend_config")->text, "a\"b");
    assert_int_equal(attr_of(node, "has_side_effect")->integer, 1);
    drop(&f);
}

static void test_several_errors(void **state)
{
    (void)state;
    fixture f = read_text(ENTRY("  x = f32[4]{0} parameter(0)\n"
                                "  a = f32[4]{0} addd(x, x)\n"
                                "  b = f32[4]{0} add(a, x)\n"
                                "  c = f32[4]{0} add(x, nothing)\n"
                                "  d = f32[4]{0} add(x, x), frobnicate=3\n"
                                "  e = opaque[4]{0} negate(x)\n"
                                "  f = f32[4]{0} after-all(x)\n"
                                "  g = f32[3]{0} constant({..})\n"
                                "  h = f32[2,2]{1,0} constant({ { 1, 2 },\n"
                                "    { 3 } })\n"
                                "  i = f32[5]{0} add(x, x)\n"
                                "  j = f32[4]{0} domain(x), to_apply=nothing\n"
                                "  k = s8[] constant(128)\n"
                                "  x = f32[4]{0} negate(x)\n"
                                "  ROOT z = f32[4]{0} add(b, c)\n"));
    static const char *const expected[] = {
        "t.hlo:5:17: error: the opcode addd is not supported",
        "t.hlo:7:24: error: nothing is not defined before this",
        "t.hlo:8:28: error: the attribute frobnicate of add is not supported",
        "t.hlo:9:7: error: the type opaque is not supported",
        "t.hlo:10:17: error: the opcode after-all is not supported",
        "t.hlo:11:27: error:",
        "t.hlo:13:11: error: expected 2 elements along dimension 1, found 1",
        "t.hlo:14:3: error: stablehlo.add: result 0 is declared as tensor<5xf32>",
        "t.hlo:15:17: error: the opcode domain is not supported",
        "t.hlo:16:21: error: 128 does not fit in s8",
        "t.hlo:17:3: error: x is defined twice",
    };
    int count = (int)(sizeof expected / sizeof *expected);
    for (int i = 0; i < count; i++)
        check_message(&f, i, expected[i]);
    assert_int_equal(sf_diag_count(f.diag), count);
    assert_int_equal(f.status, SF_EUNSUPPORTED);
    drop(&f);
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"// nothing\n", "t.hlo:2:1: error: expected 'HloModule', found the end of the text"},
        {"module {}", "t.hlo:1:1: error: expected 'HloModule', found 'module'"},
        {"HloModule m\n", "error: the module has no ENTRY computation"},
        {ENTRY(""), "error: the computation e has no instructions"},
        {ENTRY("  x = f32[2 parameter(0)\n"), "t.hlo:4:13: error: expected ']', found 'parameter'"},
        {ENTRY("  x = f32[] parameter(1)\n"), "parameter 1, but the computation has only 1"},
        {ENTRY("  x = f32[] parameter(0)\n  y = f32[] parameter(0)\n"), "is there twice"},
        {ENTRY("  x = f32[9999999999,9999999999]{1,0} parameter(0)\n"), "too large"},
        {ENTRY("  x = f32[] parameter(0)\n  y = f32[] get-tuple-element(x), index=0\n"),
         "x is no tuple"},
        {ENTRY("  x = (f32[]) parameter(0)\n  y = f32[] get-tuple-element(x), index=1\n"),
         "index 1 of a tuple of 1 elements"},
        {ENTRY("  x = f32[] parameter(0)\n  y = f32[] call(x), to_apply=nowhere\n"),
         "t.hlo:5:31: error: there is no computation nowhere"},
        {ENTRY("  x = f32[] parameter(0), metadata={op_name=\"abc\n"), "ends on its line"},
        {"HloModule m\nENTRY e { x = f32[] parameter(0) }\nENTRY f { x = f32[] parameter(0) }\n",
         "t.hlo:3:7: error: there is a second ENTRY"},
        {"HloModule m\ne { x = f32[] parameter(0) }\nENTRY e { x = f32[] parameter(0) }\n",
         "the computation e is defined twice, first in line 2"},
        {"HloModule m, input_output_alias={ {1}: (0, {}) }\nENTRY e { x = f32[] parameter(0) }\n",
         "t.hlo:1:35: error: the alias is of something that is no result"},
        {ENTRY("  x = f32[2,3]{1,0} parameter(0)\n  y = f32[3,3]{0,1} bitcast(x)\n"),
         "a bitcast from f32[2,3] to elements of another number or width"},
        {ENTRY("  x = f32[2,3]{1,0} parameter(0)\n  y = s16[2,3,2]{2,1,0} bitcast(x)\n"),
         "a bitcast from f32[2,3] to elements of another number or width"},
        {ENTRY("  x = f32[2,3]{1,1} parameter(0)\n"),
         "t.hlo:4:16: error: the layout does not name every dimension once"},
        {ENTRY("  x = f32[2,3]{1} parameter(0)\n"), "does not name every dimension once"},
        {ENTRY("  x = f32[2,3]{2,0} parameter(0)\n"), "does not name every dimension once"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f = read_text(cases[i].text);
        assert_int_not_equal(f.status, SF_OK);
        assert_int_equal(sf_diag_count(f.diag), 1);
        check_message(&f, 0, cases[i].message);
        drop(&f);
    }
}

/* Many times `part`, between two others. */
static fixture read_repeated(const char *before, const char *part, int count, const char *after)
{
    sf_buf buf = {0};
    sf_buf_puts(&buf, before);
    for (int i = 0; i < count; i++)
        sf_buf_puts(&buf, part);
    sf_buf_puts(&buf, after);
    fixture f = read_bytes(buf.text, buf.length);
    sf_buf_free(&buf);
    return f;
}

static void test_hostile(void **state)
{
    (void)state;
    static const struct {
        const char *before, *part, *after;
    } cases[] = {
        {"HloModule m\nENTRY e {\n  x = ", "(", ""},
        {"HloModule m\nENTRY e {\n  x = f32[] constant(", "{", ""},
        {"HloModule m\nENTRY e {\n  x = f32[", "1,", ""},
        {"HloModule m\nENTRY e ", "(", ""},
        {"HloModule m, a=", "{", ""},
        {"HloModule m\n", "x {\n", ""},
        {"HloModule m\nENTRY e {\n", "x = \n", "}\n"},
        {"HloModule m\nENTRY e {\n?", "\n\n", "}\n"},
        {"HloModule m\nENTRY e {\n?", "\n/*", "}\n"},
        {"HloModule m\nENTRY e {\n  x = f32[] parameter(0), metadata=", "{a=", "}\n"},
        {"HloModule m\nENTRY e {\n  x = f64[] constant(", "9", ")\n}\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f = read_repeated(cases[i].before, cases[i].part, 100000, cases[i].after);
        assert_int_equal(f.status == SF_OK, sf_diag_count(f.diag) == 0);
        assert_true(sf_diag_count(f.diag) <= 25);
        drop(&f);
    }
}

/* Computations that each use the next one, which is defined later. */
static void test_long_chain(void **state)
{
    (void)state;
    sf_buf buf = {0};
    sf_buf_puts(&buf, "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n"
                      "  ROOT y = f32[] call(x), to_apply=f0\n}\n");
    for (int i = 0; i < 2000; i++)
        sf_buf_printf(
            &buf, "f%d {\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f%d\n}\n", i,
            i + 1);
    sf_buf_puts(&buf, "f2000 {\n  ROOT x = f32[] parameter(0)\n}\n");
    fixture f = read_bytes(buf.text, buf.length);
    assert_int_equal(f.status, SF_EUNSUPPORTED);
    check_message(&f, 0, "more than 64 computations use each other before they are defined");
    sf_buf_free(&buf);
    drop(&f);
}

static void test_no_memory(void **state)
{
    (void)state;
    size_t live = sf_mem_live();
    for (long successes = 0;; successes++) {
        sf_diag *diag = sf_diag_new();
        sf_guard guard;
        sf_guard_enter(&guard);
        if (setjmp(guard.target) == 0) {
            sf_mem_fail_after(successes);
            sf_pool *pool = sf_pool_new();
            sf_module *module = sf_module_new(pool);
            sf_status status = sf_hlo_read(sf_str_of(old_style), "t.hlo", module, diag);
            sf_mem_fail_after(-1);
            assert_int_equal(status, SF_OK);
            sf_module_free(module);
            sf_pool_release(pool);
            sf_guard_leave(&guard);
            sf_diag_free(diag);
            assert_true(successes > 3);
            return;
        }
        sf_mem_fail_after(-1);
        sf_diag_free(diag);
        assert_int_equal(sf_mem_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_old_and_new_style),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_every_byte_changed),
        cmocka_unit_test(test_computation_after_use),
        cmocka_unit_test(test_recursion_is_an_error),
        cmocka_unit_test(test_tuples_are_flattened),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_conditional),
        cmocka_unit_test(test_while),
        cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_packed_attributes),
        cmocka_unit_test(test_literals),
        cmocka_unit_test(test_nans),
        cmocka_unit_test(test_identities),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_custom_call),
        cmocka_unit_test(test_several_errors),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_long_chain),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
