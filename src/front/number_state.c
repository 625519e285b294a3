#include "front/number_state.h"

#include <string.h>

#include "base/mem.h"
#include "front/elementwise_state.h"
#include "ir/clone.h"
#include "op/op.h"

bool sf_is_called_loss(const char *name)
{
    const char *last = strrchr(name, '[');
    return last ? strncmp(last, "['loss']", 8) == 0 : strcmp(name, "loss") == 0;
}

/* "result[1]['loss']" -> the length of "result[1]"; 0 where the loss is in no container. */
static size_t report_length(const char *name)
{
    const char *last = strrchr(name, '[');
    return last && sf_is_called_loss(name) && name + strcspn(name, "[.") < last
               ? (size_t)(last - name)
               : 0;
}

/* A dictionary that holds trees may be the whole state, with the loss in it. */
bool *sf_find_reported(const sf_graph *graph, bool trees, sf_arena *arena)
{
    const sf_result *results = graph->results;
    uint32_t count = graph->top->nresults;
    bool *reported = SF_ARRAY(arena, count, bool);
    for (uint32_t l = 0; l < count; l++) {
        size_t length = report_length(results[l].name);
        bool is_report = length > 0;
        for (int pass = 0; pass < 2 && is_report; pass++)
            for (uint32_t r = 0; r < count; r++) {
                const char *name = results[r].name;
                if (strncmp(name, results[l].name, length) != 0 || strlen(name) <= length)
                    continue;
                size_t rest = 1 + strcspn(name + length + 1, "[.");
                if (pass == 0 && !trees && name[length + rest])
                    is_report = false;
                reported[r] = pass == 1 || reported[r];
            }
    }
    return reported;
}

static bool is_number(const sf_type *type)
{
    return type->rank == 0 && sf_is_float(type->dtype);
}

static bool is_new_number(const sf_graph *graph, uint32_t result)
{
    return is_number(sf_result_type(graph, result)) && !graph->results[result].is_output &&
           sf_maker(graph, graph->top->results[result]);
}

static const char *path_of(const char *name)
{
    return name + strcspn(name, "[.");
}

bool sf_name_ends_in(const char *name, const char *path)
{
    size_t length = strlen(name), ending = strlen(path);
    return ending > 0 && ending <= length && strcmp(name + length - ending, path) == 0;
}

bool sf_has_path_of(const sf_graph *graph, uint32_t result, uint32_t argument)
{
    const char *path = path_of(graph->arguments[argument].name);
    return sf_name_ends_in(graph->results[result].name, path);
}

/* Which number among the arguments a number is an update of. */
typedef struct finder {
    const sf_graph *graph;
    const uint32_t *origins; /* sf_tensor_origins */
    const bool *reported;
    sf_value argument;
} finder;

/* How a number comes out of another: not by updates, as a multiple of it, or with all of it. */
enum { NONE, SCALED, KEPT };

enum { DEPTH = 8 };

static int update_of(const finder *f, sf_value value, int depth);

static int best_update(const finder *f, const sf_node *node, uint32_t first, int depth)
{
    int best = NONE;
    for (uint32_t i = first; i < node->noperands; i++) {
        int one = update_of(f, node->operands[i], depth);
        if (i > 0 && one == KEPT && sf_is(node, SF_OP_SUBTRACT))
            one = SCALED;
        best = one > best ? one : best;
    }
    return best;
}

/* Of a product and a quotient: what it is scaled by has no tensor in it. */
static int scaled_update(const finder *f, const sf_node *node, int depth)
{
    const sf_value *o = node->operands;
    bool any = (f->origins[o[1]] == 0 && update_of(f, o[0], depth)) ||
               (sf_is(node, SF_OP_MULTIPLY) && f->origins[o[0]] == 0 && update_of(f, o[1], depth));
    return any ? SCALED : NONE;
}

static int update_of(const finder *f, sf_value value, int depth)
{
    const sf_node *node = sf_maker(f->graph, value);
    if (!node || depth == 0)
        return value == f->argument ? KEPT : NONE;
    uint32_t number = value - node->result;
    if (sf_is(node, SF_OP_WHILE) || sf_is(node, SF_OP_OPTIMIZATION_BARRIER))
        return update_of(f, node->operands[number], depth - 1);
    int best = NONE;
    for (uint32_t r = 0; sf_is(node, SF_OP_CASE) && r < node->nregions; r++) {
        int one = update_of(f, node->regions[r]->results[number], depth - 1);
        best = one > best ? one : best;
    }
    if (sf_is(node, SF_OP_MULTIPLY) || sf_is(node, SF_OP_DIVIDE))
        return scaled_update(f, node, depth - 1);
    if (sf_is(node, SF_OP_SELECT))
        return best_update(f, node, 1, depth - 1);
    if (sf_is(node, SF_OP_ADD) || sf_is(node, SF_OP_SUBTRACT) || sf_is(node, SF_OP_MAXIMUM) ||
        sf_is(node, SF_OP_MINIMUM) || sf_is(node, SF_OP_CLAMP) || sf_is(node, SF_OP_CONVERT))
        return best_update(f, node, 0, depth - 1);
    return best;
}

