#include "plan/pin_rules.h"

#include <stdio.h>
#include <string.h>

#include "ir/name.h"
#include "plan/pipeline/pipeline.h"

enum { EVERY_DIM = (1 << SF_MAX_RANK) - 1 };

/* The effect of a pin on a value. */
typedef enum outcome { TAKEN, OVERRULED, UNFIT } outcome;

typedef struct maker {
    sf_rules *rules;
    sf_arena *arena;
    sf_diag *diag;
    char why[SF_WHY_TEXT]; /* the last that was UNFIT */
    int stronger;          /* the pin that overruled the last that was, or -1 */
} maker;

static void open_axis(sf_fixed *fixed, size_t nvalues, sf_arena *arena)
{
    fixed->pin = SF_ARRAY(arena, nvalues, int);
    memset(fixed->pin, -1, nvalues * sizeof *fixed->pin);
    fixed->shares = SF_ARRAY(arena, nvalues, sf_share);
    fixed->banned = SF_ARRAY(arena, nvalues, uint32_t);
}

bool sf_is_banned(const sf_fixed *fixed, sf_value value, sf_share share)
{
    return share.kind == SF_SPLIT && fixed->banned && (fixed->banned[value] >> share.dim & 1);
}

/* Whether the split fits the tensor when no other axis splits it. */
static bool pin_fits_value(const sf_rules *rules, sf_value value, int axis, sf_share share,
                           char why[SF_WHY_TEXT])
{
    const sf_type *type = sf_type_of(rules->graph, value);
    sf_layout layout = {0};
    if (share.period == 0 && share.dim < type->rank)
        share.period = type->dims[share.dim];
    layout.axes[axis] = share;
    return sf_layout_fits(&layout, &rules->mesh, type->rank, type->dims, why);
}

static sf_share share_of(const sf_rules *rules, int number, sf_value value)
{
    return sf_pin_share(&rules->pins[number], sf_type_of(rules->graph, value));
}

static uint32_t bit_of_pin(const sf_rules *rules, int number, sf_value value)
{
    return 1u << share_of(rules, number, value).dim;
}

/* Whether ranks along the axis may have different parts: an axis of one rank cuts nothing, ranks of an unused one compute the same,
 * and along the axis of a pipeline lie its stages. A mesh of one rank has one layout for all. */
static bool can_split(const sf_mesh *mesh, int axis)
{
    const sf_axis *at = &mesh->axes[axis];
    return sf_mesh_size(mesh) == 1 ||
           (at->size > 1 && !sf_axis_is_unused(at) && strcmp(at->name, SF_PIPE_AXIS) != 0);
}

static bool is_preference(const sf_pin *pin)
{
    return pin->share.kind == SF_SPLIT && !pin->forbids && pin->axis == SF_ANY_AXIS;
}

/* The dimensions of the value that the pin bans along its axes. */
static uint32_t bans_of_pin(const sf_rules *rules, int number, sf_value value)
{
    const sf_pin *pin = &rules->pins[number];
    if (pin->share.kind == SF_REPLICATED)
        return EVERY_DIM;
    uint32_t bit = bit_of_pin(rules, number, value);
    return pin->forbids ? bit : is_preference(pin) ? EVERY_DIM & ~bit : 0;
}

static bool is_about(const sf_pin *pin, int axis)
{
    return pin->axis == axis || pin->axis == SF_ANY_AXIS;
}

static bool is_pinned_by(const sf_rules *rules, const sf_pin *pin, sf_value value)
{
    sf_arena arena = {0};
    size_t count;
    bool is_there = false;
    const sf_named **found = sf_names_match(rules->names, pin->pattern, &arena, &count);
    for (size_t i = 0; i < count && !is_there; i++)
        for (sf_value v = found[i]->first; v != SF_NONE;
             v = sf_named_next(rules->names, found[i], v))
            is_there = is_there || v == value;
    sf_arena_free(&arena);
    return is_there;
}

