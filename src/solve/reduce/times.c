/* The relevant points in time.
 *
 * The usage of a node that is the same for all strategies is subtracted from the limits, so the
 * limits are for choices alone. A point at which even the largest choices fit is irrelevant, and so
 * is one at which no node uses more than at its neighbour, under a limit no smaller: when the
 * neighbour's limit holds, so does its own. Uses without a relevant point are dropped, and with
 * them the difficulty of their nodes. */
#include "solve/reduce/reductions.h"

#include <string.h>

/* Adds an amount over the points of a use, as differences. */
static void add_over(int64_t *change, const sf_net_use *use, int64_t amount)
{
    change[use->begin] += amount;
    change[use->end] -= amount;
}

static int64_t least_of_node_usage(const int64_t *values, uint32_t count)
{
    int64_t least = values[0];
    for (uint32_t i = 1; i < count; i++)
        least = values[i] < least ? values[i] : least;
    return least;
}

static int64_t most_of_node_usage(const int64_t *values, uint32_t count)
{
    int64_t most = values[0];
    for (uint32_t i = 1; i < count; i++)
        most = values[i] > most ? values[i] : most;
    return most;
}

/* Moves the least usage of every use into the limits. */
static void take_least_points(sf_network *net)
{
    sf_mark mark = sf_arena_mark(net->arena);
    int64_t *change = SF_ARRAY(net->arena, net->ntimes + 1, int64_t), sum = 0;
    for (uint32_t v = 0; v < net->nnodes; v++) {
        sf_net_node *node = &net->nodes[v];
        for (size_t k = 0; node->alive && k < node->nuses; k++) {
            sf_net_use *use = &node->uses[k];
            int64_t least = least_of_node_usage(use->usage, node->count);
            add_over(change, use, least);
            for (uint32_t i = 0; i < node->count; i++)
                use->usage[i] -= least;
        }
    }
    for (uint32_t t = 0; t < net->ntimes; t++) {
        sum += change[t];
        net->limit[t] -= sum;
        if (net->limit[t] < 0 && -net->limit[t] > net->over) {
            net->infeasible = true;
            net->over = -net->limit[t];
            net->over_time = net->time[t];
        }
    }
    sf_arena_reset(net->arena, mark);
}

/* Uses of nothing, or over no point, are none. */
static void drop_uses(sf_network *net)
{
    for (uint32_t v = 0; v < net->nnodes; v++) {
        sf_net_node *node = &net->nodes[v];
        size_t to = 0;
        for (size_t k = 0; node->alive && k < node->nuses; k++)
            if (node->uses[k].begin < node->uses[k].end &&
                most_of_node_usage(node->uses[k].usage, node->count) > 0)
                node->uses[to++] = node->uses[k];
        if (node->alive && to != node->nuses) {
            node->nuses = to;
            sf_net_touch(net, v);
        }
    }
}

/* Strategies that use more than is left at some point when all others use their least. */
static bool drop_strategies(sf_network *net)
{
    bool any = false;
    for (uint32_t v = 0; v < net->nnodes && !net->infeasible; v++) {
        sf_net_node *node = &net->nodes[v];
        if (!node->alive || node->nuses == 0)
            continue;
        sf_mark mark = sf_arena_mark(net->arena);
        bool *keep = SF_ARRAY(net->arena, node->count, bool), all = true;
        for (uint32_t i = 0; i < node->count; i++)
            keep[i] = true;
        for (size_t k = 0; k < node->nuses; k++) {
            const sf_net_use *use = &node->uses[k];
            int64_t room = least_of_node_usage(net->limit + use->begin, use->end - use->begin);
            for (uint32_t i = 0; i < node->count; i++)
                if (use->usage[i] > room)
                    keep[i] = false, all = false;
        }
        if (all) {
            sf_arena_reset(net->arena, mark);
            continue;
        }
        sf_net_keep(net, v, keep);
        any = true;
    }
    return any;
}

