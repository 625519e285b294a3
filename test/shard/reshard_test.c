/* Ways between layouts: known ones, all of them executed on data, and all of them as cheap as can
 * be.
 *
 * The machine that executes reshards here uses only the definitions of layouts and collectives: the
 * indices of a rank, and the result of a collective in a group. SHEAF_ALL_PAIRS=1 in the
 * environment runs every pair of layouts also on the meshes where otherwise a part of them is
 * taken. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "ir/attr.h"
#include "shard/reshard.h"
#include "support/sanitized.h"

enum { MAX_RANKS = 8, MAX_COUNT = 1024, RANK = 3 };

static sf_pool *pool;

static const sf_type *f32(int rank, const int64_t *dims)
{
    return sf_type_get(pool, SF_F32, rank, dims);
}

static sf_share split(int dim, int64_t period)
{
    return (sf_share){.kind = SF_SPLIT, .dim = dim, .period = period};
}

static sf_share partial(sf_monoid monoid)
{
    return (sf_share){.kind = SF_PARTIAL, .monoid = monoid};
}

/* Writes the way as "reduce_scatter data [S(0), S(1)]; all_to_all model [S(0), S(0)]". */
static void print_path(const sf_path *path, const sf_mesh *mesh, const sf_type *type, sf_buf *out)
{
    for (int i = 0; i < path->count; i++) {
        const sf_move *reshard = &path->reshards[i];
        sf_buf_printf(out, "%s%s", i ? "; " : "", sf_reshard_kind_name(reshard->kind));
        for (int a = 0; a < mesh->naxes; a++)
            if (reshard->axes >> a & 1)
                sf_buf_printf(out, " %s", mesh->axes[a].name);
        sf_buf_putc(out, ' ');
        sf_layout_print(&reshard->after, mesh, type->rank, type->dims, out);
    }
}

typedef struct example {
    const char *mesh;
    int rank;
    int64_t dims[RANK];
    const char *from, *to, *way;
    double bytes; /* sent by each rank */
} example;

static const example examples[] = {
    {"a=4", 2, {8, 8}, "[S(0)]", "[S(0)]", "", 0},
    {"a=4", 2, {8, 8}, "[S(0)]", "[S(1)]", "all_to_all a [S(1)]", 48},
    {"a=4", 2, {8, 8}, "[P(+)]", "[R]", "all_reduce a [R]", 384},
    {"a=4", 2, {8, 8}, "[P(max)]", "[R]", "all_reduce a [R]", 384},
    {"a=4", 2, {8, 8}, "[P(+)]", "[S(1)]", "reduce_scatter a [S(1)]", 192},
    {"a=4", 2, {8, 8}, "[R]", "[S(0)]", "slice a [S(0)]", 0},
    {"a=4", 2, {8, 8}, "[R]", "[P(+)]", "mask a [P(+)]", 0},
    {"a=4", 2, {8, 8}, "[S(0)]", "[R]", "all_gather a [R]", 192},
    {"a=4", 2, {8, 8}, "[S(0)]", "[P(+)]", "all_gather a [R]; mask a [P(+)]", 192},
    {"a=4", 2, {8, 8}, "[P(+)]", "[P(max)]", "all_reduce a [R]; mask a [P(max)]", 384},
    /* Overlapping digits cannot be exchanged; another dimension helps. */
    {"a=4", 2, {8, 8}, "[S(0)]", "[S(0,4)]", "all_to_all a [S(1)]; all_to_all a [S(0,4)]", 96},
    {"a=4", 1, {8}, "[S(0)]", "[S(0,4)]", "all_gather a [R]; slice a [S(0,4)]", 24},
    {"a=4", 1, {16}, "[S(0)]", "[S(0,4)]", "all_to_all a [S(0,4)]", 12},
    {"a=8", 3, {8, 8, 8}, "[P(+)]", "[R]", "all_reduce a [R]", 3584},
    {"a=8", 3, {8, 8, 8}, "[R]", "[S(0)]", "slice a [S(0)]", 0},
    /* Reduced over one axis only, in the groups that share a part. */
    {"a=4,b=2", 3, {8, 8, 8}, "[P(+), S(2)]", "[R, S(2)]", "all_reduce a [R, S(2)]", 1536},
    {"a=2,b=2",
     2,
     {8, 8},
     "[P(+), S(1)]",
     "[S(0), S(0)]",
     "reduce_scatter a [S(0), S(1)]; all_to_all b [S(0), S(0)]",
     96},
    {"a=2,b=2",
     2,
     {8, 8},
     "[P(+), S(0)]",
     "[S(0), R]",
     "reduce_scatter a [S(0,4), S(0,8)]; all_gather b [S(0,4), R]; all_to_all a [S(0), R]",
     192},
    {"a=2,b=2", 2, {8, 8}, "[P(+), P(+)]", "[R, R]", "all_reduce a b [R, R]", 384},
    {"a=2,b=2", 2, {8, 8}, "[P(+), P(+)]", "[S(0), S(1)]", "reduce_scatter a b [S(0), S(1)]", 192},
    {"a=2,b=2", 2, {8, 8}, "[S(0), S(0)]", "[R, R]", "all_gather a b [R, R]", 192},
    {"a=2,b=2", 2, {8, 8}, "[R, R]", "[S(0), S(1)]", "slice a [S(0), R]; slice b [S(0), S(1)]", 0},
    {"a=2,b=2", 2, {8, 8}, "[S(0), S(1)]", "[S(1), S(0)]", "permute a b [S(1), S(0)]", 64},
    {"a=2,b=2", 2, {8, 8}, "[S(0), R]", "[R, S(0)]", "permute a b [R, S(0)]", 128},
    {"a=2,b=2", 2, {8, 8}, "[S(0), R]", "[S(0), S(1)]", "slice b [S(0), S(1)]", 0},
    {"a=2,b=2",
     2,
     {8, 8},
     "[P(+), R]",
     "[R, S(0)]",
     "slice b [P(+), S(0)]; all_reduce a [R, S(0)]",
     128},
};

