#include "shard/reshard_space.h"

static const uint64_t ALL = ~UINT64_C(0);

static int take_lowest(uint64_t *set)
{
    int bit = __builtin_ctzll(*set);
    *set &= *set - 1;
    return bit;
}

static int find_share(const sf_space *space, int axis, sf_share share)
{
    for (int i = 0; i < space->counts[axis]; i++)
        if (sf_share_equal(space->shares[axis][i], share))
            return i;
    return -1;
}

static void add_share(sf_space *space, int axis, sf_share share)
{
    if (space->counts[axis] < SF_MAX_CHOICES && find_share(space, axis, share) < 0)
        space->shares[axis][space->counts[axis]++] = share;
}

static void add_split(sf_space *space, const sf_type *type, int axis, int dim, int64_t period)
{
    int parts = space->mesh->axes[axis].size;
    if (period >= 1 && type->dims[dim] % period == 0 && period % parts == 0)
        add_share(space, axis, (sf_share){.kind = SF_SPLIT, .dim = dim, .period = period});
}

/* A share of one of the layouts on one axis may move to another, or above or below it. */
static void add_share_of(sf_space *space, const sf_type *type, int axis, const sf_layout *layout,
                         int other)
{
    sf_share share = layout->axes[other];
    if (share.kind == SF_PARTIAL)
        add_share(space, axis, share);
    if (share.kind != SF_SPLIT)
        return;
    add_split(space, type, axis, share.dim, share.period);
    if (other != axis)
        add_split(space, type, axis, share.dim, share.period / space->mesh->axes[other].size);
}

/* The contiguous splits of a dimension, outermost or under those of any other axes. */
static void add_contiguous(sf_space *space, const sf_type *type, int axis, int dim)
{
    for (sf_axes above = 0; above < 1u << space->mesh->naxes; above++) {
        int parts = sf_group_size(space->mesh, above);
        if (!(above >> axis & 1) && type->dims[dim] % parts == 0)
            add_split(space, type, axis, dim, type->dims[dim] / parts);
    }
}

/* The dimensions that the layouts split, as a set, and the first other one that the axis can split:
 * for intermediate layouts. */
static uint32_t dims_in_play(const sf_space *space, const sf_type *type, const sf_layout *from,
                             const sf_layout *to, int axis)
{
    uint32_t dims = 0;
    for (int a = 0; a < space->mesh->naxes; a++) {
        if (from->axes[a].kind == SF_SPLIT)
            dims |= 1u << from->axes[a].dim;
        if (to->axes[a].kind == SF_SPLIT)
            dims |= 1u << to->axes[a].dim;
    }
    for (int d = 0; d < type->rank; d++)
        if (!(dims >> d & 1) && type->dims[d] % space->mesh->axes[axis].size == 0)
            return dims | 1u << d;
    return dims;
}

static void collect_shares(sf_space *space, const sf_type *type, const sf_layout *from,
                           const sf_layout *to, int axis)
{
    space->counts[axis] = 0;
    add_share(space, axis, (sf_share){0});
    add_share(space, axis, to->axes[axis]);
    add_share(space, axis, from->axes[axis]);
    for (int other = 0; other < space->mesh->naxes; other++) {
        add_share_of(space, type, axis, to, other);
        add_share_of(space, type, axis, from, other);
    }
    uint64_t dims = dims_in_play(space, type, from, to, axis);
    while (dims)
        add_contiguous(space, type, axis, take_lowest(&dims));
}

static void relate_states(sf_space *space, int a, int b)
{
    int a_parts = space->mesh->axes[a].size, b_parts = space->mesh->axes[b].size;
    for (int i = 0; i < space->counts[a]; i++) {
        sf_share share = space->shares[a][i];
        uint64_t beside = 0;
        for (int k = 0; k < space->counts[b]; k++)
            if (sf_shares_fit(share, a_parts, space->shares[b][k], b_parts))
                beside |= UINT64_C(1) << k;
        int same = a_parts == b_parts ? find_share(space, b, share) : -1;
        space->beside[a][i][b] = beside;
        space->swaps[a][i][b] = same < 0 ? 0 : UINT64_C(1) << same;
    }
}

/* An exchange needs both digits, the old and the new, in one radix: so that every rank has
 * something, and equally much, for every other. */
