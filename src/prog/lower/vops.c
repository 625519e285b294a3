/* Which vector op, or fold, computes a node: the ops that loops support. */
#include <string.h>

#include "op/slots.h"
#include "prog/lower/lowering.h"

/* The vector op of each op, where one is enough. Those that depend on the type are settled below. */
static const struct {
    sf_opcode code;
    sf_vop op;
} table[] = {
    {SF_OP_ABS, SF_VABS},
    {SF_OP_CBRT, SF_VCBRT},
    {SF_OP_CEIL, SF_VCEIL},
    {SF_OP_COSINE, SF_VCOS},
    {SF_OP_ERF, SF_VERF},
    {SF_OP_EXPONENTIAL, SF_VEXP},
    {SF_OP_EXPONENTIAL_MINUS_ONE, SF_VEXPM1},
    {SF_OP_FLOOR, SF_VFLOOR},
    {SF_OP_IS_FINITE, SF_VIS_FINITE},
    {SF_OP_LOG, SF_VLOG},
    {SF_OP_LOG_PLUS_ONE, SF_VLOG1P},
    {SF_OP_LOGISTIC, SF_VLOGISTIC},
    {SF_OP_NEGATE, SF_VNEG},
    {SF_OP_NOT, SF_VNOT},
    {SF_OP_ROUND_NEAREST_AFZ, SF_VROUND_AFZ},
    {SF_OP_ROUND_NEAREST_EVEN, SF_VROUND_EVEN},
    {SF_OP_RSQRT, SF_VRSQRT},
    {SF_OP_SIGN, SF_VSIGN},
    {SF_OP_SINE, SF_VSIN},
    {SF_OP_SQRT, SF_VSQRT},
    {SF_OP_TAN, SF_VTAN},
    {SF_OP_TANH, SF_VTANH},
    {SF_OP_ADD, SF_VADD},
    {SF_OP_AND, SF_VAND},
    {SF_OP_ATAN2, SF_VATAN2},
    {SF_OP_DIVIDE, SF_VDIV},
    {SF_OP_MAXIMUM, SF_VMAX},
    {SF_OP_MINIMUM, SF_VMIN},
    {SF_OP_MULTIPLY, SF_VMUL},
    {SF_OP_OR, SF_VOR},
    {SF_OP_POWER, SF_VPOW},
    {SF_OP_REMAINDER, SF_VREM},
    {SF_OP_SHIFT_LEFT, SF_VSHL},
    {SF_OP_SHIFT_RIGHT_ARITHMETIC, SF_VSHR},
    {SF_OP_SHIFT_RIGHT_LOGICAL, SF_VUSHR},
    {SF_OP_SUBTRACT, SF_VSUB},
    {SF_OP_XOR, SF_VXOR},
    {SF_OP_COMPARE, SF_VEQ},
    {SF_OP_SELECT, SF_VSELECT},
    {SF_OP_CLAMP, SF_VMAX},
    {SF_OP_CONVERT, SF_VCOPY},
};

static bool is_bitwise(sf_vop op)
{
    return op == SF_VNOT || op == SF_VAND || op == SF_VOR || op == SF_VXOR || op == SF_VSHL ||
           op == SF_VSHR || op == SF_VUSHR;
}

/* Arithmetic on booleans is logic. */
static bool boolean_op(sf_vop *op)
{
    switch ((int)*op) {
    case SF_VADD:
    case SF_VMAX:
    case SF_VOR:
        *op = SF_VOR;
        return true;
    case SF_VMUL:
    case SF_VMIN:
    case SF_VAND:
        *op = SF_VAND;
        return true;
    case SF_VNOT:
        *op = SF_VNOT_BOOL;
        return true;
    case SF_VXOR:
    case SF_VSELECT:
    case SF_VCOPY:
        return true;
    default:
        return false;
    }
}

