#include "run/text/scalar.h"

#include <inttypes.h>
#include <string.h>

#include "op/carry.h"
#include "op/op.h"
#include "op/slots.h"

const char *sf_word_type(sf_dtype dtype)
{
    return sf_is_complex(dtype) ? "cplx" : sf_is_float(dtype) ? "f64" : "s64";
}

/* Those with a text of their own, apart from which r_NAME, z_NAME and i_NAME are. */
typedef void put_special(sf_buf *out, const sf_op *op, const char *const *in, const char *result);

static int bits_of(sf_dtype dtype)
{
    return sf_dtype_get(dtype)->bits;
}

static void declare_word(sf_buf *out, sf_dtype dtype, const char *result)
{
    sf_buf_printf(out, "%s %s = wround_%s(", sf_word_type(dtype), result, sf_type_name(dtype));
}

static void put_clamp(sf_buf *out, const sf_op *op, const char *const *in, const char *result)
{
    sf_dtype dtype = op->in[1]->dtype;
    const char *kind = sf_is_float(dtype) ? "f64" : "s64", *sign = sf_is_unsigned(dtype) ? "u" : "";
    declare_word(out, dtype, result);
    sf_buf_printf(out, "%smin_%s(%smax_%s(%s, %s), %s));\n", sign, kind, sign, kind, in[1], in[0],
                  in[2]);
}

static void put_select(sf_buf *out, const sf_op *op, const char *const *in, const char *result)
{
    sf_buf_printf(out, "%s %s = %s != 0 ? %s : %s;\n", sf_word_type(op->in[1]->dtype), result,
                  in[0], in[1], in[2]);
}

/* Bits of a word of a float type. */
static void put_order(sf_buf *out, sf_dtype dtype, const char *word, const char *name)
{
    const sf_dtype_info *info = sf_dtype_get(dtype);
    if (info->class == SF_UNSIGNED) {
        sf_buf_printf(out, "s64 %s = (s64)((u64)%s ^ SIGN64);\n", name, word);
        return;
    }
    if (info->class != SF_FLOAT) {
        sf_buf_printf(out, "s64 %s = %s;\n", name, word);
        return;
    }
    bool has_sign = info->bits != info->exponent + info->mantissa;
    bool lonely = strstr(info->hlo, "fnuz") != NULL;
    sf_buf_printf(
        out,
        "s64 %s; { union { raw_%s raw; u%d bits; } b_; b_.bits = 0; b_.raw = wput_%s(%s); %s = "
        "order_of_bits(b_.bits, %d, %d, %d); }\n",
        name, info->hlo, info->bytes * 8, info->hlo, word, name, info->bits, has_sign, lonely);
}

