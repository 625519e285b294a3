/* The pipeline ranks: the costs of each, and their timelines. */
#include "base/json.h"
#include <string.h>

#include "report/report_sim.h"

enum { WIDTH = 100, MOST_ROWS = 64 };

double sf_sim_message_waits(const sf_rank_run *run)
{
    double waits = 0;
    for (uint32_t i = 0; i < run->program->ninsts; i++) {
        const sf_inst *inst = &run->program->insts[i];
        if (inst->kind == SF_INST_COMM && sf_is_one_way(inst->exchange))
            waits += run->sim.insts[i].exposed;
    }
    return waits;
}

static bool hosts_stage(const sf_pipe *pipe, int group, uint32_t stage)
{
    for (uint32_t t = 0; t < pipe->nmicrobatches; t++)
        if (sf_pipe_hosts(pipe, stage, t) >> group & 1)
            return true;
    return false;
}

uint32_t *sf_sim_stages(sf_sim_report *r, int group, uint32_t *count)
{
    const sf_pipeline *pipeline = r->plan->pipeline;
    uint32_t *stages = SF_ARRAY(&r->arena, pipeline->stages.count, uint32_t);
    *count = 0;
    for (uint32_t s = 0; s < pipeline->stages.count; s++)
        if (hosts_stage(&pipeline->schedule.pipe, group, s))
            stages[(*count)++] = s;
    return stages;
}

double sf_sim_idle(const sf_sim_report *r)
{
    double busy = 0, all = r->runs.seconds * r->runs.count;
    for (int g = 0; g < r->runs.count; g++)
        busy += r->runs.at[g].sim.compute;
    return all > 0 ? (all - busy) / all : 0;
}

static const char *stages_of_group(sf_sim_report *r, int group)
{
    sf_buf text = {0};
    uint32_t count, *stages = sf_sim_stages(r, group, &count);
    for (uint32_t s = 0; s < count; s++)
        sf_buf_printf(&text, "%s%u", s > 0 ? "," : "", stages[s]);
    const char *kept = sf_arena_string(&r->arena, text.text ? text.text : "", text.length);
    sf_buf_free(&text);
    return kept;
}

static void put_group_table(sf_sim_report *r, sf_style style, sf_buf *out)
{
    static const sf_column columns[] = {{"pp rank", true, SF_STAYS},  {"ranks", false, SF_STAYS},
                                        {"stages", false, SF_STAYS},  {"compute", true, SF_STAYS},
                                        {"messages", true, SF_STAYS}, {"ends", true, SF_STAYS},
                                        {"memory", true, SF_STAYS}};
    int per_group = sf_mesh_size(&r->plan->mesh) / r->runs.count;
    sf_table table = sf_table_new(&r->arena, 7, columns);
    for (int g = 0; g < r->runs.count; g++) {
        const sf_rank_run *run = &r->runs.at[g];
        sf_table_add(&table, "%d", g);
        sf_table_add(&table, per_group > 1 ? "%d and %d more" : "%d", run->rank, per_group - 1);
        sf_table_add(&table, "%s", stages_of_group(r, g));
        sf_table_add(&table, "%s", sf_text_seconds(run->sim.compute).at);
        sf_table_add(&table, "%s", sf_text_seconds(sf_sim_message_waits(run)).at);
        sf_table_add(&table, "%s", sf_text_seconds(run->sim.seconds).at);
        sf_table_add(&table, "%s", sf_text_bytes((double)sf_program_bytes(run->program)).at);
    }
    sf_table_print(&table, style, out);
}