/* The first pin that bans the dimension of the value along the axis, for messages. */
static int who_bans(const sf_rules *rules, sf_value value, int axis, int dim)
{
    for (int p = 0; p < rules->npins; p++)
        if (is_about(&rules->pins[p], axis) && (bans_of_pin(rules, p, value) >> dim & 1) &&
            is_pinned_by(rules, &rules->pins[p], value))
            return p;
    return -1;
}

/* Bans along one axis, unless a stronger pin has fixed such a split. */
static outcome ban_axis(maker *m, int number, sf_value value, int axis)
{
    sf_fixed *fixed = &m->rules->axes[axis];
    uint32_t banned = bans_of_pin(m->rules, number, value);
    if (fixed->pin[value] >= 0 && banned >> fixed->shares[value].dim & 1) {
        m->stronger = fixed->pin[value];
        return OVERRULED;
    }
    fixed->banned[value] |= banned;
    return TAKEN;
}

static outcome fix_axis(maker *m, int number, sf_value value, int axis)
{
    sf_fixed *fixed = &m->rules->axes[axis];
    sf_share share = share_of(m->rules, number, value);
    if (!pin_fits_value(m->rules, value, axis, share, m->why))
        return UNFIT;
    if (fixed->pin[value] >= 0) {
        m->stronger = fixed->pin[value];
        return fixed->shares[value].dim == share.dim ? TAKEN : OVERRULED;
    }
    if (sf_is_banned(fixed, value, share)) {
        m->stronger = who_bans(m->rules, value, axis, share.dim);
        return OVERRULED;
    }
    fixed->pin[value] = number;
    fixed->shares[value] = share;
    return TAKEN;
}

/* Whether the axis may split the value as the pin wishes. */
static bool can_grant(const sf_rules *rules, const sf_preference *preference, int axis)
{
    const sf_fixed *fixed = &rules->axes[axis];
    sf_share share = share_of(rules, preference->pin, preference->value);
    return can_split(&rules->mesh, axis) && !sf_is_banned(fixed, preference->value, share) &&
           pin_fits_value(rules, preference->value, axis, share, NULL);
}

static outcome preference_axis(maker *m, int number, sf_value value)
{
    sf_rules *rules = m->rules;
    sf_preference new_preference = {value, number};
    bool can = false, granted = false, fit = false;
    sf_share share = share_of(rules, number, value);
    snprintf(m->why, sizeof m->why, "the mesh has no axis that splits tensors");
    for (int a = 0; a < rules->mesh.naxes; a++) {
        if (!can_split(&rules->mesh, a) || !pin_fits_value(rules, value, a, share, m->why))
            continue;
        fit = true;
        if (rules->axes[a].pin[value] < 0)
            can = can || can_grant(rules, &new_preference, a);
        else if (rules->axes[a].shares[value].dim == share.dim)
            granted = true;
        if (!can && !granted)
            m->stronger = rules->axes[a].pin[value] >= 0 ? rules->axes[a].pin[value]
                                                         : who_bans(rules, value, a, share.dim);
    }
    if (!can && !granted)
        return fit ? OVERRULED : UNFIT;
    if (!granted)
        SF_PUSH(m->arena, rules->preferences, rules->npreferences, rules->preference_capacity,
                new_preference);
    for (int a = 0; a < rules->mesh.naxes; a++)
        ban_axis(m, number, value, a);
    return TAKEN;
}

static outcome apply_to_value(maker *m, int number, sf_value value)
{
    const sf_pin *pin = &m->rules->pins[number];
    const sf_type *type = sf_type_of(m->rules->graph, value);
    if (is_preference(pin))
        return preference_axis(m, number, value);
    if (!bans_of_pin(m->rules, number, value))
        return fix_axis(m, number, value, pin->axis);
    if (pin->forbids && sf_pin_share(pin, type).dim >= type->rank)
        return UNFIT;
    outcome best = OVERRULED;
    for (int a = 0; a < m->rules->mesh.naxes; a++)
        if (is_about(pin, a) && ban_axis(m, number, value, a) == TAKEN)
            best = TAKEN;
    return best;
}

