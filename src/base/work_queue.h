/* Lanes: work that goes on beside a caller, in order.
 *
 * A lane does its jobs one after the other, on a thread of its own, which is started with its first job. A job begins
 * when those it comes after, of other lanes, have ended. Jobs are the caller's memory and stay where they are until they
 * have been waited for. One thread hands out and waits.
 */
#ifndef SF_BASE_WORK_QUEUE_H
#define SF_BASE_WORK_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sf_lanes sf_lanes;

enum { SF_LANES = 2 };

typedef struct sf_lane_job {
    void (*work)(void *context);
    void *context;
    uint32_t nafter;
    struct sf_lane_job **after; /* that have been started before */
    struct sf_lane_job *next; /* in the lane; set by sf_lanes_start, as are the following fields */
    bool done;
} sf_lane_job;

/* NULL where there is no memory. Kept when a guard is left (base/mem.h): its threads look at it. */
sf_lanes *sf_lanes_new(void);

/* Waits for all jobs. */
void sf_lanes_free(sf_lanes *lanes);

/* Where no thread can be started, the caller does it. */
void sf_lanes_start(sf_lanes *lanes, int lane, sf_lane_job *job);

void sf_lanes_wait(sf_lanes *lanes, const sf_lane_job *job);

#endif
