/* Measures an engine by steps with one kind of instruction: its time in a step of many.
 *
 * All ranks make the same calls (run/measure.h). A step is run a few times first, so that it runs
 * in its final form: on a GPU, as one graph. */
#ifndef SF_API_PROBE_PROBE_H
#define SF_API_PROBE_PROBE_H

#include "run/measure.h"
#include "run/runner.h"

typedef struct sf_probe {
    const sf_meter *meter;
    const char *engine; /* as sf_runner_options has it */
    sf_precision precision;
    double share; /* of the time of a curve, that each number gets */
    double base;  /* seconds of a step beside its instructions */
} sf_probe;

/* The time of a step, and of its program. */
typedef struct sf_probed {
    double seconds;      /* of an instruction, the base of the step taken off */
    double flops, bytes; /* of an instruction, as the simulator counts (sim/instruction_work.h) */
    double all;          /* seconds of all instructions, */
    double folds, runs;  /* and of all of them, these (cluster/cost_model.h) */
} sf_probed;

/* Of a text; SF_EMISMATCH where it became another number of instructions than `count`, 0: any. */
sf_status sf_probe_text(const sf_probe *probe, const sf_buf *text, int count, sf_probed *out);

/* The same of a graph. */
sf_status sf_probe_graph(const sf_probe *probe, const sf_graph *graph, int count, sf_probed *out);

/* Seconds of an instruction with next to no work, with its part of the step's overhead. */
sf_status sf_measure_launch(const sf_probe *probe, double *out);

/* The overhead of a step beside its instructions: for probe->base. */
sf_status sf_measure_base(const sf_probe *probe, double *out);

#endif