/* What sf_reshard_bytes adds for each collective. */
enum { LATENCY = 32768 };

/* The examples are small: only the bytes count, then the number of moves. */
static double bytes_alone(void *context, const sf_mesh *mesh, sf_reshard_kind kind, sf_axes axes,
                          double bytes)
{
    double cost = sf_reshard_bytes(context, mesh, kind, axes, bytes);
    return cost < LATENCY ? cost : cost - LATENCY + 1.0 / 1024;
}

static void check_example(const example *e)
{
    sf_arena arena = {0};
    sf_mesh mesh;
    assert_int_equal(sf_mesh_parse(sf_str_of(e->mesh), &arena, NULL, &mesh), SF_OK);
    const sf_type *type = f32(e->rank, e->dims);
    sf_layout from, to;
    assert_int_equal(
        sf_layout_parse(sf_str_of(e->from), &mesh, type->rank, type->dims, NULL, NULL, &from),
        SF_OK);
    assert_int_equal(
        sf_layout_parse(sf_str_of(e->to), &mesh, type->rank, type->dims, NULL, NULL, &to), SF_OK);
    sf_path path;
    assert_true(sf_reshard(&mesh, type, &from, &to, bytes_alone, NULL, &path));
    sf_buf buf = {0};
    sf_buf_puts(&buf, "");
    print_path(&path, &mesh, type, &buf);
    assert_string_equal(buf.text, e->way);
    assert_int_equal((int64_t)path.cost, (int64_t)e->bytes);
    sf_buf_free(&buf);
    sf_arena_free(&arena);
}

static void test_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        check_example(&examples[i]);
}

/* ⟨4 partials, halves of the last dimension⟩ to ⟨2 replicas, halves of the first and of the last⟩
 * on 2x2x2 has two equal optima; which one is taken must not depend on anything. */
static void test_equal_ways(void **state)
{
    (void)state;
    sf_mesh mesh = {3, {{"a", 2}, {"b", 2}, {"c", 2}}};
    const sf_type *type = f32(3, (int64_t[]){64, 64, 64});
    sf_layout from = {{partial(SF_MONOID_ADD), partial(SF_MONOID_ADD), split(2, 64)}};
    sf_layout to = {{{0}, split(0, 64), split(2, 64)}};
    sf_path path, again;
    assert_true(sf_reshard(&mesh, type, &from, &to, sf_reshard_bytes, NULL, &path));
    assert_int_equal(path.count, 2);
    assert_int_equal((int64_t)path.cost, 512 * 1024 + 2 * LATENCY);
    memset(&again, 0xff, sizeof again);
    assert_true(sf_reshard(&mesh, type, &from, &to, sf_reshard_bytes, NULL, &again));
    assert_int_equal(again.count, path.count);
    for (int i = 0; i < path.count; i++) {
        assert_int_equal(again.reshards[i].kind, path.reshards[i].kind);
        assert_int_equal(again.reshards[i].axes, path.reshards[i].axes);
        assert_true(sf_layout_equal(&again.reshards[i].after, &path.reshards[i].after));
    }
}

