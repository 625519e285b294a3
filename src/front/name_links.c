/* Links by name: what comes back under the names of a part of the arguments. */
#include <string.h>

#include "base/hash.h"
#include "front/role.h"
#include "front/state_linker.h"
#include "front/state_links.h"

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

/* Where other state grows from the result, it may be the gradient or the update of that, with the argument in it. */
static bool is_update(const sf_linker *l, uint32_t result, uint32_t argument)
{
    return sf_is_new_state(l, result, argument) &&
           sf_how_it_grows(&l->growth, result, argument) <= SF_GROWS_SCALED;
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
        grown += is_update(l, result, p->first + i) && !sf_is_passed_on(l, result);
        own += sf_how_it_grows(&l->growth, result, p->first + i) <= SF_GROWS_SCALED;
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
    uint32_t of = sf_is_passed_on(l, result) && sf_growth_count(&l->growth, result) == 1
                      ? l->growth.arguments[l->growth.first[result]]
                      : SF_NONE;
    return of != SF_NONE && arguments[of].next != SF_NONE && arguments[of].next != result;
}

static bool is_better(const sf_linker *l, uint32_t result, uint32_t best)
{
    if (best == SF_NONE || sf_is_passed_on(l, result) != sf_is_passed_on(l, best))
        return best == SF_NONE || sf_is_passed_on(l, best);
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
                (named ? sf_name_ends_in(graph->results[r].name, path)
                       : !l->reported[r] &&
                             count_parts(sf_str_of(l->results[r].path)) <= how->most_depth) &&
                (is_update(l, r, argument) || (!*path && is_old_state(l, r))) &&
                is_better(l, r, best))
                best = r;
    if (best != SF_NONE &&
        !(sf_is_passed_on(l, best) && sf_is_called_batch(graph->arguments[argument].name)))
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

void sf_link_by_name(sf_linker *l)
{
    static const search searches[] = {{1, true}, {1, false}, {3, true}, {3, false}};
    if (l->graph->top->nresults == 0 || !*l->graph->results[0].name)
        return;
    if (!l->results)
        index_results(l);
    /* Where nothing grows this is no step: gradients have the names and types of parameters, too. */
    for (size_t i = 0; i < sizeof searches / sizeof *searches; i++)
        if (searches[i].grows || sf_any_link(l->graph))
            link_range(l, 0, l->graph->top->narguments, 0, &searches[i]);
}
