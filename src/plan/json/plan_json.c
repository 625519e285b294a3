/* The plan as a file. Layouts are written as people write them, "[S(0), R]". */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "ir/name.h"
#include "ir/opdef.h"
#include "plan/co_shard.h"
#include "plan/json/applied_primitives.h"
#include "plan/json/pipeline_json.h"
#include "plan/json/prediction_json.h"
#include "plan/pin.h"
#include "plan/recipe/recipe.h"
#include "plan/recompute_clone.h"

enum { PLAN_VERSION = 3 };
#define PLAN_FORMAT "sheaf plan"

/* Plans name nodes by number, and two texts of one step may number them differently. */
static uint64_t hash_order(const sf_graph *graph)
{
    uint64_t hash = sf_hash_mix(0, graph->nnodes);
    for (size_t i = 0; i < graph->nnodes; i++) {
        const sf_node *node = graph->nodes[i];
        hash = sf_hash_mix(hash, (uint64_t)node->def->id);
        for (uint32_t o = 0; o < node->noperands; o++)
            hash = sf_hash_mix(hash, node->operands[o]);
    }
    return hash;
}

static const sf_type *type_of_node_tensor(const sf_graph *graph, const sf_node *node,
                                          uint32_t tensor)
{
    return sf_type_of(graph, tensor < node->noperands ? node->operands[tensor]
                                                      : node->result + tensor - node->noperands);
}

/* Writing */

static void put_layout_text(sf_json_writer *writer, const sf_plan *plan, const sf_type *type,
                            const sf_layout *layout)
{
    sf_buf text = {0};
    sf_layout_print(layout, &plan->mesh, type->rank, type->dims, &text);
    sf_json_put_string(writer, text.text);
    sf_buf_free(&text);
}

static void put_plan_arguments(sf_json_writer *writer, const sf_plan *plan, const sf_graph *graph)
{
    sf_arena arena = {0};
    const char **names = sf_clean_names(graph, &arena);
    sf_json_key(writer, "arguments");
    sf_json_begin_object(writer);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        if (sf_layout_is_replicated(&plan->arguments[i]))
            continue;
        sf_json_key(writer, names[i]);
        put_layout_text(writer, plan, sf_argument_type(graph, i), &plan->arguments[i]);
    }
    sf_json_end_object(writer);
    sf_arena_free(&arena);
}

static void put_node(sf_json_writer *writer, const sf_plan *plan, const sf_graph *graph,
                     const sf_node *node)
{
    const sf_layout *layouts = plan->nodes[node->id];
    sf_json_begin_row(writer);
    sf_json_put_int(writer, node->id);
    sf_json_put_string(writer, node->def->name);
    sf_json_begin_array(writer);
    for (uint32_t t = 0; t < node->noperands + node->nresults; t++) {
        if (t == node->noperands) {
            sf_json_end_array(writer);
            sf_json_begin_array(writer);
        }
        put_layout_text(writer, plan, type_of_node_tensor(graph, node, t), &layouts[t]);
    }
    sf_json_end_array(writer);
    sf_json_end_array(writer);
}

static void put_reading(sf_json_writer *writer, const sf_reading *reading, const char *file)
{
    if (!reading->unroll && !reading->assume_trip_count && !reading->state &&
        !reading->no_sidecar && !reading->sidecar.path)
        return;
    sf_json_key(writer, "reading");
    sf_json_begin_object(writer);
    if (reading->unroll)
        sf_json_add_int(writer, "unroll", reading->unroll);
    if (reading->assume_trip_count)
        sf_json_add_int(writer, "assume_trip_count", reading->assume_trip_count);
    if (reading->state)
        sf_json_add_string(writer, "state", reading->state);
    if (reading->no_sidecar)
        sf_json_add_bool(writer, "sidecar", false);
    if (reading->sidecar.path) {
        sf_json_key(writer, "sidecar");
        sf_reference_put(&reading->sidecar, file, writer);
    }
    sf_json_end_object(writer);
}

