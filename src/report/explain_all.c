/* A plan as a whole. */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "ir/opdef.h"
#include "local/rank.h"
#include "plan/replicated_compute.h"
#include "report/report_explain.h"
#include "report/report_memory.h"
#include "report/report_time.h"

/* A plan that is at most this share faster is not called faster. */
#define LEAST_GAIN 5e-4

/* The prediction, if it is for this cluster. */
static const sf_prediction *prediction_of(const sf_explanation *e)
{
    return sf_explain_made_for(e) ? NULL : e->plan->predicted;
}

/* A plan that was found for this cluster fits as it was lowered; for others the estimate
 * decides. */
static bool plan_fits(const sf_explanation *e)
{
    return prediction_of(e) || sf_rank_fits(e->simulated->price.memory, sf_costs_memory(e->costs));
}

static sf_messages messages_of(const sf_explanation *e)
{
    return (sf_messages){e->simulated->price.nmessages, e->simulated->price.message_bytes};
}

/* Text ------------------------------------------------------------------------------------------- */

/* Devices of the cluster that the plan leaves unused. */
static void put_nodes(const sf_prediction *predicted, sf_buf *out)
{
    if (predicted && *predicted->nodes)
        sf_buf_printf(out, "  on nodes %s\n", predicted->nodes);
    for (int i = 0; predicted && i < predicted->nunused; i++)
        sf_buf_printf(out, "  left out %s on nodes %s: %s\n", predicted->unused[i].what,
                      predicted->unused[i].nodes, predicted->unused[i].why);
}

static bool has_idle_axis(const sf_explanation *e)
{
    bool any = false;
    for (int axis = 0; axis < e->plan->mesh.naxes; axis++)
        any = any || sf_plan_idles(e->graph, e->plan, axis);
    return any;
}

static void put_plan_head(const sf_explanation *e, sf_style style, sf_buf *out)
{
    const sf_plan *plan = e->plan;
    sf_buf mesh = {0};
    sf_mesh_print(&plan->mesh, &mesh);
    sf_heading(out, style, "plan");
    sf_buf_printf(out, "  mesh     %s, %d ranks\n", mesh.text, sf_mesh_size(&plan->mesh));
    sf_buf_printf(out, "  cluster  %s\n", e->cluster->name);
    if (sf_explain_made_for(e))
        sf_buf_printf(out, "  made for %s, another cluster: what was expected there is left out\n",
                      sf_explain_made_for(e));
    put_nodes(prediction_of(e), out);
    if (*plan->recipe)
        sf_buf_printf(out, "  recipe   %s\n", plan->recipe);
    sf_in_time_text(plan, e->graph, 8, out);
    sf_precision_text(e->graph, e->target, out);
    if (has_idle_axis(e))
        sf_buf_puts(
            out, "  unused   replicated over this axis: splitting the step over more ranks would "
                 "not make it faster\n");
    sf_buf_free(&mesh);
}

/* Whether the bound of plans without stages is another. */
static bool has_unstaged_bound(const sf_explanation *e)
{
    return e->bound.unstaged > e->bound.seconds * (1 + LEAST_GAIN);
}

static void put_bound(const sf_explanation *e, sf_buf *out)
{
    const sf_step_bound *bound = &e->bound;
    if (bound->seconds == 0) {
        sf_buf_puts(out, "  bound    none\n");
        return;
    }
    sf_buf_printf(out, "  bound    %s, which no plan on these devices is below",
                  sf_text_seconds(bound->seconds).at);
    if (has_unstaged_bound(e))
        sf_buf_printf(out, "; %s without stages", sf_text_seconds(bound->unstaged).at);
    sf_buf_putc(out, '\n');
}

static void put_time(const sf_explanation *e, sf_style style, sf_buf *out)
{
    const sf_price *price = &e->simulated->price;
    sf_heading(out, style, "time of a step");
    sf_buf_printf(out, "  compute  %s\n", sf_text_seconds(price->compute).at);
    sf_buf_printf(out, "  repeated %.1f %% of that\n",
                  100 * sf_find_repeated(e->graph, e->plan).share);
    sf_buf_printf(out, "  exposed  %s of communication\n", sf_text_seconds(price->exposed).at);
    sf_buf_printf(out, "  hidden   %s, beside compute\n", sf_text_seconds(price->hidden).at);
    sf_buf_printf(out, "  in all   %s\n", sf_text_seconds(price->seconds).at);
    put_bound(e, out);
}

static void put_memory(sf_explanation *e, sf_style style, sf_buf *out)
{
    sf_memory_text(&e->simulated->price, &e->arena, style, out);
    sf_remark(out, style, "%s", sf_explain_peak(e));
    if (prediction_of(e))
        sf_remark(out, style, "of %s that a rank may take",
                  sf_text_bytes((double)prediction_of(e)->limit).at);
    else if (!plan_fits(e))
        sf_remark(out, style, "it does not fit: a device of this cluster has %s",
                  sf_text_bytes((double)sf_costs_memory(e->costs)).at);
}