static sf_status fail_fit(const maker *m, const sf_pin *pin, sf_value value)
{
    char text[SF_TYPE_TEXT];
    return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE, "pin \"%s\": %s, %s, does not fit: %s",
                   pin->text, m->rules->names->values[value],
                   sf_type_text(sf_type_of(m->rules->graph, value), text), m->why);
}

static sf_status fail_match(const maker *m, const sf_pin *pin)
{
    sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
            "pin \"%s\" matches no argument, gradient or scope of the step", pin->text);
    const char *nearest = sf_names_nearest(m->rules->names, pin->pattern, m->arena);
    return nearest ? sf_hint(m->diag, "did you mean \"%s\"?", nearest)
                   : sf_hint(m->diag, "names are written as layer_0/attn/q/kernel");
}

static sf_status fail_overruled(const maker *m, const sf_pin *pin, const char *name)
{
    sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
            "pin \"%s\" contradicts pin \"%s\", which comes before it and decides about %s%s",
            pin->text, m->rules->pins[m->stronger].text, name,
            strpbrk(pin->pattern, "*?") ? " and whatever else it matches" : "");
    return sf_hint(m->diag, "drop one of them, or put the one for fewer tensors first");
}

/* Whether nobody minds that the pin does not fit the value. */
static bool is_passed_over(const maker *m, const sf_pin *pin, sf_value value)
{
    bool number = strpbrk(pin->pattern, "*?") && sf_type_of(m->rules->graph, value)->rank == 0;
    return m->rules->names->is_scope[value] || number || pin->forbids;
}

static sf_status apply_pin(maker *m, int number)
{
    const sf_pin *pin = &m->rules->pins[number];
    const sf_names *names = m->rules->names;
    size_t count, taken = 0;
    const char *overruled = NULL;
    const sf_named **found = sf_names_match(names, pin->pattern, m->arena, &count);
    for (size_t i = 0; i < count; i++)
        for (sf_value v = found[i]->first; v != SF_NONE; v = sf_named_next(names, found[i], v)) {
            outcome what = apply_to_value(m, number, v);
            taken += what == TAKEN;
            if (what == OVERRULED && !overruled)
                overruled = names->values[v];
            if (what == UNFIT && !is_passed_over(m, pin, v))
                return fail_fit(m, pin, v);
        }
    if (count == 0)
        return fail_match(m, pin);
    if (taken == 0 && overruled)
        return fail_overruled(m, pin, overruled);
    if (taken == 0)
        return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                       "pin \"%s\" fits none of the tensors that it matches", pin->text);
    return SF_OK;
}

/* Fixed shares along several axes must be compatible. */
static sf_status check_together(const maker *m, sf_value value)
{
    const sf_rules *rules = m->rules;
    const sf_type *type = sf_type_of(rules->graph, value);
    sf_layout layout = {0};
    char why[SF_WHY_TEXT], text[SF_TYPE_TEXT];
    int last = -1;
    for (int a = 0; a < rules->mesh.naxes; a++) {
        if (rules->axes[a].pin[value] < 0)
            continue;
        sf_share share = rules->axes[a].shares[value];
        last = rules->axes[a].pin[value];
        if (share.period == 0)
            share.period =
                sf_layout_period(&layout, &rules->mesh, a, share.dim, type->dims[share.dim]);
        layout.axes[a] = share;
    }
    if (last < 0 || sf_layout_fits(&layout, &rules->mesh, type->rank, type->dims, why))
        return SF_OK;
    return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                   "pin \"%s\" does not go with the others that split %s, %s: %s",
                   rules->pins[last].text, rules->names->values[value], sf_type_text(type, text),
                   why);
}

/* Later pins may have banned the shares that it needs. */
static sf_status check_preference(const maker *m, const sf_preference *preference)
{
    const sf_rules *rules = m->rules;
    for (int a = 0; a < rules->mesh.naxes; a++)
        if (can_grant(rules, preference, a) && rules->axes[a].pin[preference->value] < 0)
            return SF_OK;
    int other = who_bans(rules, preference->value, 0,
                         share_of(rules, preference->pin, preference->value).dim);
    sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
            "pin \"%s\" contradicts pin \"%s\": no axis is left along which %s can be split",
            rules->pins[preference->pin].text,
            rules->pins[other < 0 ? preference->pin : other].text,
            rules->names->values[preference->value]);
    return sf_hint(m->diag, "drop one of them, or let it name an axis");
}