static void relate_to_itself(sf_space *space, const sf_layout *to, int axis)
{
    int parts = space->mesh->axes[axis].size;
    space->splits[axis] = space->partials[axis] = 0;
    for (int i = 0; i < space->counts[axis]; i++) {
        sf_share share = space->shares[axis][i];
        uint64_t bit = UINT64_C(1) << i;
        space->splits[axis] |= share.kind == SF_SPLIT ? bit : 0;
        space->partials[axis] |= share.kind == SF_PARTIAL ? bit : 0;
        space->exchanges[axis][i] = 0;
        for (int k = 0; share.kind == SF_SPLIT && k < space->counts[axis]; k++) {
            sf_share other = space->shares[axis][k];
            if (k != i && other.kind == SF_SPLIT && sf_shares_fit(share, parts, other, parts))
                space->exchanges[axis][i] |= UINT64_C(1) << k;
        }
        bool wanted = sf_share_equal(share, to->axes[axis]);
        space->classes[axis][i] = share.kind == SF_REPLICATED ? 0
                                  : share.kind == SF_PARTIAL  ? 1
                                  : wanted                    ? 3
                                                              : 2;
    }
}

void sf_space_fine(const sf_mesh *mesh, const sf_type *type, const sf_layout *from,
                   const sf_layout *to, sf_space *out)
{
    out->mesh = mesh;
    out->bits = SF_FINE_BITS;
    for (int a = 0; a < mesh->naxes; a++)
        collect_shares(out, type, from, to, a);
    for (int a = 0; a < mesh->naxes; a++) {
        relate_to_itself(out, to, a);
        for (int b = 0; b < mesh->naxes; b++)
            if (b != a)
                relate_states(out, a, b);
    }
}

void sf_space_coarse(const sf_space *fine, sf_space *out)
{
    int naxes = fine->mesh->naxes;
    out->mesh = fine->mesh;
    out->bits = SF_COARSE_BITS;
    for (int a = 0; a < naxes; a++) {
        uint64_t used = 0;
        for (int i = 0; i < fine->counts[a]; i++)
            used |= UINT64_C(1) << fine->classes[a][i];
        out->counts[a] = 1 << SF_COARSE_BITS;
        out->partials[a] = used & 2;
        out->splits[a] = used & 12;
    }
    for (int a = 0; a < naxes; a++) {
        for (int i = 0; i < out->counts[a]; i++) {
            uint64_t bit = UINT64_C(1) << i;
            bool split = out->splits[a] & bit;
            out->exchanges[a][i] = split ? out->splits[a] & ~bit : 0;
            for (int b = 0; b < naxes; b++) {
                bool even = fine->mesh->axes[a].size == fine->mesh->axes[b].size;
                out->beside[a][i][b] = ALL;
                out->swaps[a][i][b] = !even ? 0 : split ? out->splits[b] : bit;
            }
        }
    }
}

sf_packed_layout sf_space_state(const sf_space *fine, const sf_layout *layout)
{
    sf_packed_layout state = 0;
    for (int a = 0; a < fine->mesh->naxes; a++)
        state = sf_state_with(fine, state, a, find_share(fine, a, layout->axes[a]));
    return state;
}

sf_layout sf_space_layout(const sf_space *fine, sf_packed_layout state)
{
    sf_layout layout = {{{0}}};
    for (int a = 0; a < fine->mesh->naxes; a++)
        layout.axes[a] = fine->shares[a][sf_state_choice(fine, state, a)];
    return layout;
}

sf_packed_layout sf_space_class(const sf_space *fine, sf_packed_layout state)
{
    sf_packed_layout class = 0;
    for (int a = 0; a < fine->mesh->naxes; a++) {
        int choice = sf_state_choice(fine, state, a);
        class |= (sf_packed_layout)fine->classes[a][choice] << a * SF_COARSE_BITS;
    }
    return class;
}

/* The axes whose choice is in one of the sets, by axis. */
static sf_axes axes_in(const sf_space *space, sf_packed_layout state, const uint64_t *sets)
{
    sf_axes axes = 0;
    for (int a = 0; a < space->mesh->naxes; a++)
        axes |= (sf_axes)(sets[a] >> sf_state_choice(space, state, a) & 1) << a;
    return axes;
}

/* The choices of the axis that go together with the state, whatever the axes of `changing` have. */
static uint64_t allowed_reshards(const sf_space *space, sf_packed_layout state, int axis,
                                 sf_axes changing)
{
    uint64_t set = ALL;
    for (int b = 0; b < space->mesh->naxes; b++)
        if (b != axis && !(changing >> b & 1))
            set &= space->beside[b][sf_state_choice(space, state, b)][axis];
    return set;
}

