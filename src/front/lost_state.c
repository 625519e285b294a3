#include "front/lost_state.h"

#include <stdio.h>

#include "base/mem.h"
#include "front/elementwise_state.h"
#include "front/find_loss.h"
#include "front/number_state.h"
#include "front/role.h"
#include "front/state_links.h"

/* The type that a result derived from it must have. */
static bool may_be_lost_state(const sf_graph *graph, uint32_t argument)
{
    const sf_argument *a = &graph->arguments[argument];
    const sf_type *type = sf_argument_type(graph, argument);
    bool is_fed = a->role == SF_ROLE_BATCH &&
                  (a->role_from == SF_FROM_SIDECAR || a->role_from == SF_FROM_NAME);
    if (a->next != SF_NONE || is_fed)
        return false;
    if (!sf_is_inexact(type->dtype))
        return type->rank == 0 && type->dtype != SF_PRED;
    for (uint32_t i = 0; type->rank > 0 && i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE && sf_argument_type(graph, i) == type)
            return true;
    return false;
}

static bool is_new_key(const sf_graph *graph, uint32_t result, uint32_t argument)
{
    return sf_may_be_key(sf_argument_type(graph, argument)) &&
           graph->arguments[argument].next == SF_NONE &&
           sf_result_type(graph, result) == sf_argument_type(graph, argument);
}

/* A value that is passed on unchanged is no new state, but that of state may be kept as the one before. */
static bool is_passed_on(const sf_graph *graph, uint32_t result)
{
    sf_value value = graph->top->results[result];
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->top->arguments[i] == value)
            return graph->arguments[i].next == SF_NONE || graph->arguments[i].next == result;
    return !sf_maker(graph, value);
}

/* What a loose result is looked for with. */
typedef struct seeker {
    sf_graph *graph;
    sf_growth growth;
    sf_number_state numbers;
    const bool *reported;
    uint32_t loss;
    bool is_guessed; /* no link is known */
} seeker;

/* Among the results before the loss, where state is, or after a loss that comes first: a hidden state or a cache, or what the step reports of its batch. Only
 * who wrote the step knows, unless the name says batch or the text links other state. */
static bool is_in_place_of_state(const seeker *s, uint32_t result, uint32_t argument)
{
    const sf_argument *a = &s->graph->arguments[argument];
    return s->is_guessed && (result < s->loss || s->loss == 0) && !s->reported[result] &&
           a->next == SF_NONE && a->next_from == SF_FROM_NOTHING &&
           sf_result_type(s->graph, result)->rank > 0 && a->role_from != SF_FROM_SIDECAR &&
           !sf_is_called_batch(a->name);
}

/* What is passed on is no update of anything, but may be the next value of another argument. */
static bool may_be_lost(const seeker *s, uint32_t result, uint32_t argument)
{
    const sf_graph *graph = s->graph;
    const sf_argument *a = &graph->arguments[argument];
    bool same = sf_result_type(graph, result) == sf_argument_type(graph, argument);
    bool in_place = same && is_in_place_of_state(s, result, argument);
    if (is_passed_on(graph, result))
        return in_place && sf_is_inexact(sf_argument_type(graph, argument)->dtype) &&
               graph->top->arguments[argument] != graph->top->results[result];
    bool grows = same && sf_grows_from(&s->growth, result, argument) &&
                 may_be_lost_state(graph, argument) && a->next_from == SF_FROM_NOTHING;
    bool number = s->numbers.of[result] == argument && !s->reported[result] && a->next == SF_NONE &&
                  a->role_from != SF_FROM_SIDECAR && a->next_from == SF_FROM_NOTHING;
    return grows || number || in_place || is_new_key(graph, result, argument);
}

static void look_at_result(const seeker *s, uint32_t result)
{
    sf_result *r = &s->graph->results[result];
    for (uint32_t i = 0; i < s->graph->top->narguments && !r->is_loose; i++) {
        r->is_loose = may_be_lost(s, result, i);
        r->like = i;
    }
}