sf_status sf_rules_new(const sf_graph *graph, const sf_names *names, const sf_mesh *mesh, int npins,
                       const sf_pin *pins, sf_arena *arena, sf_diag *diag, sf_rules *out)
{
    *out = (sf_rules){.graph = graph, .names = names, .mesh = *mesh, .npins = npins, .pins = pins};
    maker m = {.rules = out, .arena = arena, .diag = diag, .stronger = -1};
    for (int a = 0; a < mesh->naxes && npins > 0; a++)
        open_axis(&out->axes[a], graph->nvalues, arena);
    for (int p = 0; p < npins; p++)
        SF_TRY(apply_pin(&m, p));
    for (uint32_t i = 0; i < graph->top->narguments && npins > 0; i++)
        SF_TRY(check_together(&m, graph->top->arguments[i]));
    for (size_t w = 0; w < out->npreferences; w++)
        SF_TRY(check_preference(&m, &out->preferences[w]));
    return SF_OK;
}

/* Wishes ----------------------------------------------------------------------------------------- */

/* Whether an axis, but for one, splits along one of the dimensions. */
static bool has_split(const sf_mesh *mesh, const sf_layout *layout, uint32_t dims, int but)
{
    for (int a = 0; a < mesh->naxes; a++)
        if (a != but && can_split(mesh, a) && layout->axes[a].kind == SF_SPLIT &&
            (dims >> layout->axes[a].dim & 1))
            return true;
    return false;
}

/* Marks the values of preferences that some axis, but for one, satisfies: at their maker, or at an
 * op that reads them. By value, in the arena. */
static bool *find_granted(const sf_rules *rules, const sf_plan *plan, int but, sf_arena *arena)
{
    const sf_graph *graph = rules->graph;
    bool *granted = SF_ARRAY(arena, graph->nvalues, bool);
    uint32_t *wished = SF_ARRAY(arena, graph->nvalues, uint32_t);
    for (size_t w = 0; w < rules->npreferences; w++)
        wished[rules->preferences[w].value] |=
            bit_of_pin(rules, rules->preferences[w].pin, rules->preferences[w].value);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        sf_value value = graph->top->arguments[i];
        granted[value] = has_split(&rules->mesh, &plan->arguments[i], wished[value], but);
    }
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        for (uint32_t t = 0; t < node->noperands + node->nresults; t++) {
            sf_value value =
                t < node->noperands ? node->operands[t] : node->result + (t - node->noperands);
            if (wished[value] && graph->values[value].node != SF_NONE)
                granted[value] =
                    granted[value] ||
                    has_split(&rules->mesh, &plan->nodes[node->id][t], wished[value], but);
        }
    }
    return granted;
}

/* The axis that satisfies the preference when all its values are `wanted`. */
static int granting_axis(const sf_rules *rules, const sf_preference *preference, int wanted)
{
    if (can_grant(rules, preference, wanted))
        return wanted;
    int axis = 0;
    while (axis < rules->mesh.naxes && !can_grant(rules, preference, axis))
        axis++;
    return axis;
}

