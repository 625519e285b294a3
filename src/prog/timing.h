/* When an instruction ran: in a simulation, or in a step that was timed. */
#ifndef SF_PROG_TIMING_H
#define SF_PROG_TIMING_H

/* In seconds from the beginning of the step. */
typedef struct sf_timing {
    double start, end;
    double
        exposed; /* of a collective: the wait for it, and the slowdown of concurrent instructions */
    double bytes; /* of a collective */
    double mean; /* seconds that it took on average, over the steps that were timed; 0: not known */
} sf_timing;

#endif
