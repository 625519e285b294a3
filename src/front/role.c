#include "front/role.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/intern.h"
#include "front/elementwise_state.h"
#include "ir/name.h"
#include "op/op.h"
#include "op/slots.h"

/* Words */

/* The words of a name: "opt[0].mu['params']['fc1']" has opt, 0, mu, params, fc1. */
static bool next_name_part(const char **text, sf_str *word)
{
    const char *at = *text;
    while (*at && !isalnum((unsigned char)*at))
        at++;
    const char *start = at;
    while (isalnum((unsigned char)*at))
        at++;
    *word = (sf_str){start, (size_t)(at - start)};
    *text = at;
    return word->length > 0;
}

static bool is_one_of_words(sf_str word, const char *const *list)
{
    for (; *list; list++)
        if (word.length == strlen(*list) && strncasecmp(word.at, *list, word.length) == 0)
            return true;
    return false;
}

bool sf_name_has_word(const char *name, const char *const *words)
{
    sf_str word;
    while (next_name_part(&name, &word))
        if (is_one_of_words(word, words))
            return true;
    return false;
}

static const char *const param_words[] = {"params", "param",     "weights", "weight",
                                          "kernel", "variables", "theta",   NULL};
static const char *const batch_words[] = {"batch",  "inputs", "input",  "labels", "targets",
                                          "target", "ids",    "tokens", "images", "data",
                                          "x",      "y",      NULL};
static const char *const key_words[] = {"key", "rng", "rngs", "seed", "prng", NULL};
static const char *const state_words[] = {"opt",      "optimizer", "mu",     "nu",      "momentum",
                                          "moments",  "optstate",  "moment", "adam",    "adamw",
                                          "velocity", "count",     "trace",  "optvars", NULL};
/* Of trees like the parameters that follow them: the loss may read them, too. */
static const char *const follower_words[] = {"ema",    "target",  "teacher", "slow", "shadow",
                                             "polyak", "average", "stats",   NULL};

/* Of parameters that are not trained. */
static const char *const frozen_words[] = {"base", "frozen", "pretrained", "backbone", NULL};

/* The user's argument is named after a batch, but not after what follows one: batch_x is, batch_stats is not. */
static bool is_batch_word(const char *name, sf_str first)
{
    const char *end = name + strcspn(name, "[./"), *at = first.at + first.length;
    sf_str word;
    while (next_name_part(&at, &word) && word.at < end)
        if (is_one_of_words(word, follower_words) || is_one_of_words(word, state_words))
            return false;
    return is_one_of_words(first, batch_words);
}

bool sf_is_called_batch(const char *name)
{
    const char *at = name;
    sf_str first;
    return next_name_part(&at, &first) && is_batch_word(name, first) &&
           !is_one_of_words(first, follower_words);
}

/* The first word names the argument of the user's function, the others lie inside of it. Optimizer words win over
 * parameter words, because the state of a parameter bears its name. */
static bool role_by_name(const char *name, sf_role *role)
{
    static const struct {
        sf_role role;
        const char *const *words;
        bool inside; /* counts there, too */
    } table[] = {
        {SF_ROLE_STATE, state_words, true},
        {SF_ROLE_PARAM, param_words, true},
        {SF_ROLE_BATCH, batch_words, false},
        {SF_ROLE_KEY, key_words, false},
    };
    sf_str first;
    const char *at = name;
    if (!next_name_part(&at, &first))
        return false;
    for (int inside = 0; inside < 2; inside++)
        for (size_t i = 0; i < sizeof table / sizeof *table; i++)
            if (inside ? table[i].inside && sf_name_has_word(name, table[i].words)
                : table[i].words == batch_words ? is_batch_word(name, first)
                                                : is_one_of_words(first, table[i].words)) {
                *role = table[i].role;
                return true;
            }
    return false;
}

/* Roles */

/* A tree is a part of the state that a user keeps together: the first two words of clean names. "state/params/fc1/w" is
 * in "state/params". */
typedef struct caster {
    sf_graph *graph;
    const bool *needed; /* by value: the loss needs it; NULL: there is no loss */
    bool is_step;
    sf_arena arena;
    const char **names;        /* clean, by argument */
    const char **trees;        /* by argument, interned */
    sf_interner strings, read; /* read: those of which the loss needs something */
    sf_growth growth;
    /* by argument: a value that the loss of the next step reads derives from it, too */
    bool *feeds;
} caster;

