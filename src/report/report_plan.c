/* A plan: the placement of the state, and the collectives of a step. */
#include <inttypes.h>
#include <string.h>

#include "api/api_options.h"
#include "base/guard.h"
#include "base/json.h"
#include "base/output.h"
#include "local/local.h"
#include "op/flops.h"
#include "op/op.h"
#include "op/slots.h"
#include "plan/replicated_compute.h"
#include "report/report_time.h"
#include "report/table.h"

enum { MOST_KINDS = 128 };

/* Collectives of one kind along the same axes in one phase. */
typedef struct traffic {
    const sf_opdef *def;
    sf_axes axes;
    sf_phase phase;
    int64_t count, tensors; /* several tensors may go in one */
    double bytes;           /* of a rank's operands, or results where these are larger */
} traffic;

typedef struct holding {
    int64_t tensors, split;
    double whole, piece; /* bytes */
} holding;

typedef struct plan_summary {
    traffic traffic[MOST_KINDS];
    int nkinds;
    sf_messages messages;
    holding roles[SF_ROLE_COUNT];
} plan_summary;

static double node_bytes(const sf_graph *graph, const sf_node *node)
{
    double in = 0, out = 0;
    for (uint32_t i = 0; i < node->noperands; i++)
        in += (double)sf_type_bytes(sf_type_of(graph, node->operands[i]));
    for (uint32_t i = 0; i < node->nresults; i++)
        out += (double)sf_type_bytes(sf_type_of(graph, node->result + i));
    return in > out ? in : out;
}

static traffic *find_traffic(plan_summary *summary, const sf_node *node)
{
    sf_axes axes = (sf_axes)node->attrs[SF_COLLECTIVE_AXES]->integer;
    for (int i = 0; i < summary->nkinds; i++) {
        traffic *t = &summary->traffic[i];
        if (t->def == node->def && t->axes == axes && t->phase == node->phase)
            return t;
    }
    if (summary->nkinds == MOST_KINDS)
        return &summary->traffic[MOST_KINDS - 1];
    traffic *t = &summary->traffic[summary->nkinds++];
    *t = (traffic){.def = node->def, .axes = axes, .phase = node->phase};
    return t;
}

/* Those in a loop count with its known trip count. */
static void count_traffic(const sf_graph *graph, const sf_block *block, double times,
                          plan_summary *out)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]];
        for (uint32_t r = 0; r < node->nregions; r++)
            count_traffic(graph, node->regions[r], times * sf_region_runs(node, r), out);
        if (sf_is_message(node)) {
            out->messages.count++;
            out->messages.bytes += node_bytes(graph, node);
        }
        if (!sf_is_collective(node) || sf_is_message(node))
            continue;
        traffic *t = find_traffic(out, node);
        t->count += (int64_t)times;
        t->tensors += (int64_t)times * node->noperands;
        t->bytes += times * node_bytes(graph, node);
    }
}

/* Whether the rank's group is one of several that have rows of it, and not the first of them. */
static bool is_counted(const sf_local *local, const sf_plan *plan, uint32_t argument)
{
    int axis = plan->pipeline ? plan->pipeline->axis : 0;
    sf_share share = plan->arguments[argument].axes[axis];
    return share.partition &&
           sf_share_place(share, sf_mesh_coordinate(&plan->mesh, local->rank, axis)) > 0;
}

/* Arguments that a pipeline rank does not hold are empty there. */
static void count_arguments(const sf_local *local, const sf_plan *plan, plan_summary *out)
{
    const sf_graph *step = local->step, *graph = local->graph;
    for (uint32_t i = 0; i < step->top->narguments; i++) {
        holding *h = &out->roles[step->arguments[i].role];
        const sf_type *type = sf_argument_type(step, i);
        const sf_type *piece = sf_argument_type(graph, i);
        h->tensors++;
        h->split += piece->count != type->count && piece->count > 0 && !is_counted(local, plan, i);
        h->whole += (double)sf_type_bytes(type);
        h->piece += (double)sf_type_bytes(piece);
    }
}

static double bytes_moved(const plan_summary *summary)
{
    double bytes = 0;
    for (int i = 0; i < summary->nkinds; i++)
        bytes += summary->traffic[i].bytes;
    return bytes;
}

static double bytes_held(const plan_summary *summary)
{
    double bytes = 0;
    for (int r = 0; r < SF_ROLE_COUNT; r++)
        bytes += summary->roles[r].piece;
    return bytes;
}

