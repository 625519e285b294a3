#include "front/scope.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "op/util.h"

/* Parts that stand for control flow or for how JAX traces, not for a module of the user. */
static bool is_plumbing(sf_str part)
{
    static const char *const words[] = {
        "while",
        "body",
        "cond",
        "closed_call",
        "core_call",
        "eval_jaxpr",
        "checkpoint",
        "remat",
        "pjit",
        "remat2",
        "custom_jvp_call",
        "custom_vjp_call",
        "scan",
        "main",
        "remat_opt",
        "rematted_computation",
        "custom_vjp_call_jaxpr",
        "shard_map",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (sf_str_is(part, words[i]))
            return true;
    return part.length == 0 || sf_str_starts(part, "branch_");
}

struct reader {
    sf_pool *pool;
    sf_place place;
    int nloops, loops_seen;
    const int64_t *iterations;
    bool is_body;  /* the part before was "while": this one may be its body */
    bool numbered; /* the next module name is numbered by the loop seen last */
    int depth;
};

static void enter(struct reader *reader, sf_str name)
{
    char text[256];
    if (reader->numbered && name.length < 200) {
        int length = snprintf(text, sizeof text, "%.*s_%" PRId64, (int)name.length, name.at,
                              reader->iterations[reader->loops_seen - 1]);
        name = (sf_str){text, (size_t)length};
        reader->numbered = false;
    }
    reader->place.scope = sf_scope_child(reader->pool, reader->place.scope, name);
}

/* A name of its own, at the end of the path as well: an iteration whose op has no module. */
static void enter_loop(struct reader *reader)
{
    if (reader->numbered)
        enter(reader, sf_str_of("iteration"));
}

static void read_path(struct reader *reader, sf_str path, bool wrapped);

static void read_part(struct reader *reader, sf_str part, bool wrapped)
{
    const char *open = memchr(part.at, '(', part.length);
    if (open && part.at[part.length - 1] == ')') {
        sf_str how = {part.at, (size_t)(open - part.at)};
        sf_str what = {open + 1, part.length - how.length - 2};
        if (sf_str_is(how, "jit") || sf_str_is(how, "pjit"))
            return;
        if (sf_str_is(how, "transpose"))
            reader->place.phase = SF_BACKWARD;
        if (sf_str_is(how, "transpose") || sf_str_is(how, "jvp"))
            reader->place.has_phase = true;
        if (reader->depth++ < 16)
            read_path(reader, what, true);
        reader->depth--;
        return;
    }
    bool is_body = reader->is_body && sf_str_is(part, "body");
    reader->is_body = sf_str_is(part, "while");
    if (is_body && reader->loops_seen < reader->nloops) {
        enter_loop(reader);
        reader->loops_seen++;
        reader->numbered = true;
    }
    /* The outermost Flax module is named by its class, and only says what the model is. */
    if (is_plumbing(part) || (wrapped && isupper((unsigned char)part.at[0])))
        return;
    enter(reader, part);
}

static void read_path(struct reader *reader, sf_str path, bool wrapped)
{
    size_t start = 0;
    int parens = 0;
    for (size_t i = 0; i <= path.length; i++) {
        bool at_end = i == path.length;
        if (!at_end && path.at[i] == '(')
            parens++;
        if (!at_end && path.at[i] == ')')
            parens--;
        if (at_end || (path.at[i] == '/' && parens <= 0)) {
            if (i > start)
                read_part(reader, (sf_str){path.at + start, i - start}, wrapped);
            start = i + 1;
        }
    }
}

/* The path without its last part, the primitive. */
static sf_str without_primitive(const char *path)
{
    size_t length = strlen(path), end = 0;
    int parens = 0;
    for (size_t i = 0; i < length; i++) {
        parens += (path[i] == '(') - (path[i] == ')');
        if (path[i] == '/' && parens <= 0)
            end = i;
    }
    /* A call's path ends in the transformation it comes from, "…/attn/jit(softmax)" or "jvp(LM)". */
    return (sf_str){path, end == 0 && path[length ? length - 1 : 0] == ')' ? length : end};
}

sf_place sf_place_of(sf_pool *pool, const char *path, int nloops, const int64_t *iterations)
{
    struct reader reader = {
        .pool = pool,
        .place = {.scope = sf_scope_root(pool), .phase = SF_FORWARD},
        .nloops = nloops,
        .iterations = iterations,
    };
    if (path)
        read_path(&reader, without_primitive(path), false);
    enter_loop(&reader);
    return reader.place;
}

/* Lowers `phases[value]` to the phase of a user: what the forward pass needs is forward. */
static void use_value(sf_phase *phases, sf_value value, sf_phase phase)
{
    if (phase < phases[value])
        phases[value] = phase;
}

/* Nodes that nobody uses get the phase `rest`. */
static void phase_block(sf_graph *graph, const sf_block *block, const bool *told, sf_phase *phases,
                        sf_phase rest)
{
    for (uint32_t i = block->nnodes; i-- > 0;) {
        sf_node *node = graph->nodes[block->nodes[i]];
        if (!told[node->id]) {
            node->phase = rest;
            for (uint32_t j = 0; j < node->nresults; j++)
                if (phases[node->result + j] < node->phase)
                    node->phase = phases[node->result + j];
        }
        for (uint32_t j = 0; j < node->noperands; j++)
            use_value(phases, node->operands[j], node->phase);
        for (uint32_t r = 0; r < node->nregions; r++) {
            const sf_block *region = node->regions[r];
            for (uint32_t j = 0; j < region->nresults; j++)
                use_value(phases, region->results[j], node->phase);
            phase_block(graph, region, told, phases, rest);
        }
    }
}

/* Values that depend on what is marked. */
static void mark_reached(const sf_graph *graph, const sf_block *block, bool *reached)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]];
        bool any = false;
        for (uint32_t j = 0; j < node->noperands; j++)
            any = any || reached[node->operands[j]];
        for (uint32_t j = 0; j < node->nresults; j++)
            reached[node->result + j] = any;
    }
}

