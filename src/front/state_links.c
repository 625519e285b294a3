#include "front/state_links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "front/find_loss.h"
#include "front/role.h"
#include "front/state_linker.h"

static void set_next(sf_argument *argument, uint32_t result, sf_source from)
{
    argument->next = result;
    argument->next_from = from;
}

bool sf_any_link(const sf_graph *graph)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            return true;
    return false;
}

/* By hand */

/* The argument or result that a number or a name means; SF_NONE when there is none. */
static uint32_t find_named_argument(const sf_graph *graph, const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (*text && !*end)
        return number < graph->top->narguments ? (uint32_t)number : SF_NONE;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (strcmp(graph->arguments[i].name, text) == 0)
            return i;
    return SF_NONE;
}

static uint32_t find_named_result(const sf_graph *graph, const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (*text && !*end)
        return number < graph->top->nresults ? (uint32_t)number : SF_NONE;
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        if (strcmp(graph->results[i].name, text) == 0)
            return i;
    return SF_NONE;
}

static sf_status link_by_hand(sf_linker *l, char *pair, sf_source from)
{
    sf_graph *graph = l->graph;
    bool in_file = from == SF_FROM_SIDECAR;
    sf_status kind = in_file ? SF_EINPUT : SF_EUSAGE;
    const char *where = in_file ? "\"state\" of the sidecar" : "state";
    char *equals = strrchr(pair, '=');
    if (!equals)
        return sf_fail(l->diag, kind, SF_NOWHERE, "%s: \"%s\" is not ARGUMENT=RESULT", where, pair);
    *equals = 0;
    bool none = strcmp(equals + 1, "none") == 0;
    uint32_t argument = find_named_argument(graph, pair);
    uint32_t result = none ? SF_NONE : find_named_result(graph, equals + 1);
    if (argument == SF_NONE)
        return sf_fail(l->diag, kind, SF_NOWHERE, "%s: there is no argument \"%s\"", where, pair);
    if (result == SF_NONE && !none)
        return sf_fail(l->diag, kind, SF_NOWHERE, "%s: there is no result \"%s\"", where,
                       equals + 1);
    if (!none && sf_argument_type(graph, argument) != sf_result_type(graph, result))
        return sf_fail(l->diag, kind, SF_NOWHERE,
                       "%s: argument %u and result %u have different types", where, argument,
                       result);
    if (l->said[argument] && from != SF_FROM_SIDECAR)
        return sf_fail(l->diag, kind, SF_NOWHERE, "%s: argument %u comes twice", where, argument);
    if (l->said[argument]) /* the command line said it */
        return SF_OK;
    l->said[argument] = true;
    l->fed[argument] = none;
    if (none)
        set_next(&graph->arguments[argument], SF_NONE, from);
    else
        sf_take_result(l, argument, result, from);
    return SF_OK;
}

static sf_status links_by_hand(sf_linker *l, const char *state, sf_source from)
{
    char *text = state && strcmp(state, "none") != 0
                     ? sf_arena_string(&l->arena, state, strlen(state))
                     : NULL;
    while (text) {
        char *comma = strchr(text, ',');
        if (comma)
            *comma++ = 0;
        SF_TRY(link_by_hand(l, text, from));
        text = comma;
    }
    return SF_OK;
}

/* By what may be the loss as long as links are not known. */
static void find_growth(sf_linker *l)
{
    const sf_graph *graph = l->graph;
    uint32_t *becomes = SF_ARRAY(&l->arena, graph->nvalues, uint32_t);
    bool *kept = SF_ARRAY(&l->arena, graph->top->narguments, bool);
    l->growth = sf_growth_of(graph, NULL, &l->arena);
    for (uint32_t r = 0; r < graph->top->nresults; r++)
        for (size_t k = l->growth.first[r]; k < l->growth.first[r + 1]; k++) {
            uint32_t i = l->growth.arguments[k];
            kept[i] = kept[i] || (sf_result_type(graph, r) == sf_argument_type(graph, i) &&
                                  !sf_is_passed_on(l, r));
        }
    l->loss = sf_guess_loss(graph, becomes, kept, false);
    bool *needed = sf_needed_by(graph, becomes, l->loss);
    l->growth = sf_growth_of(graph, needed, &l->arena);
    sf_free(needed);
}

/* Texts without locations have names of results alone: of arguments the numbers. */
static bool has_names(const sf_graph *graph)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const char *name = graph->arguments[i].name;
        bool is_number =
            strncmp(name, "arg", 3) == 0 && name[3] && !name[3 + strspn(name + 3, "0123456789")];
        if (*name && !is_number)
            return true;
    }
    return false;
}