/* [[12, 40], [44, 44]]: from the first of each to the last. */
static void put_marked(sf_json_writer *writer, const char *key, const bool *marked, size_t nnodes)
{
    sf_json_key(writer, key);
    sf_json_begin_array(writer);
    for (uint32_t n = 0; n < nnodes; n++) {
        uint32_t first = n;
        while (n < nnodes && marked[n])
            n++;
        if (n == first)
            continue;
        sf_json_begin_row(writer);
        sf_json_put_int(writer, first);
        sf_json_put_int(writer, n - 1);
        sf_json_end_array(writer);
    }
    sf_json_end_array(writer);
}

/* {"by": "layer", "nodes": [[12, 40], [44, 44]]}; and "per_part", as nodes, where some are. */
static void put_recompute(sf_json_writer *writer, const sf_plan *plan, const sf_graph *graph)
{
    sf_json_key(writer, "recompute");
    sf_json_begin_object(writer);
    sf_json_add_string(writer, "by", plan->recompute);
    put_marked(writer, "nodes", plan->recomputed, graph->nnodes);
    if (plan->recomputed_per_part)
        put_marked(writer, "per_part", plan->recomputed_per_part, graph->nnodes);
    sf_json_end_object(writer);
}

/* Scopes, a string each. */
static void put_compiled(sf_json_writer *writer, const char *lines)
{
    sf_buf one = {0};
    sf_json_key(writer, "compiled");
    sf_json_begin_array(writer);
    for (const char *at = lines; *at; at += *at == '\n') {
        size_t length = strcspn(at, "\n");
        one.length = 0;
        sf_buf_add(&one, at, length);
        sf_json_put_string(writer, one.text ? one.text : "");
        at += length;
    }
    sf_json_end_array(writer);
    sf_buf_free(&one);
}

void sf_plan_write(const sf_plan *plan, const sf_graph *graph, const char *file, sf_buf *out)
{
    sf_json_writer writer = {.buf = out, .indent = true};
    sf_json_begin_object(&writer);
    sf_json_add_string(&writer, "format", PLAN_FORMAT);
    sf_json_add_int(&writer, "version", PLAN_VERSION);
    sf_json_add_hex(&writer, "step", plan->graph);
    sf_json_add_hex(&writer, "order", hash_order(graph));
    sf_json_add_string(&writer, "recipe", plan->recipe);
    sf_json_key(&writer, "mesh");
    sf_mesh_put_json(&plan->mesh, &writer);
    sf_json_key(&writer, "pins");
    sf_json_begin_array(&writer);
    for (int p = 0; p < plan->npins; p++)
        sf_json_put_string(&writer, plan->pins[p].text);
    sf_json_end_array(&writer);
    sf_said_put(plan, &writer);
    if (file && graph->origin.path) {
        sf_json_key(&writer, "source");
        sf_reference_put(&graph->origin, file, &writer);
    }
    if (file)
        put_reading(&writer, &graph->reading, file);
    if (plan->predicted) {
        sf_json_key(&writer, "predicted");
        sf_prediction_put(plan->predicted, file, &writer);
    }
    if (plan->micro_batches > 1)
        sf_json_add_int(&writer, "micro_batches", plan->micro_batches);
    if (plan->pipeline)
        sf_pipeline_put(plan->pipeline, graph, &plan->mesh, &writer);
    sf_co_shards_put(plan, &writer);
    if (plan->kernels != SF_KERNELS_BEST)
        sf_json_add_string(&writer, "kernels", sf_kernel_choice_name(plan->kernels));
    if (plan->compiled)
        put_compiled(&writer, plan->compiled);
    if (*plan->passes.list) {
        sf_json_key(&writer, "passes");
        sf_json_begin_object(&writer);
        sf_json_add_string(&writer, "list", plan->passes.list);
        sf_json_add_string(&writer, "cluster", plan->passes.cluster);
        sf_json_add_int(&writer, "memory", plan->passes.memory);
        sf_json_end_object(&writer);
    }
    if (plan->recomputed)
        put_recompute(&writer, plan, graph);
    put_plan_arguments(&writer, plan, graph);
    sf_json_key(&writer, "nodes");
    sf_json_begin_array(&writer);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        if (!sf_layouts_are_replicated(plan->nodes[node->id], node->noperands + node->nresults))
            put_node(&writer, plan, graph, node);
    }
    sf_json_end_array(&writer);
    sf_json_end_object(&writer);
    sf_buf_putc(out, '\n');
}

