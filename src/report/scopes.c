/* The scope tree: costs summed upwards, siblings put in order, parameters brought home. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "op/carry.h"
#include "op/op.h"
#include "report/summary.h"

/* Facts about a scope of the pool while the tree is made. */
struct info {
    const sf_scope *scope; /* NULL: the graph does not use it */
    sf_scope_cost cost;
    uint32_t first;        /* position of the first node in it or below */
    uint32_t family_first; /* the least `first` of the siblings of its family */
    size_t family;         /* length of the name without its number */
    int64_t number;
    uint32_t child, sibling; /* ids, SF_NONE at the end */
};

struct tree {
    sf_summary *summary;
    sf_arena scratch;
    struct info *infos; /* by scope id */
    uint32_t count;
};

/* Compares two runs of digits as numbers of any length, and moves past both. */
static int compare_by_number(const char **a, const char **b)
{
    while (**a == '0' && sf_is_digit((*a)[1]))
        ++*a;
    while (**b == '0' && sf_is_digit((*b)[1]))
        ++*b;
    size_t alength = strspn(*a, "0123456789"), blength = strspn(*b, "0123456789");
    int order = alength != blength ? (alength < blength ? -1 : 1) : memcmp(*a, *b, alength);
    *a += alength;
    *b += blength;
    return order;
}