/* rise[t]: nodes that use more at t than at t - 1 with some strategy; fall[t]: less. */
static void count_steps(const sf_network *net, uint32_t *rise, uint32_t *fall)
{
    for (uint32_t v = 0; v < net->nnodes; v++) {
        const sf_net_node *node = &net->nodes[v];
        for (size_t k = 0; node->alive && k < node->nuses; k++) {
            const sf_net_use *use = &node->uses[k];
            const sf_net_use *before = k > 0 && use[-1].end == use->begin ? &use[-1] : NULL;
            bool followed = k + 1 < node->nuses && use[1].begin == use->end;
            bool rises = !before, falls = false;
            for (uint32_t i = 0; before && i < node->count; i++) {
                rises = rises || use->usage[i] > before->usage[i];
                falls = falls || use->usage[i] < before->usage[i];
            }
            rise[use->begin] += rises;
            fall[use->begin] += falls;
            fall[use->end] += !followed;
        }
    }
}

/* slack[t]: the limit less the most that can be used. */
static void find_point_slack(const sf_network *net, int64_t *slack)
{
    for (uint32_t v = 0; v < net->nnodes; v++) {
        const sf_net_node *node = &net->nodes[v];
        for (size_t k = 0; node->alive && k < node->nuses; k++)
            add_over(slack, &node->uses[k], -most_of_node_usage(node->uses[k].usage, node->count));
    }
    for (uint32_t t = 1; t < net->ntimes; t++)
        slack[t] += slack[t - 1];
    for (uint32_t t = 0; t < net->ntimes; t++)
        slack[t] += net->limit[t];
}

/* Which points to keep, into `kept`, in order; their number. The stack holds the points kept so far;
 * rise and fall become those between a kept point and the one before it. */
static uint32_t choose_points(const sf_network *net, const int64_t *slack, uint32_t *rise,
                              uint32_t *fall, uint32_t *kept)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < net->ntimes; t++) {
        bool keep = slack[t] < 0;
        while (keep && n > 0 && fall[t] == 0 && net->limit[kept[n - 1]] >= net->limit[t]) {
            rise[t] += rise[kept[n - 1]];
            fall[t] += fall[kept[n - 1]];
            n--;
        }
        if (keep && n > 0 && rise[t] == 0 && net->limit[t] >= net->limit[kept[n - 1]])
            keep = false;
        if (keep) {
            kept[n++] = t;
        } else {
            rise[t + 1] += rise[t];
            fall[t + 1] += fall[t];
        }
    }
    return n;
}

static void keep_points(sf_network *net, const uint32_t *kept, uint32_t count)
{
    sf_mark mark = sf_arena_mark(net->arena);
    uint32_t *place = SF_ARRAY(net->arena, net->ntimes + 1, uint32_t);
    for (uint32_t t = 0, n = 0; t <= net->ntimes; t++) {
        place[t] = n;
        if (n < count && kept[n] == t)
            n++;
    }
    for (uint32_t v = 0; v < net->nnodes; v++)
        for (size_t k = 0; net->nodes[v].alive && k < net->nodes[v].nuses; k++) {
            net->nodes[v].uses[k].begin = place[net->nodes[v].uses[k].begin];
            net->nodes[v].uses[k].end = place[net->nodes[v].uses[k].end];
        }
    sf_arena_reset(net->arena, mark);
    for (uint32_t n = 0; n < count; n++) {
        net->limit[n] = net->limit[kept[n]];
        net->time[n] = net->time[kept[n]];
    }
    net->ntimes = count;
}

static bool drop_points(sf_network *net)
{
    sf_mark mark = sf_arena_mark(net->arena);
    size_t size = (size_t)net->ntimes + 2;
    uint32_t *rise = SF_ARRAY(net->arena, size, uint32_t);
    uint32_t *fall = SF_ARRAY(net->arena, size, uint32_t);
    uint32_t *kept = SF_ARRAY(net->arena, size, uint32_t);
    int64_t *slack = SF_ARRAY(net->arena, size, int64_t);
    count_steps(net, rise, fall);
    find_point_slack(net, slack);
    uint32_t count = choose_points(net, slack, rise, fall, kept);
    bool any = count < net->ntimes;
    if (any)
        keep_points(net, kept, count);
    sf_arena_reset(net->arena, mark);
    return any;
}

bool sf_rule_times(sf_network *net)
{
    bool changed = false;
    for (uint32_t v = 0; v < net->nnodes; v++)
        if (net->nodes[v].alive)
            sf_net_settle(net, v);
    do {
        take_least_points(net);
        if (net->infeasible)
            return true;
        drop_uses(net);
    } while (drop_points(net) && (changed = true));
    return drop_strategies(net) || changed || net->queue_count > 0;
}
