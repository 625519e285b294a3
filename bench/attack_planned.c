#include "attack_attempt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/name.h"
#include "plan/pin.h"

/* The returned plan -------------------------------------------------------------------------------- */

/* Part `index` of a layout as text, "[R, S(0)]". */
static bool take_share(const char *layout, int index, char out[TEXT])
{
    int depth = 0;
    size_t used = 0;
    for (const char *c = layout + 1; *c && used + 1 < TEXT; c++) {
        depth += (*c == '(') - (*c == ')');
        if (depth == 0 && (*c == ',' || *c == ']')) {
            if (index-- == 0) {
                out[used] = '\0';
                return true;
            }
        } else if (index == 0 && *c != ' ')
            out[used++] = *c;
    }
    return false;
}

/* A name and its share along an axis, the digits of the name hidden. */
typedef struct named_share {
    const char *name;
    char pattern[TEXT], share[32];
    bool agrees, is_first; /* all of this pattern have the share; it is the first of them */
} named_share;

static int by_pattern(const void *x, const void *y)
{
    const named_share *a = x, *b = y;
    int order = strcmp(a->pattern, b->pattern);
    return order ? order : strcmp(a->name, b->name);
}

/* Whether all of a pattern agree, once they are sorted. */
static void compare_shares(named_share *shares, size_t count)
{
    qsort(shares, count, sizeof *shares, by_pattern);
    for (size_t first = 0, end; first < count; first = end) {
        bool agrees = true;
        for (end = first; end < count && strcmp(shares[end].pattern, shares[first].pattern) == 0;
             end++)
            agrees = agrees && strcmp(shares[end].share, shares[first].share) == 0;
        for (size_t i = first; i < end; i++)
            shares[i].agrees = agrees, shares[i].is_first = i == first;
    }
}

static named_share name_share(const char *name, const char *layout, int along)
{
    named_share s = {.name = name};
    char share[TEXT];
    if (hide_digits(name, s.pattern) && take_share(layout, along, share) &&
        strlen(share) < sizeof s.share)
        memcpy(s.share, share, strlen(share) + 1);
    return s;
}

/* Pins of all arguments along an axis: one for each pattern where its arguments agree. */
static void pin_arguments(attack *a, const sf_plan *plan, int along, const char **names)
{
    size_t count = a->graph->top->narguments;
    named_share *shares = calloc(count + 1, sizeof *shares);
    char layout[SF_LAYOUT_TEXT], text[2 * TEXT];
    if (!shares)
        exit(2);
    for (size_t i = 0; i < count; i++)
        if (sf_plan_argument_layout(plan, a->graph, (int)i, layout))
            shares[i] = name_share(names[i], layout, along);
    compare_shares(shares, count);
    for (size_t i = 0; i < count; i++)
        if (*shares[i].share && (!shares[i].agrees || shares[i].is_first)) {
            snprintf(text, sizeof text, "/%s=%s@%s",
                     shares[i].agrees ? shares[i].pattern : shares[i].name, shares[i].share,
                     plan->mesh.axes[along].name);
            add_text(&a->own, text);
        }
    free(shares);
}

/* Pins of the scopes in which all that the forward pass computes has one share. */
static void pin_scopes(attack *a, const sf_plan *plan, int along)
{
    sf_arena arena = {0};
    sf_names names = sf_names_of(a->graph, &arena);
    const sf_block *top = a->graph->top;
    size_t count = 0;
    named_share *shares = calloc(top->nnodes + 1, sizeof *shares);
    char text[2 * TEXT];
    if (!shares)
        exit(2);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = a->graph->nodes[top->nodes[i]];
        sf_buf layout = {0};
        if (node->phase != SF_FORWARD || node->nresults == 0 || !plan->nodes[node->id] ||
            !names.is_scope[node->result] || !*names.values[node->result])
            continue;
        const sf_type *type = sf_type_of(a->graph, node->result);
        if (type->rank == 0)
            continue;
        sf_layout_print(&plan->nodes[node->id][node->noperands], &plan->mesh, type->rank,
                        type->dims, &layout);
        shares[count++] = name_share(names.values[node->result], layout.text, along);
        sf_buf_free(&layout);
    }
    compare_shares(shares, count);
    for (size_t i = 0; i < count; i++)
        if (shares[i].agrees && shares[i].is_first &&
            (*shares[i].share == 'R' || *shares[i].share == 'S')) {
            snprintf(text, sizeof text, "/%s=%s@%s", shares[i].pattern, shares[i].share,
                     plan->mesh.axes[along].name);
            add_text(&a->own, text);
        }
    free(shares);
    sf_arena_free(&arena);
}

void take_planned(attack *a, const sf_plan *plan)
{
    attempt *t = &a->planned;
    sf_arena arena = {0};
    const char **names = sf_clean_names(a->graph, &arena);
    snprintf(t->recipe, TEXT, "%s", plan->recipe);
    t->own = !*plan->recipe;
    t->naxes = plan->mesh.naxes;
    for (int i = 0; i < plan->mesh.naxes; i++) {
        snprintf(t->axes[i].name, AXIS, "%s", plan->mesh.axes[i].name);
        t->axes[i].size = plan->mesh.axes[i].size;
        if (!sf_plan_pipes(plan, i))
            pin_arguments(a, plan, i, names);
    }
    for (int i = 0; i < plan->mesh.naxes; i++) {
        if (!sf_plan_pipes(plan, i))
            pin_scopes(a, plan, i);
    }
    if (plan->pipeline && *plan->pipeline->name)
        snprintf(t->genes[SCHEDULE], TEXT, "%s", plan->pipeline->name);
    else if (plan->pipeline)
        snprintf(t->genes[SCHEDULE], TEXT, "search:%d",
                 (int)plan->pipeline->stages.count / plan->mesh.axes[plan->pipeline->axis].size);
    if (plan->micro_batches > 1)
        snprintf(t->genes[MICRO], TEXT, "%d", plan->micro_batches);
    bool is_open = strcmp(plan->recompute, "auto") == 0; /* a choice that only a search makes */
    if (!is_open)
        snprintf(t->genes[RECOMPUTE], TEXT, "%s", *plan->recompute ? plan->recompute : "none");
    if (plan->nco_shards == 1 && *plan->co_shards->by != '#')
        snprintf(t->genes[CHUNKS], TEXT, "%s:%d", plan->co_shards->by, plan->co_shards->chunks);
    if (plan->passes.list && *plan->passes.list)
        snprintf(t->genes[PASSES], TEXT, "%s", plan->passes.list);
    t->seconds = HUGE_VAL;
    if (try_attempt(a, t) && is_new(a, t))
        keep(a, t);
    for (int i = 1; is_open && choices[RECOMPUTE][i]; i++) {
        attempt other = *t;
        snprintf(other.genes[RECOMPUTE], TEXT, "%s", choices[RECOMPUTE][i]);
        if (try_attempt(a, &other) && is_new(a, &other))
            keep(a, &other);
    }
    for (int i = 1; choices[PASSES][i]; i++) {
        attempt other = *t;
        other.exact = true;
        snprintf(other.genes[PASSES], TEXT, "%s", choices[PASSES][i]);
        if (try_attempt(a, &other) && is_new(a, &other))
            keep(a, &other);
    }
    sf_arena_free(&arena);
}
