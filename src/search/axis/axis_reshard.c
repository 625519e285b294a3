/* What it costs that the two ends of an edge have different layouts. */
#include <math.h>

#include "base/hash.h"
#include "search/axis/axis_builder.h"
#include "search/price/move_cost.h"
#include "shard/reshard.h"

/* Answers of sf_reshard, of which there are far fewer than questions. */
typedef struct axis_moved {
    const sf_type *type;
    sf_layout from, to;
    bool together;
    axis_way way;
    struct axis_moved *next;
} moved;

bool axis_fit(const axis_builder *b, const sf_type *type, const sf_layout *others, sf_share share,
              sf_layout *out)
{
    const sf_mesh *mesh = b->mesh;
    *out = *others;
    for (bool recomputed = share.kind == SF_SPLIT; recomputed;) {
        recomputed = false;
        for (int a = 0; a < mesh->naxes; a++) {
            const sf_share *other = &others->axes[a];
            if (other->kind == SF_SPLIT && other->dim == share.dim &&
                other->period == share.period && mesh->axes[a].size > 1) {
                share.period /= mesh->axes[a].size;
                recomputed = true;
            }
        }
    }
    out->axes[b->options->axis] = share;
    return sf_layout_fits(out, mesh, type->rank, type->dims, NULL);
}

axis_way axis_move(axis_builder *b, const sf_type *type, const sf_layout *from, const sf_layout *to,
                   bool together)
{
    if (sf_layout_equal(from, to))
        return (axis_way){0};
    uint64_t hash = sf_hash_mix(sf_layout_hash(from), sf_layout_hash(to));
    hash = sf_hash_mix(hash, (uint64_t)(uintptr_t)type ^ together);
    moved **slot = &b->cache->moved[hash % AXIS_SLOTS];
    for (moved *m = *slot; m; m = m->next)
        if (m->type == type && m->together == together && sf_layout_equal(&m->from, from) &&
            sf_layout_equal(&m->to, to))
            return m->way;
    sf_reshard_cost *cost = together ? sf_move_seconds_together : sf_move_seconds;
    sf_path path;
    axis_way way = {.seconds = HUGE_VAL};
    if (sf_reshard(b->mesh, type, from, to, cost, (void *)(uintptr_t)b->costs, &path)) {
        way.seconds = path.cost;
        for (int i = 0; i < path.count; i++)
            way.sends = way.sends || (path.reshards[i].kind != SF_RESHARD_SLICE &&
                                      path.reshards[i].kind != SF_RESHARD_MASK);
    }
    moved *fresh = SF_NEW(&b->cache->arena, moved);
    *fresh = (moved){type, *from, *to, together, way, *slot};
    *slot = fresh;
    return way;
}

/* Whether sums along one axis would become sums along another: of no use, and no plan that is checked may
 * have it. */
static bool hands_over_sums(const sf_layout *from, const sf_layout *to)
{
    bool loses = false, gains = false;
    for (int a = 0; a < SF_MAX_AXES; a++) {
        bool before = from->axes[a].kind == SF_PARTIAL, after = to->axes[a].kind == SF_PARTIAL;
        loses = loses || (before && !after);
        gains = gains || (after && !before);
    }
    return loses && gains;
}

/* Choices of both ends must fit, and keep to what the flags say. What is not stored is not moved, unless
 * another axis asks for it anyway. */
static double seconds_of(axis_builder *b, const axis_matrix *m, uint32_t i, uint32_t k)
{
    const axis_port *from = &m->from.port, *to = &m->to.port;
    sf_share before = from->shares[(size_t)i * from->stride];
    sf_share after = to->shares[(size_t)k * to->stride];
    bool grows = before.kind == SF_SPLIT && after.kind != SF_SPLIT;
    if (grows && (m->flags & AXIS_KEEPS))
        return HUGE_VAL;
    sf_layout x, y;
    if (!axis_fit(b, m->type, &m->from.others, before, &x) ||
        !axis_fit(b, m->type, &m->to.others, after, &y))
        return HUGE_VAL;
    if (hands_over_sums(&x, &y))
        return HUGE_VAL;
    axis_way way = axis_move(b, m->type, &x, &y, m->flags & AXIS_TOGETHER);
    if (to->moved && after.kind != SF_SPLIT && to->moved[k] != way.sends)
        return HUGE_VAL;
    if (way.sends && !(m->flags & AXIS_MOVES) && sf_layout_equal(&m->from.others, &m->to.others))
        return HUGE_VAL;
    bool hides = (m->flags & AXIS_SLACK) && sf_layout_is_partial(&x);
    return hides ? way.seconds * (m->flags >> AXIS_EXPOSED_SHIFT) / SF_EXPOSED_ALL : way.seconds;
}

static bool is_same_end(const axis_end *a, const axis_end *b)
{
    return a->port.shares == b->port.shares && sf_layout_equal(&a->others, &b->others);
}

const axis_matrix *axis_matrix_of(axis_builder *b, const axis_end *from, const axis_end *to,
                                  const sf_type *type, int flags)
{
    uint64_t hash = sf_hash_mix(sf_layout_hash(&from->others), sf_layout_hash(&to->others));
    hash = sf_hash_mix(hash, (uint64_t)(uintptr_t)from->port.shares);
    hash = sf_hash_mix(hash, (uint64_t)(uintptr_t)to->port.shares);
    hash = sf_hash_mix(hash, (uint64_t)(uintptr_t)type ^ (uint64_t)flags);
    axis_matrix **slot = &b->matrices[hash % AXIS_SLOTS];
    for (axis_matrix *m = *slot; m; m = m->next)
        if (m->type == type && m->flags == flags && is_same_end(&m->from, from) &&
            is_same_end(&m->to, to))
            return m;
    axis_matrix *m = SF_NEW(&b->arena, axis_matrix);
    *m = (axis_matrix){*from, *to, type, flags, NULL, *slot};
    m->seconds = SF_ARRAY(&b->arena, (size_t)from->port.count * to->port.count, double);
    for (uint32_t i = 0; i < from->port.count; i++)
        for (uint32_t k = 0; k < to->port.count; k++)
            m->seconds[i * to->port.count + k] = seconds_of(b, m, i, k);
    *slot = m;
    return m;
}