static size_t tree_length(const char *name)
{
    size_t length = strcspn(name, "/");
    return name[length] ? length + 1 + strcspn(name + length + 1, "/") : length;
}

static bool is_read_float(const caster *c, uint32_t i)
{
    return sf_is_inexact(sf_argument_type(c->graph, i)->dtype) && c->needed &&
           c->needed[c->graph->top->arguments[i]];
}

/* Single numbers that the loss reads may scale it, or the like: they do not make a tree one of parameters. */
static void find_trees(caster *c)
{
    uint32_t count = c->graph->top->narguments;
    c->names = sf_clean_names(c->graph, &c->arena);
    c->trees = SF_ARRAY(&c->arena, count, const char *);
    for (uint32_t i = 0; i < count; i++) {
        sf_str tree = {c->names[i], tree_length(c->names[i])};
        c->trees[i] = sf_intern_string(&c->strings, &c->arena, tree);
        if (c->graph->arguments[i].next != SF_NONE && is_read_float(c, i) &&
            sf_argument_type(c->graph, i)->rank > 0)
            sf_intern_string(&c->read, &c->arena, tree);
    }
}

static bool is_in_read_tree(const caster *c, uint32_t i)
{
    return sf_intern_look_string(&c->read, sf_str_of(c->trees[i])) != NULL;
}

static void set_role(const caster *c, uint32_t i, sf_role role, sf_source from)
{
    c->graph->arguments[i].role = role;
    c->graph->arguments[i].role_from = from;
}

/* Two words of key for threefry, four for the generators of XLA. */
bool sf_may_be_key(const sf_type *type)
{
    return type->dtype == SF_U32 && type->rank == 1 && (type->dims[0] == 2 || type->dims[0] == 4);
}

/* A hidden state is made anew; the rows of a queue or a bank are replaced. */
static bool is_overwritten(const caster *c, uint32_t result)
{
    const sf_node *node = sf_maker(c->graph, c->graph->top->results[result]);
    if (node && sf_is(node, SF_OP_DYNAMIC_UPDATE_SLICE))
        return true;
    const sf_attr *body = node && sf_is(node, SF_OP_SCATTER) ? node->attrs[SF_SCATTER_BODY] : NULL;
    return (body && body->integer == SF_MONOID_SECOND) || sf_growth_count(&c->growth, result) == 0;
}

/* Floating-point state that the loss reads and that is updated, not overwritten, is parameters, and so are tensors beside them; all other
 * state is optimizer state. A tree that the loss does not read can still be named as parameters: an
 * unused part of the model. */
static bool is_param(const caster *c, uint32_t i)
{
    const sf_type *type = sf_argument_type(c->graph, i);
    sf_role role;
    uint32_t next = c->graph->arguments[i].next;
    if (!sf_is_inexact(type->dtype) || sf_name_has_word(c->names[i], follower_words) ||
        (next != SF_NONE && is_overwritten(c, next)))
        return false;
    if (is_read_float(c, i) && (is_in_read_tree(c, i) || c->read.count == 0))
        return true;
    if (is_in_read_tree(c, i) && !c->feeds[i])
        return true;
    sf_str first = {c->names[i], strcspn(c->names[i], "/")};
    return is_one_of_words(first, param_words) && role_by_name(c->names[i], &role) &&
           role == SF_ROLE_PARAM;
}

/* Moments are beside their parameter in some trees; the new parameter derives from them. */
static void find_feeds(caster *c)
{
    c->feeds = SF_ARRAY(&c->arena, c->graph->top->narguments, bool);
    for (uint32_t i = 0; i < c->graph->top->narguments; i++) {
        uint32_t next = c->graph->arguments[i].next;
        if (next == SF_NONE || !is_read_float(c, i))
            continue;
        for (size_t k = c->growth.first[next]; k < c->growth.first[next + 1]; k++)
            c->feeds[c->growth.arguments[k]] |= c->growth.arguments[k] != i;
    }
}

/* Averages of the parameters, such as a teacher, may be read by the loss, too: they grow from the parameters, which do
 * not grow from them. */