/* Reading */

typedef struct reader {
    sf_str text;
    const char *file;
    const sf_graph *graph;
    sf_diag *diag;
    sf_arena arena; /* of the tree */
    sf_plan *plan;
    bool *is_read; /* by node: its layouts */
} reader;

static sf_status expect_hex(reader *r, const sf_json *root, const char *key, uint64_t expected,
                            const char *otherwise)
{
    const sf_json *value = sf_json_get(root, key);
    sf_str found;
    char text[20];
    snprintf(text, sizeof text, "%016" PRIx64, expected);
    if (!sf_json_string(value, &found))
        return SF_JSON_FAIL(r, value ? value : root, "the plan has no \"%s\"", key);
    if (!sf_str_is(found, text))
        return SF_JSON_FAIL(r, value, "%s: %.*s, not %s", otherwise, SF_STR_ARGS(found), text);
    return SF_OK;
}

sf_status sf_plan_refuse_step(sf_str text, const char *file, sf_diag *diag)
{
    static const char *const begins[] = {"module", "HloModule", "func.func",
                                         "//",     "#",         "\"builtin.module\""};
    while (text.length > 0 && *text.at && strchr(" \t\r\n", *text.at))
        text = (sf_str){text.at + 1, text.length - 1};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (sf_str_starts(text, begins[i])) {
            sf_fail(diag, SF_EINPUT, (sf_loc){.file = file}, "this is a step, not a plan");
            return sf_hint(diag, "sheaf plan STEP --cluster CLUSTER -o PLAN makes a plan of it; "
                                 "sheaf pin STEP --mesh all=1 -o PLAN one that does not split it");
        }
    if (text.length == 0 || *text.at != '{')
        return sf_fail(diag, SF_EINPUT, (sf_loc){.file = file},
                       "this is no plan: sheaf plan and sheaf pin write plans, with -o");
    return SF_OK;
}

sf_status sf_plan_read_format(const sf_json *root, const char *file, sf_diag *diag)
{
    sf_str format;
    int64_t version;
    if (!sf_json_string(sf_json_get(root, "format"), &format) || !sf_str_is(format, PLAN_FORMAT))
        return sf_fail(diag, SF_EINPUT, (sf_loc){.file = file}, "this is no plan");
    const sf_json *found = sf_json_get(root, "version");
    if (!sf_json_int(found, &version))
        return sf_fail(diag, SF_EINPUT, (sf_loc){.file = file},
                       "the plan file does not say its version");
    if (version != PLAN_VERSION) {
        sf_fail(diag, SF_EUNSUPPORTED, (sf_loc){.file = file},
                "this plan file has version %" PRId64 ", and this build reads version %d", version,
                PLAN_VERSION);
        return sf_hint(diag, "make the plan again with this version of sheaf");
    }
    return SF_OK;
}

static sf_status read_head(reader *r, const sf_json *root)
{
    SF_TRY(sf_plan_read_format(root, r->file, r->diag));
    sf_status status =
        expect_hex(r, root, "step", sf_graph_hash(r->graph), "the plan is for another step");
    if (status != SF_OK && r->graph->origin.path)
        return sf_hint(r->diag,
                       "this one is %s: the plan was made from another, or it was changed, or read "
                       "in another way",
                       r->graph->origin.path);
    SF_TRY(status);
    return expect_hex(r, root, "order", hash_order(r->graph),
                      "the plan is for another text of this step");
}

