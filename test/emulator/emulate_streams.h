/* The lanes of the emulated GPU. Work on a lane is done immediately, until a lane is requested in
 * the form of libraries: then that lane, and the compute lane, have a thread each that does the
 * work in order, as streams of a GPU. The caller goes on meanwhile. A GPU does not guarantee that
 * lanes are concurrent: if they share one of its queues, work there waits for all earlier work.
 * CUDA_DEVICE_MAX_CONNECTIONS=1 has that effect here, as there.
 *
 * One thread at a time uses lanes, but for those whose work is done immediately. */
#ifndef SF_TEST_EMULATOR_EMULATE_STREAMS_H
#define SF_TEST_EMULATOR_EMULATE_STREAMS_H

#include "run/cuda/cuda_device.h"

typedef struct sf_host_lanes sf_host_lanes;

/* `run` is called in its order, or, in a graph, each time that the graph reaches it; then `drop`,
 * once, if there is one. */
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

/* Work on lanes from begin to end is not done, but captured: `replay` does all of it, in its order.
 * A wait in between would wait forever. */
typedef struct sf_host_graph sf_host_graph;
void sf_host_lanes_begin(sf_host_lanes *lanes);
bool sf_host_lanes_draws(const sf_host_lanes *lanes);
sf_host_graph *sf_host_lanes_end(sf_host_lanes *lanes);
void sf_host_lanes_replay(sf_host_lanes *lanes, const sf_host_graph *graph);
void sf_host_lanes_forget(sf_host_lanes *lanes,
                          sf_host_graph *graph); /* and its content, when it is done */

/* `run` gets a copy of so many bytes of `what`, in its order. */
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
