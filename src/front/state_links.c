#include "front/state_links.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
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

static sf_status link_by_hand(sf_graph *graph, char *pair, sf_diag *diag)
{
    char *equals = strrchr(pair, '=');
    if (!equals)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "state \"%s\" is not ARGUMENT=RESULT", pair);
    *equals = 0;
    uint32_t argument = find_named_argument(graph, pair);
    uint32_t result = find_named_result(graph, equals + 1);
    if (argument == SF_NONE)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "state: there is no argument \"%s\"", pair);
    if (result == SF_NONE)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "state: there is no result \"%s\"", equals + 1);
    if (sf_argument_type(graph, argument) != sf_result_type(graph, result))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "state: argument %u and result %u have different types", argument, result);
    set_next(&graph->arguments[argument], result, SF_FROM_USER);
    return SF_OK;
}

static sf_status links_by_hand(sf_graph *graph, const char *state, sf_diag *diag)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        set_next(&graph->arguments[i], SF_NONE, SF_FROM_NOTHING);
    if (strcmp(state, "none") == 0)
        return SF_OK;
    char *text = sf_arena_string(&graph->arena, state, strlen(state));
    while (text) {
        char *comma = strchr(text, ',');
        if (comma)
            *comma++ = 0;
        SF_TRY(link_by_hand(graph, text, diag));
        text = comma;
    }
    return SF_OK;
}

/* By name */

static const char *path_behind_head(const char *name)
{
    return name + strcspn(name, "[.");
}

/* ".mu['w']" -> "['w']", the beginning of the last part. */
static const char *last_part(const char *path)
{
    size_t length = strlen(path);
    for (size_t at = length; at-- > 0;)
        if (path[at] == '[' || path[at] == '.')
            return path + at;
    return path;
}

static bool is_path(const void *item, const void *key)
{
    return strcmp(((const sf_named_result *)item)->path, key) == 0;
}

static bool ends_alike(const void *item, const void *key)
{
    return strcmp(last_part(((const sf_named_result *)item)->path), key) == 0;
}

static bool ends_in(const char *name, const char *path)
{
    size_t length = strlen(name), ending = strlen(path);
    return ending > 0 && ending <= length && strcmp(name + length - ending, path) == 0;
}

static uint64_t hash_text(const char *text)
{
    return sf_hash_bytes(0, text, strlen(text));
}

static void index_results(sf_linker *l)
{
    const sf_graph *graph = l->graph;
    l->results = SF_ARRAY(&l->arena, graph->top->nresults, sf_named_result);
    for (uint32_t i = graph->top->nresults; i-- > 0;) {
        sf_named_result *result = &l->results[i];
        result->path = path_behind_head(graph->results[i].name);
        result->index = i;
        if (!*result->path)
            continue;
        const char *last = last_part(result->path);
        sf_intern_find(&l->by_path, &l->arena, hash_text(result->path), is_path, result->path)
            ->item = result;
        sf_intern_slot *slot =
            sf_intern_find(&l->by_last, &l->arena, hash_text(last), ends_alike, last);
        result->next = (sf_named_result *)(uintptr_t)slot->item;
        slot->item = result;
    }
}

/* A part of the arguments that may come back as a whole: those from `first` on whose names begin with the same
 * `length` characters. */
typedef struct part {
    uint32_t first, count;
    size_t length;
} part;

static const char *path_in_part(const sf_linker *l, const part *p, uint32_t i)
{
    return l->graph->arguments[p->first + i].name + p->length;
}

/* The result at prefix + path that the argument may become, or SF_NONE. */
static uint32_t find_result(sf_linker *l, sf_str prefix, const char *path, uint32_t argument)
{
    size_t length = strlen(path);
    sf_mark mark = sf_arena_mark(&l->arena);
    char *whole = sf_arena_alloc(&l->arena, prefix.length + length + 1);
    memcpy(whole, prefix.at, prefix.length);
    memcpy(whole + prefix.length, path, length + 1);
    const sf_named_result *found = sf_intern_look(&l->by_path, hash_text(whole), is_path, whole);
    sf_arena_reset(&l->arena, mark);
    if (!found || l->taken[found->index] || l->fed[argument] ||
        sf_result_type(l->graph, found->index) != sf_argument_type(l->graph, argument))
        return SF_NONE;
    return found->index;
}

/* How results are looked for: first where it is plain, then further. */
typedef struct search {
    int most_depth; /* parts of the path above the returned tree */
    bool grows;     /* half of the tensors at least derive from their old values */
} search;

