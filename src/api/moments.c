#include "api/moments.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "ir/name.h"

/* A name as its words: "params['layer_0']" is params, layer, 0. */
typedef struct words {
    size_t count, capacity;
    sf_str *at;
} words;

typedef struct named {
    uint32_t result;
    const sf_type *type;
    words words;
} named;

typedef struct finder {
    const sf_graph *graph;
    sf_arena *arena;
    size_t nweights, nstates;
    named *weights, *states;
    sf_moments *out;
} finder;

static words split(sf_arena *arena, const char *text)
{
    words out = {0};
    sf_str name = sf_name_without_number(sf_str_of(text));
    for (size_t i = 0; i < name.length;) {
        size_t end = i;
        while (end < name.length && isalnum((unsigned char)name.at[end]))
            end++;
        if (end > i) {
            sf_str word = {name.at + i, end - i};
            SF_PUSH(arena, out.at, out.count, out.capacity, word);
        }
        i = end + 1;
    }
    return out;
}

static size_t common_ending(const words *a, const words *b)
{
    size_t n = 0;
    while (n < a->count && n < b->count &&
           sf_str_equal(a->at[a->count - 1 - n], b->at[b->count - 1 - n]))
        n++;
    return n;
}

static void collect(finder *find)
{
    const sf_graph *graph = find->graph;
    uint32_t count = graph->top->narguments;
    find->weights = SF_ARRAY(find->arena, count, named);
    find->states = SF_ARRAY(find->arena, count, named);
    for (uint32_t i = 0; i < count; i++) {
        const sf_argument *argument = &graph->arguments[i];
        if (argument->next == SF_NONE)
            continue;
        const sf_type *type = sf_result_type(graph, argument->next);
        if (!sf_is_float(type->dtype))
            continue;
        named item = {argument->next, type, split(find->arena, argument->name)};
        if (argument->role == SF_ROLE_PARAM)
            find->weights[find->nweights++] = item;
        else
            find->states[find->nstates++] = item;
    }
}

static uint32_t family_of(finder *find, const words *name, size_t length)
{
    sf_moments *out = find->out;
    char *text = sf_arena_alloc(find->arena, 1);
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        char *longer = sf_arena_alloc(find->arena, used + name->at[i].length + 2);
        memcpy(longer, text, used);
        memcpy(longer + used, name->at[i].at, name->at[i].length);
        used += name->at[i].length;
        longer[used++] = '.';
        text = longer;
    }
    for (size_t i = 0; i < out->nfamilies; i++)
        if (strcmp(out->families[i], text) == 0)
            return (uint32_t)i;
    SF_PUSH(find->arena, out->families, out->nfamilies, out->family_capacity, text);
    return (uint32_t)(out->nfamilies - 1);
}

static void add_moment(finder *find, uint32_t weight, uint32_t state, uint32_t family)
{
    sf_moment moment = {weight, state, family};
    SF_PUSH(find->arena, find->out->at, find->out->count, find->out->capacity, moment);
}

/* Two weights that fit equally well leave a state without a weight. */
static void pair_by_name(finder *find, const named *state)
{
    const named *best = NULL;
    size_t most = 0;
    bool unique = false;
    for (size_t i = 0; i < find->nweights; i++) {
        const named *weight = &find->weights[i];
        size_t common = common_ending(&weight->words, &state->words);
        if (common < most || common == 0 || weight->type != state->type)
            continue;
        unique = common > most;
        most = common;
        best = weight;
    }
    if (unique)
        add_moment(find, best->result, state->result,
                   family_of(find, &state->words, state->words.count - most));
}

static void pair_by_order(finder *find)
{
    for (size_t first = 0; find->nweights > 0 && first + find->nweights <= find->nstates;) {
        size_t same = 0;
        while (same < find->nweights && find->weights[same].type == find->states[first + same].type)
            same++;
        if (same < find->nweights) {
            first++;
            continue;
        }
        const char *name = "";
        SF_PUSH(find->arena, find->out->families, find->out->nfamilies, find->out->family_capacity,
                name);
        for (size_t i = 0; i < find->nweights; i++)
            add_moment(find, find->weights[i].result, find->states[first + i].result,
                       (uint32_t)(find->out->nfamilies - 1));
        first += find->nweights;
    }
}

/* noise[] holds the largest magnitude first, and the level in the end. */
static void measure_moments(finder *find, const sf_tensor *results, double noise)
{
    sf_moments *out = find->out;
    out->noise = SF_ARRAY(find->arena, out->nfamilies, double);
    bool *negative = SF_ARRAY(find->arena, out->nfamilies, bool);
    for (size_t i = 0; i < out->count; i++) {
        const sf_moment *moment = &out->at[i];
        const sf_tensor *state = &results[moment->state];
        for (int64_t k = 0; k < state->type->count; k++) {
            double value = sf_get_f64(state, k);
            if (value < 0)
                negative[moment->family] = true;
            if (isfinite(value) && fabs(value) > out->noise[moment->family])
                out->noise[moment->family] = fabs(value);
        }
    }
    for (size_t i = 0; i < out->nfamilies; i++)
        out->noise[i] *= negative[i] ? noise : noise * noise;
}

void sf_moments_find(const sf_graph *graph, const sf_tensor *results, double noise, sf_arena *arena,
                     sf_moments *out)
{
    *out = (sf_moments){0};
    finder find = {.graph = graph, .arena = arena, .out = out};
    collect(&find);
    for (size_t i = 0; i < find.nstates; i++)
        pair_by_name(&find, &find.states[i]);
    if (out->count == 0)
        pair_by_order(&find);
    measure_moments(&find, results, noise);
}