static sf_status check_keys(reader *r, const sf_json *root)
{
    static const char *const known[] = {
        "format",   "version",  "step",      "order",   "source",    "reading",   "recipe",
        "mesh",     "pins",     "arguments", "nodes",   "predicted", "recompute", "micro_batches",
        "co_shard", "pipeline", "passes",    "kernels", "compiled",  "schedule"};
    enum { COUNT = sizeof known / sizeof *known };
    for (size_t i = 0; i < sf_json_count(root); i++) {
        sf_str key = sf_json_key_at(root, i);
        size_t at = 0;
        while (at < COUNT && !sf_str_is(key, known[at]))
            at++;
        if (at == COUNT)
            return SF_JSON_FAIL(r, sf_json_value_at(root, i), "a plan has no \"%.*s\"",
                                SF_STR_ARGS(key));
    }
    return SF_OK;
}

static sf_status read_plan_mesh(reader *r, const sf_json *root, sf_mesh *out)
{
    const sf_json *mesh = sf_json_get(root, "mesh");
    return sf_mesh_get_json(mesh, &r->arena, r->diag, out) == SF_OK
               ? SF_OK
               : SF_JSON_FAIL(r, mesh ? mesh : root, "the plan has no mesh that can be used");
}

static sf_status read_pins(reader *r, const sf_json *root)
{
    const sf_json *pins = sf_json_get(root, "pins");
    size_t count = sf_json_kind_of(pins) == SF_JSON_ARRAY ? sf_json_count(pins) : 0;
    sf_str recipe;
    if (sf_json_string(sf_json_get(root, "recipe"), &recipe))
        r->plan->recipe = sf_arena_string(&r->plan->arena, recipe.at, recipe.length);
    if (*r->plan->recipe && !sf_recipe_exists(r->plan->recipe))
        sf_warn(r->diag, sf_json_loc(sf_json_get(root, "recipe"), r->text, r->file),
                "there is no recipe \"%.100s\"; the layouts of the plan count", r->plan->recipe);
    r->plan->pins = SF_ARRAY(&r->plan->arena, count, sf_pin);
    for (size_t p = 0; p < count; p++) {
        sf_str text;
        if (!sf_json_string(sf_json_item(pins, p), &text))
            return SF_JSON_FAIL(r, sf_json_item(pins, p), "a pin is no string");
        if (strlen(text.at) != text.length || sf_pin_parse(text.at, &r->plan->mesh, &r->plan->arena,
                                                           r->diag, &r->plan->pins[p]) != SF_OK)
            return SF_JSON_FAIL(r, sf_json_item(pins, p),
                                "\"%.*s\" is no pin for the mesh of this plan", SF_STR_ARGS(text));
        r->plan->npins++;
    }
    return SF_OK;
}

static sf_status read_layout_text(reader *r, const sf_json *value, const sf_type *type,
                                  sf_layout *out)
{
    sf_str text;
    if (!sf_json_string(value, &text))
        return SF_JSON_FAIL(r, value, "expected a layout, such as \"[S(0), R]\"");
    sf_status status =
        sf_layout_parse(text, &r->plan->mesh, type->rank, type->dims, &r->arena, r->diag, out);
    char shape[SF_TYPE_TEXT];
    if (status != SF_OK)
        SF_JSON_FAIL(r, value, "%.*s is no layout of %s", SF_STR_ARGS(text),
                     sf_type_text(type, shape));
    return status;
}

/* The place of a name among these, looked for from `from` on, as files keep the order; SF_NONE: nowhere. */
static uint32_t find_name(const char *const *names, uint32_t count, sf_str name, uint32_t from)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = from + i < count ? from + i : from + i - count;
        if (sf_str_is(name, names[at]))
            return at;
    }
    return SF_NONE;
}

/* The placement of state follows from the pipeline. */
static void drop_places(sf_layout *layout)
{
    for (int a = 0; a < SF_MAX_AXES; a++) {
        layout->axes[a].on = 0;
        layout->axes[a].partition = NULL;
    }
}