static int count_parts(sf_str path)
{
    int count = 0;
    for (size_t i = 0; i < path.length; i++)
        count += path.at[i] == '[' || path.at[i] == '.';
    return count;
}

/* What becomes itself is as well a batch that is passed on. */
static bool is_passed_on(const sf_linker *l, uint32_t result)
{
    return !sf_maker(l->graph, l->graph->top->results[result]);
}

static size_t head_length(const char *name)
{
    return strcspn(name, "[.");
}

static bool has_head(const sf_linker *l, uint32_t i, const char *name, size_t length)
{
    const char *other = l->graph->arguments[i].name;
    return head_length(other) == length && memcmp(other, name, length) == 0;
}

static uint32_t count_head(const sf_linker *l, const part *p)
{
    const char *name = l->graph->arguments[p->first].name;
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->graph->top->narguments; i++)
        count += has_head(l, i, name, head_length(name));
    return count;
}

/* Parts that do not grow, such as statistics, buffers and what is frozen: the sidecar says that they are state, or most of the user's argument comes back with them,
 * and it is not called a batch. A single tensor may be anything that the step reports under the name of what it takes, such
 * as the priorities of samples: it is not on the way to the loss. */
static bool is_most_of_argument(const sf_linker *l, const part *p, uint32_t result)
{
    const sf_block *top = l->graph->top;
    const char *name = l->graph->arguments[p->first].name;
    size_t length = head_length(name);
    uint32_t all = count_head(l, p), back = p->count;
    for (uint32_t i = 0; i < top->narguments; i++)
        back += has_head(l, i, name, length) && l->graph->arguments[i].next != SF_NONE;
    bool is_report = back == 1 && l->growth.forward[result] && !l->relaxed;
    return l->kept[p->first] || (2 * back > all && !is_report && !sf_is_called_batch(name));
}

/* All that the user's argument has comes back under its names: one tensor that grows is enough, others may be swapped or
 * made anew. */
static bool is_whole_argument(const sf_linker *l, const part *p)
{
    return p->count > 1 && count_head(l, p) == p->count &&
           !sf_is_called_batch(l->graph->arguments[p->first].name);
}

/* Nothing in it comes from the part, and other state has its names and types: gradients or updates of that. */
static bool is_like_other_state(const sf_linker *l, const part *p)
{
    const sf_argument *arguments = l->graph->arguments;
    const char *path = path_behind_head(arguments[p->first].name);
    for (uint32_t i = 0; *path && i < l->graph->top->narguments; i++)
        if (arguments[i].next != SF_NONE &&
            strcmp(path_behind_head(arguments[i].name), path) == 0 &&
            sf_argument_type(l->graph, i) == sf_argument_type(l->graph, p->first))
            return true;
    return false;
}

static bool is_found_at(sf_linker *l, const part *p, sf_str prefix, const search *how)
{
    uint32_t grown = 0, own = 0, result = SF_NONE;
    if (count_parts(prefix) > how->most_depth)
        return false;
    for (uint32_t i = 0; i < p->count; i++) {
        result = find_result(l, prefix, path_in_part(l, p, i), p->first + i);
        if (result == SF_NONE)
            return false;
        grown += sf_is_new_state(l, result, p->first + i) && !is_passed_on(l, result);
        own += sf_grows_from(&l->growth, result, p->first + i);
    }
    bool is_state = l->graph->arguments[p->first].role == SF_ROLE_STATE && l->kept[p->first];
    if (how->grows)
        return 2 * grown >= p->count || (grown > 0 && is_whole_argument(l, p));
    return is_most_of_argument(l, p, result) && (own > 0 || is_state || !is_like_other_state(l, p));
}

/* Where the results are that have all of the part; a prefix of NULL: nowhere. Of several places the first. */
static sf_str find_prefix(sf_linker *l, const part *p, const search *how)
{
    const char *path = path_in_part(l, p, 0);
    const char *last = last_part(path);
    const sf_named_result *r = sf_intern_look(&l->by_last, hash_text(last), ends_alike, last);
    for (; r; r = r->next) {
        size_t whole = strlen(r->path), length = strlen(path);
        if (whole < length || strcmp(r->path + whole - length, path) != 0)
            continue;
        sf_str prefix = {r->path, whole - length};
        if (is_found_at(l, p, prefix, how))
            return prefix;
    }
    return (sf_str){0};
}

