/* The simulation of a plan, computed once, for text and for JSON.
 *
 *     report_sim.c          lowers and simulates the program of the first rank, and adds up
 *     sim_text.c     for people
 *     sim_groups.c   the pipeline ranks, for both
 *     sim_json.c     for machines
 *     sim_against.c  beside a run that was timed */
#ifndef SF_REPORT_REPORT_SIM_H
#define SF_REPORT_REPORT_SIM_H

#include "plan/json/prediction_json.h"
#include "report/table.h"
#include "search/price/price.h"
#include "sheaf/plan.h"
#include "sim/sim.h"

/* Instructions of one kind. */
typedef struct sf_sim_kind {
    int64_t count;
    double seconds, waits; /* in all, and of that for collectives inside of loops and branches */
} sf_sim_kind;

/* Collectives of one kind along the same axes, and how far they go: sf_costs_group_level. */
typedef struct sf_sim_comm {
    const char *name; /* "all_reduce"; or "message", of those between groups */
    sf_axes axes;
    int level;
    int64_t count;
    double bytes, seconds, exposed;
} sf_sim_comm;

typedef struct sf_sim_report {
    const sf_plan *plan;
    const sf_graph *graph;
    const sf_cluster *cluster;
    sf_costs *costs;
    sf_group_runs runs;
    sf_program *program; /* of the busiest group, */
    sf_simulation sim;   /* and its simulation */
    sf_price price;
    double flops,
        best; /* of the products of the whole step, and their time at the peak of all devices */
    sf_sim_kind kinds[SF_INST_KIND_COUNT];
    sf_sim_comm *comms; /* those that are waited for longest first */
    size_t ncomms, comm_capacity;
    uint32_t *slowest; /* instructions of the compute stream */
    size_t nslowest;
    sf_timing *timed; /* by instruction, of a run; or NULL */
    double timed_seconds, timed_waits, timed_kinds[SF_INST_KIND_COUNT];
    uint32_t *differing; /* all instructions, those whose time differs most first */
    sf_arena arena;
} sf_sim_report;

/* Lowers and simulates the first rank of each pipeline rank, and adds up: all but measured times.
 * `see` as of sf_price_plan. The report must be closed, after a failure too. */
sf_status sf_sim_fill(sf_sim_report *report, sf_see_reshard *see, void *context, sf_diag *diag);
void sf_sim_close(sf_sim_report *report);

/* "inside hosts", ... */
const char *sf_level_name(int level);

/* Time that a link is in use, by level. */
double sf_sim_link_seconds(const sf_sim_report *report, int level);

/* From a trace of the same program. */
sf_status sf_sim_read_timed(sf_sim_report *report, const char *path, sf_diag *diag);
void sf_sim_text_beside(sf_sim_report *report, sf_style style, bool all, sf_buf *out);

/* Of a pipeline: stages of a pipeline rank, in the arena, and its share of time waiting for
 * messages. */
uint32_t *sf_sim_stages(sf_sim_report *report, int group, uint32_t *count);
double sf_sim_message_waits(const sf_rank_run *run);

/* The share of all groups' time in which they compute nothing. */
double sf_sim_idle(const sf_sim_report *report);

/* Nothing where there is no pipeline. */
void sf_sim_text_groups(sf_sim_report *report, sf_style style, sf_buf *out);
void sf_sim_json_groups(sf_sim_report *report, sf_json_writer *json);

void sf_sim_text(sf_sim_report *report, sf_style style, bool all, sf_buf *out);
void sf_sim_json(sf_sim_report *report, sf_buf *out);

/* The costs of a kind of collective, into the open object. */
void sf_sim_put_comm(const sf_sim_report *report, const sf_sim_comm *comm, sf_json_writer *json);

#endif