sf_fixed sf_rules_along(const sf_rules *rules, int axis, int grant, const sf_plan *plan,
                        sf_arena *arena)
{
    const sf_fixed *fixed = &rules->axes[axis];
    size_t nvalues = rules->graph->nvalues;
    if (rules->npreferences == 0 || grant == SF_GRANT_NONE)
        return *fixed;
    sf_fixed along = {.pin = sf_arena_copy(arena, fixed->pin, nvalues * sizeof *along.pin),
                      .shares = sf_arena_copy(arena, fixed->shares, nvalues * sizeof *along.shares),
                      .banned = fixed->banned};
    bool *granted = grant == SF_GRANT_REST ? find_granted(rules, plan, axis, arena) : NULL;
    for (size_t w = 0; w < rules->npreferences; w++) {
        const sf_preference *preference = &rules->preferences[w];
        bool here =
            granted ? !granted[preference->value] : granting_axis(rules, preference, grant) == axis;
        if (!here || along.pin[preference->value] >= 0 || !can_grant(rules, preference, axis))
            continue;
        along.pin[preference->value] = preference->pin;
        along.shares[preference->value] = share_of(rules, preference->pin, preference->value);
    }
    return along;
}

/* Judging a plan --------------------------------------------------------------------------------- */

typedef struct judge {
    const sf_rules *rules;
    const sf_plan *plan;
    int broken;  /* the first pin, or -1 */
    bool *asked; /* by pin: it fixes something, */
    bool *met;   /* and one of those values is so */
} judge;

static void blame_pin(judge *j, int pin)
{
    if (pin >= 0 && (j->broken < 0 || pin < j->broken))
        j->broken = pin;
}

static bool is_as_pinned(sf_share share, sf_share pinned)
{
    return share.kind == SF_SPLIT && share.dim == pinned.dim &&
           (pinned.period == 0 || share.period == pinned.period);
}

/* A value as it is made, or as an op finds it. */
static void judge_layout(judge *j, sf_value value, const sf_layout *layout)
{
    const sf_rules *rules = j->rules;
    for (int a = 0; a < rules->mesh.naxes; a++) {
        const sf_fixed *fixed = &rules->axes[a];
        sf_share share = layout->axes[a];
        if (sf_is_banned(fixed, value, share))
            blame_pin(j, who_bans(rules, value, a, share.dim));
        if (fixed->pin[value] < 0)
            continue;
        j->asked[fixed->pin[value]] = true;
        if (is_as_pinned(share, fixed->shares[value]))
            j->met[fixed->pin[value]] = true;
        else if (rules->graph->values[value].node == SF_NONE)
            blame_pin(j, fixed->pin[value]);
    }
}

/* The maker counts, and so do readers of its results. */
static void judge_node(judge *j, const sf_node *node)
{
    const sf_graph *graph = j->rules->graph;
    const sf_layout *layouts = j->plan->nodes[node->id];
    for (uint32_t o = 0; o < node->noperands; o++)
        if (graph->values[node->operands[o]].node != SF_NONE)
            judge_layout(j, node->operands[o], &layouts[o]);
    for (uint32_t r = 0; r < node->nresults; r++)
        judge_layout(j, node->result + r, &layouts[node->noperands + r]);
}

static void judge_preferences(judge *j, sf_arena *arena)
{
    const sf_rules *rules = j->rules;
    bool *granted = find_granted(rules, j->plan, -1, arena);
    for (size_t w = 0; w < rules->npreferences; w++) {
        const sf_preference *preference = &rules->preferences[w];
        j->asked[preference->pin] = true;
        j->met[preference->pin] = j->met[preference->pin] || granted[preference->value];
        if (!granted[preference->value] && rules->graph->values[preference->value].node == SF_NONE)
            blame_pin(j, preference->pin);
    }
}

int sf_rules_broken(const sf_rules *rules, const sf_plan *plan)
{
    const sf_graph *graph = rules->graph;
    if (rules->npins == 0)
        return -1;
    sf_arena arena = {0};
    judge j = {.rules = rules,
               .plan = plan,
               .broken = -1,
               .asked = SF_ARRAY(&arena, rules->npins, bool),
               .met = SF_ARRAY(&arena, rules->npins, bool)};
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        judge_layout(&j, graph->top->arguments[i], &plan->arguments[i]);
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        judge_node(&j, graph->nodes[graph->top->nodes[i]]);
    judge_preferences(&j, &arena);
    for (int p = rules->npins; p-- > 0;)
        if (j.asked[p] && !j.met[p])
            blame_pin(&j, p);
    sf_arena_free(&arena);
    return j.broken;
}