/* To reduce along an axis, a way may use a later one, but not an earlier one. */
static void test_in_front(void **state)
{
    (void)state;
    sf_mesh mesh = {2, {{"a", 4}, {"b", 8}}};
    const sf_type *type = f32(2, (int64_t[]){4096, 4096});
    sf_layout to = {0}, outer = {{partial(SF_MONOID_ADD)}};
    sf_layout inner = {{{0}, partial(SF_MONOID_ADD)}};
    sf_path path;
    assert_true(sf_reshard(&mesh, type, &inner, &to, sf_reshard_bytes, NULL, &path));
    for (int i = 0; i < path.count; i++)
        assert_int_equal(path.reshards[i].axes, 2);
    assert_true(sf_reshard(&mesh, type, &outer, &to, sf_reshard_bytes, NULL, &path));
    assert_int_equal(path.reshards[0].kind, SF_RESHARD_SLICE);
    assert_int_equal(path.reshards[0].axes, 2);
}

/* Of moves that all cost nothing, as few as possible are made; one whose cost is infinite is
 * not. */
static double nothing(void *context, const sf_mesh *mesh, sf_reshard_kind kind, sf_axes axes,
                      double bytes)
{
    (void)mesh, (void)axes, (void)bytes;
    return context && kind == *(const sf_reshard_kind *)context ? (double)HUGE_VALF : 0;
}

static void test_other_costs(void **state)
{
    (void)state;
    sf_mesh mesh = {2, {{"a", 2}, {"b", 4}}};
    const sf_type *type = f32(2, (int64_t[]){8, 8});
    sf_layout from = {{split(0, 8), split(0, 4)}}, to = {{split(1, 8), split(0, 8)}};
    sf_path path;
    assert_true(sf_reshard(&mesh, type, &from, &to, nothing, NULL, &path));
    assert_int_equal(path.count, 3);
    sf_reshard_kind forbidden = SF_RESHARD_EXCHANGE;
    assert_true(sf_reshard(&mesh, type, &from, &to, nothing, &forbidden, &path));
    for (int i = 0; i < path.count; i++)
        assert_int_not_equal(path.reshards[i].kind, SF_RESHARD_EXCHANGE);
    forbidden = SF_RESHARD_REDUCE;
    from = (sf_layout){{partial(SF_MONOID_ADD)}};
    to = (sf_layout){{{0}}};
    assert_true(sf_reshard(&mesh, type, &from, &to, nothing, &forbidden, &path));
    assert_int_equal(path.count, 2);
    assert_int_equal(path.reshards[0].kind, SF_RESHARD_SCATTER);
    from = (sf_layout){{[1] = partial(SF_MONOID_ADD)}};
    type = f32(2, (int64_t[]){6, 6});
    assert_false(sf_reshard(&mesh, type, &from, &to, nothing, &forbidden, &path));
}

/* All layouts of a shape on a mesh: every divisor is a period. */
typedef struct layout_list {
    sf_layout *all;
    size_t count, capacity;
} layout_list;

static layout_list list_layouts(sf_arena *arena, const sf_mesh *mesh, const sf_type *type,
                                sf_monoid monoid)
{
    sf_share shares[200];
    int nshares = 0;
    shares[nshares++] = (sf_share){0};
    shares[nshares++] = partial(monoid);
    for (int d = 0; d < type->rank; d++)
        for (int64_t period = type->dims[d]; period > 0; period--)
            if (type->dims[d] % period == 0)
                shares[nshares++] = split(d, period);
    layout_list list = {0};
    int choices[SF_MAX_AXES] = {0};
    for (int a = 0; a < mesh->naxes;) {
        sf_layout layout = {{{0}}};
        for (int i = 0; i < mesh->naxes; i++)
            layout.axes[i] = shares[choices[i]];
        if (sf_layout_fits(&layout, mesh, type->rank, type->dims, NULL))
            SF_PUSH(arena, list.all, list.count, list.capacity, layout);
        for (a = 0; a < mesh->naxes && ++choices[a] == nshares; a++)
            choices[a] = 0;
    }
    return list;
}

