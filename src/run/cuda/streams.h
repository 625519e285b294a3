/* The streams of a GPU: the compute stream, and others that run concurrently. Work on one of them
 * is done in order; one follows another from its current position, or waits for an event. */
#ifndef SF_RUN_CUDA_STREAMS_H
#define SF_RUN_CUDA_STREAMS_H

#include "run/cuda/cuda_device.h"
#include "run/cuda/cuda_libraries.h"

typedef struct sf_streams {
    const sf_cuda_driver *driver;
    cu_stream at[SF_LANE_COUNT + SF_MORE_LANES];
    int count;
    void *point;   /* event of a stream that is followed */
    void **raised; /* events, by number */
    size_t nraised;
} sf_streams;

/* All but the driver zeroed; returns the number of an error of the driver, or 0. */
int sf_streams_open(sf_streams *streams);
void sf_streams_close(sf_streams *streams);
int sf_streams_add(sf_streams *streams); /* one more, at the end; not past the room there is */

/* Likewise numbers of errors; `sf_device_table` describes them. */
int sf_streams_follow(sf_streams *streams, sf_lane which, sf_lane whom);
int sf_streams_raise(sf_streams *streams, sf_lane lane, size_t event, size_t count);
int sf_streams_await(sf_streams *streams, sf_lane lane, size_t event);

#endif
