/* An engine holds the state of a step and runs it repeatedly.
 *
 * The arguments live in the engine, in memory of its own. The host reads and writes them through calls, between
 * steps. After a step, every result that becomes an argument of the next step is that argument; the others (the
 * loss, say) can be read until the next step.
 *
 * An engine is used by one thread at a time. Engines on one program do not disturb each other. */
#ifndef SF_RUN_ENGINE_ENGINE_H
#define SF_RUN_ENGINE_ENGINE_H

#include "base/thread_pool.h"
#include "ir/tensor.h"
#include "prog/program.h"
#include "prog/timing.h"
#include "run/comm/comm.h"

typedef struct sf_engine sf_engine;

/* The link to the host's memory, by which copies are throttled; bandwidth 0: they are not. */
typedef struct sf_host_link {
    double bandwidth, latency; /* bytes a second, each way; seconds of a copy */
} sf_host_link;

/* The type in which products of f32 are computed. */
typedef enum sf_precision {
    SF_PRECISION_F32,
    SF_PRECISION_TF32, /* factors lose bits where a GPU is faster then */
    SF_PRECISION_BF16, /* this and those below: run/mixed_precision.h */
    SF_PRECISION_F16,
    SF_PRECISION_FP8,
    SF_PRECISION_COUNT
} sf_precision;

typedef struct sf_engine_options {
    int threads;      /* 0: as many as the process may use */
    sf_threads *pool; /* borrowed, instead of `threads` of its own. Whoever may be left by a failed
                         allocation (base/mem.h) owns the pool outside, for threads cannot be left */
    int64_t memory;   /* most bytes, of device and host; 0: the memory of the machine */
    int64_t device_memory;  /* most bytes of the device alone; 0: no other limit */
    sf_host_link host_link; /* of a device that copies between its memory and the host's */
    sf_precision precision; /* except for products that the text wants more precise */
    sf_comm *comm;          /* for collectives, borrowed; NULL: all groups are of one rank */
} sf_engine_options;

/* An engine of the kind that the program was lowered for. The program is borrowed and must outlive the engine.
 * Arguments are zero. */
sf_status sf_engine_open(const sf_program *program, const sf_engine_options *options, sf_diag *diag,
                         sf_engine **out);

/* The oracle: evaluates the graph, which it borrows, node by node with the reference kernels, on one thread.
 * `mesh`, borrowed, is that of the collectives of the graph. */
sf_status sf_engine_open_oracle(const sf_graph *graph, const sf_mesh *mesh,
                                const sf_engine_options *options, sf_diag *diag, sf_engine **out);

void sf_engine_free(sf_engine *engine);

const sf_type *sf_engine_argument_type(const sf_engine *engine, uint32_t index);

/* Lends an argument to the host: out->data may be read and, with `writes`, written until it is given back, before
 * the next step. An engine whose memory the host cannot reach copies it there, and back; the CPU's copies
 * nothing. Several may be lent at a time. */
sf_status sf_engine_lend(sf_engine *engine, uint32_t argument, bool writes, sf_diag *diag,
                         sf_tensor *out);
sf_status sf_engine_give_back(sf_engine *engine, uint32_t argument, sf_diag *diag);

/* All elements of an argument become zero, which costs nothing where they still are. */
sf_status sf_engine_clear(sf_engine *engine, uint32_t argument, sf_diag *diag);

/* A result of the last step, likewise, to be read; of one that became an argument, that argument. It need not be
 * given back. */
sf_status sf_engine_see(sf_engine *engine, uint32_t result, sf_diag *diag, sf_tensor *out);

/* The same with copies: all elements, contiguous. */
sf_status sf_engine_write(sf_engine *engine, uint32_t argument, const void *data, sf_diag *diag);
sf_status sf_engine_read(sf_engine *engine, uint32_t argument, void *data, sf_diag *diag);
sf_status sf_engine_read_result(sf_engine *engine, uint32_t result, void *data, sf_diag *diag);

/* Runs the step once. When it fails the arguments are as before, or the engine says in the message
 * that they are not. */
sf_status sf_engine_step(sf_engine *engine, sf_diag *diag);

/* The same in two halves. If the step goes on after the first, arguments that no step changes,
 * batches, may be lent and written meanwhile; they are returned after the second half, and no other
 * call of the engine is allowed in between. */
sf_status sf_engine_start(sf_engine *engine, sf_diag *diag, bool *goes_on);
sf_status sf_engine_finish(sf_engine *engine, sf_diag *diag);

/* Runs the step once on these arguments, which may be the results of an earlier step; `results` get data
 * from sf_alloc, which the caller frees. */
sf_status sf_engine_evaluate(sf_engine *engine, const sf_tensor *arguments, sf_tensor *results,
                             sf_diag *diag);

/* Bytes of arguments, results and everything between, at the peak; known before the first step. For
 * the oracle: of the steps so far. */
int64_t sf_engine_memory(const sf_engine *engine);

int sf_engine_threads(const sf_engine *engine);

/* Where the time of the steps so far went: a table by instruction, the slowest first. */
void sf_engine_profile(const sf_engine *engine, sf_buf *out);

/* When the instructions of a program ran last: of the engine's own, in the last step, or of a body of one of its instructions. NULL
 * where that is not known. */
const sf_timing *sf_engine_timeline(const sf_engine *engine, const sf_program *program);

#endif