/* A layout that was read over some of the ranks of an axis may not fit over all of them. */
static sf_status check_arguments(reader *r, const sf_json *root)
{
    char why[SF_WHY_TEXT];
    for (uint32_t i = 0; i < r->graph->top->narguments; i++) {
        const sf_type *type = sf_argument_type(r->graph, i);
        if (!sf_layout_fits(&r->plan->arguments[i], &r->plan->mesh, type->rank, type->dims, why))
            return SF_JSON_FAIL(r, sf_json_get(root, "arguments"),
                                "the layout of argument %s does not fit: %s",
                                r->graph->arguments[i].name, why);
    }
    return SF_OK;
}

/* Names are found as they are, or else as the other texts of a step spell them. */
static sf_status read_arguments(reader *r, const sf_json *root)
{
    const sf_json *arguments = sf_json_get(root, "arguments");
    uint32_t count = r->graph->top->narguments;
    const char **names = sf_clean_names(r->graph, &r->arena);
    const char **keys = SF_ARRAY(&r->arena, count, const char *);
    if (sf_json_kind_of(arguments) != SF_JSON_OBJECT)
        return SF_JSON_FAIL(r, arguments ? arguments : root, "the plan has no \"arguments\"");
    for (uint32_t i = 0; i < count; i++)
        keys[i] = sf_name_key(sf_str_of(names[i]), &r->arena);
    for (size_t i = 0, from = 0; i < sf_json_count(arguments); i++) {
        sf_str name = sf_json_key_at(arguments, i);
        const sf_json *value = sf_json_value_at(arguments, i);
        uint32_t at = find_name(names, count, name, (uint32_t)from);
        if (at == SF_NONE)
            at = find_name(keys, count, sf_str_of(sf_name_key(name, &r->arena)), (uint32_t)from);
        if (at == SF_NONE)
            return SF_JSON_FAIL(r, value, "the step has no argument \"%.*s\"", SF_STR_ARGS(name));
        from = at;
        SF_TRY(read_layout_text(r, value, sf_argument_type(r->graph, at), &r->plan->arguments[at]));
        drop_places(&r->plan->arguments[at]);
        if (sf_layout_is_partial(&r->plan->arguments[at]))
            return SF_JSON_FAIL(r, value, "argument %s cannot be partial", names[at]);
        if (r->graph->arguments[at].next != SF_NONE)
            r->plan->results[r->graph->arguments[at].next] = r->plan->arguments[at];
    }
    return SF_OK;
}

static sf_status read_layouts(reader *r, const sf_json *list, const sf_node *node, uint32_t first,
                              uint32_t count)
{
    if (sf_json_kind_of(list) != SF_JSON_ARRAY || sf_json_count(list) != count)
        return SF_JSON_FAIL(r, list, "node %" PRIu32 ", %s, needs %" PRIu32 " layouts here",
                            node->id, node->def->name, count);
    int pipe = sf_mesh_axis(&r->plan->mesh, sf_str_of(SF_PIPE_AXIS));
    for (uint32_t i = 0; i < count; i++) {
        sf_layout *layout = &r->plan->nodes[node->id][first + i];
        SF_TRY(read_layout_text(r, sf_json_item(list, i),
                                type_of_node_tensor(r->graph, node, first + i), layout));
        for (int a = 0; a < r->plan->mesh.naxes; a++)
            if (layout->axes[a].partition || (layout->axes[a].on && a != pipe))
                return SF_JSON_FAIL(r, sf_json_item(list, i),
                                    "At is said of arguments alone: a node runs on all ranks of "
                                    "its pipeline ranks");
    }
    return SF_OK;
}