static void put_plan_collectives(sf_explanation *e, sf_style style, sf_buf *out)
{
    static const sf_column columns[] = {
        {"collective", false, SF_STAYS}, {"axes", false, SF_STAYS}, {"phase", false, SF_STAYS},
        {"tensors", true, SF_STAYS},     {"bytes", true, SF_STAYS}, {"time", true, SF_STAYS},
        {"exposed", true, SF_STAYS}};
    sf_heading(out, style, "collectives of a step");
    if (e->nkinds == 0) {
        sf_remark(out, style, "none");
        sf_messages_text(e->plan, messages_of(e), style, out);
        return;
    }
    sf_table table = sf_table_new(&e->arena, 7, columns);
    for (size_t i = 0; i < e->nkinds; i++) {
        const sf_explained_reshards *k = &e->kinds[i];
        char axes[SF_AXES_TEXT];
        sf_table_add(&table, "%s", sf_reshard_kind_name(k->kind));
        sf_table_add(&table, "%s", sf_axes_text(&e->plan->mesh, k->axes, axes));
        sf_table_add(&table, "%s", sf_phase_name(k->phase));
        sf_table_add(&table, "%s", sf_text_count(k->count).at);
        sf_table_add(&table, "%s", sf_text_bytes(k->bytes).at);
        sf_table_add(&table, "%s", sf_text_seconds(k->seconds).at);
        sf_table_add(&table, "%s", sf_text_seconds(k->exposed).at);
    }
    sf_table_print(&table, style, out);
    sf_messages_text(e->plan, messages_of(e), style, out);
}

/* The first of its name, so the best: alternatives are sorted. */
static bool is_first(const sf_prediction *predicted, int index)
{
    for (int i = 0; i < index; i++)
        if (strcmp(predicted->alternatives[i].name, predicted->alternatives[index].name) == 0)
            return false;
    return true;
}

/* Says so when a searched plan was faster, but not by the margin, and the difference can be seen. One that is
 * faster by more was found to take too much memory. */
static void put_passed_over(const sf_explanation *e, sf_style style, sf_buf *out)
{
    const sf_prediction *predicted = e->plan->predicted;
    for (int i = 0; i < predicted->nalternatives; i++) {
        const sf_alternative *a = &predicted->alternatives[i];
        double gain = predicted->seconds / a->seconds - 1;
        if (!a->fits || gain < LEAST_GAIN)
            continue;
        if (gain <= predicted->margin)
            sf_remark(out, style,
                      "%s on %s is %.1f%% faster than this %s, within the margin of %g%%: "
                      "--margin 0 takes it",
                      a->name, a->mesh, 100 * gain, *e->plan->recipe ? "recipe" : "plan",
                      100 * predicted->margin);
        return;
    }
}

static void put_alternatives(sf_explanation *e, sf_style style, sf_buf *out)
{
    static const sf_column columns[] = {{"what", false, SF_STAYS},  {"mesh", false, SF_STAYS},
                                        {"step", true, SF_STAYS},   {"slower by", true, SF_STAYS},
                                        {"memory", true, SF_STAYS}, {"fits", false, SF_STAYS}};
    const sf_prediction *predicted = prediction_of(e);
    if (!predicted || predicted->nalternatives == 0)
        return;
    sf_heading(out, style, "candidates considered");
    bool unused = false, estimated = false;
    sf_buf mesh = {0};
    sf_mesh_print(&e->plan->mesh, &mesh);
    sf_table table = sf_table_new(&e->arena, 6, columns);
    for (int i = 0; i < predicted->nalternatives; i++) {
        const sf_alternative *a = &predicted->alternatives[i];
        if (!e->options.all && !is_first(predicted, i))
            continue;
        sf_table_add(&table, "%s", a->name);
        sf_table_add(&table, "%s", a->mesh);
        const char *about = a->lowered ? "" : "~";
        estimated = estimated || !a->lowered;
        sf_table_add(&table, "%s%s", about, sf_text_seconds(a->seconds).at);
        sf_table_add(&table, "%s%.1f%%", about, 100 * (a->seconds / predicted->seconds - 1));
        sf_table_add(&table, "%s%s", about, sf_text_bytes((double)a->memory).at);
        sf_table_add(&table, "%s", a->fits ? "yes" : "no");
        bool is_own = strcmp(a->mesh, mesh.text) == 0;
        unused = unused || (is_own ? has_idle_axis(e) : strstr(a->mesh, SF_UNUSED_AXIS) != NULL);
    }
    sf_buf_free(&mesh);
    sf_table_print(&table, style, out);
    if (estimated)
        sf_remark(out, style, "~ an estimate; the others are simulated");
    if (unused)
        sf_remark(out, style, "computation is replicated over axis unused");
    put_passed_over(e, style, out);
}

static double gap_of(double seconds, double bound)
{
    return seconds > 0 ? (seconds - bound) / seconds : 0;
}