static bool integer_op(const sf_dtype_info *info, sf_vop *op)
{
    static const struct {
        sf_vop op, is_unsigned;
    } pairs[] = {
        {SF_VDIV, SF_VUDIV}, {SF_VREM, SF_VUREM}, {SF_VMAX, SF_VUMAX}, {SF_VMIN, SF_VUMIN}};
    bool is_unsigned = info->class == SF_UNSIGNED;
    for (size_t i = 0; is_unsigned && i < sizeof pairs / sizeof *pairs; i++)
        if (*op == pairs[i].op)
            *op = pairs[i].is_unsigned;
    if (is_unsigned && *op == SF_VABS)
        *op = SF_VCOPY;
    switch ((int)*op) {
    case SF_VABS:
    case SF_VSIGN:
        return !is_unsigned;
    case SF_VNEG:
    case SF_VADD:
    case SF_VSUB:
    case SF_VMUL:
    case SF_VDIV:
    case SF_VUDIV:
    case SF_VREM:
    case SF_VUREM:
    case SF_VMAX:
    case SF_VMIN:
    case SF_VUMAX:
    case SF_VUMIN:
    case SF_VSELECT:
    case SF_VCOPY:
        return true;
    case SF_VSHL:
    case SF_VSHR:
    case SF_VUSHR:
        return info->bits >= 32; /* a shift by the width of a narrow type is not the register's */
    default:
        return is_bitwise(*op);
    }
}

static bool compare_op(const sf_node *node, const sf_dtype_info *info, sf_vop *op)
{
    static const struct {
        const char *name;
        sf_vop plain, is_unsigned;
    } directions[] = {{"EQ", SF_VEQ, SF_VEQ},  {"NE", SF_VNE, SF_VNE},  {"LT", SF_VLT, SF_VULT},
                      {"LE", SF_VLE, SF_VULE}, {"GT", SF_VGT, SF_VUGT}, {"GE", SF_VGE, SF_VUGE}};
    if (node->attrs[SF_COMPARE_TYPE])
        return false; /* total order of floats */
    for (size_t i = 0; i < sizeof directions / sizeof *directions; i++)
        if (strcmp(node->attrs[SF_COMPARE_DIRECTION]->text, directions[i].name) == 0) {
            *op = info->class == SF_UNSIGNED ? directions[i].is_unsigned : directions[i].plain;
            return true;
        }
    return false;
}

/* Registers hold floats narrower than a float as such: all of them but the scales, whose products fall
 * below its range and are no zeros. Complex numbers are no registers. */
static bool fits_registers(sf_dtype dtype)
{
    return dtype == SF_PRED ||
           (sf_dtype_get(dtype)->bits >= 8 && dtype != SF_F8E8M0FNU && !sf_is_complex(dtype));
}

/* Scales that are only made or read are floats. */
static bool stands_in_registers(const sf_node *node, sf_dtype dtype)
{
    return fits_registers(dtype) || (dtype == SF_F8E8M0FNU && sf_is(node, SF_OP_CONVERT));
}

/* A counter along one of several dimensions, which a loop has for nothing: SF_STEP_INDEX. A row of one is computed once. */
bool is_counter(const sf_graph *graph, const sf_node *node)
{
    const sf_type *type = sf_type_of(graph, node->result);
    return sf_is(node, SF_OP_IOTA) && type->rank > 1 && type->count > 0 &&
           !sf_is_complex(type->dtype) && sf_dtype_get(type->dtype)->bits >= 32;
}

/* A pad with a constant, which a loop reads its operand through. */
bool is_padding(const lowering *l, const sf_node *node)
{
    if (!l->target->has_windows || !sf_is(node, SF_OP_PAD))
        return false;
    const sf_node *with = sf_maker(l->graph, value_of(l, node->operands[1]));
    const sf_type *to = sf_type_of(l->graph, node->result);
    const sf_type *from = sf_type_of(l->graph, node->operands[0]);
    if (!with || !sf_is(with, SF_OP_CONSTANT) || !with->attrs[SF_CONSTANT_VALUE]->dense.data ||
        !fits_registers(to->dtype) || to->count == 0 || from->count == 0)
        return false;
    for (int d = 0; d < to->rank; d++) {
        int64_t low = node->attrs[SF_PAD_LOW]->ints[d],
                step = node->attrs[SF_PAD_INTERIOR]->ints[d] + 1;
        bool is_dropped = to->dims[d] == 1 && (low != 0 || from->dims[d] != 1);
        if (is_dropped || low + (from->dims[d] - 1) * step < 0)
            return false;
    }
    return true;
}