static void link_part(sf_linker *l, const part *p, sf_str prefix)
{
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t result = find_result(l, prefix, path_in_part(l, p, i), p->first + i);
        sf_take_result(l, p->first + i, result, SF_FROM_NAME);
    }
}

/* The length of the name up to the end of its part number `depth`: 0 is the name of the user's argument. */
static size_t length_at(const char *name, int depth)
{
    size_t at = strcspn(name, "[.");
    while (depth-- > 0 && name[at])
        at += name[at] == '[' ? strcspn(name + at, "]") + 1 : 1 + strcspn(name + at + 1, "[.");
    size_t length = strlen(name);
    return at < length ? at : length;
}

static part part_at(const sf_linker *l, uint32_t first, uint32_t end, int depth)
{
    const sf_argument *arguments = l->graph->arguments;
    part p = {first, 1, length_at(arguments[first].name, depth)};
    while (p.first + p.count < end) {
        const char *name = arguments[p.first + p.count].name;
        if (arguments[p.first + p.count].next != SF_NONE || length_at(name, depth) != p.length ||
            memcmp(name, arguments[first].name, p.length) != 0)
            break;
        p.count++;
    }
    return p;
}

/* The old value of other state, passed on: a history of it. */
static bool is_old_state(const sf_linker *l, uint32_t result)
{
    const sf_argument *arguments = l->graph->arguments;
    uint32_t of = is_passed_on(l, result) && sf_growth_count(&l->growth, result) == 1
                      ? l->growth.arguments[l->growth.first[result]]
                      : SF_NONE;
    return of != SF_NONE && arguments[of].next != SF_NONE && arguments[of].next != result;
}

static bool is_better(const sf_linker *l, uint32_t result, uint32_t best)
{
    if (best == SF_NONE || is_passed_on(l, result) != is_passed_on(l, best))
        return best == SF_NONE || is_passed_on(l, best);
    return sf_growth_count(&l->growth, result) < sf_growth_count(&l->growth, best);
}

/* A tensor that is an argument of its own, or left of one: the result of its path, or of its kind, that grows from it, and
 * from little else. What is made of several kinds of state becomes the last of them. What is passed on is state before
 * other state only, and where nothing else grows from it. */
static void link_tensor(sf_linker *l, uint32_t argument, const search *how)
{
    const sf_graph *graph = l->graph;
    const char *path = path_behind_head(graph->arguments[argument].name);
    uint32_t best = SF_NONE;
    for (int named = *path ? 1 : 0; named >= 0 && best == SF_NONE; named--)
        for (uint32_t r = 0; r < graph->top->nresults; r++)
            if (!l->taken[r] && sf_result_type(graph, r) == sf_argument_type(graph, argument) &&
                (named ? ends_in(graph->results[r].name, path)
                       : !l->reported[r] &&
                             count_parts(sf_str_of(l->results[r].path)) <= how->most_depth) &&
                (sf_is_new_state(l, r, argument) || (!*path && is_old_state(l, r))) &&
                is_better(l, r, best))
                best = r;
    if (best != SF_NONE &&
        !(is_passed_on(l, best) && sf_is_called_batch(graph->arguments[argument].name)))
        sf_take_result(l, argument, best, SF_FROM_NAME);
}

/* As much as comes back together; what does not is looked at part by part. */
static void link_range(sf_linker *l, uint32_t first, uint32_t end, int depth, const search *how)
{
    while (first < end) {
        if (l->graph->arguments[first].next != SF_NONE || l->fed[first]) {
            first++;
            continue;
        }
        part p = part_at(l, first, end, depth);
        bool has_path = *path_in_part(l, &p, 0) != 0;
        sf_str prefix = has_path ? find_prefix(l, &p, how) : (sf_str){0};
        if (prefix.at)
            link_part(l, &p, prefix);
        else if (has_path)
            link_range(l, p.first, p.first + p.count, depth + 1, how);
        else if (how->grows)
            link_tensor(l, p.first, how);
        first += p.count;
    }
}

static void link_by_name(sf_linker *l)
{
    static const search searches[] = {{1, true}, {1, false}, {3, true}, {3, false}};
    if (l->graph->top->nresults == 0 || !*l->graph->results[0].name)
        return;
    /* Where nothing grows this is no step: gradients have the names and types of parameters, too. */
    for (size_t i = 0; i < sizeof searches / sizeof *searches; i++)
        if (searches[i].grows || sf_any_link(l->graph))
            link_range(l, 0, l->graph->top->narguments, 0, &searches[i]);
}

