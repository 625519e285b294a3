#include "front/state_links.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/intern.h"
#include "front/elementwise_state.h"
#include "front/role.h"

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

typedef struct named_result {
    const char *path; /* after "result" */
    uint32_t index;
    struct named_result *next; /* another with the same last part */
} named_result;

typedef struct linker {
    sf_graph *graph;
    sf_arena arena;
    sf_interner by_path; /* of named_result */
    sf_interner by_last; /* lists of named_result, by the last part of their path */
    named_result *results;
    bool *taken; /* by result */
    sf_growth growth;
} linker;

static void take_result(linker *l, uint32_t argument, uint32_t result, sf_source from)
{
    set_next(&l->graph->arguments[argument], result, from);
    l->taken[result] = true;
}

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
    return strcmp(((const named_result *)item)->path, key) == 0;
}

static bool ends_alike(const void *item, const void *key)
{
    return strcmp(last_part(((const named_result *)item)->path), key) == 0;
}

static uint64_t hash_text(const char *text)
{
    return sf_hash_bytes(0, text, strlen(text));
}

static void index_results(linker *l)
{
    const sf_graph *graph = l->graph;
    l->results = SF_ARRAY(&l->arena, graph->top->nresults, named_result);
    for (uint32_t i = graph->top->nresults; i-- > 0;) {
        named_result *result = &l->results[i];
        result->path = path_behind_head(graph->results[i].name);
        result->index = i;
        if (!*result->path)
            continue;
        const char *last = last_part(result->path);
        sf_intern_find(&l->by_path, &l->arena, hash_text(result->path), is_path, result->path)
            ->item = result;
        sf_intern_slot *slot =
            sf_intern_find(&l->by_last, &l->arena, hash_text(last), ends_alike, last);
        result->next = (named_result *)(uintptr_t)slot->item;
        slot->item = result;
    }
}

/* A part of the arguments that may come back as a whole: those from `first` on whose names begin with the same
 * `length` characters. */
typedef struct part {
    uint32_t first, count;
    size_t length;
} part;

static const char *path_in_part(const linker *l, const part *p, uint32_t i)
{
    return l->graph->arguments[p->first + i].name + p->length;
}