/* The shards of a tensor on all ranks, each with a slot for every index of the whole. */
typedef struct machine {
    const sf_mesh *mesh;
    const sf_type *type;
    sf_monoid monoid;
    int ranks;
    uint32_t holders[MAX_COUNT]; /* ranks that hold the index, as a set */
    int64_t values[MAX_RANKS][MAX_COUNT];
} machine;

static void find_holders(const sf_mesh *mesh, const sf_type *type, const sf_layout *layout,
                         uint32_t *holders)
{
    int64_t strides[RANK];
    sf_strides(type->rank, type->dims, strides);
    int ranks = sf_mesh_size(mesh);
    for (int64_t i = 0; i < type->count; i++)
        holders[i] = (1u << ranks) - 1;
    for (int a = 0; a < mesh->naxes; a++) {
        sf_share share = layout->axes[a];
        if (share.kind != SF_SPLIT)
            continue;
        int64_t size = type->dims[share.dim], inner = strides[share.dim];
        uint32_t ranks_at[MAX_RANKS] = {0}; /* by coordinate */
        for (int r = 0; r < ranks; r++)
            ranks_at[sf_mesh_coordinate(mesh, r, a)] |= 1u << r;
        for (int64_t outer = 0; outer < type->count; outer += size * inner) {
            for (int64_t g = 0; g < size; g++) {
                int64_t at = g % share.period / (share.period / mesh->axes[a].size);
                for (int64_t k = 0; k < inner; k++)
                    holders[outer + g * inner + k] &= ranks_at[at];
            }
        }
    }
}

static int64_t combine(sf_monoid monoid, int64_t a, int64_t b)
{
    if (monoid == SF_MONOID_MAX)
        return a > b ? a : b;
    return a + b;
}

static int64_t identity(sf_monoid monoid)
{
    return monoid == SF_MONOID_MAX ? INT64_MIN : 0;
}

static int64_t value_at(int64_t index)
{
    return (int64_t)(sf_hash_mix(1, (uint64_t)index) % 100000);
}

/* Contribution `place` of `size` to the value: any, as long as they combine to it. */
static int64_t contribution(sf_monoid monoid, int64_t index, int place, int size)
{
    int64_t value = value_at(index);
    if (monoid == SF_MONOID_MAX)
        return value - (place == (int)(index % size) ? 0 : index % 7);
    if (place < size - 1)
        return (int64_t)(sf_hash_mix((uint64_t)place + 2, (uint64_t)index) % 1000);
    for (int i = 0; i < size - 1; i++)
        value -= contribution(monoid, index, i, size);
    return value;
}

static sf_axes axes_of(const sf_layout *layout, sf_share_kind kind, int naxes)
{
    sf_axes axes = 0;
    for (int a = 0; a < naxes; a++)
        if (layout->axes[a].kind == kind)
            axes |= 1u << a;
    return axes;
}

static void fill(machine *m, const sf_layout *layout)
{
    sf_axes axes = axes_of(layout, SF_PARTIAL, m->mesh->naxes);
    int size = sf_group_size(m->mesh, axes);
    find_holders(m->mesh, m->type, layout, m->holders);
    for (int r = 0; r < m->ranks; r++) {
        int place = sf_group_place(m->mesh, axes, r);
        for (int64_t i = 0; i < m->type->count; i++)
            m->values[r][i] = m->holders[i] >> r & 1 ? contribution(m->monoid, i, place, size) : -1;
    }
}

/* Replicas are equal, partials combine to the value, everything is there. */
static bool is_right(const machine *m, const sf_layout *layout)
{
    sf_axes partials = axes_of(layout, SF_PARTIAL, m->mesh->naxes);
    sf_axes replicas = axes_of(layout, SF_REPLICATED, m->mesh->naxes);
    int size = sf_group_size(m->mesh, partials);
    for (int r = 0; r < m->ranks; r++) {
        const int64_t *first = m->values[sf_group_member(m->mesh, replicas, r, 0)];
        const int64_t *parts[MAX_RANKS];
        for (int place = 0; place < size; place++)
            parts[place] = m->values[sf_group_member(m->mesh, partials, r, place)];
        for (int64_t i = 0; i < m->type->count; i++) {
            if (!(m->holders[i] >> r & 1))
                continue;
            int64_t value = identity(m->monoid);
            for (int place = 0; place < size; place++)
                value = combine(m->monoid, value, parts[place][i]);
            if (value != value_at(i) || m->values[r][i] != first[i])
                return false;
        }
    }
    return true;
}