int sf_compare_names(const char *a, const char *b, bool numbers)
{
    while (*a && *b) {
        if (sf_is_digit(*a) && sf_is_digit(*b)) {
            int order = compare_by_number(&a, &b);
            if (numbers && order)
                return order;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    return (*a != 0) - (*b != 0);
}

/* The entry of a scope; makes it and those above it known. */
static struct info *info_of(struct tree *tree, const sf_scope *scope)
{
    for (const sf_scope *at = scope; at && !tree->infos[at->id].scope; at = at->parent) {
        struct info *info = &tree->infos[at->id];
        info->scope = info->cost.scope = at;
        info->first = SF_NONE;
    }
    return &tree->infos[scope->id];
}

static void add_scope_nodes(struct tree *tree, const sf_cost *costs)
{
    const sf_graph *graph = tree->summary->graph;
    for (uint32_t i = 0; i < graph->nnodes; i++) {
        if (!costs[i].nodes)
            continue;
        const sf_node *node = graph->nodes[i];
        struct info *info = info_of(tree, node->scope);
        sf_cost_add(&info->cost.own, &costs[i]);
        info->cost.phases[node->phase] += costs[i].flops;
        if (i < info->first)
            info->first = i;
    }
}

/* A parameter belongs to the deepest scope with all its uses in the forward pass. Ops that only
 * pass it on (a slice of stacked weights, a change of type) count as their own users, and when it
 * is cut into slices that make up the whole, each slice has a scope of its own: so the layers of an
 * unrolled loop over stacked weights own their weights. */

struct users {
    uint32_t *start; /* by value id, nvalues + 1 */
    uint32_t *nodes; /* ids of the users of value v: nodes[start[v]] .. nodes[start[v + 1]] */
};

static struct users find_users(struct tree *tree, const sf_cost *costs)
{
    const sf_graph *graph = tree->summary->graph;
    struct users users = {.start = SF_ARRAY(&tree->scratch, graph->nvalues + 2, uint32_t)};
    size_t total = 0;
    for (size_t i = 0; i < graph->nnodes; i++) {
        const sf_node *node = graph->nodes[i];
        if (!costs[i].nodes || node->phase != SF_FORWARD)
            continue;
        for (uint32_t j = 0; j < node->noperands; j++)
            users.start[node->operands[j] + 2]++;
        total += node->noperands;
    }
    for (size_t i = 2; i < graph->nvalues + 2; i++)
        users.start[i] += users.start[i - 1];
    users.nodes = SF_ARRAY(&tree->scratch, total, uint32_t);
    for (uint32_t i = 0; i < graph->nnodes; i++) {
        const sf_node *node = graph->nodes[i];
        if (!costs[i].nodes || node->phase != SF_FORWARD)
            continue;
        for (uint32_t j = 0; j < node->noperands; j++)
            users.nodes[users.start[node->operands[j] + 1]++] = i;
    }
    return users;
}

static const sf_scope *shared_scope(const sf_scope *a, const sf_scope *b)
{
    if (!a || !b)
        return a ? a : b;
    return sf_scope_common(a, b);
}

enum {
    DEEPEST_PASS = 6,
    MOVES = SF_CARRIES_TYPE | SF_CARRIES_SHAPE | SF_CARRIES_ORDER | SF_CARRIES_PART
};

/* NULL when the forward pass does not use the value. */
static const sf_scope *home_of(const sf_graph *graph, const struct users *users, sf_value value,
                               int depth)
{
    const sf_scope *home = NULL;
    for (uint32_t i = users->start[value]; i < users->start[value + 1]; i++) {
        const sf_node *node = graph->nodes[users->nodes[i]];
        const sf_scope *scope = node->scope;
        if (depth < DEEPEST_PASS && sf_carries(node, MOVES | SF_CARRIES_COPIES)) {
            const sf_scope *beyond = home_of(graph, users, node->result, depth + 1);
            scope = beyond ? beyond : scope;
        }
        home = shared_scope(home, scope);
    }
    return home;
}

/* The value that represents a parameter: past the ops that only pass on all of it. */
static sf_value past_moves(const sf_graph *graph, const struct users *users, sf_value value)
{
    for (int i = 0; i < DEEPEST_PASS; i++) {
        if (users->start[value + 1] - users->start[value] != 1)
            break;
        const sf_node *node = graph->nodes[users->nodes[users->start[value]]];
        if (!sf_carries(node, MOVES) ||
            sf_type_of(graph, node->result)->count != sf_type_of(graph, value)->count)
            break;
        value = node->result;
    }
    return value;
}

static bool is_cut_up(const sf_graph *graph, const struct users *users, sf_value value)
{
    int64_t rest = sf_type_of(graph, value)->count;
    for (uint32_t i = users->start[value]; i < users->start[value + 1]; i++) {
        const sf_node *node = graph->nodes[users->nodes[i]];
        if (!sf_is(node, SF_OP_SLICE))
            return false;
        rest -= sf_type_of(graph, node->result)->count;
        if (rest < 0)
            return false;
    }
    return rest == 0;
}

static void bring_home(struct tree *tree, const struct users *users, sf_value value)
{
    const sf_graph *graph = tree->summary->graph;
    const sf_scope *home = home_of(graph, users, value, 0);
    struct info *info = info_of(tree, home ? home : sf_scope_root(graph->pool));
    sf_add_limited(&info->cost.parameters, sf_type_of(graph, value)->count);
}

static void add_parameters(struct tree *tree, const sf_cost *costs)
{
    const sf_graph *graph = tree->summary->graph;
    struct users users = find_users(tree, costs);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        sf_value value = graph->top->arguments[i];
        if (graph->arguments[i].role != SF_ROLE_PARAM)
            continue;
        sf_value cut = past_moves(graph, &users, value);
        if (is_cut_up(graph, &users, cut))
            for (uint32_t j = users.start[cut]; j < users.start[cut + 1]; j++)
                bring_home(tree, &users, graph->nodes[users.nodes[j]]->result);
        else
            bring_home(tree, &users, value);
    }
}

/* A scope is made after the one above it, so its id is higher. */
static void sum_upwards(struct tree *tree)
{
    for (uint32_t id = tree->count; id-- > 0;) {
        struct info *info = &tree->infos[id];
        if (!info->scope)
            continue;
        sf_cost_add(&info->cost.all, &info->cost.own);
        if (!info->scope->parent)
            continue;
        struct info *above = &tree->infos[info->scope->parent->id];
        sf_cost_add(&above->cost.all, &info->cost.all);
        for (int p = 0; p < SF_PHASE_COUNT; p++)
            above->cost.phases[p] += info->cost.phases[p];
        sf_add_limited(&above->cost.parameters, info->cost.parameters);
        if (info->first < above->first)
            above->first = info->first;
    }
}

static int by_family(const void *left, const void *right)
{
    const struct info *a = *(struct info *const *)left, *b = *(struct info *const *)right;
    if (a->scope->parent != b->scope->parent)
        return a->scope->parent->id < b->scope->parent->id ? -1 : 1;
    return sf_compare_names(a->scope->name, b->scope->name, false);
}

/* Siblings as the step meets them, a family together where its first member is. */
static int by_place(const void *left, const void *right)
{
    const struct info *a = *(struct info *const *)left, *b = *(struct info *const *)right;
    if (a->scope->parent != b->scope->parent)
        return a->scope->parent->id < b->scope->parent->id ? -1 : 1;
    if (a->family_first != b->family_first)
        return a->family_first < b->family_first ? -1 : 1;
    int order = by_family(left, right);
    if (order)
        return order;
    order = sf_compare_names(a->scope->name, b->scope->name, true);
    return order ? order : strcmp(a->scope->name, b->scope->name);
}

static void order_siblings(struct tree *tree)
{
    struct info **list = SF_ARRAY(&tree->scratch, tree->count, struct info *);
    size_t count = 0;
    for (uint32_t id = 0; id < tree->count; id++) {
        tree->infos[id].child = tree->infos[id].sibling = SF_NONE;
        if (tree->infos[id].scope && tree->infos[id].scope->parent)
            list[count++] = &tree->infos[id];
    }
    if (count == 0)
        return;
    qsort(list, count, sizeof *list, by_family);
    for (size_t start = 0, end; start < count; start = end) {
        uint32_t first = SF_NONE;
        for (end = start; end < count && by_family(&list[start], &list[end]) == 0; end++)
            first = list[end]->first < first ? list[end]->first : first;
        for (size_t i = start; i < end; i++)
            list[i]->family_first = first;
    }
    qsort(list, count, sizeof *list, by_place);
    for (size_t i = count; i-- > 0;) {
        struct info *above = &tree->infos[list[i]->scope->parent->id];
        list[i]->sibling = above->child;
        above->child = list[i]->scope->id;
    }
}

static void list_scopes(struct tree *tree)
{
    sf_summary *summary = tree->summary;
    uint32_t used = 0;
    for (uint32_t id = 0; id < tree->count; id++)
        used += tree->infos[id].scope != NULL;
    summary->scopes = SF_ARRAY(&summary->arena, used, sf_scope_cost);
    uint32_t parent = 0, id = sf_scope_root(summary->graph->pool)->id;
    for (;;) {
        uint32_t entry = summary->nscopes++;
        summary->scopes[entry] = tree->infos[id].cost;
        summary->scopes[entry].parent = parent;
        if (tree->infos[id].child != SF_NONE) {
            parent = entry;
            id = tree->infos[id].child;
            continue;
        }
        summary->scopes[entry].end = summary->nscopes;
        while (tree->infos[id].sibling == SF_NONE && tree->infos[id].scope->parent) {
            id = tree->infos[id].scope->parent->id;
            summary->scopes[parent].end = summary->nscopes;
            parent = summary->scopes[parent].parent;
        }
        if (tree->infos[id].sibling == SF_NONE)
            return;
        id = tree->infos[id].sibling;
    }
}

void sf_summarize_scopes(sf_summary *summary, const sf_cost *costs)
{
    struct tree tree = {.summary = summary, .count = sf_scope_count(summary->graph->pool)};
    const sf_scope *root = sf_scope_root(summary->graph->pool);
    if (tree.count <= root->id)
        tree.count = root->id + 1;
    tree.infos = SF_ARRAY(&tree.scratch, tree.count, struct info);
    info_of(&tree, root);
    add_scope_nodes(&tree, costs);
    add_parameters(&tree, costs);
    sum_upwards(&tree);
    order_siblings(&tree);
    list_scopes(&tree);
    sf_arena_free(&tree.scratch);
}