/* A function whose arguments all come back, or that reports no number, need not be a step. */
static bool may_be_step(const sf_linker *l)
{
    const sf_block *top = l->graph->top;
    uint32_t links = 0;
    for (uint32_t i = 0; i < top->narguments; i++)
        links += l->graph->arguments[i].next != SF_NONE;
    return links < top->narguments && l->loss != SF_NONE && !l->taken[l->loss];
}

static void drop_flow(sf_linker *l)
{
    for (uint32_t i = 0; i < l->graph->top->narguments; i++) {
        sf_argument *argument = &l->graph->arguments[i];
        if (argument->next == SF_NONE || argument->next_from != SF_FROM_FLOW)
            continue;
        l->taken[argument->next] = false;
        set_next(argument, SF_NONE, SF_FROM_NOTHING);
    }
}

/* `known`: links are that are no guesses. */
static void guess_links(sf_linker *l, bool known)
{
    const sf_graph *graph = l->graph;
    bool arguments = has_names(graph);
    bool results = graph->top->nresults > 0 && *graph->results[0].name;
    if (arguments && results)
        sf_link_by_name(l);
    else if (arguments || results)
        sf_link_trees(l, arguments);
    if (!(arguments && results ? sf_any_link(graph) : known))
        sf_link_by_order(l);
}

static bool any_known(const sf_graph *graph)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE &&
            sf_source_is_known(graph->arguments[i].next_from))
            return true;
    return false;
}

/* What is known of single arguments and results before any link is. */
static void find_evidence(sf_linker *l, const uint32_t *aliases)
{
    const sf_graph *graph = l->graph;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_argument *argument = &graph->arguments[i];
        bool said = argument->role_from == SF_FROM_SIDECAR;
        l->fed[i] = l->fed[i] ||
                    (said && (argument->role == SF_ROLE_BATCH || argument->role == SF_ROLE_OTHER));
        l->kept[i] = said && (argument->role == SF_ROLE_PARAM || argument->role == SF_ROLE_STATE);
    }
    l->numbers = sf_find_number_state(graph, &l->arena);
    l->reported = sf_find_reported(graph, false, &l->arena);
    for (uint32_t r = 0; r < graph->top->nresults; r++) { /* what is donated is state */
        uint32_t of = l->numbers.of[r];
        if (of != SF_NONE && (aliases[of] != SF_NONE || l->kept[of]))
            l->numbers.sure[r] = true;
    }
    find_growth(l);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        l->kept[i] = l->kept[i] || (aliases[i] != SF_NONE && !l->fed[i] &&
                                    !sf_is_called_batch(graph->arguments[i].name));
}

/* From the best evidence to the least. */
static void infer_links(sf_linker *l, const uint32_t *aliases)
{
    const sf_graph *graph = l->graph;
    find_evidence(l, aliases);
    sf_link_by_flow(l);
    l->trusting = true;
    sf_link_by_flow(l);
    bool named = has_names(graph) && graph->top->nresults > 0 && *graph->results[0].name;
    if (!named && !may_be_step(l))
        drop_flow(l);
    sf_link_by_alias(l, aliases);
    bool known = any_known(graph);
    guess_links(l, known);
    l->relaxed = !sf_any_link(graph);
    if (l->relaxed)
        guess_links(l, known);
    if (sf_any_link(graph)) {
        sf_link_last_state(l);
        sf_link_keys(l);
    }
    sf_tell_namesakes(l);
}

sf_status sf_link_state(sf_graph *graph, const char *user, const char *sidecar, bool strict,
                        sf_diag *diag)
{
    const sf_block *top = graph->top;
    sf_linker l = {.graph = graph, .diag = diag, .strict = strict, .loss = SF_NONE};
    SF_TRY(sf_check_aliases(graph, diag));
    uint32_t *aliases = SF_ARRAY(&l.arena, top->narguments, uint32_t);
    l.taken = SF_ARRAY(&l.arena, top->nresults, bool);
    l.said = SF_ARRAY(&l.arena, top->narguments, bool);
    l.fed = SF_ARRAY(&l.arena, top->narguments, bool);
    l.kept = SF_ARRAY(&l.arena, top->narguments, bool);
    for (uint32_t i = 0; i < top->narguments; i++) {
        bool aliased = graph->arguments[i].next_from == SF_FROM_ALIAS;
        aliases[i] = aliased ? graph->arguments[i].next : SF_NONE;
        set_next(&graph->arguments[i], SF_NONE, SF_FROM_NOTHING);
    }
    for (uint32_t r = 0; r < top->nresults; r++)
        l.taken[r] = graph->results[r].is_output;
    l.status = links_by_hand(&l, user, SF_FROM_USER);
    bool none = user && strcmp(user, "none") == 0;
    if (l.status == SF_OK && !none)
        l.status = links_by_hand(&l, sidecar, SF_FROM_SIDECAR);
    if (l.status == SF_OK && !none && !sidecar)
        infer_links(&l, aliases);
    sf_arena_free(&l.arena);
    return l.status;
}