static int swapped_rank(const sf_mesh *mesh, sf_axes axes, int rank)
{
    int pair[2], n = 0;
    for (int a = 0; a < mesh->naxes; a++)
        if (axes >> a & 1)
            pair[n++] = a;
    int c = sf_mesh_coordinate(mesh, rank, pair[0]), d = sf_mesh_coordinate(mesh, rank, pair[1]);
    return sf_group_member(mesh, axes, rank, d * mesh->axes[pair[1]].size + c);
}

/* The group of every rank, once: computing it at every index would take most of the time. */
typedef struct groups {
    int size;
    int members[MAX_RANKS][MAX_RANKS]; /* of the group of a rank, by place */
    int places[MAX_RANKS];
} groups;

static groups find_groups(const sf_mesh *mesh, sf_axes axes)
{
    groups g = {.size = sf_group_size(mesh, axes)};
    for (int r = 0; r < sf_mesh_size(mesh); r++) {
        g.places[r] = sf_group_place(mesh, axes, r);
        for (int place = 0; place < g.size; place++)
            g.members[r][place] = sf_group_member(mesh, axes, r, place);
    }
    return g;
}

/* The value that the rank has at an index after a collective; false if it cannot get it so. */
static bool receive(const machine *m, bool joins, int size, const int *members, int64_t index,
                    int64_t *out)
{
    int found = 0;
    *out = identity(m->monoid);
    for (int place = 0; place < size; place++) {
        int64_t value = m->values[members[place]][index];
        if (!(m->holders[index] >> members[place] & 1))
            continue;
        *out = joins ? combine(m->monoid, *out, value) : value;
        found++;
    }
    return found == (joins ? size : 1);
}

/* In an exchange every member has equally much for every other. */
static bool is_even(const machine *m, const groups *g, const uint32_t *holders)
{
    int64_t sent[MAX_RANKS][MAX_RANKS] = {{0}}, all = 0;
    for (int64_t i = 0; i < m->type->count; i++) {
        all += m->holders[i] & 1;
        for (int r = 0; r < m->ranks; r++)
            for (int place = 0; m->holders[i] >> r & 1 && place < g->size; place++)
                sent[r][place] += holders[i] >> g->members[r][place] & 1;
    }
    for (int r = 0; r < m->ranks; r++)
        for (int place = 0; place < g->size; place++)
            if (sent[r][place] * g->size != all)
                return false;
    return true;
}

static bool execute(machine *m, const sf_move *reshard)
{
    static int64_t values[MAX_RANKS][MAX_COUNT];
    uint32_t holders[MAX_COUNT];
    groups g = find_groups(m->mesh, reshard->axes);
    find_holders(m->mesh, m->type, &reshard->after, holders);
    if (reshard->kind == SF_RESHARD_EXCHANGE && !is_even(m, &g, holders))
        return false;
    bool joins = reshard->kind == SF_RESHARD_REDUCE || reshard->kind == SF_RESHARD_SCATTER;
    bool alone = reshard->kind == SF_RESHARD_SLICE || reshard->kind == SF_RESHARD_MASK;
    for (int r = 0; r < m->ranks; r++) {
        int only = alone                              ? r
                   : reshard->kind == SF_RESHARD_SWAP ? swapped_rank(m->mesh, reshard->axes, r)
                                                      : -1;
        const int *members = only >= 0 ? &only : g.members[r];
        bool cleared = reshard->kind == SF_RESHARD_MASK && g.places[r] != 0;
        for (int64_t i = 0; i < m->type->count; i++) {
            if (!(holders[i] >> r & 1))
                continue;
            if (!receive(m, joins, only >= 0 ? 1 : g.size, members, i, &values[r][i]))
                return false;
            if (cleared)
                values[r][i] = identity(m->monoid);
        }
    }
    memcpy(m->values, values, sizeof values);
    memcpy(m->holders, holders, sizeof holders);
    return true;
}