bool vop_of(const sf_graph *graph, const sf_node *node, sf_vop *op)
{
    if (is_counter(graph, node)) {
        *op = SF_VCOPY;
        return true;
    }
    size_t i = 0, count = sizeof table / sizeof *table;
    while (i < count && !sf_is(node, table[i].code))
        i++;
    if (i == count)
        return false;
    *op = table[i].op;
    const sf_type *result = sf_type_of(graph, node->result);
    const sf_type *operand = sf_type_of(graph, node->operands[node->noperands > 1]);
    const sf_dtype_info *info = sf_dtype_get(operand->dtype);
    if (result->count == 0 || !stands_in_registers(node, result->dtype) ||
        !stands_in_registers(node, operand->dtype))
        return false;
    if (sf_is(node, SF_OP_COMPARE))
        return compare_op(node, info, op);
    if (sf_is(node, SF_OP_CONVERT)) {
        /* Registers saturate at their own range, which is that of i32 and i64. */
        const sf_dtype_info *to = sf_dtype_get(result->dtype);
        if (result->dtype == SF_F8E8M0FNU && info->bits > 32)
            return false; /* what is below the range of a float is no zero, either */
        return info->class != SF_FLOAT || to->class == SF_FLOAT || to->class == SF_BOOLEAN ||
               (to->class == SF_SIGNED && to->bits >= 32);
    }
    if (info->class == SF_BOOLEAN)
        return boolean_op(op);
    if (info->class == SF_FLOAT)
        return !is_bitwise(*op);
    return integer_op(info, op);
}

bool fold_of(const sf_graph *graph, const sf_node *node, sf_vfold *fold)
{
    if (!sf_is(node, SF_OP_REDUCE) || node->nresults != 1)
        return false;
    const sf_type *type = sf_type_of(graph, node->operands[0]);
    const sf_attr *body = node->attrs[SF_REDUCE_BODY];
    const sf_node *init = sf_maker(graph, node->operands[1]);
    if (!body || !init || !sf_is(init, SF_OP_CONSTANT) || !init->attrs[0]->dense.data ||
        !fits_registers(type->dtype))
        return false;
    static const sf_vfold folds[SF_MONOID_COUNT] = {
        [SF_MONOID_ADD] = SF_VFOLD_SUM, [SF_MONOID_MUL] = SF_VFOLD_PROD,
        [SF_MONOID_MIN] = SF_VFOLD_MIN, [SF_MONOID_MAX] = SF_VFOLD_MAX,
        [SF_MONOID_AND] = SF_VFOLD_AND, [SF_MONOID_OR] = SF_VFOLD_OR,
        [SF_MONOID_XOR] = SF_VFOLD_XOR,
    };
    *fold = folds[body->integer];
    bool is_logic = *fold == SF_VFOLD_AND || *fold == SF_VFOLD_OR || *fold == SF_VFOLD_XOR;
    if (sf_is_float(type->dtype))
        return !is_logic;
    if (type->dtype == SF_PRED && !is_logic) {
        *fold = *fold == SF_VFOLD_SUM || *fold == SF_VFOLD_MAX ? SF_VFOLD_OR : SF_VFOLD_AND;
    } else if (sf_is_unsigned(type->dtype)) {
        *fold = *fold == SF_VFOLD_MAX   ? SF_VFOLD_UMAX
                : *fold == SF_VFOLD_MIN ? SF_VFOLD_UMIN
                                        : *fold;
    }
    return true;
}