static sf_status read_node(reader *r, const sf_json *row)
{
    int64_t id;
    sf_str name;
    if (sf_json_kind_of(row) != SF_JSON_ARRAY || sf_json_count(row) != 4)
        return SF_JSON_FAIL(r, row, "expected [NODE, OP, [LAYOUT...], [LAYOUT...]]");
    if (!sf_json_int(sf_json_item(row, 0), &id) || id < 0 || (size_t)id >= r->graph->nnodes ||
        !r->plan->nodes[id])
        return SF_JSON_FAIL(r, row, "the step has no such node");
    if (r->is_read[id])
        return SF_JSON_FAIL(r, row, "node %" PRId64 " comes twice", id);
    r->is_read[id] = true;
    const sf_node *node = r->graph->nodes[id];
    if (!sf_json_string(sf_json_item(row, 1), &name) || !sf_str_is(name, node->def->name))
        return SF_JSON_FAIL(r, row, "node %" PRId64 " is a %s", id, node->def->name);
    SF_TRY(read_layouts(r, sf_json_item(row, 2), node, 0, node->noperands));
    return read_layouts(r, sf_json_item(row, 3), node, node->noperands, node->nresults);
}

static sf_status read_run_of_nodes(reader *r, const sf_json *run, bool *marked)
{
    int64_t first, last;
    if (sf_json_kind_of(run) != SF_JSON_ARRAY || sf_json_count(run) != 2 ||
        !sf_json_int(sf_json_item(run, 0), &first) || !sf_json_int(sf_json_item(run, 1), &last) ||
        first < 0 || first > last || (uint64_t)last >= r->graph->nnodes)
        return SF_JSON_FAIL(r, run, "expected [FIRST, LAST], two nodes of the step");
    for (int64_t n = first; n <= last; n++) {
        const sf_node *node = r->graph->nodes[n];
        if (!r->plan->nodes[n] || !sf_can_recompute(r->graph, node))
            return SF_JSON_FAIL(r, run, "node %" PRId64 ", %s, cannot be recomputed", n,
                                node->def->name);
        marked[n] = true;
    }
    return SF_OK;
}

static sf_status read_runs_of_nodes(reader *r, const sf_json *runs, bool *marked)
{
    for (size_t i = 0; i < sf_json_count(runs); i++)
        SF_TRY(read_run_of_nodes(r, sf_json_item(runs, i), marked));
    return SF_OK;
}

static sf_status read_co_shard(reader *r, const sf_json *root)
{
    const sf_json *value = sf_json_get(root, "co_shard");
    if (!value || sf_co_shards_get(value, r->plan))
        return SF_OK;
    return SF_JSON_FAIL(r, value,
                        "expected {\"by\": RECIPE, \"chunks\": NUMBER, \"in\": SCOPE}, or a list");
}

static sf_status read_kernels(reader *r, const sf_json *root)
{
    const sf_json *value = sf_json_get(root, "kernels");
    sf_str word;
    if (!value)
        return SF_OK;
    if (!sf_json_string(value, &word) || !sf_kernel_choice_read(word, &r->plan->kernels))
        return SF_JSON_FAIL(r, value, "expected \"none\", \"best\" or \"all\" kernels");
    return SF_OK;
}

static bool has_scope(const sf_graph *graph, sf_str scope)
{
    bool has = false;
    for (size_t i = 0; i < graph->nnodes && !has; i++)
        has = sf_str_is(scope, graph->nodes[i]->scope->path);
    return has;
}

static sf_status read_compiled(reader *r, const sf_json *root)
{
    const sf_json *list = sf_json_get(root, "compiled");
    sf_buf lines = {0};
    sf_status status = SF_OK;
    if (!list)
        return SF_OK;
    if (sf_json_kind_of(list) != SF_JSON_ARRAY)
        return SF_JSON_FAIL(r, list, "expected a list of scopes");
    for (size_t i = 0; i < sf_json_count(list) && status == SF_OK; i++) {
        sf_str scope;
        if (!sf_json_string(sf_json_item(list, i), &scope) || memchr(scope.at, '\n', scope.length))
            status = SF_JSON_FAIL(r, sf_json_item(list, i), "expected a scope");
        if (status == SF_OK && !has_scope(r->graph, scope))
            status = SF_JSON_FAIL(r, sf_json_item(list, i), "the step has no scope \"%.*s\"",
                                  SF_STR_ARGS(scope));
        if (status == SF_OK && i > 0)
            sf_buf_putc(&lines, '\n');
        if (status == SF_OK)
            sf_buf_add(&lines, scope.at, scope.length);
    }
    if (status == SF_OK)
        sf_plan_set_compiled(r->plan, lines.text);
    sf_buf_free(&lines);
    return status;
}