/* Adds another pipeline rank: traffic, messages and memory are each that of the one with the most, and split tensors are counted on the one that has them. */
static void add_group(plan_summary *all, const plan_summary *group)
{
    bool holds_more = bytes_held(group) > bytes_held(all);
    for (int r = 0; r < SF_ROLE_COUNT; r++) {
        bool state = r == SF_ROLE_PARAM || r == SF_ROLE_STATE;
        all->roles[r].split =
            state ? all->roles[r].split + group->roles[r].split : group->roles[r].split;
        if (holds_more)
            all->roles[r].piece = group->roles[r].piece;
    }
    if (group->messages.bytes > all->messages.bytes)
        all->messages = group->messages;
    if (bytes_moved(group) <= bytes_moved(all))
        return;
    memcpy(all->traffic, group->traffic, sizeof all->traffic);
    all->nkinds = group->nkinds;
}

static void summarize_local(const sf_local *local, const sf_plan *plan, plan_summary *out)
{
    count_traffic(local->graph, local->graph->top, 1, out);
    count_arguments(local, plan, out);
}

static bool is_used(const sf_local *local, int axis)
{
    const sf_graph *whole = local->whole;
    const sf_plan *plan = local->plan;
    for (uint32_t i = 0; i < whole->top->narguments; i++)
        if (plan->arguments[i].axes[axis].kind != SF_REPLICATED)
            return true;
    for (uint32_t i = 0; i < whole->top->nnodes; i++) {
        const sf_node *node = whole->nodes[whole->top->nodes[i]];
        for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
            if (plan->nodes[node->id][t].axes[axis].kind != SF_REPLICATED)
                return true;
    }
    return false;
}

static void put_plan_text(const sf_local *local, const sf_plan *plan, const plan_summary *summary,
                          const sf_show_options *options, sf_buf *out)
{
    sf_style style = {.width = options->width, .colour = options->colour};
    sf_arena arena = {0};
    sf_buf mesh = {0};
    sf_mesh_print(&plan->mesh, &mesh);
    sf_heading(out, style, "plan");
    sf_buf_printf(out, "  mesh    %s, %d rank%s\n", mesh.text, sf_mesh_size(&plan->mesh),
                  sf_mesh_size(&plan->mesh) == 1 ? "" : "s");
    if (*plan->recipe)
        sf_buf_printf(out, "  recipe  %s\n", plan->recipe);
    sf_buf_printf(out, "  pins    %d\n", plan->npins);
    sf_in_time_text(plan, local->step, 7, out);
    sf_repeated repeated = sf_find_repeated(local->step, plan);
    sf_buf_printf(out, "  repeats %.1f %% of its compute\n", 100 * repeated.share);
    for (int axis = 0; axis < plan->mesh.naxes; axis++)
        if (plan->mesh.axes[axis].size > 1 && !is_used(local, axis) && !sf_plan_pipes(plan, axis))
            sf_buf_printf(out, "  note    axis %s splits nothing: its ranks all do the same\n",
                          plan->mesh.axes[axis].name);
    sf_buf_free(&mesh);

    static const sf_column held[] = {{"role", false, SF_STAYS},
                                     {"tensors", true, SF_STAYS},
                                     {"split", true, SF_STAYS},
                                     {"whole", true, SF_STAYS},
                                     {"a rank", true, SF_STAYS}};
    sf_heading(out, style, "arguments");
    sf_table table = sf_table_new(&arena, 5, held);
    for (int r = 0; r < SF_ROLE_COUNT; r++) {
        const holding *h = &summary->roles[r];
        if (h->tensors == 0)
            continue;
        sf_table_add(&table, "%s", sf_role_name((sf_role)r));
        sf_table_add(&table, "%s", sf_text_count(h->tensors).at);
        sf_table_add(&table, "%s", sf_text_count(h->split).at);
        sf_table_add(&table, "%s", sf_text_bytes(h->whole).at);
        sf_table_add(&table, "%s", sf_text_bytes(h->piece).at);
    }
    sf_table_print(&table, style, out);

    static const sf_column moved[] = {
        {"collective", false, SF_STAYS}, {"axes", false, SF_STAYS},
        {"phase", false, SF_STAYS},      {"count", true, SF_STAYS},
        {"tensors", true, SF_STAYS},     {"bytes a rank", true, SF_STAYS}};
    sf_heading(out, style, "collectives of a step");
    sf_table collectives = sf_table_new(&arena, 6, moved);
    for (int i = 0; i < summary->nkinds; i++) {
        const traffic *t = &summary->traffic[i];
        char axes[SF_AXES_TEXT];
        sf_table_add(&collectives, "%s", t->def->name);
        sf_table_add(&collectives, "%s", sf_axes_text(&plan->mesh, t->axes, axes));
        sf_table_add(&collectives, "%s", sf_phase_name(t->phase));
        sf_table_add(&collectives, "%s", sf_text_count(t->count).at);
        sf_table_add(&collectives, "%s", sf_text_count(t->tensors).at);
        sf_table_add(&collectives, "%s", sf_text_bytes(t->bytes).at);
    }
    if (summary->nkinds == 0)
        sf_remark(out, style, "none");
    else
        sf_table_print(&collectives, style, out);
    sf_messages_text(plan, summary->messages, style, out);
    sf_arena_free(&arena);
}