/* By alias */

/* Aliases come from the text: they may point past the results or join different types. */
static sf_status check_aliases(const sf_graph *graph, sf_diag *diag)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_argument *argument = &graph->arguments[i];
        if (argument->next_from != SF_FROM_ALIAS)
            continue;
        if (argument->next >= graph->top->nresults ||
            sf_argument_type(graph, i) != sf_result_type(graph, argument->next))
            return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                           "argument %u is aliased to result %u, which is not of its type", i,
                           argument->next);
    }
    return SF_OK;
}

/* Whether the result has the argument's path after that of something else, and grows from it. */
static bool is_namesake(const sf_linker *l, uint32_t result, uint32_t argument)
{
    const sf_graph *graph = l->graph;
    return sf_result_type(graph, result) == sf_argument_type(graph, argument) &&
           ends_in(graph->results[result].name,
                   path_behind_head(graph->arguments[argument].name)) &&
           sf_is_new_state(l, result, argument);
}

/* The result that an argument becomes although the text aliases it to another; or SF_NONE. JAX pairs donated arguments with
 * results of their type in order, gradients and the state of other tensors included: then an alias is of memory only. It is
 * when the argument does not grow into that result, but into one that has its name and is aliased to nothing of that
 * name. */
static uint32_t refute_alias(const sf_linker *l, uint32_t argument, const uint32_t *aliases)
{
    const sf_block *top = l->graph->top;
    if (sf_grows_from(&l->growth, aliases[argument], argument))
        return SF_NONE;
    for (uint32_t r = 0; r < top->nresults; r++) {
        bool claimed = l->taken[r] || r == aliases[argument] || !is_namesake(l, r, argument);
        for (uint32_t i = 0; !claimed && i < top->narguments; i++)
            claimed = aliases[i] == r && is_namesake(l, r, i);
        if (!claimed)
            return r;
    }
    return SF_NONE;
}

enum { SHOWN = 200 };

static const char *result_name(const sf_linker *l, uint32_t result, char text[SHOWN + 8])
{
    const char *name = l->graph->results[result].name;
    text[0] = '\0';
    if (*name)
        snprintf(text, SHOWN + 8, ", %.*s,", SHOWN, name);
    return text;
}

