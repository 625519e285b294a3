/* The versions of values: variables between a maker and its readers. */
#include <math.h>

#include "base/hash.h"
#include "search/axis/axis_builder.h"

/* Of a sum whose terms are looked at. */
enum { MOST_TERMS = 4 };

static axis_version **version_slot(const axis_builder *b, const axis_end *made, int phase)
{
    uint64_t hash = sf_hash_mix(made->port.variable, (uint64_t)(uintptr_t)made->port.shares);
    axis_version **slot = &b->versions[sf_hash_mix(hash, (uint64_t)phase) % AXIS_SLOTS];
    while (*slot && ((*slot)->maker != made->port.variable || (*slot)->made != made->port.shares ||
                     (*slot)->phase != phase))
        slot = &(*slot)->next;
    return slot;
}

const axis_version *axis_find_version(const axis_builder *b, const axis_end *made, int phase)
{
    return *version_slot(b, made, phase);
}

bool axis_is_large(const axis_builder *b, const sf_type *type)
{
    enum { SHARE = 1024 };
    return b->options->memory > 0 && sf_type_bytes(type) >= b->options->memory / SHARE;
}

static void add_choice(axis_builder *b, axis_version *v, sf_share share)
{
    for (size_t i = 0; i < v->count; i++)
        if (sf_share_equal(v->shares[i], share))
            return;
    if (v->count < SF_MOST_STRATEGIES)
        SF_PUSH(&b->arena, v->shares, v->count, v->capacity, share);
}

static void add_choices(axis_builder *b, axis_version *v, const axis_port *port)
{
    for (uint32_t k = 0; k < port->count; k++)
        add_choice(b, v, port->shares[(size_t)k * port->stride]);
}

static axis_version *need_version(axis_builder *b, const axis_end *made, int phase)
{
    axis_version **slot = version_slot(b, made, phase);
    if (!*slot) {
        *slot = SF_NEW(&b->arena, axis_version);
        **slot =
            (axis_version){.made = made->port.shares, .maker = made->port.variable, .phase = phase};
    }
    return *slot;
}

/* How often each phase reads the value; returns how many do. */
static int count_readers(const axis_builder *b, sf_value value, uint32_t counts[SF_PHASE_COUNT])
{
    int phases = 0;
    for (int p = 0; p < SF_PHASE_COUNT; p++)
        counts[p] = 0;
    for (uint32_t u = b->readers->first[value]; u < b->readers->first[value + 1]; u++)
        phases += counts[axis_phase(b, b->readers->at[u])]++ == 0;
    return phases;
}

bool axis_can_reduce(const axis_end *made)
{
    for (uint32_t k = 0; k < made->port.count; k++)
        if (made->port.shares[(size_t)k * made->port.stride].kind == SF_PARTIAL)
            return true;
    return false;
}

/* Whether what the node makes may be a partial result of its own. */
static bool op_folds(const axis_builder *b, const sf_node *node)
{
    const sf_node_space *space = &b->space->nodes[node->id];
    for (uint32_t k = 0; k < space->nstrategies; k++)
        if (space->strategies[k].kind == SF_RUN_FACTOR &&
            space->shares[k * space->ntensors + node->noperands].kind == SF_PARTIAL)
            return true;
    return false;
}

/* What folds make, or a sum of that, which is better combined once: of few terms. */
static bool is_sum_of_folds(const axis_builder *b, sf_value value, int terms)
{
    const sf_node *maker = sf_maker(b->graph, value);
    if (!maker || terms == 0)
        return false;
    if (sf_is(maker, SF_OP_ADD))
        return is_sum_of_folds(b, maker->operands[0], terms - 1) &&
               is_sum_of_folds(b, maker->operands[1], terms - 1);
    return op_folds(b, maker);
}

/* Values that are not stored are not moved, but for these. */
static bool can_move(const axis_builder *b, sf_value value)
{
    return b->efforts->stored[value] || !sf_maker(b->graph, value) ||
           is_sum_of_folds(b, value, MOST_TERMS);
}

static void plan_versions(axis_builder *b, sf_value value)
{
    uint32_t counts[SF_PHASE_COUNT];
    if (b->readers->first[value + 1] == b->readers->first[value] || !can_move(b, value))
        return;
    axis_end made = axis_made(b, value);
    int phases = count_readers(b, value, counts);
    bool large = axis_is_large(b, sf_type_of(b->graph, value));
    axis_version *kept = NULL;
    if (phases > 1 && axis_can_reduce(&made)) {
        kept = need_version(b, &made, AXIS_KEPT);
        add_choices(b, kept, &made.port);
    }
    for (uint32_t u = b->readers->first[value]; u < b->readers->first[value + 1]; u++) {
        axis_end reader = axis_read(b, b->readers->at[u]);
        int phase = (int)axis_phase(b, b->readers->at[u]);
        if (kept)
            add_choices(b, kept, &reader.port);
        if (counts[phase] > 1 || large)
            add_choices(b, need_version(b, &made, phase), &reader.port);
    }
}

/* A choice that is not split comes twice where memory matters: as what it comes from, and sent. */
static void tell_moved(axis_builder *b, axis_version *v)
{
    size_t count = v->count;
    for (size_t i = 0; i < count; i++)
        if (v->shares[i].kind != SF_SPLIT)
            SF_PUSH(&b->arena, v->shares, v->count, v->capacity, v->shares[i]);
    v->moved = SF_ARRAY(&b->arena, v->count, bool);
    for (size_t i = count; i < v->count; i++)
        v->moved[i] = true;
}

