/* A cluster as text, and the library. */
#include <inttypes.h>
#include <stdio.h>

#include "api/api_options.h"
#include "base/guard.h"
#include "base/output.h"
#include "cluster/cost_model.h"
#include "cluster/device_library.h"
#include "report/table.h"

static sf_text microseconds_text(double seconds)
{
    sf_text text;
    double us = 1e6 * seconds;
    int digits = us < 10 ? 2 : us < 100 ? 1 : 0;
    snprintf(text.at, sizeof text.at, "%.*f", digits, us);
    return text;
}

static sf_text peak_text(double flops)
{
    sf_text text = {"-"};
    return flops > 0 ? sf_text_flops(flops) : text;
}

static const sf_column device_columns[] = {
    {"device", false, SF_SHRINKS},   {"memory", true, SF_STAYS}, {"B/s", true, SF_STAYS},
    {"f64/s", true, SF_STAYS},       {"f32/s", true, SF_STAYS},  {"tf32/s", true, SF_STAYS},
    {"bf16/s", true, SF_STAYS},      {"f16/s", true, SF_STAYS},  {"f8/s", true, SF_STAYS},
    {"source", false, SF_GOES_FIRST}};
enum { DEVICE_COLUMNS = sizeof device_columns / sizeof *device_columns };

static void add_device(sf_table *table, const sf_device_kind *kind, const char *source)
{
    sf_table_add(table, "%s", kind->name);
    sf_table_add(table, "%s", sf_text_bytes((double)kind->memory).at);
    sf_table_add(table, "%s", sf_text_flops(kind->bandwidth).at);
    for (int m = 0; m < SF_MATH_COUNT; m++)
        sf_table_add(table, "%s", peak_text(kind->flops[m]).at);
    sf_table_add(table, "%s", source);
}

static void put_devices(const sf_cluster *cluster, sf_style style, sf_arena *arena, sf_buf *out)
{
    sf_heading(out, style, "devices");
    sf_table table = sf_table_new(arena, DEVICE_COLUMNS, device_columns);
    for (int i = 0; i < cluster->nkinds; i++)
        add_device(&table, &cluster->kinds[i], cluster->kinds[i].source);
    sf_table_print(&table, style, out);
}

static void add_link(sf_table *table, const char *where, const char *name, const sf_link *link)
{
    sf_table_add(table, "%s", where);
    sf_table_add(table, "%s", name);
    sf_table_add(table, "%s", microseconds_text(link->latency).at);
    sf_table_add(table, "%s", sf_text_flops(link->bandwidth).at);
    sf_table_add(table, "%s", link->peer > 0 ? sf_text_flops(link->peer).at : "all");
    if (link->lanes)
        sf_table_add(table, "%d", link->lanes);
    else
        sf_table_add(table, "all");
}

static void put_links(const sf_cluster *cluster, sf_style style, sf_arena *arena, sf_buf *out)
{
    static const sf_column columns[] = {
        {"nodes", false, SF_STAYS},     {"link", false, SF_STAYS},
        {"latency us", true, SF_STAYS}, {"B/s a device", true, SF_STAYS},
        {"to one", true, SF_STAYS},     {"lanes", true, SF_STAYS}};
    sf_heading(out, style, "links");
    sf_table table = sf_table_new(arena, 6, columns);
    for (int i = 0; i < cluster->nruns; i++) {
        const sf_nodes *run = &cluster->nodes[i];
        char where[160];
        snprintf(where, sizeof where, "%d x %d %.100s", run->count, run->devices,
                 cluster->kinds[run->kind].name);
        add_link(&table, where, "inside", &run->inside);
        add_link(&table, "", "network", &run->network);
    }
    if (cluster->rack_nodes) {
        char where[64];
        snprintf(where, sizeof where, "racks of %d", cluster->rack_nodes);
        add_link(&table, where, "uplink", &cluster->uplink);
    }
    sf_table_print(&table, style, out);
}

static const double sizes[] = {4096, 1048576, 67108864, 1073741824};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void add_collective(sf_table *table, const sf_costs *costs, uint32_t axes, const char *where)
{
    static const sf_collective kinds[] = {SF_ALL_REDUCE, SF_ALL_GATHER, SF_ALL_TO_ALL};
    for (int k = 0; sf_costs_group_size(costs, axes) > 1 && k < 3; k++) {
        sf_algorithm how = SF_ALGORITHM_NONE;
        sf_table_add(table, "%s", k == 0 ? where : "");
        if (k == 0)
            sf_table_add(table, "%d", sf_costs_group_size(costs, axes));
        else
            sf_table_add(table, "%s", "");
        sf_table_add(table, "%s", sf_collective_name(kinds[k]));
        for (int s = 0; s < SIZES; s++)
            sf_table_add(
                table, "%s",
                microseconds_text(sf_costs_collective_how(costs, kinds[k], axes, sizes[s], &how))
                    .at);
        sf_table_add(table, "%s", sf_algorithm_name(how));
    }
}