static uint32_t loss_of(const sf_graph *graph)
{
    uint32_t r = 0;
    while (r < graph->top->nresults && !graph->results[r].is_loss)
        r++;
    return r < graph->top->nresults ? r : 0;
}

/* Where nothing is linked and there is a loss: what grows from an argument, but is not on the way to the loss. */
static void find_state_of_none(sf_graph *graph)
{
    sf_arena arena = {0};
    uint32_t loss = loss_of(graph);
    if (graph->top->nresults == 0 || !graph->results[loss].is_loss)
        return;
    uint32_t *becomes = sf_find_new_state(graph);
    bool *needed = sf_needed_by(graph, becomes, loss);
    sf_growth growth = sf_growth_of(graph, needed, &arena);
    for (uint32_t r = 0; r < graph->top->nresults; r++)
        for (uint32_t i = 0; i < graph->top->narguments; i++) {
            const sf_type *type = sf_argument_type(graph, i);
            sf_result *result = &graph->results[r];
            if (!result->is_loose && !result->is_output && type->rank > 0 &&
                type == sf_result_type(graph, r) && !is_passed_on(graph, r) && !growth.forward[r] &&
                sf_grows_from(&growth, r, i) && needed[graph->top->arguments[i]] &&
                graph->arguments[i].role_from != SF_FROM_SIDECAR &&
                !sf_is_called_batch(graph->arguments[i].name)) {
                result->is_loose = true;
                result->like = i;
            }
        }
    sf_free(needed);
    sf_free(becomes);
    sf_arena_free(&arena);
}

/* State by its role that no result becomes: optimizer state, and parameters by the sidecar if a result that becomes nothing
 * grows from them, or if nothing of their type is known to be state. */
static bool is_loose_argument(const seeker *s, const bool *linked, uint32_t argument)
{
    const sf_graph *graph = s->graph;
    const sf_argument *a = &graph->arguments[argument];
    bool others = false, any = false;
    if (a->next != SF_NONE || a->next_from != SF_FROM_NOTHING)
        return false;
    if (a->role != SF_ROLE_PARAM || a->role_from != SF_FROM_SIDECAR)
        return a->role == SF_ROLE_STATE;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        others = others || (graph->arguments[i].next != SF_NONE &&
                            sf_argument_type(graph, i) == sf_argument_type(graph, argument));
    for (uint32_t r = 0; r < graph->top->nresults; r++)
        any = any || (!linked[r] && !graph->results[r].is_output && !graph->results[r].is_loss &&
                      !is_passed_on(graph, r) &&
                      sf_result_type(graph, r) == sf_argument_type(graph, argument) &&
                      (!others || sf_how_it_grows(&s->growth, r, argument) == SF_GROWS_KEPT));
    return any;
}

void sf_find_loose(sf_graph *graph, bool complete)
{
    sf_arena arena = {0};
    if (!sf_any_link(graph)) {
        if (complete)
            return;
        find_state_of_none(graph);
        return;
    }
    seeker s = {graph,
                sf_growth_of(graph, NULL, &arena),
                sf_find_number_state(graph, &arena),
                sf_find_reported(graph, true, &arena),
                loss_of(graph),
                true};
    bool *linked = SF_ARRAY(&arena, graph->top->nresults, bool);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        sf_argument *argument = &graph->arguments[i];
        if (argument->next != SF_NONE)
            linked[argument->next] = true;
        s.is_guessed = s.is_guessed && (argument->next_from == SF_FROM_USER ||
                                        !sf_source_is_known(argument->next_from));
    }
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        graph->arguments[i].is_loose =
            is_loose_argument(&s, linked, i) &&
            (!complete || graph->arguments[i].role_from == SF_FROM_SIDECAR);
    for (uint32_t r = 0; r < graph->top->nresults && !complete; r++)
        if (!linked[r] && !graph->results[r].is_output && !graph->results[r].is_loss)
            look_at_result(&s, r);
    sf_arena_free(&arena);
}

