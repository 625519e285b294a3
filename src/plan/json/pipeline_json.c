#include "plan/json/pipeline_json.h"

#include <inttypes.h>

#include <string.h>

#include "plan/pipeline/schedules.h"
#include "plan/plan_reshards.h"

/* Nodes that are made anywhere, and those of other phases, go with their neighbours. */
static bool says_stage(const sf_pipeline *pipeline, const sf_graph *graph, uint32_t node)
{
    return graph->nodes[node]->phase == SF_FORWARD && !pipeline->stages.anywhere[node];
}

static void put_stage_run(sf_json_writer *writer, uint32_t first, uint32_t last, uint32_t stage)
{
    sf_json_begin_row(writer);
    sf_json_put_int(writer, first);
    sf_json_put_int(writer, last);
    sf_json_put_int(writer, stage);
    sf_json_end_array(writer);
}

static void put_stage_nodes(const sf_pipeline *pipeline, const sf_graph *graph,
                            sf_json_writer *writer)
{
    uint32_t first = SF_NONE, last = 0, stage = 0;
    sf_json_key(writer, "nodes");
    sf_json_begin_array(writer);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        uint32_t node = graph->top->nodes[i];
        if (!says_stage(pipeline, graph, node))
            continue;
        if (first != SF_NONE && pipeline->stages.of_node[node] != stage) {
            put_stage_run(writer, first, last, stage);
            first = SF_NONE;
        }
        if (first == SF_NONE)
            first = node;
        last = node;
        stage = pipeline->stages.of_node[node];
    }
    if (first != SF_NONE)
        put_stage_run(writer, first, last, stage);
    sf_json_end_array(writer);
}

static void put_table(const sf_schedule *schedule, sf_json_writer *writer)
{
    sf_buf text = {0};
    sf_schedule_write(schedule, &text);
    sf_json_begin_array(writer);
    for (char *line = text.text, *end; line && *line; line = end) {
        end = strchr(line, '\n');
        size_t length = end ? (size_t)(end - line) : strlen(line);
        sf_json_put_str(writer, (sf_str){line, length});
        end = end ? end + 1 : line + length;
    }
    sf_json_end_array(writer);
    sf_buf_free(&text);
}

void sf_pipeline_put(const sf_pipeline *pipeline, const sf_graph *graph, const sf_mesh *mesh,
                     sf_json_writer *writer)
{
    sf_json_key(writer, "pipeline");
    sf_json_begin_object(writer);
    sf_json_add_string(writer, "axis", mesh->axes[pipeline->axis].name);
    sf_json_add_int(writer, "stages", pipeline->stages.count);
    if (*pipeline->name)
        sf_json_add_string(writer, "schedule", pipeline->name);
    const sf_schedule_info *info = *pipeline->name ? sf_schedule_find_info(pipeline->name) : NULL;
    if (!*pipeline->name || (info && info->goes_by_times)) {
        sf_json_key(writer, *pipeline->name ? "tasks" : "schedule");
        put_table(&pipeline->schedule, writer);
    }
    if (pipeline->split_bytes != SF_BUCKET_BYTES)
        sf_json_add_int(writer, "split_messages", pipeline->split_bytes);
    put_stage_nodes(pipeline, graph, writer);
    sf_json_end_object(writer);
}

typedef struct reader {
    sf_str text;
    const char *file;
    const sf_graph *graph;
    sf_diag *diag;
    sf_arena arena;
    uint32_t count, *forward;
} reader;

static sf_status read_stage_run(reader *r, const sf_json *run)
{
    int64_t first, last, stage;
    if (sf_json_kind_of(run) != SF_JSON_ARRAY || sf_json_count(run) != 3 ||
        !sf_json_int(sf_json_item(run, 0), &first) || !sf_json_int(sf_json_item(run, 1), &last) ||
        !sf_json_int(sf_json_item(run, 2), &stage) || first < 0 || first > last ||
        (uint64_t)last >= r->graph->nnodes || stage < 0 || stage >= r->count)
        return SF_JSON_FAIL(
            r, run, "expected [FIRST, LAST, STAGE]: two nodes of the step, and their stage");
    for (int64_t n = first; n <= last; n++) {
        if (r->forward[n] != SF_NONE)
            return SF_JSON_FAIL(r, run, "node %" PRId64 " has a stage already", n);
        r->forward[n] = (uint32_t)stage;
    }
    return SF_OK;
}

