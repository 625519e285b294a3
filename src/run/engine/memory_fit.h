/* Whether a program fits into memory, before any is allocated: its recorded sizes are the memory
 * that it takes. */
#ifndef SF_RUN_ENGINE_MEMORY_FIT_H
#define SF_RUN_ENGINE_MEMORY_FIT_H

#include "prog/program.h"

typedef struct sf_room {
    int64_t memory;  /* there is so much for device and host together; 0: no limit */
    int64_t device;  /* and so much of the device for the program; 0: no limit of its own */
    int64_t scratch; /* that the engine takes beside the program */
} sf_room;

/* SF_ENOMEM, with the instruction at which most memory is in use, and the largest buffers there. */
sf_status sf_check_room(const sf_program *program, const sf_room *room, sf_diag *diag);

/* Memory that was predicted to fit could not be allocated: SF_ENOMEM, with the bytes requested, and
 * with the prediction. */
sf_status sf_fail_room(const sf_program *program, const sf_room *room, int64_t bytes,
                       sf_diag *diag);

#endif
