#include "plan/op_selector.h"

#include <inttypes.h>
#include <string.h>

#include "base/nearest.h"
#include "ir/name.h"
#include "ir/opdef.h"
#include "op/op.h"

const char *sf_op_path(const sf_node *node, sf_arena *arena)
{
    const char *scope = node->scope->path, *name = node->def->name;
    size_t length = strlen(scope), more = strlen(name);
    char *path = sf_arena_alloc(arena, length + more + 2);
    memcpy(path, scope, length);
    if (length > 0)
        path[length++] = '/';
    memcpy(path + length, name, more + 1);
    return path;
}

/* Finding */

static sf_status fail_match(const sf_graph *graph, const char *pattern, sf_arena *arena,
                            sf_diag *diag)
{
    sf_names names = sf_names_of(graph, arena);
    sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "\"%.200s\" matches no op of the forward pass", pattern);
    const char *nearest = sf_names_nearest(&names, pattern, arena);
    return nearest ? sf_hint(diag, "did you mean \"%s\"?", nearest)
                   : sf_hint(diag, "ops are named as layer_0/mlp/up/dot_general, by their scopes");
}

/* Marks the matches of one pattern, in the order of the top block. */
static bool mark_matches(const sf_graph *graph, const char *pattern, const char *const *paths,
                         bool *marked)
{
    bool found = false;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        if (!paths[i] || !sf_name_is_in(pattern, paths[i]))
            continue;
        marked[i] = found = true;
    }
    return found;
}

static const char **forward_paths(const sf_graph *graph, sf_arena *arena)
{
    const char **paths = SF_ARRAY(arena, graph->top->nnodes + 1, const char *);
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        if (sf_top_node(graph, i)->phase == SF_FORWARD)
            paths[i] = sf_op_path(sf_top_node(graph, i), arena);
    return paths;
}

sf_status sf_ops_find(const sf_graph *graph, const char *patterns, sf_arena *arena, sf_diag *diag,
                      sf_ops *out)
{
    const char **paths = forward_paths(graph, arena);
    bool *marked = SF_ARRAY(arena, graph->top->nnodes + 1, bool);
    *out = (sf_ops){0};
    if (!patterns || !*patterns)
        patterns = "*";
    for (const char *at = patterns; *at;) {
        size_t length = strcspn(at, ",");
        const char *pattern = sf_arena_string(arena, at, length);
        if (length > 0 && !mark_matches(graph, pattern, paths, marked))
            return fail_match(graph, pattern, arena, diag);
        at += length + (at[length] == ',');
    }
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        if (marked[i])
            SF_PUSH(arena, out->at, out->count, out->capacity, sf_top_node(graph, i));
    if (out->count == 0)
        return fail_match(graph, patterns, arena, diag);
    return SF_OK;
}

/* Factors */

static void factor_op(const sf_graph *graph, const sf_node *node, sf_arena *arena, sf_op *op,
                      sf_factoring *out)
{
    size_t count = (size_t)node->noperands + node->nresults;
    *op = sf_op_of(graph, node, SF_ARRAY(arena, count + 1, const sf_type *));
    sf_op_factors(op, arena, out);
}

/* Why an op cannot be cut so; the later, the nearer it comes to it. */
typedef enum obstacle { NO_FACTOR, IS_WHOLE, DIVIDES_NOT, IS_FREE } obstacle;

static obstacle find_obstacle(const sf_factoring *factoring, int factor, int parts)
{
    if (factor >= factoring->nfactors)
        return NO_FACTOR;
    const sf_factor *it = &factoring->factors[factor];
    if (!sf_factor_can_cut(it) || it->size <= 0)
        return IS_WHOLE;
    return it->size % parts == 0 ? IS_FREE : DIVIDES_NOT;
}