static sf_status read_stage_nodes(reader *r, const sf_json *json)
{
    const sf_json *nodes = sf_json_get(json, "nodes"), *stages = sf_json_get(json, "stages");
    int64_t count;
    if (!sf_json_int(stages, &count) || count < 1 || count > SF_MOST_TASKS ||
        (uint64_t)count > r->graph->nnodes)
        return SF_JSON_FAIL(r, stages ? stages : json, "expected a number of stages");
    if (sf_json_kind_of(nodes) != SF_JSON_ARRAY)
        return SF_JSON_FAIL(r, json, "a pipeline says the stages of its \"nodes\"");
    r->count = (uint32_t)count;
    r->forward = SF_ARRAY(&r->arena, r->graph->nnodes, uint32_t);
    for (size_t n = 0; n < r->graph->nnodes; n++)
        r->forward[n] = SF_NONE;
    for (size_t i = 0; i < sf_json_count(nodes); i++)
        SF_TRY(read_stage_run(r, sf_json_item(nodes, i)));
    return SF_OK;
}

static sf_status read_table(reader *r, const sf_json *lines, sf_schedule *out)
{
    sf_buf text = {0};
    sf_status status = SF_OK;
    for (size_t i = 0; i < sf_json_count(lines) && status == SF_OK; i++) {
        sf_str line;
        if (!sf_json_string(sf_json_item(lines, i), &line))
            status = SF_JSON_FAIL(r, lines, "expected the lines of a table of tasks");
        if (status == SF_OK) {
            sf_buf_add(&text, line.at, line.length);
            sf_buf_putc(&text, '\n');
        }
    }
    if (status == SF_OK)
        status = sf_schedule_read((sf_str){text.text ? text.text : "", text.length}, r->file,
                                  &r->arena, out, r->diag);
    sf_buf_free(&text);
    return status;
}

static sf_status read_schedule(reader *r, const sf_json *json, sf_schedule *table,
                               sf_schedule_choice *out)
{
    const sf_json *schedule = sf_json_get(json, "schedule"), *tasks = sf_json_get(json, "tasks");
    sf_str name;
    if (sf_json_kind_of(schedule) == SF_JSON_ARRAY) {
        out->table = table;
        return read_table(r, schedule, table);
    }
    if (!sf_json_string(schedule, &name))
        return SF_JSON_FAIL(r, schedule ? schedule : json,
                            "expected the name of a schedule, or the lines of a table of tasks");
    out->name = sf_arena_string(&r->arena, name.at, name.length);
    if (!tasks)
        return SF_OK;
    out->table = table;
    return read_table(r, tasks, table);
}

static sf_status read_pipeline(reader *r, const sf_json *json, sf_plan *plan)
{
    sf_schedule table;
    sf_schedule_choice choice = {0};
    sf_pipeline pipeline;
    sf_str axis;
    if (!sf_json_string(sf_json_get(json, "axis"), &axis) || sf_mesh_axis(&plan->mesh, axis) < 0)
        return SF_JSON_FAIL(
            r, json,
            "a pipeline names the \"axis\" of the mesh that its pipeline ranks stand along");
    SF_TRY(read_stage_nodes(r, json));
    SF_TRY(read_schedule(r, json, &table, &choice));
    int at = sf_mesh_axis(&plan->mesh, axis), size = plan->mesh.axes[at].size;
    if (size > SF_MOST_GROUPS)
        return SF_JSON_FAIL(r, json, "a pipeline has at most %d pipeline ranks", SF_MOST_GROUPS);
    uint32_t microbatches = plan->micro_batches > 1 ? (uint32_t)plan->micro_batches : 1;
    SF_TRY(sf_pipeline_make(r->graph, r->count, r->forward, (uint32_t)size, microbatches, &choice,
                            &r->arena, r->diag, &pipeline));
    pipeline.axis = at;
    const sf_json *split = sf_json_get(json, "split_messages");
    if (split && (!sf_json_int(split, &pipeline.split_bytes) || pipeline.split_bytes < 1))
        return SF_JSON_FAIL(r, split, "expected a number of bytes, from which messages are split");
    return sf_plan_set_pipeline(plan, r->graph, &pipeline, r->diag);
}

sf_status sf_pipeline_get(const sf_json *json, sf_str text, const char *file, const sf_graph *graph,
                          sf_diag *diag, sf_plan *plan)
{
    reader r = {.text = text, .file = file, .graph = graph, .diag = diag};
    sf_status status = read_pipeline(&r, json, plan);
    sf_arena_free(&r.arena);
    return status;
}
