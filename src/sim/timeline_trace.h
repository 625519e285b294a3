/* Timelines for Perfetto and chrome://tracing: a process for each rank, a track for each stream, memory as a counter. */
#ifndef SF_SIM_TIMELINE_TRACE_H
#define SF_SIM_TIMELINE_TRACE_H

#include "base/json.h"
#include "sim/sim.h"

/* The text: all ranks of the mesh come between the two. `about` describes the trace. */
void sf_trace_begin(sf_json_writer *json, const char *about, const sf_mesh *mesh);
void sf_trace_end(sf_json_writer *json);

/* A step of one rank: `insts` is when its instructions began and ended, in seconds. */
void sf_trace_put(const sf_program *program, const sf_timing *insts, int rank,
                  sf_json_writer *json);

/* The last run of a body of instruction `within` of the step. */
void sf_trace_put_body(const sf_program *program, uint32_t within, const sf_program *body,
                       const sf_timing *insts, int rank, sf_json_writer *json);

#endif