/* The result of each reshard on the shares of its axes; the others stay. */
static bool is_reshard(const sf_move *reshard, const sf_layout *before, int naxes)
{
    static const sf_share_kind kinds[SF_RESHARD_KIND_COUNT][2] = {
        [SF_RESHARD_SLICE] = {SF_REPLICATED, SF_SPLIT},
        [SF_RESHARD_MASK] = {SF_REPLICATED, SF_PARTIAL},
        [SF_RESHARD_GATHER] = {SF_SPLIT, SF_REPLICATED},
        [SF_RESHARD_REDUCE] = {SF_PARTIAL, SF_REPLICATED},
        [SF_RESHARD_SCATTER] = {SF_PARTIAL, SF_SPLIT},
        [SF_RESHARD_EXCHANGE] = {SF_SPLIT, SF_SPLIT},
    };
    for (int a = 0; a < naxes; a++) {
        sf_share old = before->axes[a], new = reshard->after.axes[a];
        if (!(reshard->axes >> a & 1) && !sf_share_equal(old, new))
            return false;
        if (reshard->axes >> a & 1 && reshard->kind != SF_RESHARD_SWAP &&
            (old.kind != kinds[reshard->kind][0] || new.kind != kinds[reshard->kind][1]))
            return false;
    }
    return reshard->axes != 0;
}

/* A shard as an array of the digits of a reshard: the recipe of sf_layout_joint. The whole tensor
 * has the digits of all dimensions in a row; digits that axes split are 1 long in a shard. */
typedef struct recipe {
    int count;
    sf_joint_digit digits[RANK * SF_MAX_JOINT];
    int64_t strides[RANK * SF_MAX_JOINT]; /* in the whole */
} recipe;

static bool make_recipe(const machine *m, const sf_layout *before, const sf_layout *after,
                        recipe *out)
{
    int64_t strides[RANK];
    sf_strides(m->type->rank, m->type->dims, strides);
    out->count = 0;
    for (int d = 0; d < m->type->rank; d++) {
        int n =
            sf_layout_joint(before, after, m->mesh, d, m->type->dims[d], out->digits + out->count);
        if (n < 0)
            return false;
        for (int i = out->count; i < out->count + n; i++)
            out->strides[i] = out->digits[i].unit * strides[d];
        out->count += n;
    }
    return true;
}

/* The index in the whole of element `local` of the array of the digits that no axis splits on one
 * side of a shard. */
static int64_t place_of(const machine *m, const recipe *rec, bool after, int rank, int64_t local)
{
    int64_t index = 0;
    for (int i = rec->count - 1; i >= 0; i--) {
        const sf_joint_digit *digit = &rec->digits[i];
        int axis = after ? digit->after : digit->before;
        int64_t at = axis >= 0 ? sf_mesh_coordinate(m->mesh, rank, axis) : local % digit->size;
        local /= axis >= 0 ? 1 : digit->size;
        index += at * rec->strides[i];
    }
    return index;
}

/* The arrays of digits have exactly the elements of the layouts, in ascending order. */
static bool check_recipe(const machine *m, const sf_layout *layout, const recipe *rec, bool after)
{
    uint32_t holders[MAX_COUNT];
    find_holders(m->mesh, m->type, layout, holders);
    int64_t length = m->type->count;
    for (int i = 0; i < rec->count; i++)
        if ((after ? rec->digits[i].after : rec->digits[i].before) >= 0)
            length /= rec->digits[i].size;
    for (int r = 0; r < m->ranks; r++) {
        int64_t local = 0;
        for (int64_t i = 0; i < m->type->count; i++)
            if (holders[i] >> r & 1)
                if (local >= length || place_of(m, rec, after, r, local++) != i)
                    return false;
        if (local != length)
            return false;
    }
    return true;
}

static const char *run_pair(machine *m, const sf_layout *from, const sf_layout *to, bool recipes)
{
    sf_path path;
    if (!sf_reshard(m->mesh, m->type, from, to, sf_reshard_bytes, NULL, &path))
        return "no way";
    fill(m, from);
    sf_layout now = *from;
    for (int i = 0; i < path.count; i++) {
        const sf_move *reshard = &path.reshards[i];
        recipe rec;
        if (!sf_layout_fits(&reshard->after, m->mesh, m->type->rank, m->type->dims, NULL))
            return "a layout does not fit";
        if (!is_reshard(reshard, &now, m->mesh->naxes))
            return "not a move";
        if (!execute(m, reshard))
            return "a move does not do";
        if (!make_recipe(m, &now, &reshard->after, &rec))
            return "no joint digits";
        if (recipes &&
            (!check_recipe(m, &now, &rec, false) || !check_recipe(m, &reshard->after, &rec, true)))
            return "wrong joint digits";
        now = reshard->after;
    }
    if (!sf_layout_equal(&now, to))
        return "the end is not the target";
    return is_right(m, to) ? NULL : "wrong values";
}