static void mark_value(void *context, sf_value value)
{
    ((bool *)context)[value] = true;
}

/* How many nodes the value needs. */
static uint32_t count_nodes(const sf_graph *graph, sf_value value)
{
    uint32_t count = 0;
    bool *marks = sf_alloc(graph->nvalues * sizeof *marks);
    memset(marks, 0, graph->nvalues * sizeof *marks);
    marks[value] = true;
    for (uint32_t n = graph->top->nnodes; n-- > 0;) {
        const sf_node *node = sf_top_node(graph, n);
        bool any = false;
        for (uint32_t r = 0; r < node->nresults; r++)
            any = any || marks[node->result + r];
        count += any;
        for (uint32_t o = 0; any && o < node->noperands; o++)
            marks[node->operands[o]] = true;
        for (uint32_t r = 0; any && r < node->nregions; r++)
            sf_block_uses(graph, node->regions[r], mark_value, marks);
    }
    sf_free(marks);
    return count;
}

/* Of how many numbers among the arguments the result keeps the value. */
static uint32_t count_kept(const finder *f, uint32_t result)
{
    finder other = *f;
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->graph->top->narguments; i++) {
        other.argument = f->graph->top->arguments[i];
        count += is_number(sf_argument_type(f->graph, i)) &&
                 update_of(&other, f->graph->top->results[result], DEPTH) == KEPT;
    }
    return count;
}

/* A loss may have numbers in a sum, too: exp(-s) e + s. A new number is one old one with something added; and it needs the
 * gradient, which comes after the loss. */
static bool is_better_update(const finder *f, uint32_t argument, uint32_t a, uint32_t b, int how)
{
    const sf_graph *graph = f->graph;
    bool named = sf_has_path_of(graph, a, argument);
    if (named != sf_has_path_of(graph, b, argument))
        return named;
    if (how != KEPT)
        return false;
    uint32_t of_a = count_kept(f, a), of_b = count_kept(f, b);
    return of_a != of_b ? of_a < of_b
                        : count_nodes(graph, graph->top->results[a]) >
                              count_nodes(graph, graph->top->results[b]);
}

/* The best update of the argument, if another number is none, or a lesser one, which can be the loss: `*other`, the last
 * such. */
static uint32_t find_new_number(const finder *f, const sf_number_state *found, uint32_t argument,
                                uint32_t *other)
{
    const sf_graph *graph = f->graph;
    uint32_t best = SF_NONE;
    int how = NONE;
    for (uint32_t r = 0; r < graph->top->nresults; r++) {
        if (!is_new_number(graph, r) || found->of[r] != SF_NONE ||
            sf_is_called_loss(graph->results[r].name) ||
            sf_result_type(graph, r) != sf_argument_type(graph, argument))
            continue;
        int one = update_of(f, graph->top->results[r], DEPTH);
        if (one > how ||
            (one == how && one != NONE && is_better_update(f, argument, r, best, how))) {
            best = r;
            how = one;
        }
    }
    *other = SF_NONE;
    for (uint32_t r = 0; r < graph->top->nresults && best != SF_NONE; r++) {
        if (!is_new_number(graph, r) || r == best || found->of[r] != SF_NONE)
            continue;
        int one = update_of(f, graph->top->results[r], DEPTH);
        if (one < how || (how == KEPT && is_better_update(f, argument, best, r, how)))
            *other = r;
    }
    return *other == SF_NONE ? SF_NONE : best;
}

/* "result[1]", and not "result[1]['lr']". */
static bool is_own_result(const char *name)
{
    const char *path = path_of(name);
    return *path && !path[1 + strcspn(path + 1, "[.")];
}

sf_number_state sf_find_number_state(const sf_graph *graph, sf_arena *arena)
{
    const sf_block *top = graph->top;
    sf_number_state found = {SF_ARRAY(arena, top->nresults, uint32_t),
                             SF_ARRAY(arena, top->nresults, bool)};
    finder f = {graph, NULL, sf_find_reported(graph, false, arena), 0};
    for (uint32_t r = 0; r < top->nresults; r++)
        found.of[r] = SF_NONE;
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint32_t other = SF_NONE;
        if (!is_number(sf_argument_type(graph, i)))
            continue;
        if (!f.origins)
            f.origins = sf_tensor_origins(graph, arena);
        f.argument = top->arguments[i];
        uint32_t r = find_new_number(&f, &found, i, &other);
        if (r == SF_NONE)
            continue;
        found.of[r] = i;
        found.sure[r] = !f.reported[r] && (r < other || is_own_result(graph->results[r].name) ||
                                           sf_has_path_of(graph, r, i));
    }
    return found;
}