/* A letter for the phase that has most of a column. */
static void draw_group(const sf_rank_run *run, double seconds, char row[WIDTH + 1])
{
    static const char letters[SF_PHASE_COUNT] = {
        [SF_FORWARD] = 'F', [SF_BACKWARD] = 'b', [SF_UPDATE] = 'u'};
    double share[WIDTH][SF_PHASE_COUNT] = {{0}};
    for (uint32_t i = 0; i < run->program->ninsts; i++) {
        const sf_inst *inst = &run->program->insts[i];
        const sf_timing *t = &run->sim.insts[i];
        if (inst->stream != 0 || !(seconds > 0))
            continue;
        double from = t->start / seconds * WIDTH, to = t->end / seconds * WIDTH;
        for (int c = (int)from; c < WIDTH && c < to; c++) {
            double first = c > from ? c : from, last = c + 1 < to ? c + 1 : to;
            share[c][inst->origin.phase] += last - first;
        }
    }
    for (int c = 0; c < WIDTH; c++) {
        double busy = 0;
        int most = 0;
        for (int p = 0; p < SF_PHASE_COUNT; p++) {
            busy += share[c][p];
            most = share[c][p] > share[c][most] ? p : most;
        }
        row[c] = busy < 0.5 ? '.' : letters[most];
    }
    row[WIDTH] = '\0';
}

static void put_timeline(const sf_sim_report *r, sf_style style, sf_buf *out)
{
    char row[WIDTH + 1];
    sf_heading(out, style, "who is busy when");
    for (int g = 0; g < r->runs.count && g < MOST_ROWS; g++) {
        draw_group(&r->runs.at[g], r->runs.seconds, row);
        sf_buf_printf(out, "  %2d |%s|\n", g, row);
    }
    sf_remark(out, style, "F forward, b backward, u update, . idle");
}

void sf_sim_text_groups(sf_sim_report *r, sf_style style, sf_buf *out)
{
    if (!r->plan->pipeline)
        return;
    sf_heading(out, style, "pipeline");
    sf_buf_printf(out, "  stages    %u, on %d pipeline ranks\n", r->plan->pipeline->stages.count,
                  r->runs.count);
    sf_buf_printf(out, "  schedule  %s, %u micro-batch%s\n",
                  *r->plan->pipeline->name ? r->plan->pipeline->name : "a table",
                  r->plan->pipeline->schedule.pipe.nmicrobatches,
                  r->plan->pipeline->schedule.pipe.nmicrobatches == 1 ? "" : "es");
    sf_buf_printf(out, "  idle      %s of the pipeline ranks' time\n\n",
                  sf_text_share(sf_sim_idle(r), 1).at);
    put_group_table(r, style, out);
    put_timeline(r, style, out);
}

static void put_json_group(sf_sim_report *r, int group, sf_json_writer *json)
{
    const sf_rank_run *run = &r->runs.at[group];
    uint32_t count, *stages = sf_sim_stages(r, group, &count);
    sf_json_begin_object(json);
    sf_json_add_int(json, "first", run->rank);
    sf_json_add_int(json, "ranks", sf_mesh_size(&r->plan->mesh) / r->runs.count);
    sf_json_key(json, "stages");
    sf_json_begin_row(json);
    for (uint32_t s = 0; s < count; s++)
        sf_json_put_int(json, stages[s]);
    sf_json_end_array(json);
    sf_json_add_double(json, "compute", run->sim.compute);
    sf_json_add_double(json, "messages", sf_sim_message_waits(run));
    sf_json_add_double(json, "ends", run->sim.seconds);
    sf_json_add_int(json, "memory", sf_program_bytes(run->program));
    sf_json_end_object(json);
}

void sf_sim_json_groups(sf_sim_report *r, sf_json_writer *json)
{
    const sf_pipeline *pipeline = r->plan->pipeline;
    if (!pipeline)
        return;
    sf_json_key(json, "pipeline");
    sf_json_begin_object(json);
    sf_json_add_string(json, "schedule", pipeline->name);
    sf_json_add_int(json, "stages", pipeline->stages.count);
    sf_json_add_int(json, "micro_batches", pipeline->schedule.pipe.nmicrobatches);
    sf_json_add_double(json, "idle", sf_sim_idle(r));
    sf_json_key(json, "pipeline_ranks");
    sf_json_begin_array(json);
    for (int g = 0; g < r->runs.count; g++)
        put_json_group(r, g, json);
    sf_json_end_array(json);
    sf_json_end_object(json);
}