static void explain(const machine *m, const sf_layout *from, const sf_layout *to, const char *what)
{
    sf_buf buf = {0};
    sf_layout_print(from, m->mesh, m->type->rank, m->type->dims, &buf);
    sf_buf_puts(&buf, " to ");
    sf_layout_print(to, m->mesh, m->type->rank, m->type->dims, &buf);
    sf_path path;
    if (sf_reshard(m->mesh, m->type, from, to, sf_reshard_bytes, NULL, &path)) {
        sf_buf_puts(&buf, ": ");
        print_path(&path, m->mesh, m->type, &buf);
    }
    fail_msg("%s: %s", what, buf.text);
}

static const sf_mesh meshes[] = {
    {1, {{"a", 2}}},           {1, {{"a", 4}}},           {1, {{"a", 8}}},
    {2, {{"a", 2}, {"b", 2}}}, {2, {{"a", 2}, {"b", 4}}}, {3, {{"a", 2}, {"b", 2}, {"c", 2}}},
};

static size_t gcd(size_t a, size_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* Runs every pair of layouts, or every so manieth where there are too many. A stride that is prime
 * to the number of layouts meets all of them on both sides. */
static void run_pairs(const sf_mesh *mesh, const sf_type *type, sf_monoid monoid)
{
    static machine m;
    m = (machine){.mesh = mesh, .type = type, .monoid = monoid, .ranks = sf_mesh_size(mesh)};
    sf_arena arena = {0};
    layout_list list = list_layouts(&arena, mesh, type, monoid);
    bool all = getenv("SHEAF_ALL_PAIRS") != NULL;
    size_t pairs = list.count * list.count, stride = 1, ran = 0;
    if (pairs > 20000 && !all)
        stride = pairs / (test_short() ? 2000 : 8000);
    while (stride > 1 && gcd(stride, list.count) > 1)
        stride++;
    for (size_t i = 0; i < pairs; i += stride, ran++) {
        const sf_layout *from = &list.all[i / list.count], *to = &list.all[i % list.count];
        const char *what = run_pair(&m, from, to, ran % 8 == 0);
        if (what)
            explain(&m, from, to, what);
    }
    sf_buf buf = {0};
    sf_mesh_print(mesh, &buf);
    print_message("%s: %zu layouts, %zu of %zu pairs\n", buf.text, list.count, ran, pairs);
    sf_buf_free(&buf);
    sf_arena_free(&arena);
}

static void test_pairs(void **state)
{
    (void)state;
    const sf_type *type = f32(RANK, (int64_t[]){8, 16, 8});
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++)
        run_pairs(&meshes[i], type, SF_MONOID_ADD);
}

/* Sizes that are not powers of two, another monoid, and axes of one rank. */
static void test_odd_pairs(void **state)
{
    (void)state;
    static const sf_mesh odd[] = {
        {2, {{"a", 3}, {"b", 2}}},
        {3, {{"a", 2}, {"b", 1}, {"c", 2}}},
    };
    const sf_type *type = f32(RANK, (int64_t[]){12, 6, 5});
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        run_pairs(&odd[i], type, SF_MONOID_MAX);
}

/* Whether the digits of two splits are not part of one radix. */
static bool overlap(sf_share a, sf_share b, int parts)
{
    return a.dim == b.dim && a.period / parts % b.period != 0 && b.period / parts % a.period != 0;
}

/* The cost of the one move that leads from a layout to another; an infinity if none does. */
static double cost_of_move(const sf_mesh *mesh, const sf_type *type, const sf_layout *before,
                           const sf_layout *after)
{
    sf_move reshard = {.after = *after};
    int changed = 0, pair[SF_MAX_AXES];
    double bytes[2] = {(double)sf_type_bytes(type), (double)sf_type_bytes(type)};
    for (int a = 0; a < mesh->naxes; a++) {
        bytes[0] /= before->axes[a].kind == SF_SPLIT ? mesh->axes[a].size : 1;
        bytes[1] /= after->axes[a].kind == SF_SPLIT ? mesh->axes[a].size : 1;
        if (!sf_share_equal(before->axes[a], after->axes[a])) {
            pair[changed++] = a;
            reshard.axes |= 1u << a;
        }
    }
    double larger = bytes[0] > bytes[1] ? bytes[0] : bytes[1], best = (double)HUGE_VALF;
    for (int kind = 0; kind < SF_RESHARD_KIND_COUNT && changed; kind++) {
        reshard.kind = (sf_reshard_kind)kind;
        bool joins =
            kind == SF_RESHARD_GATHER || kind == SF_RESHARD_REDUCE || kind == SF_RESHARD_SCATTER;
        bool can = joins || changed == 1;
        if (kind == SF_RESHARD_SWAP)
            can = changed == 2 && mesh->axes[pair[0]].size == mesh->axes[pair[1]].size &&
                  sf_share_equal(before->axes[pair[0]], after->axes[pair[1]]) &&
                  sf_share_equal(before->axes[pair[1]], after->axes[pair[0]]);
        if (!can || !is_reshard(&reshard, before, mesh->naxes))
            continue;
        if (kind == SF_RESHARD_EXCHANGE &&
            overlap(before->axes[pair[0]], after->axes[pair[0]], mesh->axes[pair[0]].size))
            continue;
        double cost = sf_reshard_bytes(NULL, mesh, reshard.kind, reshard.axes, larger);
        best = cost < best ? cost : best;
    }
    return best;
}

