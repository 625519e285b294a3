/* Messages that can wait: values that are the same in all micro-batches, as the table of a tied
 * embedding that the last stage needs for its scores.
 *
 * Others wait for the results of the first task of the sender. So the value is sent after these,
 * if that task ends before the receiver needs the value:
 *
 *     sender     F0.0 send  send table  F0.1 send
 *     receiver                receive table         F3.0
 *
 * Both are in order if all tasks take equally long: so no task waits for itself by way of the value.
 *
 * SPLITTING. Of a large tensor that ranks along other axes all have, each sends its share, and they
 * gather it where it arrives: along axes after that of the pipeline, whose ranks are nearer to each
 * other. That holds for all messages. */
#include "local/time/pipeline_builder.h"

/* Layouts */

static const sf_type *whole_type(const piping *p, uint32_t version)
{
    const sf_value_version *v = &p->t->b->reshards->versions[version];
    return local_type(p->t->b, sf_type_of(p->t->step, v->value), v->layout);
}

static void split_message(const piping *p, const sf_type *type, sf_layout *layout)
{
    const sf_mesh *mesh = &p->t->space->mesh;
    if (sf_shard_bytes(type, layout, mesh) < (double)p->pipeline->split_bytes)
        return;
    for (int a = p->pipeline->axis + 1; a < mesh->naxes; a++)
        for (int d = 0; d < type->rank && layout->axes[a].kind == SF_REPLICATED; d++) {
            sf_layout split = *layout;
            split.axes[a] = (sf_share){.kind = SF_SPLIT, .dim = d};
            split.axes[a].period = sf_layout_period(&split, mesh, a, d, type->dims[d]);
            if (mesh->axes[a].size > 1 &&
                sf_layout_fits(&split, mesh, type->rank, type->dims, NULL))
                *layout = split;
        }
}

/* Between maker and reader: the layout with fewer bytes, and complete; split further if the message
 * is large. */
sf_layout pipe_message_layout(const piping *p, uint32_t version)
{
    const microbatching *t = p->t;
    const sf_value_version *v = &t->b->reshards->versions[version];
    const sf_type *type = sf_type_of(t->step, v->value);
    sf_layout best, layout;
    double least = -1;
    sf_layout made = *sf_plan_layout(t->space, t->step, v->value);
    if (!sf_layout_is_partial(&made) && microbatch_layout(t, v->layout, &made, &best))
        least = sf_shard_bytes(type, &made, &t->space->mesh);
    for (uint32_t u = t->uses.first[v->value]; u < t->uses.first[v->value + 1]; u++) {
        sf_value_use use = t->uses.at[u];
        if (use.node == SF_NONE || use.operand == SF_NONE)
            continue;
        const sf_layout *want = &t->space->nodes[use.node][use.operand];
        double bytes = sf_shard_bytes(type, want, &t->space->mesh);
        if (!sf_layout_is_partial(want) && (least < 0 || bytes < least) &&
            microbatch_layout(t, v->layout, want, &layout)) {
            best = layout;
            least = bytes;
        }
    }
    best = least < 0 ? microbatch_invariant : best;
    split_message(p, whole_type(p, version), &best);
    return best;
}

/* Places */

void pipe_time_tasks(piping *p)
{
    sf_arena *arena = &p->t->arena;
    const sf_schedule *schedule = &p->pipeline->schedule;
    size_t count = (size_t)p->pipe->nstages * SF_PASSES;
    int64_t *time = SF_ARRAY(arena, count, int64_t);
    sf_pipe_jobs jobs;
    sf_times times;
    for (size_t i = 0; i < count; i++)
        time[i] = 1;
    sf_schedule_time(schedule, &(sf_pipe_costs){.time = time}, arena, &jobs, &times);
    p->begins = SF_ARRAY(arena, p->pipe->ngroups, int64_t *);
    p->ends = SF_ARRAY(arena, p->pipe->ngroups, int64_t *);
    for (uint32_t g = 0; g < p->pipe->ngroups; g++) {
        p->begins[g] = SF_ARRAY(arena, p->last[g] + 1, int64_t);
        p->ends[g] = SF_ARRAY(arena, p->last[g] + 1, int64_t);
        for (uint32_t place = 0; place <= p->last[g]; place++)
            p->begins[g][place] = p->ends[g][place] = INT64_MAX;
        for (uint32_t i = 0; i < schedule->ntasks[g]; i++) {
            sf_stage_task task = schedule->tasks[g][i];
            uint32_t place = pipe_task_place(p, task, g), job = sf_job_of(&jobs, task);
            p->begins[g][place] = times.start[job];
            p->ends[g][place] = times.end[job];
        }
    }
}

/* The first task of a pipeline rank from that place on, or the place of the nodes after all. */
static uint32_t find_task(const piping *p, uint32_t group, uint32_t place)
{
    while (place < p->last[group] && p->begins[group][place] == INT64_MAX)
        place++;
    return place;
}

/* Whether it is known where the receiver reads it for the first time. */
static bool knows_use(const piping *p, sf_value value)
{
    const microbatching *t = p->t;
    for (uint32_t u = t->uses.first[value]; u < t->uses.first[value + 1]; u++) {
        sf_value_use use = t->uses.at[u];
        if (use.node != SF_NONE &&
            (use.operand == SF_NONE || pipe_is_anywhere(p, t->step->nodes[use.node])))
            return false;
    }
    return true;
}

/* When the receiver needs it. */
static int64_t find_need(const piping *p, const pipe_message *m)
{
    sf_value value = p->t->b->reshards->versions[m->version].value;
    uint32_t place = knows_use(p, value) ? pipe_find_use(p, m) : 0;
    return p->begins[m->to][find_task(p, m->to, place == NEVER ? 0 : place)];
}

/* The first task of the receiver that begins when that place of the sender is over. */
static uint32_t find_due(const piping *p, const pipe_message *m)
{
    uint32_t place = find_task(p, m->to, 0);
    while (p->begins[m->to][place] < p->ends[m->from][m->sent_at])
        place = find_task(p, m->to, place + 1);
    return place;
}

bool pipe_defer(const piping *p, pipe_message *m)
{
    /* values of all micro-batches that tasks need come before, or between them */
    if (p->has_middle || is_microbatched_version(p->t, m->version))
        return false;
    uint32_t place = find_task(p, m->from, m->sent_at);
    if (place == p->last[m->from] || p->ends[m->from][place] > find_need(p, m))
        return false;
    m->is_deferred = true;
    m->sent_at = place;
    m->due_at = find_due(p, m);
    return true;
}
