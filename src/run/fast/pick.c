#include "run/fast/pick.h"

#include <string.h>

#include "op/op.h"
#include "op/slots.h"

/* The values of a body, for one pair of relations: a truth, or one of the four arguments. */
enum { UNKNOWN = -1, FALSE_, TRUE_, VALUE, INDEX, NEXT_VALUE, NEXT_INDEX };
enum { MAX_NODES = 24 };

typedef struct trial {
    const sf_op *op;
    const sf_block *block;
    sf_relation value, index;
    int results[MAX_NODES]; /* of the nodes */
} trial;

static int look_up_value(const trial *t, sf_value value)
{
    for (uint32_t i = 0; i < t->block->narguments; i++)
        if (t->block->arguments[i] == value)
            return VALUE + (int)i;
    for (uint32_t i = 0; i < t->block->nnodes; i++)
        if (t->op->graph->nodes[t->block->nodes[i]]->result == value)
            return t->results[i];
    return UNKNOWN;
}

static sf_relation transposed_relation(sf_relation relation)
{
    static const sf_relation other[] = {
        [SF_LESS] = SF_GREATER,         [SF_EQUAL] = SF_EQUAL,
        [SF_GREATER] = SF_LESS,         [SF_NAN_FIRST] = SF_NAN_SECOND,
        [SF_NAN_SECOND] = SF_NAN_FIRST, [SF_NAN_BOTH] = SF_NAN_BOTH};
    return other[relation];
}

/* An argument against itself. */
static sf_relation with_itself(const trial *t, int argument)
{
    bool nan = t->value == SF_NAN_BOTH || (argument == VALUE && t->value == SF_NAN_FIRST) ||
               (argument == NEXT_VALUE && t->value == SF_NAN_SECOND);
    bool is_value = argument == VALUE || argument == NEXT_VALUE;
    return is_value && nan ? SF_NAN_BOTH : SF_EQUAL;
}

static int compares_arguments(const trial *t, const sf_node *node, int a, int b)
{
    const char *direction = node->attrs[SF_COMPARE_DIRECTION]->text;
    const sf_attr *type = node->attrs[SF_COMPARE_TYPE];
    sf_relation relation;
    if (a < VALUE || b < VALUE || (type && strcmp(type->text, "TOTALORDER") == 0))
        return UNKNOWN;
    if (a == b)
        relation = with_itself(t, a);
    else if (a == VALUE && b == NEXT_VALUE)
        relation = t->value;
    else if (a == NEXT_VALUE && b == VALUE)
        relation = transposed_relation(t->value);
    else if (a == INDEX && b == NEXT_INDEX)
        relation = t->index;
    else if (a == NEXT_INDEX && b == INDEX)
        relation = transposed_relation(t->index);
    else
        return UNKNOWN;
    bool ordered = relation <= SF_GREATER, negated = strcmp(direction, "NE") == 0;
    bool holds = ordered && (negated               ? relation != SF_EQUAL
                             : direction[0] == 'E' ? relation == SF_EQUAL
                             : direction[0] == 'G' ? relation == SF_GREATER
                                                   : relation == SF_LESS);
    if (direction[1] == 'E' && !negated)
        holds = holds || relation == SF_EQUAL;
    return (negated && !ordered) || holds ? TRUE_ : FALSE_;
}

static bool is_truth(int x)
{
    return x == FALSE_ || x == TRUE_;
}

static int try_node(const trial *t, const sf_node *node)
{
    int x[3] = {UNKNOWN, UNKNOWN, UNKNOWN};
    if (node->noperands > 3 || node->nregions > 0)
        return UNKNOWN;
    for (uint32_t i = 0; i < node->noperands; i++) {
        x[i] = look_up_value(t, node->operands[i]);
        if (x[i] == UNKNOWN)
            return UNKNOWN;
    }
    if (sf_is(node, SF_OP_COMPARE))
        return compares_arguments(t, node, x[0], x[1]);
    if (sf_is(node, SF_OP_SELECT) && is_truth(x[0]))
        return x[0] == TRUE_ ? x[1] : x[2];
    if (sf_is(node, SF_OP_NOT) && is_truth(x[0]))
        return x[0] == TRUE_ ? FALSE_ : TRUE_;
    if (!is_truth(x[0]) || !is_truth(x[1]))
        return UNKNOWN;
    bool a = x[0] == TRUE_, b = x[1] == TRUE_;
    if (sf_is(node, SF_OP_AND))
        return a && b ? TRUE_ : FALSE_;
    if (sf_is(node, SF_OP_OR))
        return a || b ? TRUE_ : FALSE_;
    return sf_is(node, SF_OP_XOR) ? (a != b ? TRUE_ : FALSE_) : UNKNOWN;
}

static bool try_body(trial *t, sf_pick *out)
{
    for (uint32_t i = 0; i < t->block->nnodes; i++)
        t->results[i] = try_node(t, t->op->graph->nodes[t->block->nodes[i]]);
    int value = look_up_value(t, t->block->results[0]),
        index = look_up_value(t, t->block->results[1]);
    out->value[t->value][t->index] = value == NEXT_VALUE;
    out->index[t->value][t->index] = index == NEXT_INDEX;
    return (value == VALUE || value == NEXT_VALUE) && (index == INDEX || index == NEXT_INDEX);
}

bool sf_pick_of(const sf_op *op, sf_pick *out)
{
    if (op->noperands != 4 || op->nregions != 1 || op->regions[0]->nnodes > MAX_NODES ||
        op->regions[0]->narguments != 4 || op->regions[0]->nresults != 2 ||
        sf_is_float(op->in[1]->dtype) || sf_is_complex(op->in[1]->dtype))
        return false;
    *out = (sf_pick){0};
    trial t = {.op = op, .block = op->regions[0]};
    int relations = sf_is_float(op->in[0]->dtype) ? SF_RELATION_COUNT : SF_GREATER + 1;
    for (int value = 0; value < relations; value++)
        for (int index = 0; index <= SF_GREATER; index++) {
            t.value = (sf_relation)value;
            t.index = (sf_relation)index;
            if (!try_body(&t, out))
                return false;
        }
    return true;
}

int64_t sf_pick_number(const sf_pick *pick)
{
    int64_t number = 0;
    for (int v = 0; v < SF_RELATION_COUNT; v++)
        for (int i = 0; i <= SF_GREATER; i++)
            number = number << 2 | pick->value[v][i] << 1 | pick->index[v][i];
    return number;
}

sf_pick sf_pick_of_number(int64_t number)
{
    sf_pick pick;
    for (int v = SF_RELATION_COUNT - 1; v >= 0; v--)
        for (int i = SF_GREATER; i >= 0; i--, number >>= 2) {
            pick.value[v][i] = number >> 1 & 1;
            pick.index[v][i] = number & 1;
        }
    return pick;
}
