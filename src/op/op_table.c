#include <string.h>

#include "op/op.h"
#include "op/slots.h"

#define SF_OP(id, symbol) extern const sf_opdef sf_op_##symbol;
#include "op/ops.def"
#undef SF_OP

static const sf_opdef *const table[SF_OP_COUNT] = {
#define SF_OP(id, symbol) [SF_OP_##id] = &sf_op_##symbol,
#include "op/ops.def"
#undef SF_OP
};

const sf_opdef *sf_opdef_get(sf_opcode code)
{
    return table[code];
}

const sf_opdef *sf_opdef_find(sf_str dialect, sf_str name)
{
    for (int i = 0; i < SF_OP_COUNT; i++)
        if (sf_str_is(name, table[i]->name) && sf_str_is(dialect, table[i]->dialect))
            return table[i];
    return NULL;
}

const sf_opdef *sf_opdef_find_hlo(sf_str opcode)
{
    for (int i = 0; i < SF_OP_COUNT; i++)
        if (table[i]->hlo && sf_str_is(opcode, table[i]->hlo))
            return table[i];
    return NULL;
}

enum { LONGEST_NAME = 64 };

/* Levenshtein distance of two short names. */
static int edit_distance(sf_str a, const char *b)
{
    int row[LONGEST_NAME + 1];
    int width = (int)strlen(b);
    for (int j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 0; i < a.length; i++) {
        int diagonal = row[0];
        row[0] = (int)i + 1;
        for (int j = 0; j < width; j++) {
            int replace = diagonal + (a.at[i] != b[j]);
            diagonal = row[j + 1];
            int insert = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            row[j + 1] = replace < insert ? replace : insert;
        }
    }
    return row[width];
}

const sf_opdef *sf_opdef_nearest(sf_str name)
{
    const sf_opdef *nearest = NULL;
    int best = name.length < 6 ? 2 : 1 + (int)name.length / 3;
    bool is_start = false; /* the nearest starts with all of the name */
    if (name.length < 2 || name.length >= LONGEST_NAME)
        return NULL;
    for (int i = 0; i < SF_OP_COUNT; i++) {
        int d = edit_distance(name, table[i]->name);
        bool starts = strncmp(name.at, table[i]->name, name.length) == 0;
        if (d < best || (d == best && nearest && starts && !is_start)) {
            best = d;
            nearest = table[i];
            is_start = starts;
        }
    }
    /* "exp" is far from "exponential", but meant it. */
    for (int i = 0; name.length > 2 && !nearest && i < SF_OP_COUNT; i++)
        if (strncmp(name.at, table[i]->name, name.length) == 0)
            nearest = table[i];
    return nearest;
}

sf_collective sf_op_collective(const sf_opdef *def)
{
    return def->collective > 0 ? (sf_collective)(def->collective - 1) : SF_COLLECTIVE_COUNT;
}

const sf_opdef *sf_opdef_of_collective(sf_collective kind)
{
    for (int i = 0; i < SF_OP_COUNT; i++)
        if (table[i]->collective == (int)kind + 1)
            return table[i];
    return NULL;
}

bool sf_is_message(const sf_node *node)
{
    return sf_is(node, SF_OP_SEND) || sf_is(node, SF_OP_RECEIVE);
}

bool sf_is_collective(const sf_node *node)
{
    return sf_op_collective(node->def) != SF_COLLECTIVE_COUNT;
}

bool sf_is_between_groups(const sf_node *node)
{
    return sf_is_collective(node) && node->attrs[SF_COLLECTIVE_GROUPS];
}
