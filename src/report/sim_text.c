#include "report/report_memory.h"
#include "report/report_passes.h"
#include "report/report_sim.h"
#include "report/report_time.h"
#include "run/runner.h"

enum { SLOWEST = 8 };

static void put_head(const sf_sim_report *r, sf_style style, sf_buf *out)
{
    sf_buf mesh = {0};
    sf_mesh_print(&r->plan->mesh, &mesh);
    sf_heading(out, style, "program");
    sf_buf_printf(out, "  mesh     %s, %d ranks, %s\n", mesh.text, sf_mesh_size(&r->plan->mesh),
                  r->plan->pipeline ? "of which those of the busiest pipeline rank are shown"
                                    : "which all do the same");
    sf_buf_printf(out, "  cluster  %s\n", r->cluster->name);
    sf_precision_text(r->graph, sf_cluster_target(r->cluster), out);
    sf_buf_printf(out, "  length   %s instructions on %s streams\n",
                  sf_text_count((int64_t)r->program->ninsts).at,
                  sf_text_count((int64_t)r->program->nstreams).at);
    sf_buf_free(&mesh);
}

static void add_share(sf_table *table, const char *what, int64_t count, double seconds, double all)
{
    sf_table_add(table, "%s", what);
    sf_table_add(table, "%s", count > 0 ? sf_text_count(count).at : "");
    sf_table_add(table, "%s", sf_text_seconds(seconds).at);
    sf_table_add(table, "%s", sf_text_share(seconds, all).at);
}

static void put_times(sf_sim_report *r, sf_style style, sf_buf *out)
{
    static const sf_column columns[] = {{"what", false, SF_STAYS},
                                        {"instructions", true, SF_STAYS},
                                        {"time", true, SF_STAYS},
                                        {"share", true, SF_STAYS}};
    sf_heading(out, style, "where the time of a step goes");
    sf_table table = sf_table_new(&r->arena, 4, columns);
    double inside = 0;
    for (int k = 0; k < SF_INST_KIND_COUNT; k++) {
        const sf_sim_kind *kind = &r->kinds[k];
        if (kind->count == 0 || k == SF_INST_COMM || k == SF_INST_COPY)
            continue;
        inside += kind->waits;
        add_share(&table, sf_inst_kind_name((sf_inst_kind)k), kind->count,
                  kind->seconds - kind->waits, r->sim.seconds);
    }
    if (inside > 0)
        add_share(&table, "waiting in loops", 0, inside, r->sim.seconds);
    add_share(&table, "waiting", 0, r->sim.exposed - inside, r->sim.seconds);
    add_share(&table, "all", 0, r->sim.seconds, r->sim.seconds);
    sf_table_print(&table, style, out);
}

static void put_comms(sf_sim_report *r, sf_style style, sf_buf *out)
{
    static const sf_column columns[] = {
        {"collective", false, SF_STAYS}, {"axes", false, SF_STAYS},  {"link", false, SF_STAYS},
        {"count", true, SF_STAYS},       {"bytes", true, SF_STAYS},  {"time", true, SF_STAYS},
        {"hidden", true, SF_STAYS},      {"exposed", true, SF_STAYS}};
    sf_heading(out, style, "communication");
    if (r->ncomms == 0) {
        sf_remark(out, style, "none");
        return;
    }
    sf_table table = sf_table_new(&r->arena, 8, columns);
    for (size_t i = 0; i < r->ncomms; i++) {
        const sf_sim_comm *c = &r->comms[i];
        char axes[SF_AXES_TEXT];
        double hidden = c->seconds > c->exposed ? c->seconds - c->exposed : 0;
        sf_table_add(&table, "%s", c->name);
        sf_table_add(&table, "%s", sf_axes_text(&r->plan->mesh, c->axes, axes));
        sf_table_add(&table, "%s", sf_level_name(c->level));
        sf_table_add(&table, "%s", sf_text_count(c->count).at);
        sf_table_add(&table, "%s", sf_text_bytes(c->bytes).at);
        sf_table_add(&table, "%s", sf_text_seconds(c->seconds).at);
        sf_table_add(&table, "%s", sf_text_seconds(hidden).at);
        sf_table_add(&table, "%s", sf_text_seconds(c->exposed).at);
    }
    sf_table_print(&table, style, out);
    for (int level = 0; level < SF_LEVELS; level++)
        if (sf_sim_link_seconds(r, level) > 0)
            sf_remark(out, style, "links %s are in use %s of the step", sf_level_name(level),
                      sf_text_share(sf_sim_link_seconds(r, level), r->sim.seconds).at);
}

