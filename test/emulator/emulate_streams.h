/* The lanes of the host in the place of a GPU. What is put on a lane is done at once, until one is asked for as libraries take it:
 * then that lane, and the one that computes, have a thread each that does what is put there, in order, as streams of a GPU. Who put
 * it goes on meanwhile. A GPU does not say that lanes go on beside each other: where they share a queue of its, what stands there waits
 * for all before it. CUDA_DEVICE_MAX_CONNECTIONS=1 makes that so here, as there.
 *
 * One thread at a time uses lanes, but for those on which all is done at once. */
#ifndef SF_TEST_EMULATOR_EMULATE_STREAMS_H
#define SF_TEST_EMULATOR_EMULATE_STREAMS_H

#include "run/cuda/cuda_device.h"

typedef struct sf_host_lanes sf_host_lanes;

/* `run` is called in its turn, or, where a graph is drawn, each time that is its turn there; then `drop`, once, if there is one. */
typedef struct sf_host_work {
    void (*run)(void *argument);
    void (*drop)(void *argument);
    void *argument;
} sf_host_work;

/* A lane as a library for the host takes it. */
typedef struct sf_host_stream {
    void (*put)(struct sf_host_stream *stream, sf_host_work work);
} sf_host_stream;

sf_host_lanes *sf_host_lanes_new(void);
void sf_host_lanes_free(sf_host_lanes *lanes); /* when all is done that is on them */

/* What is put on lanes from begin to end is not done, but kept: all of it is done by `replay`, in the order it came in. Who waits
 * between them would wait forever. */
typedef struct sf_host_graph sf_host_graph;
void sf_host_lanes_begin(sf_host_lanes *lanes);
bool sf_host_lanes_draws(const sf_host_lanes *lanes);
sf_host_graph *sf_host_lanes_end(sf_host_lanes *lanes);
void sf_host_lanes_replay(sf_host_lanes *lanes, const sf_host_graph *graph);
void sf_host_lanes_forget(sf_host_lanes *lanes,
                          sf_host_graph *graph); /* and what is in it, when it is done */

/* `run` gets a copy of the so many bytes of `what`, in its turn. */
void sf_host_lanes_put(sf_host_lanes *lanes, sf_lane lane, void (*run)(void *what),
                       const void *what, size_t bytes);

/* As sf_device_table says. */
sf_status sf_host_lanes_add(sf_host_lanes *lanes, sf_diag *diag, sf_lane *out);
sf_status sf_host_lanes_stream(sf_host_lanes *lanes, sf_lane lane, sf_diag *diag, void **out);
bool sf_host_lanes_ended(sf_host_lanes *lanes, sf_lane lane);
void sf_host_lanes_wait(sf_host_lanes *lanes, sf_lane lane);
void sf_host_lanes_follow(sf_host_lanes *lanes, sf_lane which, sf_lane whom);
void sf_host_lanes_raise(sf_host_lanes *lanes, sf_lane lane, size_t event);
void sf_host_lanes_await(sf_host_lanes *lanes, sf_lane lane, size_t event);

#endif