static void put_plan_json(const sf_local *local, const sf_plan *plan, const plan_summary *summary,
                          sf_buf *out)
{
    sf_json_writer json = {.buf = out, .indent = true};
    sf_json_begin_object(&json);
    sf_json_add_int(&json, "ranks", sf_mesh_size(&plan->mesh));
    sf_json_add_string(&json, "recipe", plan->recipe);
    sf_in_time_json(plan, local->step, &json);
    sf_json_add_double(&json, "repeated", sf_find_repeated(local->step, plan).share);
    sf_json_key(&json, "mesh");
    sf_mesh_put_json(&plan->mesh, &json);
    sf_json_key(&json, "arguments");
    sf_json_begin_array(&json);
    for (int r = 0; r < SF_ROLE_COUNT; r++) {
        const holding *h = &summary->roles[r];
        if (h->tensors == 0)
            continue;
        sf_json_begin_object(&json);
        sf_json_add_string(&json, "role", sf_role_name((sf_role)r));
        sf_json_add_int(&json, "tensors", h->tensors);
        sf_json_add_int(&json, "split", h->split);
        sf_json_add_int(&json, "bytes", (int64_t)h->whole);
        sf_json_add_int(&json, "bytes_of_a_rank", (int64_t)h->piece);
        sf_json_end_object(&json);
    }
    sf_json_end_array(&json);
    sf_json_key(&json, "collectives");
    sf_json_begin_array(&json);
    for (int i = 0; i < summary->nkinds; i++) {
        const traffic *t = &summary->traffic[i];
        char axes[SF_AXES_TEXT];
        sf_json_begin_object(&json);
        sf_json_add_string(&json, "kind", t->def->name);
        sf_json_add_string(&json, "axes", sf_axes_text(&plan->mesh, t->axes, axes));
        sf_json_add_string(&json, "phase", sf_phase_name(t->phase));
        sf_json_add_int(&json, "count", t->count);
        sf_json_add_int(&json, "tensors", t->tensors);
        sf_json_add_int(&json, "bytes_of_a_rank", (int64_t)t->bytes);
        sf_json_end_object(&json);
    }
    sf_json_end_array(&json);
    sf_messages_json(plan, summary->messages, &json);
    sf_json_end_object(&json);
    sf_buf_putc(out, '\n');
}

struct job {
    const sf_plan *plan;
    const sf_graph *graph;
    sf_show_options options;
    const sf_output *output;
    sf_diag *diag;
};

/* The pipeline ranks after the first. */
static sf_status summarize_others(const struct job *job, plan_summary *out)
{
    for (int g = 1; g < sf_plan_groups(job->plan); g++) {
        sf_local *local;
        plan_summary group = {0};
        SF_TRY(sf_local_new(job->graph, job->plan, sf_plan_group_rank(job->plan, g), job->diag,
                            &local));
        summarize_local(local, job->plan, &group);
        add_group(out, &group);
        sf_local_free(local);
    }
    return SF_OK;
}

static sf_status write_plan(void *context)
{
    struct job *job = context;
    sf_local *local;
    plan_summary summary = {0};
    sf_buf out = {0};
    SF_TRY(sf_plan_expect(job->plan, job->graph, job->diag));
    SF_TRY(sf_local_new(job->graph, job->plan, 0, job->diag, &local));
    summarize_local(local, job->plan, &summary);
    sf_status status = summarize_others(job, &summary);
    if (job->options.json)
        put_plan_json(local, job->plan, &summary, &out);
    else
        put_plan_text(local, job->plan, &summary, &job->options, &out);
    if (status == SF_OK)
        status = sf_output_report(job->output, &out, job->diag);
    sf_buf_free(&out);
    sf_local_free(local);
    return status;
}

sf_status sf_plan_show(const sf_plan *plan, const sf_graph *graph, const sf_show_options *options,
                       const sf_output *output, sf_diag *diag)
{
    SF_NEED(diag, plan, graph);
    struct job job = {.plan = plan, .graph = graph, .output = output, .diag = diag};
    SF_TRY(SF_TAKE(sf_show_options, options, &job.options, diag));
    return sf_guarded(write_plan, &job, diag);
}
