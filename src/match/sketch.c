#include "match/sketch.h"

#include <string.h>

#include "base/boundary.h"

sf_status sf_sketch_add(sf_sketch *sketch, const sf_sketch_node *node, sf_diag *diag)
{
    if (sketch->nresults > 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the sketch has its results already");
    if (sketch->count == SF_SKETCH_NODES)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "a sketch has at most %d ops, inputs and numbers", SF_SKETCH_NODES);
    sketch->nodes[sketch->count++] = *node;
    return SF_OK;
}

static sf_status take_attr(sf_sketch *sketch, const sf_opdef *def, const sf_sketch_attr *theirs,
                           sf_diag *diag, sf_sketched_attr *out)
{
    sf_sketch_attr own;
    const sf_sketch_attr *given = &own;
    SF_TRY(SF_TAKE(sf_sketch_attr, theirs, &own, diag));
    static const char *const kinds[] = {"a number", "a list of numbers", "a text", "a constant"};
    int slot = given->name ? sf_attr_slot(def, sf_str_of(given->name)) : -1;
    if (slot < 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "%s has no attribute \"%s\"", def->name,
                       given->name ? given->name : "");
    sf_attrkind kind = def->attrs[slot].kind;
    bool fits = kind == SF_ATTR_INT    ? given->count == -1
                : kind == SF_ATTR_INTS ? given->count >= 0
                : kind == SF_ATTR_TEXT ? given->count == -2 && given->text
                                       : false;
    if (!fits)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "%s: %s is %s", def->name, given->name,
                       kinds[kind]);
    *out = (sf_sketched_attr){.slot = slot, .kind = kind, .integer = given->integer};
    if (kind == SF_ATTR_INTS) {
        out->count = given->count;
        out->ints =
            sf_arena_copy(&sketch->arena, given->ints, (size_t)given->count * sizeof *given->ints);
    }
    if (kind == SF_ATTR_TEXT)
        out->text = sf_arena_string(&sketch->arena, given->text, strlen(given->text));
    return SF_OK;
}

static sf_status find_op(const char *op, sf_diag *diag, const sf_opdef **out)
{
    *out = op ? sf_opdef_find(sf_str_of("stablehlo"), sf_str_of(op)) : NULL;
    if (!*out && op)
        *out = sf_opdef_find(sf_str_of("chlo"), sf_str_of(op));
    if (*out && (*out)->nresults == 1 && (*out)->control == SF_CONTROL_NONE)
        return SF_OK;
    if (*out && ((*out)->id == SF_OP_REDUCE || (*out)->id == SF_OP_CUSTOM_CALL))
        return SF_OK;
    sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "there is no op \"%s\" with one result", op ? op : "");
    const sf_opdef *nearest = op ? sf_opdef_nearest(sf_str_of(op)) : NULL;
    return nearest ? sf_hint(diag, "did you mean \"%s\"?", nearest->name) : SF_EUSAGE;
}

/* Numbers are the same if their values are: each matches a constant of its own. */
static bool is_same_operand(const sf_sketch *sketch, int a, int b)
{
    const sf_sketch_node *left = &sketch->nodes[a], *right = &sketch->nodes[b];
    return a == b || (left->kind == SF_SKETCH_NUMBER && right->kind == SF_SKETCH_NUMBER &&
                      left->number == right->number);
}

static bool is_same_attr(const sf_sketched_attr *a, const sf_sketched_attr *b)
{
    return a->slot == b->slot && a->count == b->count && a->integer == b->integer &&
           (a->count == 0 || memcmp(a->ints, b->ints, (size_t)a->count * sizeof *a->ints) == 0) &&
           (!a->text || strcmp(a->text, b->text) == 0);
}

static bool is_same_op(const sf_sketch *sketch, const sf_sketch_node *a, const sf_sketch_node *b)
{
    if (a->kind != b->kind || a->def != b->def || a->noperands != b->noperands ||
        a->nattrs != b->nattrs || a->rank != b->rank || a->has_dtype != b->has_dtype ||
        (a->has_dtype && a->dtype != b->dtype) ||
        (a->rank > 0 && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0))
        return false;
    for (int i = 0; i < a->nattrs; i++)
        if (!is_same_attr(&a->attrs[i], &b->attrs[i]))
            return false;
    bool same = true, swapped = a->def->commutative && a->noperands == 2;
    for (int i = 0; i < a->noperands; i++) {
        same = same && is_same_operand(sketch, a->operands[i], b->operands[i]);
        swapped = swapped && is_same_operand(sketch, a->operands[i], b->operands[1 - i]);
    }
    return same || swapped;
}

sf_status sf_sketch_add_op(sf_sketch *sketch, const char *op, int noperands, const int *operands,
                           int nattrs, const sf_sketch_attr *const *attrs,
                           const sf_sketch_node *like, sf_diag *diag, int *number)
{
    sf_sketch_node node = *like;
    node.kind = SF_SKETCH_OP;
    node.noperands = noperands;
    node.nattrs = nattrs;
    SF_TRY(find_op(op, diag, &node.def));
    if (noperands < node.def->min_operands || noperands > SF_SKETCH_OPERANDS ||
        (node.def->max_operands >= 0 && noperands > node.def->max_operands))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "%s does not take %d operands", op, noperands);
    for (int i = 0; i < noperands; i++)
        if (operands[i] < 0 || operands[i] >= sketch->count)
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "%s: there is no number %d in the sketch",
                           op, operands[i]);
    node.operands = sf_arena_copy(&sketch->arena, operands, (size_t)noperands * sizeof *operands);
    sf_sketched_attr *taken = SF_ARRAY(&sketch->arena, nattrs + 1, sf_sketched_attr);
    for (int i = 0; i < nattrs; i++)
        SF_TRY(take_attr(sketch, node.def, attrs[i], diag, &taken[i]));
    node.attrs = taken;
    for (*number = 0; *number < sketch->count; ++*number)
        if (is_same_op(sketch, &sketch->nodes[*number], &node))
            return SF_OK;
    return sf_sketch_add(sketch, &node, diag);
}

/* Marks all nodes connected with a node. */
static void mark_tied(const sf_sketch *sketch, bool *tied)
{
    bool grows = true;
    while (grows) {
        grows = false;
        for (int n = 0; n < sketch->count; n++)
            for (int i = 0; i < sketch->nodes[n].noperands; i++) {
                int operand = sketch->nodes[n].operands[i];
                if (sketch->nodes[operand].kind == SF_SKETCH_NUMBER || tied[n] == tied[operand])
                    continue;
                tied[n] = tied[operand] = grows = true;
            }
    }
}

sf_status sf_sketch_end(sf_sketch *sketch, int count, const int *results, sf_diag *diag)
{
    bool tied[SF_SKETCH_NODES] = {false};
    if (sketch->nresults > 0 || count < 1 || count > SF_SKETCH_OPERANDS)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a sketch has 1 to %d results, said once",
                       SF_SKETCH_OPERANDS);
    for (int i = 0; i < count; i++)
        if (results[i] < 0 || results[i] >= sketch->count)
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "there is no number %d in the sketch",
                           results[i]);
    tied[results[0]] = true;
    mark_tied(sketch, tied);
    for (int n = 0; n < sketch->count; n++)
        if (sketch->nodes[n].kind == SF_SKETCH_OP && !tied[n])
            return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                           "the sketch is not connected: nothing ties %s to its first result",
                           sketch->nodes[n].def->name);
    memcpy(sketch->results, results, (size_t)count * sizeof *results);
    sketch->nresults = count;
    return SF_OK;
}