/* Groups of a node, of one device of each node, and of all; where nodes differ, of all only. */
static void put_cluster_collectives(const sf_cluster *cluster, sf_style style, sf_arena *arena,
                                    sf_buf *out)
{
    static const sf_column columns[] = {
        {"groups", false, SF_STAYS}, {"members", true, SF_STAYS},     {"us", false, SF_STAYS},
        {"4 KiB", true, SF_STAYS},   {"1 MiB", true, SF_STAYS},       {"64 MiB", true, SF_STAYS},
        {"1 GiB", true, SF_STAYS},   {"the last by", false, SF_STAYS}};
    bool equal = true;
    for (int i = 1; i < cluster->nruns; i++)
        equal = equal && cluster->nodes[i].devices == cluster->nodes[0].devices;
    int shape[2] = {1, cluster->ndevices};
    if (equal) {
        shape[0] = cluster->nnodes;
        shape[1] = cluster->nodes[0].devices;
    }
    sf_costs *costs;
    if (cluster->ndevices < 2 || sf_costs_new(cluster, 2, shape, 0, arena, NULL, &costs) != SF_OK)
        return;
    sf_heading(out, style, "collectives, in all groups at the same time");
    sf_table table = sf_table_new(arena, 8, columns);
    if (equal && cluster->nnodes > 1) {
        add_collective(&table, costs, 2, "a node");
        add_collective(&table, costs, 1, "one device of each node");
    }
    add_collective(&table, costs, 3, "all");
    sf_table_print(&table, style, out);
}

static void put_cluster_text(const sf_cluster *cluster, const sf_show_options *options, sf_buf *out)
{
    sf_style style = {.width = options->width, .colour = options->colour};
    sf_arena arena = {0};
    sf_heading(out, style, "cluster");
    sf_buf_printf(out, "  name     %s\n", cluster->name);
    if (*cluster->source)
        sf_buf_printf(out, "  source   %s\n", cluster->source);
    sf_buf_printf(out, "  devices  %d in %d node%s\n", cluster->ndevices, cluster->nnodes,
                  cluster->nnodes == 1 ? "" : "s");
    sf_buf_printf(out, "  hash     %016" PRIx64 "\n", sf_cluster_hash(cluster));
    put_devices(cluster, style, &arena, out);
    put_links(cluster, style, &arena, out);
    put_cluster_collectives(cluster, style, &arena, out);
    sf_arena_free(&arena);
}

static void list_beds(sf_style style, sf_arena *arena, sf_buf *out)
{
    static const sf_column columns[] = {{"name", false, SF_STAYS},
                                        {"nodes", true, SF_STAYS},
                                        {"devices", true, SF_STAYS},
                                        {"of kind", false, SF_STAYS},
                                        {"source", false, SF_STAYS}};
    sf_heading(out, style, "clusters");
    sf_table table = sf_table_new(arena, 5, columns);
    for (int i = 0; sf_library_bed_nth(i); i++) {
        const sf_library_bed *bed = sf_library_bed_nth(i);
        sf_table_add(&table, "%s", bed->name);
        sf_table_add(&table, "%d", bed->nodes);
        sf_table_add(&table, "%d", bed->nodes * bed->devices);
        sf_table_add(&table, "%s", bed->kind);
        sf_table_add(&table, "%s", bed->source);
    }
    sf_table_print(&table, style, out);
}

static void list_text(const sf_show_options *options, sf_buf *out)
{
    sf_style style = {.width = options->width, .colour = options->colour};
    sf_arena arena = {0};
    list_beds(style, &arena, out);
    sf_heading(out, style, "kinds of devices, for NODESxDEVICESxKIND");
    sf_table table = sf_table_new(&arena, DEVICE_COLUMNS, device_columns);
    for (int i = 0; sf_library_kind_nth(i); i++)
        add_device(&table, &sf_library_kind_nth(i)->kind, sf_library_kind_nth(i)->nodes);
    sf_table_print(&table, style, out);
    sf_arena_free(&arena);
}

static void list_json(sf_buf *out)
{
    sf_json_writer json = {.buf = out, .indent = true};
    sf_json_begin_object(&json);
    sf_json_key(&json, "clusters");
    sf_json_begin_array(&json);
    for (int i = 0; sf_library_bed_nth(i); i++)
        sf_json_put_string(&json, sf_library_bed_nth(i)->name);
    sf_json_end_array(&json);
    sf_json_key(&json, "devices");
    sf_json_begin_array(&json);
    for (int i = 0; sf_library_kind_nth(i); i++)
        sf_json_put_string(&json, sf_library_kind_nth(i)->kind.name);
    sf_json_end_array(&json);
    sf_json_end_object(&json);
    sf_buf_putc(out, '\n');
}

struct job {
    const sf_cluster *cluster; /* NULL: the library */
    sf_show_options options;
    const sf_output *output;
    sf_diag *diag;
};

static sf_status write_cluster(void *context)
{
    struct job *job = context;
    sf_buf out = {0};
    if (!job->cluster && job->options.json)
        list_json(&out);
    else if (!job->cluster)
        list_text(&job->options, &out);
    else if (job->options.json)
        sf_cluster_write(job->cluster, &out);
    else
        put_cluster_text(job->cluster, &job->options, &out);
    sf_status status = sf_output_report(job->output, &out, job->diag);
    sf_buf_free(&out);
    return status;
}

/* NULL: the names of the library. */
static sf_status show(const sf_cluster *cluster, const sf_show_options *options,
                      const sf_output *output, sf_diag *diag)
{
    struct job job = {.cluster = cluster, .output = output, .diag = diag};
    SF_TRY(SF_TAKE(sf_show_options, options, &job.options, diag));
    return sf_guarded(write_cluster, &job, diag);
}

sf_status sf_cluster_show(const sf_cluster *cluster, const sf_show_options *options,
                          const sf_output *output, sf_diag *diag)
{
    SF_NEED(diag, cluster);
    return show(cluster, options, output, diag);
}

sf_status sf_cluster_list(const sf_show_options *options, const sf_output *output, sf_diag *diag)
{
    return show(NULL, options, output, diag);
}