static const char *comparison_of(const sf_op *op)
{
    static const char *const names[][2] = {{"EQ", "=="}, {"NE", "!="}, {"GE", ">="},
                                           {"GT", ">"},  {"LE", "<="}, {"LT", "<"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(sf_op_text(op, SF_COMPARE_DIRECTION), names[i][0]) == 0)
            return names[i][1];
    return "==";
}

static void put_compare(sf_buf *out, const sf_op *op, const char *const *in, const char *result)
{
    sf_dtype dtype = op->in[0]->dtype;
    const char *sign = comparison_of(op);
    bool total = strcmp(sf_op_text(op, SF_COMPARE_TYPE), "TOTALORDER") == 0;
    if (sf_is_complex(dtype)) {
        sf_buf_printf(out, "s64 %s = (%s.re == %s.re && %s.im == %s.im) %s 1;\n", result, in[0],
                      in[1], in[0], in[1], sign);
    } else if (sf_is_float(dtype) && !total) {
        sf_buf_printf(out, "s64 %s = %s %s %s;\n", result, in[0], sign, in[1]);
    } else {
        char a[80], b[80];
        snprintf(a, sizeof a, "%s_a", result);
        snprintf(b, sizeof b, "%s_b", result);
        put_order(out, dtype, in[0], a);
        put_order(out, dtype, in[1], b);
        sf_buf_printf(out, "s64 %s = %s %s %s;\n", result, a, sign, b);
    }
}

static void put_real_to_integer(sf_buf *out, sf_dtype to, const char *from)
{
    const sf_dtype_info *info = sf_dtype_get(to);
    if (info->class == SF_BOOLEAN)
        sf_buf_printf(out, "(s64)(%s != 0)", from);
    else
        sf_buf_printf(out, "real_to_%s(%s, %d)", info->class == SF_UNSIGNED ? "unsigned" : "signed",
                      from, info->bits);
}

static void put_convert(sf_buf *out, const sf_op *op, const char *const *in, const char *result)
{
    sf_dtype from = op->in[0]->dtype, to = op->out[0]->dtype;
    char real[96];
    snprintf(real, sizeof real, "%s%s", in[0], sf_is_complex(from) ? ".re" : "");
    declare_word(out, to, result);
    if (sf_is_complex(from) && sf_is_complex(to)) {
        sf_buf_printf(out, "%s", in[0]);
    } else if (sf_is_inexact(to)) {
        sf_buf_puts(out, sf_is_complex(to) ? "cplx_of(" : "");
        bool wide = bits_of(from) > 32 && sf_part_of(to) != SF_F64;
        if (sf_is_inexact(from))
            sf_buf_puts(out, real);
        else if (wide)
            sf_buf_printf(out, "odd_real(%s, %d)", real, sf_is_unsigned(from));
        else
            sf_buf_printf(out, "(f64)%s%s", sf_is_unsigned(from) ? "(u64)" : "", real);
        sf_buf_puts(out, sf_is_complex(to) ? ", 0)" : "");
    } else if (sf_is_inexact(from)) {
        put_real_to_integer(out, to, real);
    } else {
        sf_buf_puts(out, real);
    }
    sf_buf_puts(out, ");\n");
}

static void put_precision(sf_buf *out, const sf_op *op, const char *const *in, const char *result)
{
    const sf_dtype_info *info = sf_dtype_get(op->in[0]->dtype);
    declare_word(out, op->in[0]->dtype, result);
    sf_buf_printf(out, "reduce_precision(%s, %d, %d, %d, %d));\n", in[0],
                  (int)sf_op_int(op, SF_PRECISION_EXPONENT, 0),
                  (int)sf_op_int(op, SF_PRECISION_MANTISSA, 0), info->exponent, info->mantissa);
}

static void put_next_after(sf_buf *out, const sf_op *op, const char *const *in, const char *result)
{
    const sf_dtype_info *info = sf_dtype_get(op->in[0]->dtype);
    sf_buf_printf(out, "f64 %s; NEXT_AFTER(%s, u%d, %s, %s, %s);\n", result, info->hlo,
                  info->bytes * 8, in[0], in[1], result);
}

static void put_complex(sf_buf *out, const sf_op *op, const char *const *in, const char *result)
{
    (void)op;
    sf_buf_printf(out, "cplx %s = cplx_of(%s, %s);\n", result, in[0], in[1]);
}

/* Of elements of one width; others change the shape. */
static void put_bitcast(sf_buf *out, const sf_op *op, const char *const *in, const char *result)
{
    const char *from = sf_type_name(op->in[0]->dtype), *to = sf_type_name(op->out[0]->dtype);
    sf_buf_printf(out,
                  "%s %s; { union { raw_%s from; raw_%s to; } b_; b_.from = wput_%s(%s); %s = "
                  "wget_%s(b_.to); }\n",
                  sf_word_type(op->out[0]->dtype), result, from, to, from, in[0], result, to);
}

static put_special *special_of(sf_opcode code)
{
    switch ((int)code) {
    case SF_OP_CLAMP:
        return put_clamp;
    case SF_OP_SELECT:
        return put_select;
    case SF_OP_COMPARE:
        return put_compare;
    case SF_OP_CONVERT:
        return put_convert;
    case SF_OP_REDUCE_PRECISION:
        return put_precision;
    case SF_OP_NEXT_AFTER:
        return put_next_after;
    case SF_OP_COMPLEX:
        return put_complex;
    case SF_OP_BITCAST_CONVERT:
        return put_bitcast;
    default:
        return NULL;
    }
}

bool sf_scalar_has(const sf_opdef *def)
{
    return def->id <= SF_OP_ZETA || special_of((sf_opcode)def->id) != NULL;
}

void sf_put_scalar(sf_buf *out, const sf_op *op, const char *const *operands, const char *result)
{
    sf_dtype from = op->in[0]->dtype, to = op->out[0]->dtype;
    put_special *special = special_of((sf_opcode)op->def->id);
    if (special) {
        special(out, op, operands, result);
        return;
    }
    bool part = sf_is_complex(from) && !sf_is_complex(to);
    declare_word(out, to, result);
    char kind = sf_is_complex(from) ? 'z' : sf_is_float(from) ? 'r' : 'i';
    sf_buf_printf(out, "%c_%s(%s", kind, op->def->name, operands[0]);
    for (int i = 1; i < op->noperands; i++)
        sf_buf_printf(out, ", %s", operands[i]);
    if (kind == 'i')
        sf_buf_printf(out, ", %d, %d", bits_of(from), sf_is_unsigned(from));
    sf_buf_puts(out, part ? ").re);\n" : "));\n");
}

/* Regions */

static bool passes_value(const sf_node *node)
{
    return sf_carries(node, SF_CARRIES_ALIKE | SF_CARRIES_SHAPE | SF_CARRIES_ORDER |
                                SF_CARRIES_COPIES); /* of a scalar */
}

bool sf_block_is_scalar(const sf_graph *graph, const sf_block *block)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]];
        bool known = sf_is(node, SF_OP_CONSTANT) || passes_value(node) ||
                     (sf_scalar_has(node->def) && node->nresults == 1);
        for (uint32_t r = 0; r < node->nresults; r++)
            known = known && sf_type_of(graph, node->result + r)->rank == 0;
        if (!known)
            return false;
    }
    return true;
}

