#include <stdlib.h>
#include <string.h>

#include "op/slots.h"
#include "prog/lower/lowering.h"

bool has_squeezed_shape(const sf_type *type, int rank, const int64_t *dims)
{
    int64_t have[SF_MAX_RANK];
    return squeezed(type, have) == rank && memcmp(have, dims, (size_t)rank * sizeof *dims) == 0;
}

/* Follows reshapes that only add or drop dimensions of size 1. */
sf_value behind_reshapes(const lowering *l, sf_value value)
{
    for (;;) {
        value = value_of(l, value);
        const sf_node *node = maker_of(l, value);
        if (!node || !sf_is(node, SF_OP_RESHAPE))
            return value;
        int64_t dims[SF_MAX_RANK];
        int rank = squeezed(sf_type_of(l->graph, value), dims);
        if (!has_squeezed_shape(sf_type_of(l->graph, value_of(l, node->operands[0])), rank, dims))
            return value;
        value = node->operands[0];
    }
}

/* A broadcast of something with one element per row along the columns. */
static bool expands_rows(const lowering *l, const cluster *c, const sf_node *node)
{
    const sf_type *to = sf_type_of(l->graph, node->result);
    if (c->split < 0 || !has_squeezed_shape(to, c->rank, c->dims))
        return false;
    const sf_attr *attr = node->attrs[SF_BROADCAST_DIMENSIONS];
    const sf_type *from = sf_type_of(l->graph, value_of(l, node->operands[0]));
    int row = 0;
    for (int i = 0; i < from->rank; i++) {
        if (from->dims[i] == 1)
            continue;
        int place = 0; /* of the dimension among those of the result that are not 1 */
        for (int64_t d = 0; d < attr->ints[i]; d++)
            place += to->dims[d] != 1;
        if (row == c->split || place != c->order[row++])
            return false;
    }
    return row == c->split;
}

relation relate(const lowering *l, uint32_t index, sf_value value)
{
    const cluster *c = l->clusters[index];
    sf_value base = behind_reshapes(l, value);
    const lowered *low = &l->values[base];
    if (low->cluster == index && (low->level == LEVEL_FULL || low->level == LEVEL_ROW))
        return (relation){low->level, false, base};
    const sf_node *node = maker_of(l, base);
    if (node && sf_is(node, SF_OP_BROADCAST_IN_DIM) && expands_rows(l, c, node)) {
        sf_value row = behind_reshapes(l, node->operands[0]);
        if (l->values[row].cluster == index && l->values[row].level == LEVEL_ROW)
            return (relation){LEVEL_FULL, true, row};
    }
    return (relation){LEVEL_NONE, false, SF_NONE};
}

static uint32_t new_cluster(lowering *l, const sf_node *node, int rank, const int64_t *dims)
{
    cluster *c = SF_NEW(&l->scratch, cluster);
    c->inst = add_inst(l, SF_INST_LOOP, node);
    c->phase = node->phase;
    c->rank = rank;
    memcpy(c->dims, dims, (size_t)rank * sizeof *dims);
    for (int i = 0; i < rank; i++)
        c->order[i] = i;
    c->split = -1;
    SF_PUSH(&l->scratch, l->clusters, l->nclusters, l->cluster_capacity, c);
    return (uint32_t)l->nclusters - 1;
}

static void join_cluster(lowering *l, uint32_t index, const sf_node *node, level at)
{
    cluster *c = l->clusters[index];
    SF_PUSH(&l->scratch, c->nodes, c->nnodes, c->node_capacity, node);
    l->values[node->result].cluster = index;
    l->values[node->result].level = at;
    sf_origin *origin = &l->program->insts[c->inst].origin;
    *origin = (sf_origin){node->id, node->def->name, node->scope->path, node->phase, node->loc};
}

static bool fits_at(const lowering *l, const cluster *c, sf_value value, level at)
{
    const sf_type *type = sf_type_of(l->graph, value);
    if (at == LEVEL_FULL)
        return has_squeezed_shape(type, c->rank, c->dims);
    int64_t rows[SF_MAX_RANK];
    for (int i = 0; i < c->split; i++)
        rows[i] = c->dims[c->order[i]];
    return c->split > 0 && has_squeezed_shape(type, c->split, rows);
}

static bool can_take(lowering *l, uint32_t index, const sf_node *node, level at, size_t *budget);

/* Whether the operand can be had by the cluster: a register of the right level, a deferred value that
 * it can take in, or something that was made before. */