static void add_variable(axis_builder *b, sf_value value, int phase)
{
    axis_end made = axis_made(b, value);
    axis_version *v = *version_slot(b, &made, phase);
    if (!v || v->variable != SF_NONE)
        return;
    if (phase != AXIS_KEPT && axis_is_large(b, sf_type_of(b->graph, value)))
        tell_moved(b, v);
    v->variable = axis_add_variable(b, (uint32_t)v->count);
}

void axis_add_versions(axis_builder *b)
{
    b->versions = SF_ARRAY(&b->arena, AXIS_SLOTS, axis_version *);
    for (size_t v = 0; v < b->graph->nvalues; v++)
        plan_versions(b, (sf_value)v);
    for (size_t i = 0; i < AXIS_SLOTS; i++)
        for (axis_version *v = b->versions[i]; v; v = v->next)
            v->variable = SF_NONE;
    for (size_t v = 0; v < b->graph->nvalues; v++)
        for (int phase = AXIS_KEPT;
             phase < SF_PHASE_COUNT && b->readers->first[v + 1] > b->readers->first[v]; phase++)
            add_variable(b, (sf_value)v, phase);
}

axis_port axis_port_of(const axis_version *version)
{
    return (axis_port){version->variable, (uint32_t)version->count, 1, version->shares,
                       version->moved};
}

static axis_end end_at_version(const axis_version *v, const sf_layout *others)
{
    return (axis_end){axis_port_of(v), *others};
}

/* The kept version is reduced along the other axes as the first reader wants it, and else as it was made. */
static sf_layout kept_layout(const axis_builder *b, sf_value value, const axis_end *made)
{
    const sf_type *type = sf_type_of(b->graph, value);
    sf_layout layout = made->others,
              reader = axis_read(b, b->readers->at[b->readers->first[value]]).others;
    for (int a = 0; a < b->mesh->naxes; a++)
        if (layout.axes[a].kind == SF_PARTIAL)
            layout.axes[a] = reader.axes[a];
    return sf_layout_fits(&layout, b->mesh, type->rank, type->dims, NULL) ? layout : made->others;
}

/* Of a phase: as its first reader wants it along the other axes. */
static sf_layout phase_layout(const axis_builder *b, sf_value value, int phase)
{
    uint32_t u = b->readers->first[value];
    while ((int)axis_phase(b, b->readers->at[u]) != phase)
        u++;
    return axis_read(b, b->readers->at[u]).others;
}

/* What is told to an edge along which reductions go on beside other work; 0: they do not. */
static int slack_flags(const axis_builder *b, sf_value value)
{
    const uint8_t *known = b->options->value_exposed;
    int parts = (int)lround(b->options->exposed * SF_EXPOSED_ALL);
    if (!b->efforts->slack[value])
        return 0;
    if (known && known[value] != SF_EXPOSED_UNKNOWN)
        parts = known[value];
    return AXIS_SLACK | parts << AXIS_EXPOSED_SHIFT;
}

/* Whether there are more like it to go together with: gradients, where they are reduced in the plan at hand. New
 * state is gathered together, too, but of what costs next to nothing the whole is simpler. */
static bool has_nccl_groups(const axis_builder *b, sf_value value)
{
    const uint8_t *known = b->options->value_exposed;
    return b->efforts->gradient[value] && known && known[value] != SF_EXPOSED_UNKNOWN;
}

void axis_add_edges(axis_builder *b, sf_value value)
{
    if (b->readers->first[value + 1] == b->readers->first[value])
        return;
    const sf_type *type = sf_type_of(b->graph, value);
    int reshards = can_move(b, value) ? AXIS_MOVES : 0;
    reshards |= has_nccl_groups(b, value) ? AXIS_TOGETHER : 0;
    int first = reshards | slack_flags(b, value);
    axis_end made = axis_made(b, value), from = made;
    const axis_version *kept =
        (reshards & AXIS_MOVES) ? axis_find_version(b, &made, AXIS_KEPT) : NULL;
    if (kept) {
        sf_layout layout = kept_layout(b, value, &made);
        from = end_at_version(kept, &layout);
        axis_add_edge(b, &made, &from, type, first | AXIS_KEEPS);
        first = reshards;
    }
    axis_end phases[SF_PHASE_COUNT];
    bool has_phase[SF_PHASE_COUNT] = {0};
    for (uint32_t u = b->readers->first[value]; u < b->readers->first[value + 1]; u++) {
        axis_end reader = axis_read(b, b->readers->at[u]);
        int phase = (int)axis_phase(b, b->readers->at[u]);
        const axis_version *version =
            (reshards & AXIS_MOVES) ? axis_find_version(b, &made, phase) : NULL;
        if (!version) {
            axis_add_edge(b, &from, &reader, type, first);
            continue;
        }
        if (!has_phase[phase]) {
            sf_layout layout = phase_layout(b, value, phase);
            phases[phase] = end_at_version(version, &layout);
            axis_add_edge(b, &from, &phases[phase], type, first);
            has_phase[phase] = true;
        }
        axis_add_edge(b, &phases[phase], &reader, type, reshards);
    }
}
