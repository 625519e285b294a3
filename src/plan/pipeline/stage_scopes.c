/* Stages by a person: the scopes that begin them. */
#include <string.h>

#include "ir/name.h"
#include "ir/uses.h"
#include "plan/pipeline/stage_cut.h"

typedef struct scoping {
    const sf_graph *graph;
    sf_diag *diag;
    const bool *anywhere, *moving; /* by node */
    const char *const *patterns;
    uint32_t npatterns;
    bool *found, *begun; /* by pattern: it matches something; its stage has some of that */
    uint32_t *stage;     /* by node; SF_NONE: not said */
} scoping;

/* The last of those whose scope the node is in; 0: none. */
static uint32_t find_stage(scoping *s, const sf_node *node)
{
    for (uint32_t p = s->npatterns; p-- > 0;)
        if (sf_name_is_in(s->patterns[p], node->scope->path)) {
            s->found[p] = true;
            return p + 1;
        }
    return 0;
}

/* Nodes follow their operands; weights and values of weights alone are left to their readers. */
static void stage_node(scoping *s, const sf_node *node)
{
    uint32_t own = find_stage(s, node), stage = own;
    for (uint32_t o = 0; o < node->noperands; o++) {
        const sf_value_info *info = &s->graph->values[node->operands[o]];
        if (info->node != SF_NONE && s->stage[info->node] != SF_NONE &&
            s->stage[info->node] > stage)
            stage = s->stage[info->node];
    }
    if (s->anywhere[node->id] || (own == 0 && !s->moving[node->id]))
        return;
    s->stage[node->id] = stage;
    if (own > 0 && stage == own && s->moving[node->id])
        s->begun[own - 1] = true;
}

static bool is_named_again(const scoping *s, uint32_t pattern)
{
    for (uint32_t p = pattern + 1; p < s->npatterns; p++)
        if (strcmp(s->patterns[p], s->patterns[pattern]) == 0)
            return true;
    return false;
}

static sf_status check_patterns(const scoping *s)
{
    for (uint32_t p = 0; p < s->npatterns; p++) {
        if (is_named_again(s, p))
            return sf_fail(s->diag, SF_EUSAGE, SF_NOWHERE, "stages: \"%s\" cannot begin two stages",
                           s->patterns[p]);
        if (!s->found[p]) {
            sf_fail(s->diag, SF_EUSAGE, SF_NOWHERE,
                    "stages: \"%s\" is no scope of the forward pass", s->patterns[p]);
            return sf_hint(s->diag, "give how many stages there are to be, or scopes that begin "
                                    "them; sheaf pin --names lists scopes");
        }
        if (s->begun[p])
            continue;
        sf_fail(
            s->diag, SF_EUSAGE, SF_NOWHERE,
            "stages: all of \"%s\" comes after the beginning of a later stage, so that stage %u "
            "is empty",
            s->patterns[p], p + 1);
        return sf_hint(s->diag, "name scopes in the order in which they are computed");
    }
    return SF_OK;
}

sf_status sf_cut_by_scopes(const sf_graph *graph, uint32_t count, const char *const *scopes,
                           sf_arena *arena, sf_diag *diag, uint32_t **forward)
{
    scoping s = {.graph = graph,
                 .diag = diag,
                 .anywhere = sf_find_anywhere(graph, arena),
                 .patterns = scopes,
                 .npatterns = count};
    s.found = SF_ARRAY(arena, s.npatterns, bool);
    s.begun = SF_ARRAY(arena, s.npatterns, bool);
    s.stage = SF_ARRAY(arena, graph->nnodes, uint32_t);
    s.moving = sf_find_moving(graph, arena);
    for (uint32_t n = 0; n < graph->nnodes; n++)
        s.stage[n] = SF_NONE;
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        if (sf_top_node(graph, i)->phase == SF_FORWARD)
            stage_node(&s, sf_top_node(graph, i));
    SF_TRY(check_patterns(&s));
    *forward = s.stage;
    return SF_OK;
}