static bool can_reach(lowering *l, uint32_t index, sf_value operand, level at, size_t *budget)
{
    relation r = relate(l, index, operand);
    if (r.level != LEVEL_NONE)
        return r.level == at;
    sf_value base = behind_reshapes(l, operand);
    if (l->values[base].level == LEVEL_DEFERRED)
        return can_take(l, index, sf_maker(l->graph, base), at, budget);
    const cluster *c = l->clusters[index];
    uint32_t time = time_of(l, operand);
    recomputed a = {.l = l, .inst = c->inst, .rank = c->rank, .dims = c->dims};
    return time == ALWAYS || time < c->inst || (at == LEVEL_FULL && recomputes(&a, operand));
}

static bool can_take(lowering *l, uint32_t index, const sf_node *node, level at, size_t *budget)
{
    const cluster *c = l->clusters[index];
    if (*budget == 0 || !fits_at(l, c, node->result, at))
        return false;
    --*budget;
    if (is_padding(l, node)) {
        uint32_t time = time_of(l, node->operands[0]);
        return at == LEVEL_FULL && (time == ALWAYS || time < c->inst);
    }
    for (uint32_t i = 0; i < node->noperands; i++)
        if (!can_reach(l, index, node->operands[i], at, budget))
            return false;
    return true;
}

/* Makes the node part of the cluster, after the deferred values that it needs. */
static void take_in(lowering *l, uint32_t index, const sf_node *node, level at)
{
    for (uint32_t i = 0; i < node->noperands && !is_padding(l, node); i++) {
        const cluster *c = l->clusters[index];
        recomputed a = {.l = l, .inst = c->inst, .rank = c->rank, .dims = c->dims};
        if (relate(l, index, node->operands[i]).level != LEVEL_NONE)
            continue;
        sf_value base = behind_reshapes(l, node->operands[i]);
        if (l->values[base].level == LEVEL_DEFERRED)
            take_in(l, index, sf_maker(l->graph, base), at);
        else if (at != LEVEL_FULL)
            view_of(l, node->operands[i]); /* comes from memory */
        else
            reach_operand(&a, node->operands[i]);
    }
    join_cluster(l, index, node, at);
}

/* The cluster that makes an operand, or a row that an operand repeats. */
static uint32_t cluster_of_operand(const lowering *l, sf_value operand)
{
    sf_value base = behind_reshapes(l, operand);
    const sf_node *node = maker_of(l, base);
    if (node && sf_is(node, SF_OP_BROADCAST_IN_DIM))
        base = behind_reshapes(l, node->operands[0]);
    return l->values[base].cluster;
}

bool cluster_pointwise(lowering *l, const sf_node *node)
{
    sf_vop op;
    if (is_padding(l, node)) {
        view_of(l, node->operands[0]);
        l->values[node->result].level = LEVEL_DEFERRED;
        return true;
    }
    if (!vop_of(l->graph, node, &op))
        return false;
    uint32_t best = NO_CLUSTER;
    level best_level = LEVEL_NONE;
    for (uint32_t i = 0; i < node->noperands; i++) {
        uint32_t index = cluster_of_operand(l, node->operands[i]);
        if (index == NO_CLUSTER || l->clusters[index]->phase < node->phase ||
            (best != NO_CLUSTER && l->clusters[index]->inst <= l->clusters[best]->inst))
            continue;
        for (level at = LEVEL_FULL; at <= LEVEL_ROW; at++) {
            size_t taken = l->clusters[index]->nnodes, most = l->target->most_nodes;
            size_t budget = taken < most ? most - taken : 0;
            if (can_take(l, index, node, at, &budget)) {
                best = index;
                best_level = at;
            }
        }
    }
    if (best == NO_CLUSTER)
        l->values[node->result].level = LEVEL_DEFERRED;
    else
        take_in(l, best, node, best_level);
    return true;
}

/* The deferred values of one shape that a value is computed from, operands first. */
typedef struct collection {
    lowering *l;
    int rank;
    int64_t dims[SF_MAX_RANK];
    const sf_node **nodes; /* room for as many as a loop may have */
    size_t count;
} collection;

static bool is_collected(const collection *c, const sf_node *node)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->nodes[i] == node)
            return true;
    return false;
}

static int first_made(const void *a, const void *b)
{
    sf_value x = *(const sf_value *)a, y = *(const sf_value *)b;
    return (x > y) - (x < y);
}