/* A guess, or a word of the text, against something that is known. */
static void contradict(sf_linker *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void contradict(sf_linker *l, const char *format, ...)
{
    char text[4 * SHOWN];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (l->strict)
        l->status = sf_fail(l->diag, SF_EINPUT, SF_NOWHERE, "%s", text);
    else
        sf_warn(l->diag, SF_NOWHERE, "%s", text);
    sf_hint(l->diag, "--state ARGUMENT=RESULT,... says what becomes what; the sidecar, what an "
                     "argument is for and, in \"outputs\", which results become none");
}

/* Drops aliases that are of memory only. Where one is, the others that are of other names say no more. */
static void drop_refuted_aliases(sf_linker *l, uint32_t *aliases)
{
    sf_graph *graph = l->graph;
    uint32_t refuted = SF_NONE, better = SF_NONE;
    for (uint32_t i = 0; i < graph->top->narguments && refuted == SF_NONE; i++)
        if (aliases[i] != SF_NONE && (better = refute_alias(l, i, aliases)) != SF_NONE)
            refuted = i;
    if (refuted == SF_NONE)
        return;
    char first[SHOWN + 8], second[SHOWN + 8];
    contradict(
        l,
        "the text aliases the argument %.*s to result %u%s which is not made from it element "
        "by element, but result %u%s is and has its name: it is taken, and such aliases "
        "say where memory is used again",
        SHOWN, graph->arguments[refuted].name, aliases[refuted],
        result_name(l, aliases[refuted], first), better, result_name(l, better, second));
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (aliases[i] != SF_NONE && !is_namesake(l, aliases[i], i))
            aliases[i] = SF_NONE;
}

/* Of one type: the results that arguments grow into, and the one that each is aliased to. */
typedef struct matching {
    const sf_linker *l;
    uint32_t *becomes; /* by argument: its result, at first by the aliases */
    uint32_t *owners;  /* by result: the argument that it becomes, or SF_NONE */
    bool *seen;        /* by result */
    uint32_t left;     /* the result that the first argument gives up: free only for a cycle */
    bool cycle;
} matching;

/* Finds the argument a result that it grows into; who has that one finds another. The depth is that of one type's tensors. */
static bool find_grown(matching *m, uint32_t argument, int depth)
{
    enum { DEEPEST = 64 };
    const sf_graph *graph = m->l->graph;
    for (int cycle = 0; cycle < 2; cycle++)
        for (uint32_t r = 0; r < graph->top->nresults; r++) {
            uint32_t owner = m->owners[r];
            if (m->seen[r] || (cycle == 0 && r == m->left) || m->l->taken[r] ||
                sf_result_type(graph, r) != sf_argument_type(graph, argument) ||
                is_passed_on(m->l, r) || !sf_is_new_state(m->l, r, argument))
                continue;
            m->seen[r] = true;
            m->cycle = m->cycle || r == m->left;
            if (owner == SF_NONE || r == m->left ||
                (depth < DEEPEST && find_grown(m, owner, depth + 1))) {
                m->becomes[argument] = r;
                m->owners[r] = argument;
                return true;
            }
        }
    return false;
}

/* Where no name speaks: JAX pairs donated arguments with the first results of their type. If one does not grow into its
 * result, but all could grow into results among which some are aliased to nothing, those are taken. If they only change
 * places the text is followed. Gives, by argument, the results that are taken instead, or SF_NONE. */
static uint32_t *refute_by_growth(sf_linker *l, const uint32_t *aliases)
{
    const sf_block *top = l->graph->top;
    uint32_t *instead = SF_ARRAY(&l->arena, top->narguments, uint32_t);
    bool cycles = false;
    for (uint32_t i = 0; i < top->narguments; i++)
        instead[i] = SF_NONE;
    for (uint32_t i = 0; i < top->narguments; i++) {
        if (aliases[i] == SF_NONE || instead[i] != SF_NONE || l->kept[i] ||
            sf_grows_from(&l->growth, aliases[i], i) ||
            ends_in(l->graph->results[aliases[i]].name,
                    path_behind_head(l->graph->arguments[i].name)))
            continue;
        matching m = {l,
                      SF_ARRAY(&l->arena, top->narguments, uint32_t),
                      SF_ARRAY(&l->arena, top->nresults, uint32_t),
                      SF_ARRAY(&l->arena, top->nresults, bool),
                      aliases[i],
                      false};
        for (uint32_t r = 0; r < top->nresults; r++)
            m.owners[r] = SF_NONE;
        for (uint32_t k = 0; k < top->narguments; k++) {
            m.becomes[k] = instead[k] != SF_NONE ? instead[k] : aliases[k];
            if (m.becomes[k] != SF_NONE)
                m.owners[m.becomes[k]] = k;
        }
        if (!find_grown(&m, i, 0) || (m.cycle && cycles))
            continue;
        cycles = cycles || m.cycle;
        char first[SHOWN + 8], second[SHOWN + 8];
        contradict(l,
                   "the text aliases the argument %.*s to result %u%s which is not made from it "
                   "element by element, but result %u%s is: %s",
                   SHOWN, l->graph->arguments[i].name, aliases[i],
                   result_name(l, aliases[i], first), m.becomes[i],
                   result_name(l, m.becomes[i], second),
                   m.cycle ? "the alias is followed, but may only say where memory is used again"
                           : "it is taken, and the alias says where memory is used again");
        for (uint32_t k = 0; !m.cycle && k < top->narguments; k++)
            if (m.becomes[k] != aliases[k])
                instead[k] = m.becomes[k];
    }
    return instead;
}

/* What the text says binds. */
static void link_by_alias(sf_linker *l, const uint32_t *aliases)
{
    char name[SHOWN + 8];
    const uint32_t *instead = refute_by_growth(l, aliases);
    for (uint32_t i = 0; i < l->graph->top->narguments; i++)
        if (instead[i] != SF_NONE)
            sf_take_result(l, i, instead[i], SF_FROM_FLOW);
    for (uint32_t i = 0; i < l->graph->top->narguments; i++) {
        const sf_argument *argument = &l->graph->arguments[i];
        if (aliases[i] == SF_NONE || instead[i] != SF_NONE)
            continue;
        if (l->graph->results[aliases[i]].is_output)
            contradict(l,
                       "the text aliases the argument %.*s to result %u%s which is no new state "
                       "by \"outputs\" of the sidecar: it is not linked",
                       SHOWN, argument->name, aliases[i], result_name(l, aliases[i], name));
        if (l->taken[aliases[i]])
            continue;
        if (l->fed[i] || (sf_is_called_batch(argument->name) && l->growth.forward[aliases[i]]))
            contradict(l,
                       "the argument %.*s is %s by %s, but the text aliases it to result %u%s so "
                       "that becomes it in the next step",
                       SHOWN, argument->name,
                       sf_role_name(l->fed[i] ? argument->role : SF_ROLE_BATCH),
                       l->fed[i] ? "the sidecar" : "its name", aliases[i],
                       result_name(l, aliases[i], name));
        sf_take_result(l, i, aliases[i], SF_FROM_ALIAS);
    }
}

/* What the sidecar says is fed has a namesake among the results, or an update: it does not become it, but the sidecar may
 * be wrong. */
static void tell_namesakes(sf_linker *l)
{
    const sf_graph *graph = l->graph;
    char name[SHOWN + 8];
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        for (uint32_t r = 0;
             l->fed[i] && graph->arguments[i].next == SF_NONE && r < graph->top->nresults; r++) {
            bool updates = l->numbers.of[r] == i && l->numbers.sure[r];
            if (l->taken[r] || sf_result_type(graph, r) != sf_argument_type(graph, i) ||
                !(updates ||
                  ends_in(graph->results[r].name, path_behind_head(graph->arguments[i].name))))
                continue;
            contradict(l,
                       "result %u%s %s the argument %.*s, which is %s by the sidecar: it does not "
                       "become it",
                       r, result_name(l, r, name),
                       updates ? "is an update of" : "has the name and the type of", SHOWN,
                       graph->arguments[i].name, sf_role_name(graph->arguments[i].role));
            break;
        }
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
                                  !is_passed_on(l, r));
        }
    bool *needed = sf_needed_by(graph, becomes, sf_guess_loss(graph, becomes, kept, false));
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