/* The result at prefix + path that the argument may become, or SF_NONE. */
static uint32_t find_result(linker *l, sf_str prefix, const char *path, uint32_t argument)
{
    size_t length = strlen(path);
    sf_mark mark = sf_arena_mark(&l->arena);
    char *whole = sf_arena_alloc(&l->arena, prefix.length + length + 1);
    memcpy(whole, prefix.at, prefix.length);
    memcpy(whole + prefix.length, path, length + 1);
    const named_result *found = sf_intern_look(&l->by_path, hash_text(whole), is_path, whole);
    sf_arena_reset(&l->arena, mark);
    if (!found || l->taken[found->index] ||
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

static bool is_found_at(linker *l, const part *p, sf_str prefix, const search *how)
{
    uint32_t grown = 0;
    if (count_parts(prefix) > how->most_depth)
        return false;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t result = find_result(l, prefix, path_in_part(l, p, i), p->first + i);
        if (result == SF_NONE)
            return false;
        grown += how->grows && sf_grows_from(&l->growth, result, p->first + i);
    }
    return !how->grows || 2 * grown >= p->count;
}

/* Where the results are that have all of the part; a prefix of NULL: nowhere. Of several places the first. */
static sf_str find_prefix(linker *l, const part *p, const search *how)
{
    const char *path = path_in_part(l, p, 0);
    const char *last = last_part(path);
    const named_result *r = sf_intern_look(&l->by_last, hash_text(last), ends_alike, last);
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

static void link_part(linker *l, const part *p, sf_str prefix)
{
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t result = find_result(l, prefix, path_in_part(l, p, i), p->first + i);
        take_result(l, p->first + i, result, SF_FROM_NAME);
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

static part part_at(const linker *l, uint32_t first, uint32_t end, int depth)
{
    const sf_argument *arguments = l->graph->arguments;
    part p = {first, 1, length_at(arguments[first].name, depth)};
    while (p.first + p.count < end) {
        const char *name = arguments[p.first + p.count].name;
        if (length_at(name, depth) != p.length ||
            memcmp(name, arguments[first].name, p.length) != 0)
            break;
        p.count++;
    }
    return p;
}

/* A tensor that is an argument of its own: the result of its kind that derives from it, and from
 * little else. A value derived from several kinds of state becomes the last of them. */
static void link_tensor(linker *l, uint32_t argument, const search *how)
{
    const sf_graph *graph = l->graph;
    uint32_t best = SF_NONE;
    for (uint32_t r = 0; r < graph->top->nresults; r++)
        if (!l->taken[r] && sf_result_type(graph, r) == sf_argument_type(graph, argument) &&
            count_parts(sf_str_of(l->results[r].path)) <= how->most_depth &&
            sf_grows_from(&l->growth, r, argument) &&
            (best == SF_NONE || sf_growth_count(&l->growth, r) < sf_growth_count(&l->growth, best)))
            best = r;
    if (best != SF_NONE)
        take_result(l, argument, best, SF_FROM_NAME);
}

/* The largest trees that are returned together; others are searched part by part. */
static void link_range(linker *l, uint32_t first, uint32_t end, int depth, const search *how)
{
    while (first < end) {
        if (l->graph->arguments[first].next != SF_NONE) {
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

static void link_by_name(linker *l)
{
    static const search searches[] = {{1, true}, {1, false}, {3, true}, {3, false}};
    index_results(l);
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

/* Aliases in the text, if names gave no answer or the same. */
static void link_by_alias(linker *l, const uint32_t *aliases)
{
    for (uint32_t i = 0; i < l->graph->top->narguments; i++) {
        sf_argument *argument = &l->graph->arguments[i];
        if (aliases[i] != SF_NONE && argument->next == aliases[i])
            argument->next_from = SF_FROM_ALIAS;
        if (argument->next != SF_NONE || aliases[i] == SF_NONE || l->taken[aliases[i]])
            continue;
        take_result(l, i, aliases[i], SF_FROM_ALIAS);
    }
}

/* By order */

static bool is_number(const sf_type *type)
{
    return type->rank == 0 && sf_is_float(type->dtype);
}

static bool reports_number(const linker *l)
{
    for (uint32_t r = 0; r < l->graph->top->nresults; r++)
        if ((!l->taken[r] || l->graph->results[r].is_output) &&
            is_number(sf_result_type(l->graph, r)))
            return true;
    return false;
}

/* Arguments and results in their order, as many pairs of one type as possible, derived ones
 * counting most. The table has the best score from argument i and result r on. Derived pairs at the
 * beginning are in the best match of all: any other pair of one of the two counts no more, and
 * leaves the other without one. So they are taken, and the table, which is quadratic, begins after
 * them; for most steps it is nearly empty. */
enum { GROWING = 3, PLAIN = 1, MOST_CELLS = 1 << 26 };

typedef struct alignment {
    const linker *l;
    size_t narguments, nresults;
    size_t first;     /* argument and result that the table begins with */
    uint32_t *scores; /* [narguments - first + 1][nresults - first + 1] */
} alignment;

static uint32_t *score_at(const alignment *a, size_t argument, size_t result)
{
    return &a->scores[(argument - a->first) * (a->nresults - a->first + 1) + result - a->first];
}

static uint32_t score_of_pair(const alignment *a, size_t argument, size_t result)
{
    const sf_graph *graph = a->l->graph;
    uint32_t i = (uint32_t)argument, r = (uint32_t)result;
    if (sf_argument_type(graph, i) != sf_result_type(graph, r))
        return 0;
    return sf_grows_from(&a->l->growth, r, i) ? GROWING : PLAIN;
}

static uint32_t larger_of(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void fill_scores(const alignment *a)
{
    for (size_t i = a->narguments; i-- > a->first;)
        for (size_t r = a->nresults; r-- > a->first;) {
            uint32_t pair = score_of_pair(a, i, r);
            uint32_t skip = larger_of(*score_at(a, i + 1, r), *score_at(a, i, r + 1));
            *score_at(a, i, r) = pair ? larger_of(pair + *score_at(a, i + 1, r + 1), skip) : skip;
        }
}

static void take_alignment(linker *l, const alignment *a)
{
    for (size_t i = 0; i < a->first; i++)
        take_result(l, (uint32_t)i, (uint32_t)i, SF_FROM_ORDER);
    for (size_t i = a->first, r = a->first; i < a->narguments && r < a->nresults;) {
        uint32_t pair = score_of_pair(a, i, r);
        if (pair && *score_at(a, i, r) == pair + *score_at(a, i + 1, r + 1))
            take_result(l, (uint32_t)i++, (uint32_t)r++, SF_FROM_ORDER);
        else if (*score_at(a, i, r) == *score_at(a, i, r + 1))
            r++;
        else
            i++;
    }
}

static void drop_link(linker *l, uint32_t argument)
{
    l->taken[l->graph->arguments[argument].next] = false;
    set_next(&l->graph->arguments[argument], SF_NONE, SF_FROM_NOTHING);
}

/* But for numbers, all results are state. */
static bool gives_nothing_else(const linker *l)
{
    for (uint32_t r = 0; r < l->graph->top->nresults; r++)
        if (!l->taken[r] && sf_result_type(l->graph, r)->rank > 0)
            return false;
    return true;
}

/* A pair that is not derived is state if it is between derived ones, or right after them, as keys
 * are. A function whose arguments are all returned, or that reports no number, is no step; nor is
 * one with results that are not state, unless its state comes first. */
static void drop_chance(linker *l)
{
    const sf_block *top = l->graph->top;
    const sf_argument *arguments = l->graph->arguments;
    uint32_t first = SF_NONE, last = 0, links = 0;
    for (uint32_t i = 0; i < top->narguments; i++)
        if (arguments[i].next != SF_NONE && sf_grows_from(&l->growth, arguments[i].next, i)) {
            first = first == SF_NONE ? i : first;
            last = i;
        }
    while (first != SF_NONE && last + 1 < top->narguments && arguments[last + 1].next != SF_NONE &&
           arguments[last + 1].next == arguments[last].next + 1 &&
           !sf_is_inexact(sf_argument_type(l->graph, last + 1)->dtype))
        last++;
    for (uint32_t i = 0; i < top->narguments; i++) {
        if (arguments[i].next != SF_NONE && (first == SF_NONE || i < first || i > last))
            drop_link(l, i);
        links += arguments[i].next != SF_NONE;
    }
    bool is_step = links < top->narguments && reports_number(l) &&
                   (gives_nothing_else(l) || (links > 0 && arguments[0].next != SF_NONE));
    for (uint32_t i = 0; i < top->narguments; i++)
        if (arguments[i].next != SF_NONE && !is_step)
            drop_link(l, i);
}

/* A step returns its new state in the order of the arguments. Unused arguments are missing, but
 * their next values are not. */
static void link_by_order(linker *l)
{
    alignment a = {l, l->graph->top->narguments, l->graph->top->nresults, 0, NULL};
    while (a.first < a.narguments && a.first < a.nresults &&
           score_of_pair(&a, a.first, a.first) == GROWING)
        a.first++;
    size_t cells = (a.narguments - a.first + 1) * (a.nresults - a.first + 1);
    if (cells > MOST_CELLS)
        return;
    a.scores = SF_ARRAY(&l->arena, cells, uint32_t);
    fill_scores(&a);
    take_alignment(l, &a);
    drop_chance(l);
}

/* A new key is made by other ops than elementwise ones. If a step takes and returns as many keys,
 * it returns the next ones. */
static void link_keys(linker *l)
{
    const sf_block *top = l->graph->top;
    uint32_t keys = 0, next = 0;
    for (uint32_t i = 0; i < top->narguments; i++)
        keys +=
            l->graph->arguments[i].next == SF_NONE && sf_may_be_key(sf_argument_type(l->graph, i));
    for (uint32_t r = 0; r < top->nresults; r++)
        keys -= !l->taken[r] && sf_may_be_key(sf_result_type(l->graph, r));
    for (uint32_t i = 0; keys == 0 && i < top->narguments; i++) {
        const sf_type *type = sf_argument_type(l->graph, i);
        if (l->graph->arguments[i].next != SF_NONE || !sf_may_be_key(type))
            continue;
        while (next < top->nresults &&
               (l->taken[next] || !sf_may_be_key(sf_result_type(l->graph, next))))
            next++;
        if (next < top->nresults && sf_result_type(l->graph, next) == type)
            take_result(l, i, next, SF_FROM_ORDER);
    }
}

static void infer_links(linker *l)
{
    sf_graph *graph = l->graph;
    uint32_t *aliases = SF_ARRAY(&l->arena, graph->top->narguments, uint32_t);
    l->taken = SF_ARRAY(&l->arena, graph->top->nresults, bool);
    for (uint32_t r = 0; r < graph->top->nresults; r++)
        l->taken[r] = graph->results[r].is_output;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        bool aliased = graph->arguments[i].next_from == SF_FROM_ALIAS;
        aliases[i] = aliased ? graph->arguments[i].next : SF_NONE;
        set_next(&graph->arguments[i], SF_NONE, SF_FROM_NOTHING);
    }
    l->growth = sf_growth_of(graph, &l->arena);
    link_by_name(l);
    link_by_alias(l, aliases);
    if (!sf_any_link(graph))
        link_by_order(l);
    if (sf_any_link(graph))
        link_keys(l);
}

sf_status sf_link_state(sf_graph *graph, const char *state, sf_diag *diag)
{
    SF_TRY(check_aliases(graph, diag));
    if (state)
        return links_by_hand(graph, state, diag);
    linker l = {.graph = graph};
    infer_links(&l);
    sf_arena_free(&l.arena);
    return SF_OK;
}