/* Those of the operands that are in memory. */
static sf_value *read_anyway(lowering *l, const sf_value *operands, size_t count, size_t *nread)
{
    sf_value *read = SF_ARRAY(&l->scratch, count, sf_value);
    *nread = 0;
    for (size_t i = 0; l->target->few_passes && i < count; i++) {
        sf_value base = behind_reshapes(l, operands[i]);
        const lowered *low = &l->values[base];
        if (low->has_view || (low->cluster == NO_CLUSTER && low->level != LEVEL_DEFERRED))
            read[(*nread)++] = base;
    }
    return read;
}

/* Operands of the collection from outside are in memory, or can be recomputed. Earlier values come
 * first, so that later ones can be computed from them. */
static void reach_operands(collection *c)
{
    lowering *l = c->l;
    size_t count = 0, capacity = 0;
    sf_value *operands = NULL;
    for (size_t i = 0; i < c->count; i++)
        for (uint32_t j = 0; j < c->nodes[i]->noperands; j++) {
            sf_value operand = c->nodes[i]->operands[j];
            const sf_node *maker = sf_maker(l->graph, behind_reshapes(l, operand));
            if (!maker || !is_collected(c, maker))
                SF_PUSH(&l->scratch, operands, count, capacity, operand);
        }
    if (count > 0)
        qsort(operands, count, sizeof *operands, first_made);
    size_t nread;
    sf_value *read = read_anyway(l, operands, count, &nread);
    for (size_t i = 0; i < count; i++) {
        recomputed a = {.l = l, .rank = c->rank, .dims = c->dims, .read = read, .nread = nread};
        a.inst = (uint32_t)l->program->ninsts;
        reach_operand(&a, operands[i]);
    }
}

/* Makes a cluster of the collection. Operands from outside are stored in memory first, which may
 * need instructions of its own, and may move some of the collected nodes into other clusters. */
static uint32_t close_collection(collection *c, const sf_node *node)
{
    lowering *l = c->l;
    reach_operands(c);
    for (size_t i = 0; i < c->count; i++)
        if (l->values[c->nodes[i]->result].level != LEVEL_DEFERRED)
            view_of(l, c->nodes[i]->result);
    uint32_t index = new_cluster(l, node, c->rank, c->dims);
    for (size_t i = 0; i < c->count; i++)
        if (l->values[c->nodes[i]->result].level == LEVEL_DEFERRED)
            join_cluster(l, index, c->nodes[i], LEVEL_FULL);
    c->count = 0;
    return index;
}

static void collect_deferred(collection *c, sf_value value)
{
    lowering *l = c->l;
    sf_value base = behind_reshapes(l, value);
    const sf_node *node = sf_maker(l->graph, base);
    if (l->values[base].level != LEVEL_DEFERRED ||
        !has_squeezed_shape(sf_type_of(l->graph, base), c->rank, c->dims) || is_collected(c, node))
        return;
    for (uint32_t i = 0; i < node->noperands; i++)
        collect_deferred(c, node->operands[i]);
    if (c->count == l->target->most_nodes)
        close_collection(c, c->nodes[c->count - 1]);
    if (l->values[base].level == LEVEL_DEFERRED)
        c->nodes[c->count++] = node;
}

/* A new cluster over the shape of the value, which it loads or computes from deferred nodes. */
static uint32_t cluster_over(lowering *l, sf_value value, const sf_node *node)
{
    collection *c = SF_NEW(&l->scratch, collection);
    c->l = l;
    c->nodes = SF_ARRAY(&l->scratch, l->target->most_nodes, const sf_node *);
    c->rank = squeezed(sf_type_of(l->graph, value), c->dims);
    collect_deferred(c, value);
    if (c->count == 0)
        view_of(l, value);
    return close_collection(c, node);
}

/* Beside another loop */

/* Large values in memory that something is computed from, each once. */
typedef struct sources {
    sf_value list[32];
    int count;
} sources;

static void add_sources(const lowering *l, const cluster *c, sf_value value, int depth,
                        sources *out)
{
    sf_value base = behind_reshapes(l, value);
    const sf_node *node = maker_of(l, base);
    const lowered *low = &l->values[base];
    if (!has_squeezed_shape(sf_type_of(l->graph, base), c->rank, c->dims) ||
        (node && (sf_is(node, SF_OP_BROADCAST_IN_DIM) || sf_is(node, SF_OP_CONSTANT))))
        return;
    bool is_computed = low->level == LEVEL_DEFERRED ||
                       (low->cluster != NO_CLUSTER && low->level == LEVEL_FULL && !low->has_view);
    for (uint32_t i = 0; is_computed && depth > 0 && i < node->noperands; i++)
        add_sources(l, c, node->operands[i], depth - 1, out);
    for (int i = 0; i < out->count; i++)
        if (out->list[i] == base)
            return;
    if (!is_computed && out->count < (int)(sizeof out->list / sizeof *out->list))
        out->list[out->count++] = base;
}