/* The first, and how many there are. */
static uint32_t count_loose(const sf_graph *graph, bool of_results, uint32_t *first)
{
    uint32_t count = 0, all = of_results ? graph->top->nresults : graph->top->narguments;
    for (uint32_t i = 0; i < all; i++)
        if (of_results ? graph->results[i].is_loose : graph->arguments[i].is_loose)
            if (count++ == 0)
                *first = i;
    return count;
}

enum { MOST_NAME = 200, MOST_TEXT = 800 };

static void tell(sf_diag *diag, bool is_error, const char *text)
{
    if (is_error)
        sf_fail(diag, SF_EINPUT, SF_NOWHERE, "%s", text);
    else
        sf_warn(diag, SF_NOWHERE, "%s", text);
}

/* "", or " (and 3 more)". */
static const char *others(uint32_t count, char text[40])
{
    snprintf(text, 40, " (and %u more)", count - 1);
    return count > 1 ? text : "";
}

static void tell_results(const sf_graph *graph, bool is_error, sf_diag *diag)
{
    uint32_t first = 0, count = count_loose(graph, true, &first);
    char text[MOST_TEXT], more[40];
    if (count == 0)
        return;
    const sf_result *result = &graph->results[first];
    snprintf(text, sizeof text,
             "result %u%s%.*s%s looks like what becomes of the argument %.*s, but is not linked to "
             "it: it would be lost from step to step",
             first, *result->name ? ", " : "", MOST_NAME, result->name, others(count, more),
             MOST_NAME, graph->arguments[result->like].name);
    tell(diag, is_error, text);
    sf_hint(
        diag,
        "--state %u=%u says that it does, --state ARGUMENT=RESULT,... what becomes what; results "
        "that are only given out are named in \"outputs\" of the sidecar",
        result->like, first);
}

/* The first of its type that becomes nothing; SF_NONE if there is none. */
static uint32_t find_free_result(const sf_graph *graph, uint32_t argument)
{
    for (uint32_t r = 0; r < graph->top->nresults; r++) {
        bool taken = graph->results[r].is_loss || graph->results[r].is_output ||
                     sf_result_type(graph, r) != sf_argument_type(graph, argument);
        for (uint32_t i = 0; i < graph->top->narguments && !taken; i++)
            taken = graph->arguments[i].next == r;
        if (!taken)
            return r;
    }
    return SF_NONE;
}

static void tell_arguments(const sf_graph *graph, bool is_error, sf_diag *diag)
{
    uint32_t first = 0, count = count_loose(graph, false, &first);
    char text[MOST_TEXT], more[40];
    if (count == 0)
        return;
    const sf_argument *argument = &graph->arguments[first];
    const char *by = argument->role_from == SF_FROM_SIDECAR ? "the sidecar"
                     : argument->role_from == SF_FROM_NAME  ? "its name"
                                                            : "the flow of data";
    snprintf(text, sizeof text,
             "the argument %.*s%s is %s by %s, but no result becomes it: it would not be carried "
             "from step to step",
             MOST_NAME, argument->name, others(count, more),
             argument->role == SF_ROLE_PARAM ? "a parameter" : "optimizer state", by);
    tell(diag, is_error, text);
    uint32_t result = find_free_result(graph, first);
    if (result == SF_NONE)
        sf_hint(diag, "return it from the step; what is fed to each step has the role batch or "
                      "other in the sidecar");
    else
        sf_hint(diag,
                "--state %u=%u says that result %u becomes it, --state %u=none that nothing does; "
                "what is fed to each step has the role batch or other in the sidecar",
                first, result, result, first);
}

void sf_warn_loose(const sf_graph *graph, sf_diag *diag)
{
    tell_results(graph, false, diag);
    tell_arguments(graph, false, diag);
}

sf_status sf_refuse_loose(const sf_graph *graph, sf_diag *diag)
{
    uint32_t first = 0;
    tell_results(graph, true, diag);
    tell_arguments(graph, true, diag);
    bool any = count_loose(graph, true, &first) > 0 || count_loose(graph, false, &first) > 0;
    return any ? SF_EINPUT : SF_OK;
}