/* The moves out of one state, on their way to the caller. */
typedef struct fan {
    const sf_space *space;
    sf_packed_layout state;
    sf_axes split, partial, whole; /* which axes of it are so */
    sf_step_visit *visit;
    void *context;
} fan;

/* Only a gather makes the shard larger. */
static void visit_reshard(const fan *f, sf_reshard_kind kind, sf_axes axes, sf_packed_layout to)
{
    sf_axes split = kind == SF_RESHARD_GATHER ? f->split & ~axes : f->split;
    f->visit(f->context, &(sf_space_step){kind, axes, split, to});
}

static void visit_choices(const fan *f, sf_reshard_kind kind, int axis, uint64_t set)
{
    set &= allowed_reshards(f->space, f->state, axis, 0);
    while (set)
        visit_reshard(f, kind, 1u << axis,
                      sf_state_with(f->space, f->state, axis, take_lowest(&set)));
}

/* gather and reduce: the axes become R. */
static void visit_joined(const fan *f, sf_reshard_kind kind, sf_axes axes)
{
    sf_packed_layout to = f->state;
    for (int a = 0; a < f->space->mesh->naxes; a++)
        if (axes >> a & 1)
            to = sf_state_with(f->space, to, a, 0);
    visit_reshard(f, kind, axes, to);
}

/* Every way to split the axes from `axis` on; `to` has the choices of those before it. */
static void visit_scatters(const fan *f, sf_axes axes, int axis, sf_packed_layout to)
{
    const sf_space *space = f->space;
    while (axis < space->mesh->naxes && !(axes >> axis & 1))
        axis++;
    if (axis == space->mesh->naxes) {
        visit_reshard(f, SF_RESHARD_SCATTER, axes, to);
        return;
    }
    uint64_t set = space->splits[axis] & allowed_reshards(space, to, axis, axes & ~0u << axis);
    while (set)
        visit_scatters(f, axes, axis + 1, sf_state_with(space, to, axis, take_lowest(&set)));
}

static void visit_swaps(const fan *f, int a, int b)
{
    const sf_space *space = f->space;
    int a_choice = sf_state_choice(space, f->state, a);
    int b_choice = sf_state_choice(space, f->state, b);
    for (uint64_t a_set = space->swaps[b][b_choice][a]; a_set;) {
        sf_packed_layout half = sf_state_with(space, f->state, a, take_lowest(&a_set));
        for (uint64_t b_set = space->swaps[a][a_choice][b]; b_set;) {
            sf_packed_layout to = sf_state_with(space, half, b, take_lowest(&b_set));
            if (to != f->state)
                visit_reshard(f, SF_RESHARD_SWAP, 1u << a | 1u << b, to);
        }
    }
}

/* The first set of axes within `all`, and the one after `axes`, 0 after the last: in ascending
 * order. */
static sf_axes next_within(sf_axes all, sf_axes axes)
{
    return (axes - all) & all;
}

void sf_space_reshards(const sf_space *space, sf_packed_layout state, sf_step_visit *visit_step,
                       void *context)
{
    int naxes = space->mesh->naxes;
    fan f = {.space = space, .state = state, .visit = visit_step, .context = context};
    f.split = axes_in(space, state, space->splits);
    f.partial = axes_in(space, state, space->partials);
    f.whole = ((1u << naxes) - 1) & ~f.split & ~f.partial;
    for (int a = 0; a < naxes; a++)
        if (f.whole >> a & 1)
            visit_choices(&f, SF_RESHARD_SLICE, a, space->splits[a]);
    for (int a = 0; a < naxes; a++)
        if (f.whole >> a & 1)
            visit_choices(&f, SF_RESHARD_MASK, a, space->partials[a]);
    for (sf_axes axes = next_within(f.split, 0); axes; axes = next_within(f.split, axes))
        visit_joined(&f, SF_RESHARD_GATHER, axes);
    for (sf_axes axes = next_within(f.partial, 0); axes; axes = next_within(f.partial, axes))
        visit_joined(&f, SF_RESHARD_REDUCE, axes);
    for (sf_axes axes = next_within(f.partial, 0); axes; axes = next_within(f.partial, axes))
        visit_scatters(&f, axes, 0, state);
    for (int a = 0; a < naxes; a++)
        if (f.split >> a & 1)
            visit_choices(&f, SF_RESHARD_EXCHANGE, a,
                          space->exchanges[a][sf_state_choice(space, state, a)]);
    for (int a = 0; a < naxes; a++)
        for (int b = a + 1; b < naxes; b++)
            visit_swaps(&f, a, b);
}