static void put_last_line(const sf_explanation *e, sf_buf *out)
{
    sf_buf_printf(out, "\nstep %s, memory %s, communication %s",
                  sf_text_seconds(e->simulated->price.seconds).at,
                  sf_text_bytes((double)e->simulated->price.memory).at,
                  sf_text_bytes(e->simulated->price.traffic).at);
    sf_buf_printf(out, ", gap %.1f %%",
                  100 * gap_of(e->simulated->price.seconds, e->bound.seconds));
    if (!e->plan->pipeline && has_unstaged_bound(e))
        sf_buf_printf(out, ", %.1f %% without stages",
                      100 * gap_of(e->simulated->price.seconds, e->bound.unstaged));
    sf_buf_putc(out, '\n');
}

void sf_explain_text(sf_explanation *e, sf_buf *out)
{
    sf_style style = {.width = e->options.width, .colour = e->options.colour};
    put_plan_head(e, style, out);
    put_time(e, style, out);
    put_memory(e, style, out);
    put_plan_collectives(e, style, out);
    put_alternatives(e, style, out);
    put_last_line(e, out);
}

/* JSON ------------------------------------------------------------------------------------------- */

static void put_json_collectives(const sf_explanation *e, sf_json_writer *json)
{
    sf_json_key(json, "collectives");
    sf_json_begin_array(json);
    for (size_t i = 0; i < e->nkinds; i++) {
        const sf_explained_reshards *k = &e->kinds[i];
        char axes[SF_AXES_TEXT];
        sf_json_begin_object(json);
        sf_json_add_string(json, "kind", sf_reshard_kind_name(k->kind));
        sf_json_add_string(json, "axes", sf_axes_text(&e->plan->mesh, k->axes, axes));
        sf_json_add_string(json, "phase", sf_phase_name(k->phase));
        sf_json_add_int(json, "tensors", k->count);
        sf_json_add_double(json, "bytes", k->bytes);
        sf_json_add_double(json, "seconds", k->seconds);
        sf_json_add_double(json, "exposed", k->exposed);
        sf_json_end_object(json);
    }
    sf_json_end_array(json);
}

static void put_json_prediction(const sf_explanation *e, sf_json_writer *json)
{
    const sf_prediction *predicted = prediction_of(e);
    sf_json_add_double(json, "unstaged_bound", e->bound.unstaged);
    sf_json_add_string(json, "nodes", predicted->nodes);
    sf_unused_devices_put(predicted, json);
    sf_json_add_double(json, "margin", predicted->margin);
    sf_json_add_int(json, "lowered_memory", predicted->memory);
    sf_json_add_int(json, "memory_limit", predicted->limit);
    sf_json_key(json, "alternatives");
    sf_json_begin_array(json);
    for (int i = 0; i < predicted->nalternatives; i++) {
        const sf_alternative *a = &predicted->alternatives[i];
        sf_json_begin_object(json);
        sf_json_add_string(json, "name", a->name);
        sf_json_add_string(json, "mesh", a->mesh);
        sf_json_add_double(json, "seconds", a->seconds);
        sf_json_add_int(json, "memory", a->memory);
        sf_json_add_bool(json, "fits", a->fits);
        sf_json_add_bool(json, "lowered", a->lowered);
        sf_json_end_object(json);
    }
    sf_json_end_array(json);
}

void sf_explain_json(sf_explanation *e, sf_buf *out)
{
    sf_json_writer json = {.buf = out, .indent = true};
    sf_json_begin_object(&json);
    sf_json_add_int(&json, "ranks", sf_mesh_size(&e->plan->mesh));
    sf_json_add_string(&json, "recipe", e->plan->recipe);
    sf_json_add_string(&json, "cluster", e->cluster->name);
    if (sf_explain_made_for(e))
        sf_json_add_string(&json, "made_for", sf_explain_made_for(e));
    sf_json_key(&json, "mesh");
    sf_mesh_put_json(&e->plan->mesh, &json);
    sf_in_time_json(e->plan, e->graph, &json);
    sf_precision_json(e->graph, e->target, &json);
    sf_json_add_double(&json, "seconds", e->simulated->price.seconds);
    sf_json_add_double(&json, "compute", e->simulated->price.compute);
    sf_json_add_double(&json, "repeated", sf_find_repeated(e->graph, e->plan).share);
    sf_json_add_double(&json, "exposed", e->simulated->price.exposed);
    sf_json_add_double(&json, "hidden", e->simulated->price.hidden);
    sf_json_add_double(&json, "traffic", e->simulated->price.traffic);
    sf_json_add_int(&json, "memory", e->simulated->price.memory);
    sf_json_add_int(&json, "device_memory", sf_costs_memory(e->costs));
    sf_json_add_bool(&json, "fits", plan_fits(e));
    sf_memory_json(&e->simulated->price, &json);
    put_json_collectives(e, &json);
    sf_messages_json(e->plan, messages_of(e), &json);
    sf_json_add_double(&json, "bound", e->bound.seconds);
    sf_json_add_double(&json, "gap", gap_of(e->simulated->price.seconds, e->bound.seconds));
    if (prediction_of(e))
        put_json_prediction(e, &json);
    sf_json_end_object(&json);
    sf_buf_putc(out, '\n');
}