/* The search against the whole graph of layouts, every divisor a period: from every so manieth
 * layout to all, by plain Dijkstra over a matrix. At most `excused` ways may cost more. */
static void check_optimal(const sf_mesh *mesh, const sf_type *type, size_t stride, size_t excused)
{
    sf_arena arena = {0};
    layout_list list = list_layouts(&arena, mesh, type, SF_MONOID_ADD);
    size_t n = list.count, compared = 0, worse = 0;
    double *edges = SF_ARRAY(&arena, n * n, double), *distance = SF_ARRAY(&arena, n, double);
    bool *done = SF_ARRAY(&arena, n, bool);
    double worst = 1;
    for (size_t i = 0; i < n * n; i++)
        edges[i] = cost_of_move(mesh, type, &list.all[i / n], &list.all[i % n]);
    for (size_t from = 0; from < n; from += stride) {
        for (size_t i = 0; i < n; i++) {
            distance[i] = i == from ? 0 : (double)HUGE_VALF;
            done[i] = false;
        }
        for (size_t round = 0; round < n; round++) {
            size_t next = n;
            for (size_t i = 0; i < n; i++)
                if (!done[i] && (next == n || distance[i] < distance[next]))
                    next = i;
            done[next] = true;
            for (size_t i = 0; i < n; i++)
                if (distance[next] + edges[next * n + i] < distance[i])
                    distance[i] = distance[next] + edges[next * n + i];
        }
        for (size_t to = 0; to < n; to++, compared++) {
            sf_path path;
            assert_true(sf_reshard(mesh, type, &list.all[from], &list.all[to], sf_reshard_bytes,
                                   NULL, &path));
            assert_true(path.cost > distance[to] - 1e-6);
            if (path.cost > distance[to] + 1e-6) {
                worse++;
                double ratio = path.cost / distance[to];
                worst = ratio > worst ? ratio : worst;
            }
        }
    }
    print_message("%d axes, rank %d: %zu layouts, %zu ways, %zu not the best, worst x%.3f\n",
                  mesh->naxes, type->rank, n, compared, worse, worst);
    assert_true(worse <= excused);
    sf_arena_free(&arena);
}

static void test_optimal(void **state)
{
    (void)state;
    const sf_type *cube = f32(3, (int64_t[]){8, 8, 8}), *square = f32(2, (int64_t[]){8, 8});
    check_optimal(&meshes[0], cube, 1, 0);
    check_optimal(&meshes[1], cube, 1, 0);
    check_optimal(&meshes[2], cube, 1, 0);
    check_optimal(&meshes[3], cube, 1, 0);
    check_optimal(&meshes[4], cube, 1, 0);
    check_optimal(&meshes[5], square, 9, 0);
    /* Four ways lead through a split that is neither of the two layouts' nor contiguous. */
    check_optimal(&(sf_mesh){2, {{"a", 3}, {"b", 2}}}, f32(2, (int64_t[]){12, 6}), 1, 4);
    if (getenv("SHEAF_ALL_PAIRS"))
        check_optimal(&meshes[5], cube, 60, 0);
}

static int open_pool(void **state)
{
    (void)state;
    pool = sf_pool_new();
    return 0;
}

static int close_pool(void **state)
{
    (void)state;
    sf_pool_release(pool);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),       cmocka_unit_test(test_equal_ways),
        cmocka_unit_test(test_other_costs), cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_odd_pairs),   cmocka_unit_test(test_optimal),
        cmocka_unit_test(test_in_front),
    };
    return cmocka_run_group_tests(tests, open_pool, close_pool);
}
