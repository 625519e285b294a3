/* Traffic between ranks in a step.
 *
 * Collectives are counted as rings: members pass their data on to the next of their group.
 * Libraries move large data so; small data may use a tree, with the same bytes in all. An
 * all_to_all sends to each member its part. */
#include "report/page/page.h"

enum { MOST_ROWS = 128 };

typedef struct matrix {
    const sf_page *page;
    sf_page_traffic *t;
    double *sent; /* by rank and level */
} matrix;

static int level_between(const sf_cluster *cluster, int a, int b)
{
    sf_device_place from = sf_cluster_place(cluster, a), to = sf_cluster_place(cluster, b);
    return from.node == to.node ? 0 : from.rack == to.rack ? 1 : 2;
}

static void add_flow(matrix *m, int from, int to, double bytes)
{
    sf_page_traffic *t = m->t;
    if (from == to || !(bytes > 0))
        return;
    int at = from / t->per_row * t->nrows + to / t->per_row;
    int level = level_between(m->page->sim.cluster, from, to);
    t->bytes[at] += bytes;
    t->levels[at] = (int8_t)(level > t->levels[at] ? level : t->levels[at]);
    m->sent[from * SF_LEVELS + level] += bytes;
}

/* Equal messages of ranks that run one program. */
typedef struct flow {
    sf_collective kind;
    sf_axes axes;
    int to; /* of messages: the place in the group; else -1 */
    double bytes;
} flow;

typedef struct flows {
    sf_arena *arena;
    flow *at;
    size_t count, capacity;
} flows;

/* A message counts where it is sent. */
static void see_flow(void *context, const sf_inst *inst, const sf_timing *timing, double times,
                     uint32_t within)
{
    flows *f = context;
    const sf_exchange *exchange = inst->exchange;
    bool is_message = sf_is_one_way(exchange);
    flow new_flow = {exchange->kind, exchange->axes, is_message ? exchange->to : -1,
                     times * timing->bytes};
    (void)within;
    if (is_message && exchange->to < 0)
        return;
    for (size_t i = 0; i < f->count; i++)
        if (f->at[i].kind == new_flow.kind && f->at[i].axes == new_flow.axes &&
            f->at[i].to == new_flow.to) {
            f->at[i].bytes += new_flow.bytes;
            return;
        }
    SF_PUSH(f->arena, f->at, f->count, f->capacity, new_flow);
}

static void add_from(matrix *m, const flow *comm, int rank)
{
    const sf_mesh *mesh = &m->page->sim.plan->mesh;
    int members = sf_group_size(mesh, comm->axes), place = sf_group_place(mesh, comm->axes, rank);
    sf_route route = sf_collective_get(comm->kind)->route;
    if (members < 2)
        return;
    if (comm->to >= 0) {
        add_flow(m, rank, sf_group_member(mesh, comm->axes, rank, comm->to), comm->bytes);
    } else if (route == SF_ROUTE_PEER) {
        int peer = sf_group_swapped(mesh, comm->axes, rank);
        add_flow(m, rank, sf_group_member(mesh, comm->axes, rank, peer), comm->bytes);
    } else if (route == SF_ROUTE_DIRECT) {
        for (int i = 0; i < members; i++)
            add_flow(m, rank, sf_group_member(mesh, comm->axes, rank, i), comm->bytes / members);
    } else {
        int next = sf_group_member(mesh, comm->axes, rank, (place + 1) % members);
        add_flow(m, rank, next, comm->bytes * sf_collective_sent(comm->kind, members));
    }
}

/* Ranks of a row: one, or a host of them, or several. */
static void choose_rows(const sf_page *page, sf_page_traffic *t)
{
    const sf_cluster *cluster = page->sim.cluster;
    int ranks = sf_mesh_size(&page->sim.plan->mesh);
    t->per_row = 1;
    if (ranks > MOST_ROWS && cluster->nruns == 1) {
        t->per_row = cluster->nodes[0].devices;
        t->hosts = true;
    }
    while ((ranks + t->per_row - 1) / t->per_row > MOST_ROWS) {
        t->per_row *= 2;
        t->hosts = false;
    }
    t->nrows = (ranks + t->per_row - 1) / t->per_row;
}

void sf_page_find_traffic(sf_page *page)
{
    sf_sim_report *r = &page->sim;
    sf_page_traffic *t = &page->traffic;
    int ranks = sf_mesh_size(&r->plan->mesh);
    choose_rows(page, t);
    size_t cells = (size_t)t->nrows * (size_t)t->nrows;
    t->bytes = SF_ARRAY(&r->arena, cells, double);
    t->levels = SF_ARRAY(&r->arena, cells, int8_t);
    for (size_t i = 0; i < cells; i++)
        t->levels[i] = -1;
    matrix m = {page, t, SF_ARRAY(&r->arena, (size_t)ranks * SF_LEVELS, double)};
    for (int g = 0; g < r->runs.count; g++) {
        flows f = {.arena = &r->arena};
        sf_see_exchanges(r->runs.at[g].program, &r->runs.at[g].sim, see_flow, &f);
        for (int rank = 0; rank < ranks; rank++)
            for (size_t i = 0; i < f.count && sf_group_of_rank(r->plan, rank) == g; i++)
                add_from(&m, &f.at[i], rank);
    }
    for (int rank = 0; rank < ranks; rank++)
        for (int l = 0; l < SF_LEVELS; l++)
            if (m.sent[rank * SF_LEVELS + l] > t->sent[l])
                t->sent[l] = m.sent[rank * SF_LEVELS + l];
}