/* Only where there are any. */
static void put_copies(sf_sim_report *r, sf_style style, sf_buf *out)
{
    const sf_simulation *sim = &r->sim;
    if (sim->ncopies == 0)
        return;
    sf_heading(out, style, "copies to and from the host");
    sf_remark(out, style, "%s copies of %s, %s beside each other and what is computed, %s exposed",
              sf_text_count(sim->ncopies).at, sf_text_bytes(sim->copied).at,
              sf_text_seconds(sim->copying).at, sf_text_seconds(sim->copies_exposed).at);
    sf_remark(out, style, "%s of memory of the host",
              sf_text_bytes((double)sf_program_host_bytes(r->program)).at);
}

static void put_sim_memory(sf_sim_report *r, sf_style style, sf_buf *out)
{
    sf_memory_text(&r->price, &r->arena, style, out);
    if (*r->price.peak.op)
        sf_remark(out, style, "at %s, %s, in %s", r->price.peak.op,
                  sf_phase_name(r->price.peak.phase),
                  *r->price.peak.scope ? r->price.peak.scope : "no scope");
}

static void put_slowest(sf_sim_report *r, sf_style style, bool all, sf_buf *out)
{
    static const sf_column columns[] = {{"number", true, SF_STAYS},  {"time", true, SF_STAYS},
                                        {"share", true, SF_STAYS},   {"kind", false, SF_STAYS},
                                        {"phase", false, SF_STAYS},  {"op", false, SF_STAYS},
                                        {"scope", false, SF_SHRINKS}};
    size_t count = all || r->nslowest < SLOWEST ? r->nslowest : SLOWEST;
    sf_heading(out, style, "slowest instructions");
    sf_table table = sf_table_new(&r->arena, 7, columns);
    for (size_t i = 0; i < count; i++) {
        const sf_inst *inst = &r->program->insts[r->slowest[i]];
        const sf_timing *t = &r->sim.insts[r->slowest[i]];
        sf_table_add(&table, "%u", r->slowest[i]);
        sf_table_add(&table, "%s", sf_text_seconds(t->end - t->start).at);
        sf_table_add(&table, "%s", sf_text_share(t->end - t->start, r->sim.seconds).at);
        sf_table_add(&table, "%s", sf_inst_kind_name(inst->kind));
        sf_table_add(&table, "%s", sf_phase_name(inst->origin.phase));
        sf_table_add(&table, "%s", inst->origin.op);
        sf_table_add(&table, "%s", inst->origin.scope);
    }
    sf_table_print(&table, style, out);
}

void sf_sim_text(sf_sim_report *r, sf_style style, bool all, sf_buf *out)
{
    sf_sim_text_groups(r, style, out);
    put_head(r, style, out);
    put_times(r, style, out);
    put_comms(r, style, out);
    put_copies(r, style, out);
    sf_outcomes_print(&r->runs.at[r->runs.busiest], style, &r->arena, out);
    put_sim_memory(r, style, out);
    if (r->timed)
        sf_sim_text_beside(r, style, all, out);
    else
        put_slowest(r, style, all, out);
    sf_buf_printf(out, "\nstep %s: compute %s, exposed %s, hidden %s; memory %s",
                  sf_text_seconds(r->sim.seconds).at, sf_text_seconds(r->sim.compute).at,
                  sf_text_seconds(r->sim.exposed).at, sf_text_seconds(r->sim.hidden).at,
                  sf_text_bytes((double)r->price.memory).at);
    if (r->flops > 0)
        sf_buf_printf(out, "; %sFLOP/s, MFU %s", sf_text_flops(r->flops / r->sim.seconds).at,
                      sf_text_share(r->best, r->sim.seconds).at);
    if (r->timed)
        sf_buf_printf(out, "; measured %s, of which that is %s",
                      sf_text_seconds(r->timed_seconds).at,
                      sf_text_share(r->sim.seconds, r->timed_seconds).at);
    sf_buf_putc(out, '\n');
}
