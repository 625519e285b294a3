/* The machine's resources, and its clock. */
#ifndef SF_BASE_MACHINE_H
#define SF_BASE_MACHINE_H

#include <stdint.h>

/* Bytes of memory that can still be taken without swapping, also under the limit of a container; 0
 * when that cannot be known. */
int64_t sf_machine_memory(void);

/* Seconds of a clock that never goes back, CLOCK_MONOTONIC. */
double sf_now(void);

/* Seconds that this thread has had a processor, without those of others. A system call. */
double sf_thread_time(void);

#endif