/* Whether the cluster reads most operands of the value. */
static bool reads_most(const lowering *l, const cluster *c, sf_value value)
{
    enum { DEEP = 16 };
    sources wanted = {.count = 0}, read = {.count = 0};
    int shared = 0;
    add_sources(l, c, value, DEEP, &wanted);
    for (size_t i = 0; i < c->nnodes; i++)
        for (uint32_t j = 0; j < c->nodes[i]->noperands; j++)
            add_sources(l, c, c->nodes[i]->operands[j], DEEP, &read);
    for (int i = 0; i < wanted.count; i++)
        for (int j = 0; j < read.count; j++)
            shared += wanted.list[i] == read.list[j];
    return shared > 0 && 2 * shared >= wanted.count;
}

/* A loop that was made just before, and reads most operands of the deferred value; NO_CLUSTER if
 * there is none. */
static uint32_t cluster_beside(lowering *l, const sf_node *node)
{
    enum { NEAR = 3 };
    for (size_t n = 0; l->target->few_passes && n < NEAR && n < l->nclusters; n++) {
        uint32_t index = (uint32_t)(l->nclusters - 1 - n);
        const cluster *c = l->clusters[index];
        size_t budget = l->target->most_nodes > c->nnodes ? l->target->most_nodes - c->nnodes : 0;
        if (c->phase >= node->phase && fits_at(l, c, node->result, LEVEL_FULL) &&
            reads_most(l, c, node->result) && can_take(l, index, node, LEVEL_FULL, &budget))
            return index;
    }
    return NO_CLUSTER;
}

void cluster_now(lowering *l, sf_value value)
{
    const sf_node *node = sf_maker(l->graph, value);
    uint32_t beside = cluster_beside(l, node);
    if (beside == NO_CLUSTER)
        cluster_over(l, value, node);
    else
        take_in(l, beside, node, LEVEL_FULL);
}

/* Where the reduced dimensions lie in the domain. */
typedef enum reduced { AT_END, AT_START, EVERYWHERE, BETWEEN, NOWHERE } reduced;

static reduced where_reduced(const sf_type *type, const sf_attr *dims, int *kept)
{
    bool is_reduced[SF_MAX_RANK];
    int rank = 0, count = 0;
    for (int i = 0; i < type->rank; i++) {
        bool here = false;
        for (int j = 0; j < dims->count; j++)
            here = here || dims->ints[j] == i;
        if (type->dims[i] == 1)
            continue;
        is_reduced[rank++] = here;
        count += here;
    }
    bool at_end = true, at_start = true;
    for (int i = 0; i < rank; i++) {
        at_end = at_end && is_reduced[i] == (i >= rank - count);
        at_start = at_start && is_reduced[i] == (i < count);
    }
    *kept = rank - count;
    return count == 0      ? NOWHERE
           : count == rank ? EVERYWHERE
           : at_end        ? AT_END
           : at_start      ? AT_START
                           : BETWEEN;
}

/* The order of dimensions in which a reduction can run: the kept ones first, then the reduced ones. */
static void order_for(const sf_type *type, const sf_attr *reduced_dims, int *order)
{
    int at = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0, place = 0; i < type->rank; i++) {
            bool here = false;
            for (int j = 0; j < reduced_dims->count; j++)
                here = here || reduced_dims->ints[j] == i;
            if (type->dims[i] == 1)
                continue;
            if (here == (pass == 1))
                order[at++] = place;
            place++;
        }
}

/* Sets order and split of the cluster such that the reduction can run in it; false when it cannot,
 * because another reduction has set them otherwise or the rows are too long to be held. */
static bool split_for(cluster *c, const sf_node *node, const sf_type *type, reduced where, int kept,
                      int64_t longest)
{
    int order[SF_MAX_RANK], split = kept;
    int64_t columns = 1;
    if (where == EVERYWHERE)
        return true;
    if (where == AT_START) { /* rows are reduced */
        split = c->rank - kept;
        for (int i = 0; i < c->rank; i++)
            order[i] = i;
    } else {
        order_for(type, node->attrs[0], order);
        for (int i = split; i < c->rank; i++)
            columns *= c->dims[order[i]];
    }
    if (c->split >= 0 &&
        (c->split != split || memcmp(c->order, order, (size_t)c->rank * sizeof *order) != 0))
        return false;
    if (columns > longest)
        return false;
    memcpy(c->order, order, (size_t)c->rank * sizeof *order);
    c->split = split;
    c->whole_rows = c->whole_rows || where != AT_START;
    return true;
}