sf_value_name sf_name_value(const char *prefix, sf_value value)
{
    sf_value_name name;
    snprintf(name.at, sizeof name.at, "%s%u", prefix, value);
    return name;
}

static void put_number(sf_buf *out, sf_dtype part, const void *data, int64_t index)
{
    if (sf_is_float(part)) {
        double real = sf_load_f64(part, data, index);
        uint64_t bits;
        memcpy(&bits, &real, sizeof bits);
        sf_buf_printf(out, "float64(0x%" PRIx64 "ull)", bits);
    } else {
        sf_buf_printf(out, "(s64)0x%" PRIx64 "ull", (uint64_t)sf_load_i64(part, data, index));
    }
}

static void put_dense(sf_buf *out, const sf_dense *dense)
{
    sf_dtype dtype = dense->type->dtype, part = sf_part_of(dtype);
    if (!sf_is_complex(dtype)) {
        put_number(out, part, dense->data, 0);
        return;
    }
    sf_buf_puts(out, "cplx_of(");
    put_number(out, part, dense->data, 0);
    sf_buf_puts(out, ", ");
    put_number(out, part, dense->data, 1);
    sf_buf_puts(out, ")");
}

static void put_node(sf_buf *out, const sf_graph *graph, const sf_node *node, const char *prefix)
{
    sf_value_name result = sf_name_value(prefix, node->result), in[3];
    const char *names[3] = {in[0].at, in[1].at, in[2].at};
    const sf_type *types[8];
    const char *word = sf_word_type(sf_type_of(graph, node->result)->dtype);
    if (sf_is(node, SF_OP_CONSTANT)) {
        sf_buf_printf(out, "%s %s = ", word, result.at);
        put_dense(out, &node->attrs[SF_CONSTANT_VALUE]->dense);
        sf_buf_puts(out, ";\n");
        return;
    }
    if (passes_value(node)) {
        for (uint32_t r = 0; r < node->nresults; r++)
            sf_buf_printf(out, "%s %s = %s;\n",
                          sf_word_type(sf_type_of(graph, node->result + r)->dtype),
                          sf_name_value(prefix, node->result + r).at,
                          sf_name_value(prefix, node->operands[r]).at);
        return;
    }
    for (uint32_t i = 0; i < node->noperands && i < 3; i++)
        in[i] = sf_name_value(prefix, node->operands[i]);
    sf_op op = sf_op_of(graph, node, types);
    sf_put_scalar(out, &op, names, result.at);
}

void sf_put_block(sf_buf *out, const sf_graph *graph, const sf_block *block, const char *prefix,
                  const char *const *arguments)
{
    for (uint32_t i = 0; i < block->narguments; i++)
        sf_buf_printf(out, "%s %s = %s;\n",
                      sf_word_type(sf_type_of(graph, block->arguments[i])->dtype),
                      sf_name_value(prefix, block->arguments[i]).at, arguments[i]);
    for (uint32_t i = 0; i < block->nnodes; i++)
        put_node(out, graph, graph->nodes[block->nodes[i]], prefix);
}

void sf_put_monoid(sf_buf *out, sf_monoid monoid, sf_dtype dtype, const char *a, const char *b)
{
    static const char *const names[SF_MONOID_COUNT] = {
        [SF_MONOID_ADD] = "add",     [SF_MONOID_MUL] = "multiply", [SF_MONOID_MIN] = "minimum",
        [SF_MONOID_MAX] = "maximum", [SF_MONOID_AND] = "and",      [SF_MONOID_OR] = "or",
        [SF_MONOID_XOR] = "xor",
    };
    char kind = sf_is_complex(dtype) ? 'z' : sf_is_float(dtype) ? 'r' : 'i';
    if (monoid == SF_MONOID_SECOND) {
        sf_buf_puts(out, b);
        return;
    }
    sf_buf_printf(out, "%c_%s(%s, %s", kind, names[monoid], a, b);
    if (kind == 'i')
        sf_buf_printf(out, ", %d, %d", bits_of(dtype), sf_is_unsigned(dtype));
    sf_buf_puts(out, ")");
}