static void guess_links(sf_linker *l)
{
    const sf_graph *graph = l->graph;
    bool arguments = has_names(graph);
    bool results = graph->top->nresults > 0 && *graph->results[0].name;
    bool any = sf_any_link(graph);
    if (arguments && results)
        link_by_name(l);
    else if (arguments || results)
        sf_link_trees(l, arguments);
    if (!(arguments && results ? sf_any_link(graph) : any))
        sf_link_by_order(l);
}

static void infer_links(sf_linker *l)
{
    sf_graph *graph = l->graph;
    const sf_block *top = graph->top;
    uint32_t *aliases = SF_ARRAY(&l->arena, top->narguments, uint32_t);
    l->taken = SF_ARRAY(&l->arena, top->nresults, bool);
    l->fed = SF_ARRAY(&l->arena, top->narguments, bool);
    l->kept = SF_ARRAY(&l->arena, top->narguments, bool);
    for (uint32_t r = 0; r < top->nresults; r++)
        l->taken[r] = graph->results[r].is_output;
    for (uint32_t i = 0; i < top->narguments; i++) {
        sf_argument *argument = &graph->arguments[i];
        bool aliased = argument->next_from == SF_FROM_ALIAS;
        aliases[i] = aliased ? argument->next : SF_NONE;
        set_next(argument, SF_NONE, SF_FROM_NOTHING);
        bool said = argument->role_from == SF_FROM_SIDECAR;
        l->fed[i] = said && (argument->role == SF_ROLE_BATCH || argument->role == SF_ROLE_OTHER);
        l->kept[i] = said && (argument->role == SF_ROLE_PARAM || argument->role == SF_ROLE_STATE);
    }
    l->numbers = sf_find_number_state(graph, &l->arena);
    l->reported = sf_find_reported(graph, false, &l->arena);
    for (uint32_t r = 0; r < top->nresults; r++) /* what is donated is state */
        if (l->numbers.of[r] != SF_NONE && aliases[l->numbers.of[r]] != SF_NONE)
            l->numbers.sure[r] = true;
    find_growth(l);
    index_results(l);
    drop_refuted_aliases(l, aliases);
    link_by_alias(l, aliases);
    guess_links(l);
    l->relaxed = !sf_any_link(graph);
    if (l->relaxed)
        guess_links(l);
    if (sf_any_link(graph))
        sf_link_keys(l);
    tell_namesakes(l);
}

sf_status sf_link_state(sf_graph *graph, const char *state, bool strict, sf_diag *diag)
{
    SF_TRY(check_aliases(graph, diag));
    if (state)
        return links_by_hand(graph, state, diag);
    sf_linker l = {.graph = graph, .diag = diag, .strict = strict};
    infer_links(&l);
    sf_arena_free(&l.arena);
    return l.status;
}