/* Beside another reduction */

/* Whether the cluster reads the value from memory, or needs few ops to compute it from its
 * operands: it belongs to the cluster. */
static bool reads_value(const lowering *l, const cluster *c, sf_value value)
{
    for (size_t i = 0; i < c->nnodes; i++)
        for (uint32_t j = 0; j < c->nodes[i]->noperands; j++)
            if (behind_reshapes(l, c->nodes[i]->operands[j]) == value)
                return true;
    return false;
}

/* Whether the cluster reads the value, or a large operand of the deferred value, in any case. */
static bool shares_reads(const lowering *l, const cluster *c, sf_value value, int depth)
{
    sf_value base = behind_reshapes(l, value);
    const sf_node *node = maker_of(l, base);
    if (!has_squeezed_shape(sf_type_of(l->graph, base), c->rank, c->dims))
        return false;
    if (l->values[base].level != LEVEL_DEFERRED)
        return (!node || !sf_is(node, SF_OP_BROADCAST_IN_DIM)) && reads_value(l, c, base);
    for (uint32_t i = 0; depth > 0 && i < node->noperands; i++)
        if (shares_reads(l, c, node->operands[i], depth - 1))
            return true;
    return false;
}

/* The latest cluster with a reduction over the same columns, which reads the same operands as this
 * one and can take it in: shared operands are then read once. NO_CLUSTER if there is none. */
static uint32_t sibling_of(lowering *l, const sf_node *node, reduced where, int kept)
{
    enum { NEAR = 16, SHALLOW = 4 };
    sf_value base = behind_reshapes(l, node->operands[0]);
    const sf_type *type = sf_type_of(l->graph, node->operands[0]);
    bool is_deferred = l->values[base].level == LEVEL_DEFERRED;
    if (where == AT_START || where == EVERYWHERE ||
        (!is_deferred && l->values[base].cluster != NO_CLUSTER))
        return NO_CLUSTER;
    for (size_t n = 0; n < NEAR && n < l->nclusters; n++) {
        uint32_t index = (uint32_t)(l->nclusters - 1 - n);
        cluster *c = l->clusters[index];
        size_t budget = l->target->most_nodes > c->nnodes ? l->target->most_nodes - c->nnodes : 0;
        if (c->split < 0 || !c->whole_rows || c->phase < node->phase || budget < 2 ||
            !shares_reads(l, c, base, SHALLOW) ||
            !(is_deferred ? can_take(l, index, sf_maker(l->graph, base), LEVEL_FULL, &budget)
                          : time_of(l, base) == ALWAYS || time_of(l, base) < c->inst) ||
            !split_for(c, node, type, where, kept, l->target->longest_row))
            continue;
        if (is_deferred)
            take_in(l, index, sf_maker(l->graph, base), LEVEL_FULL);
        return index;
    }
    return NO_CLUSTER;
}

bool cluster_reduce(lowering *l, const sf_node *node)
{
    sf_vfold fold;
    if (!fold_of(l->graph, node, &fold))
        return false;
    sf_value operand = node->operands[0];
    const sf_type *type = sf_type_of(l->graph, operand);
    int kept;
    reduced where = where_reduced(type, node->attrs[0], &kept);
    if (where == NOWHERE || type->count == 0)
        return false;
    sf_value base = behind_reshapes(l, operand);
    uint32_t index = l->values[base].cluster;
    bool joins = index != NO_CLUSTER && l->values[base].level == LEVEL_FULL &&
                 l->clusters[index]->nnodes < l->target->most_nodes &&
                 split_for(l->clusters[index], node, type, where, kept, l->target->longest_row);
    if (!joins) {
        index = sibling_of(l, node, where, kept);
        joins = index != NO_CLUSTER;
    }
    if (!joins) {
        index = cluster_over(l, operand, node);
        split_for(l->clusters[index], node, type, where, kept, INT64_MAX);
    }
    join_cluster(l, index, node, where == AT_END || where == BETWEEN ? LEVEL_ROW : LEVEL_GATHERED);
    if (l->values[node->result].level == LEVEL_GATHERED)
        view_of(l, node->result);
    return true;
}