static bool follows_param(const caster *c, uint32_t i)
{
    const sf_argument *arguments = c->graph->arguments;
    uint32_t next = arguments[i].next;
    for (size_t k = c->growth.first[next]; k < c->growth.first[next + 1]; k++) {
        uint32_t other = c->growth.arguments[k];
        bool changes = arguments[other].next != SF_NONE &&
                       sf_maker(c->graph, c->graph->top->results[arguments[other].next]);
        if (other != i && changes && arguments[other].role == SF_ROLE_PARAM &&
            is_read_float(c, other) && !sf_grows_from(&c->growth, arguments[other].next, i))
            return true;
    }
    return false;
}

/* Whether an input is in a tree like that of the parameters: the same path and type inside of
 * it. */
static bool is_like_param(const caster *c, uint32_t argument)
{
    const char *path = strchr(c->names[argument], '/');
    for (uint32_t i = 0; path && i < c->graph->top->narguments; i++) {
        const char *other = strchr(c->names[i], '/');
        if (c->graph->arguments[i].next != SF_NONE && other && strcmp(other, path) == 0 &&
            sf_argument_type(c->graph, i) == sf_argument_type(c->graph, argument))
            return true;
    }
    return false;
}

/* A vector of weights that is an argument of its own, as long as another input that does not come back. */
static bool is_weight_of_samples(const caster *c, uint32_t i)
{
    static const char *const words[] = {"weights", "weight", NULL};
    const sf_graph *graph = c->graph;
    const sf_type *type = sf_argument_type(graph, i);
    if (type->rank != 1 || strchr(c->names[i], '/') || !sf_name_has_word(c->names[i], words))
        return false;
    for (uint32_t k = 0; k < graph->top->narguments; k++) {
        const sf_type *other = sf_argument_type(graph, k);
        if (k != i && graph->arguments[k].next == SF_NONE && other->rank > 0 &&
            other->dims[0] == type->dims[0])
            return true;
    }
    return false;
}

/* An input is batch, unless it is named as a parameter or is in the place of one: one that is not trained, or, as a target network,
 * that another step changes. */
static sf_role role_of_fed(const caster *c, uint32_t i, sf_source *from)
{
    const char *at = c->names[i];
    sf_str first;
    sf_role role;
    bool is_like = is_like_param(c, i);
    *from = SF_FROM_NAME;
    if (is_like && next_name_part(&at, &first) && is_one_of_words(first, follower_words))
        return SF_ROLE_PARAM;
    bool weighs = is_weight_of_samples(c, i);
    if (!weighs && role_by_name(c->names[i], &role))
        return role;
    if (!weighs && (is_like || sf_name_has_word(c->names[i], frozen_words)))
        return SF_ROLE_PARAM;
    *from = SF_FROM_ORDER;
    bool is_number = sf_argument_type(c->graph, i)->rank == 0; /* a rate, a number of the step */
    return is_number ? SF_ROLE_OTHER : SF_ROLE_BATCH;
}

/* Where nothing links results and arguments, this need not be a step, and names alone speak. */
static void cast_argument(const caster *c, uint32_t i)
{
    const sf_argument *argument = &c->graph->arguments[i];
    sf_role role;
    if (argument->role_from == SF_FROM_SIDECAR)
        return;
    if (sf_may_be_key(sf_argument_type(c->graph, i)))
        set_role(c, i, SF_ROLE_KEY, SF_FROM_FLOW);
    else if (argument->next != SF_NONE && c->needed)
        set_role(c, i, is_param(c, i) ? SF_ROLE_PARAM : SF_ROLE_STATE, SF_FROM_FLOW);
    else if (argument->next == SF_NONE && c->is_step) {
        sf_source from;
        role = role_of_fed(c, i, &from);
        set_role(c, i, role, from);
    } else if (role_by_name(c->names[i], &role))
        set_role(c, i, role, SF_FROM_NAME);
    else
        set_role(c, i, c->is_step ? SF_ROLE_STATE : SF_ROLE_OTHER, SF_FROM_NOTHING);
}

void sf_find_roles(sf_graph *graph, const bool *needed, bool is_step)
{
    caster c = {.graph = graph, .needed = needed, .is_step = is_step};
    find_trees(&c);
    c.growth = sf_growth_of(graph, NULL, &c.arena);
    find_feeds(&c);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        cast_argument(&c, i);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].role == SF_ROLE_PARAM &&
            graph->arguments[i].role_from == SF_FROM_FLOW && follows_param(&c, i))
            set_role(&c, i, SF_ROLE_STATE, SF_FROM_FLOW);
    sf_arena_free(&c.arena);
}