/* Values that become a parameter by element-wise ops alone. */
static void mark_applied(const sf_graph *graph, bool *applied)
{
    const sf_block *top = graph->top;
    for (uint32_t i = 0; i < top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE && graph->arguments[i].role == SF_ROLE_PARAM)
            applied[top->results[graph->arguments[i].next]] = true;
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = graph->nodes[top->nodes[i]];
        bool passes = node->nresults == 1 && applied[node->result] &&
                      node->def->factors == sf_factors_pointwise;
        for (uint32_t j = 0; passes && j < node->noperands; j++)
            applied[node->operands[j]] = true;
        for (uint32_t j = 0; !passes && j < node->nresults; j++)
            applied[node->result + j] = false;
    }
}

static void set_phase(sf_graph *graph, sf_node *node, sf_phase phase)
{
    node->phase = phase;
    for (uint32_t r = 0; r < node->nregions; r++)
        for (uint32_t i = 0; i < node->regions[r]->nnodes; i++)
            set_phase(graph, graph->nodes[node->regions[r]->nodes[i]], phase);
}

/* Nothing told the backward pass: it is what the loss does not need, the optimizer's state does not
 * reach, and is not the element-wise work that makes the new parameters. Constants go with the nodes
 * that use them. */
static void split_backward(sf_graph *graph)
{
    const sf_block *top = graph->top;
    bool *reached = sf_alloc(graph->nvalues * sizeof *reached);
    bool *varies = sf_alloc(graph->nvalues * sizeof *varies);
    bool *applied = sf_alloc(graph->nvalues * sizeof *applied);
    bool *used = sf_alloc(graph->nvalues * sizeof *used); /* outside of the update */
    for (uint32_t i = 0; i < top->narguments; i++) {
        reached[top->arguments[i]] = graph->arguments[i].role == SF_ROLE_STATE;
        varies[top->arguments[i]] = true;
    }
    mark_reached(graph, top, reached);
    mark_reached(graph, top, varies);
    mark_applied(graph, applied);
    for (uint32_t i = top->nnodes; i-- > 0;) {
        sf_node *node = graph->nodes[top->nodes[i]];
        bool update = false, is_used = false;
        for (uint32_t j = 0; j < node->nresults; j++) {
            sf_value value = node->result + j;
            update = update || reached[value] || applied[value] || !varies[value];
            is_used = is_used || used[value];
        }
        bool constant = node->nresults > 0 && !varies[node->result];
        if (node->phase == SF_UPDATE && (!update || (constant && is_used)))
            set_phase(graph, node, SF_BACKWARD);
        for (uint32_t j = 0; node->phase != SF_UPDATE && j < node->noperands; j++)
            used[node->operands[j]] = true;
    }
    sf_free(used);
    sf_free(applied);
    sf_free(varies);
    sf_free(reached);
}

/* A program without a loss and without state only goes forward, and one without state updates
 * nothing. */
static sf_phase phase_of_rest(const sf_graph *graph)
{
    bool has_loss = false, has_state = false;
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        has_loss = has_loss || graph->results[i].is_loss;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        has_state = has_state || graph->arguments[i].next != SF_NONE;
    if (has_state)
        return SF_UPDATE;
    return has_loss && !graph->has_scopes ? SF_BACKWARD : SF_FORWARD;
}

void sf_phases_from_flow(sf_graph *graph, const bool *told)
{
    sf_phase *phases = sf_alloc(graph->nvalues * sizeof *phases);
    sf_phase rest = phase_of_rest(graph);
    for (size_t i = 0; i < graph->nvalues; i++)
        phases[i] = rest;
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        if (graph->results[i].is_loss)
            phases[graph->top->results[i]] = SF_FORWARD;
    phase_block(graph, graph->top, told, phases, rest);
    if (!graph->has_scopes && rest == SF_UPDATE)
        split_backward(graph);
    sf_free(phases);
}