static void put_letters(const sf_factoring *factoring, sf_buf *out)
{
    int count = 0;
    for (int f = 0; f < factoring->nfactors; f++)
        if (sf_factor_can_cut(&factoring->factors[f]))
            sf_buf_printf(out, "%s%c of %" PRId64, count++ ? ", " : "", sf_factor_letter(f),
                          factoring->factors[f].size);
    sf_buf_puts(out, count ? "" : "none");
}

static sf_status fail_factor(const sf_graph *graph, const sf_node *node, const char *factor,
                             int parts, obstacle why, sf_arena *arena, sf_diag *diag)
{
    sf_op op;
    sf_factoring factoring = {0};
    sf_buf letters = {0};
    factor_op(graph, node, arena, &op, &factoring);
    put_letters(&factoring, &letters);
    char how[80] = "";
    if (why == DIVIDES_NOT)
        snprintf(how, sizeof how, ": %d parts of it would not be equal", parts);
    sf_fail(diag, SF_EUSAGE, node->loc, "%s %s factor %s%s", sf_op_path(node, arena),
            why == NO_FACTOR  ? "has no"
            : why == IS_WHOLE ? "cannot be cut along"
                              : "cannot be cut evenly along",
            factor, how);
    sf_status status = sf_hint(diag, "factors that it can be cut along: %s", letters.text);
    sf_buf_free(&letters);
    return status;
}

static int factor_of_letter(const char *text)
{
    for (int f = 0; f < 26; f++)
        if (text[0] == sf_factor_letter(f) && text[1] == '\0')
            return f;
    return -1;
}

sf_status sf_choose_factor(const sf_graph *graph, const sf_ops *ops, const char *factor, int parts,
                           int axis, sf_arena *arena, sf_diag *diag, sf_choice_list *out)
{
    int number = factor_of_letter(factor);
    if (number < 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "\"%.100s\" is no factor: factors are letters, i, j, k, ...", factor);
    obstacle nearest = NO_FACTOR;
    const sf_node *who = ops->at[0];
    size_t before = out->count;
    for (size_t i = 0; i < ops->count; i++) {
        sf_op op;
        sf_factoring factoring = {0};
        factor_op(graph, ops->at[i], arena, &op, &factoring);
        obstacle why = find_obstacle(&factoring, number, parts);
        if (why == IS_FREE) {
            sf_chosen chosen = {ops->at[i]->id, axis, number};
            SF_PUSH(arena, out->at, out->count, out->capacity, chosen);
        } else if (why > nearest) {
            nearest = why;
            who = ops->at[i];
        }
    }
    if (out->count > before)
        return SF_OK;
    return fail_factor(graph, who, factor, parts, nearest, arena, diag);
}

bool sf_is_choice_text(const char *text)
{
    return strchr(text, ':') != NULL;
}

sf_status sf_choose_by_text(const sf_graph *graph, const char *text, int parts, sf_arena *arena,
                            sf_diag *diag, sf_choice_list *out)
{
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ";");
        char *one = sf_arena_string(arena, at, length), *colon = strrchr(one, ':');
        sf_ops ops;
        if (!colon)
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "expected OPS:FACTOR, not \"%.200s\"", one);
        *colon = '\0';
        SF_TRY(sf_ops_find(graph, one, arena, diag, &ops));
        SF_TRY(sf_choose_factor(graph, &ops, colon + 1, parts, 0, arena, diag, out));
        at += length + (at[length] == ';');
    }
    return SF_OK;
}

void sf_ops_list(const sf_graph *graph, const sf_ops *ops, sf_buf *out)
{
    sf_arena arena = {0};
    for (size_t i = 0; i < ops->count; i++) {
        sf_mark mark = sf_arena_mark(&arena);
        sf_op op;
        sf_factoring factoring = {0};
        factor_op(graph, ops->at[i], &arena, &op, &factoring);
        sf_buf_printf(out, "%s  ", sf_op_path(ops->at[i], &arena));
        put_letters(&factoring, out);
        sf_buf_putc(out, '\n');
        sf_arena_reset(&arena, mark);
    }
    sf_arena_free(&arena);
}
