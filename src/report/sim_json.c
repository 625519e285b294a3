#include "base/json.h"
#include "report/report_memory.h"
#include "report/report_passes.h"
#include "report/report_sim.h"
#include "report/report_time.h"
#include "run/runner.h"

static void put_json_kinds(const sf_sim_report *r, sf_json_writer *json)
{
    sf_json_key(json, "instructions_by_kind");
    sf_json_begin_object(json);
    for (int k = 0; k < SF_INST_KIND_COUNT; k++) {
        if (r->kinds[k].count == 0)
            continue;
        sf_json_key(json, sf_inst_kind_name((sf_inst_kind)k));
        sf_json_begin_object(json);
        sf_json_add_int(json, "count", r->kinds[k].count);
        sf_json_add_double(json, "seconds", r->kinds[k].seconds);
        sf_json_end_object(json);
    }
    sf_json_end_object(json);
}

void sf_sim_put_comm(const sf_sim_report *r, const sf_sim_comm *comm, sf_json_writer *json)
{
    char axes[SF_AXES_TEXT];
    sf_json_add_string(json, "kind", comm->name);
    sf_json_add_string(json, "axes", sf_axes_text(&r->plan->mesh, comm->axes, axes));
    sf_json_add_int(json, "count", comm->count);
    sf_json_add_double(json, "bytes", comm->bytes);
    sf_json_add_double(json, "seconds", comm->seconds);
    sf_json_add_double(json, "exposed", comm->exposed);
}

static void put_json_comms(const sf_sim_report *r, sf_json_writer *json)
{
    sf_json_key(json, "communication");
    sf_json_begin_array(json);
    for (size_t i = 0; i < r->ncomms; i++) {
        sf_json_begin_object(json);
        sf_sim_put_comm(r, &r->comms[i], json);
        sf_json_add_string(json, "link", sf_level_name(r->comms[i].level));
        sf_json_end_object(json);
    }
    sf_json_end_array(json);
}

static void put_json_copies(const sf_sim_report *r, sf_json_writer *json)
{
    if (r->sim.ncopies == 0)
        return;
    sf_json_key(json, "copies");
    sf_json_begin_object(json);
    sf_json_add_int(json, "count", r->sim.ncopies);
    sf_json_add_double(json, "bytes", r->sim.copied);
    sf_json_add_double(json, "seconds", r->sim.copying);
    sf_json_add_double(json, "exposed", r->sim.copies_exposed);
    sf_json_add_int(json, "host_memory", sf_program_host_bytes(r->program));
    sf_json_end_object(json);
}

void sf_sim_json(sf_sim_report *r, sf_buf *out)
{
    sf_json_writer json = {.buf = out, .indent = true};
    sf_json_begin_object(&json);
    sf_json_key(&json, "mesh");
    sf_mesh_put_json(&r->plan->mesh, &json);
    sf_json_add_string(&json, "cluster", r->cluster->name);
    sf_precision_json(r->graph, sf_cluster_target(r->cluster), &json);
    sf_json_add_double(&json, "seconds", r->sim.seconds);
    sf_json_add_double(&json, "compute", r->sim.compute);
    sf_json_add_double(&json, "exposed", r->sim.exposed);
    sf_json_add_double(&json, "hidden", r->sim.hidden);
    sf_json_add_double(&json, "flops", r->flops);
    sf_json_add_double(&json, "mfu", r->sim.seconds > 0 ? r->best / r->sim.seconds : 0);
    sf_json_add_int(&json, "instructions", (int64_t)r->program->ninsts);
    sf_sim_json_groups(r, &json);
    put_json_kinds(r, &json);
    put_json_comms(r, &json);
    put_json_copies(r, &json);
    sf_outcomes_put(&r->runs.at[r->runs.busiest], &json);
    sf_json_add_int(&json, "memory", r->price.memory);
    sf_memory_json(&r->price, &json);
    if (r->timed)
        sf_json_add_double(&json, "measured", r->timed_seconds);
    sf_json_end_object(&json);
    sf_buf_putc(out, '\n');
}