static sf_status read_passes(reader *r, const sf_json *root)
{
    const sf_json *value = sf_json_get(root, "passes");
    sf_plan_passes passes = {0};
    sf_str list, cluster;
    if (!value)
        return SF_OK;
    if (!sf_json_string(sf_json_get(value, "list"), &list) ||
        !sf_json_string(sf_json_get(value, "cluster"), &cluster) ||
        !sf_json_int(sf_json_get(value, "memory"), &passes.memory) || passes.memory < 0)
        return SF_JSON_FAIL(r, value,
                            "expected {\"list\": PASSES, \"cluster\": CLUSTER, \"memory\": BYTES}");
    passes.list = sf_arena_string(&r->arena, list.at, list.length);
    passes.cluster = sf_arena_string(&r->arena, cluster.at, cluster.length);
    sf_plan_set_passes(r->plan, &passes);
    return SF_OK;
}

static sf_status read_micro_batches(reader *r, const sf_json *root)
{
    const sf_json *value = sf_json_get(root, "micro_batches");
    int64_t count;
    if (!value)
        return SF_OK;
    if (!sf_json_int(value, &count) || count < 1 || count > INT32_MAX)
        return SF_JSON_FAIL(r, value, "expected a number of micro-batches");
    r->plan->micro_batches = (int)count;
    return SF_OK;
}

static sf_status read_recompute(reader *r, const sf_json *root)
{
    const sf_json *recompute = sf_json_get(root, "recompute");
    const sf_json *nodes = sf_json_get(recompute, "nodes"),
                  *recomputed_per_part = sf_json_get(recompute, "per_part");
    sf_str by;
    if (!recompute)
        return SF_OK;
    if (!sf_json_string(sf_json_get(recompute, "by"), &by) ||
        sf_json_kind_of(nodes) != SF_JSON_ARRAY ||
        (recomputed_per_part && sf_json_kind_of(recomputed_per_part) != SF_JSON_ARRAY))
        return SF_JSON_FAIL(
            r, recompute,
            "expected {\"by\": HOW, \"nodes\": [[FIRST, LAST]...]}, and \"per_part\", "
            "likewise, where some are");
    r->plan->recompute = sf_arena_string(&r->plan->arena, by.at, by.length);
    r->plan->recomputed = SF_ARRAY(&r->plan->arena, r->graph->nnodes, bool);
    SF_TRY(read_runs_of_nodes(r, nodes, r->plan->recomputed));
    if (!recomputed_per_part)
        return SF_OK;
    r->plan->recomputed_per_part = SF_ARRAY(&r->plan->arena, r->graph->nnodes, bool);
    SF_TRY(read_runs_of_nodes(r, recomputed_per_part, r->plan->recomputed_per_part));
    for (uint32_t n = 0; n < r->graph->nnodes; n++)
        if (r->plan->recomputed_per_part[n] && !r->plan->recomputed[n])
            return SF_JSON_FAIL(r, recomputed_per_part, "node %" PRIu32 " is not among \"nodes\"",
                                n);
    return SF_OK;
}

/* Whether the pin speaks of the tensor along this axis: the first that does decides. */
static bool decides(const sf_pin *pin, int axis, const char *name, const sf_type *type)
{
    return pin->axis == axis && !pin->forbids && sf_name_matches(pin->pattern, name) &&
           (pin->share.kind != SF_SPLIT || sf_pin_share(pin, type).dim < type->rank);
}

static bool keeps(const sf_pin *pin, const sf_type *type, sf_share share)
{
    bool split = share.kind == SF_SPLIT;
    return pin->share.kind == SF_SPLIT ? split && share.dim == sf_pin_share(pin, type).dim : !split;
}

/* The first pin of an argument that its layout does not keep, or NULL. */
static const sf_pin *find_broken(const sf_plan *plan, const sf_graph *graph,
                                 const char *const *names)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        for (int axis = 0; axis < plan->mesh.naxes; axis++)
            for (int p = 0; p < plan->npins; p++) {
                const sf_type *type = sf_argument_type(graph, i);
                if (!decides(&plan->pins[p], axis, names[i], type))
                    continue;
                if (!keeps(&plan->pins[p], type, plan->arguments[i].axes[axis]))
                    return &plan->pins[p];
                break;
            }
    return NULL;
}

/* The layouts decide; pins that they do not satisfy are only text. */
static void check_pins(reader *r, const sf_json *root)
{
    const sf_pin *broken = find_broken(r->plan, r->graph, sf_clean_names(r->graph, &r->arena));
    if (broken)
        sf_warn(r->diag, sf_json_loc(sf_json_get(root, "pins"), r->text, r->file),
                "the layouts of this plan do not keep its pin \"%s\"", broken->text);
}

static sf_status read_plan(reader *r)
{
    const sf_json *root;
    sf_mesh mesh;
    SF_TRY(sf_plan_refuse_step(r->text, r->file, r->diag));
    SF_TRY(sf_json_parse(r->text, r->file, &r->arena, &root, r->diag));
    SF_TRY(read_head(r, root));
    SF_TRY(check_keys(r, root));
    SF_TRY(read_plan_mesh(r, root, &mesh));
    r->plan = sf_plan_new(r->graph, &mesh);
    SF_TRY(read_pins(r, root));
    if (!sf_said_get(sf_json_get(root, "schedule"), r->plan))
        return SF_JSON_FAIL(r, sf_json_get(root, "schedule"), "expected a list of primitives");
    const sf_json *predicted = sf_json_get(root, "predicted");
    if (predicted)
        SF_TRY(sf_prediction_get(predicted, r->text, r->file, &r->plan->arena, r->diag,
                                 &r->plan->predicted));
    SF_TRY(read_arguments(r, root));
    const sf_json *nodes = sf_json_get(root, "nodes");
    if (sf_json_kind_of(nodes) != SF_JSON_ARRAY)
        return SF_JSON_FAIL(r, nodes ? nodes : root, "the plan has no \"nodes\"");
    r->is_read = SF_ARRAY(&r->arena, r->graph->nnodes, bool);
    for (size_t i = 0; i < sf_json_count(nodes); i++)
        SF_TRY(read_node(r, sf_json_item(nodes, i)));
    SF_TRY(read_recompute(r, root));
    SF_TRY(read_micro_batches(r, root));
    SF_TRY(read_co_shard(r, root));
    SF_TRY(read_passes(r, root));
    SF_TRY(read_kernels(r, root));
    SF_TRY(read_compiled(r, root));
    if (sf_json_get(root, "pipeline"))
        SF_TRY(sf_pipeline_get(sf_json_get(root, "pipeline"), r->text, r->file, r->graph, r->diag,
                               r->plan));
    SF_TRY(check_arguments(r, root));
    sf_names step_names = sf_names_of(r->graph, &r->arena);
    sf_plan_mark_pins(r->plan, &step_names);
    check_pins(r, root);
    return SF_OK;
}

sf_status sf_plan_read(sf_str text, const char *file, const sf_graph *graph, sf_diag *diag,
                       sf_plan **out)
{
    reader r = {.text = text, .file = file, .graph = graph, .diag = diag};
    sf_status status = read_plan(&r);
    sf_arena_free(&r.arena);
    if (status == SF_OK)
        *out = r.plan;
    else
        sf_plan_free(r.plan);
    return status;
}
