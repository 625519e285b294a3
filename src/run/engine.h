/* An engine holds the state of a step and runs it, again and again.
 *
 * The arguments live in the engine. After a step, every result that becomes an argument of the next
 * step is that argument; the others (the loss, say) can be read until the next step.
 */
#ifndef SF_RUN_ENGINE_H
#define SF_RUN_ENGINE_H

#include "base/threads.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "run/comm/comm.h"
#include "shard/mesh.h"

typedef struct sf_engine sf_engine;

typedef enum sf_engine_kind { SF_ENGINE_CPU, SF_ENGINE_ORACLE } sf_engine_kind;

typedef struct sf_engine_options {
    sf_engine_kind kind;
    int threads;      /* 0: as many as the process may use */
    sf_threads *pool; /* borrowed, instead of `threads` of its own. Whoever may be left by a failed
                         allocation (base/mem.h) owns the pool outside, for threads cannot be left */
    int64_t memory;   /* most bytes; 0: what the machine has */
    sf_comm *comm;    /* for the collectives of a rank's graph, borrowed; NULL: it has none */
    const sf_mesh *mesh; /* that `comm` is of, borrowed */
} sf_engine_options;

/* The kind of that name, "cpu" or "oracle"; NULL is the fast one. SF_EUSAGE for another. */
sf_status sf_engine_kind_of(const char *name, sf_diag *diag, sf_engine_kind *out);
const char *sf_engine_kind_name(sf_engine_kind kind);

/* The graph is borrowed and must outlive the engine. Arguments are zero. */
sf_status sf_engine_new(const sf_graph *graph, const sf_engine_options *options, sf_diag *diag,
                        sf_engine **out);
void sf_engine_free(sf_engine *engine);

/* Argument `index`, to be written or read between steps; never moves. */
sf_tensor sf_engine_argument(sf_engine *engine, uint32_t index);

/* Result `index` of the last step, valid until the next one. For a result that became an argument,
 * that argument. */
sf_tensor sf_engine_result(sf_engine *engine, uint32_t index);

/* Runs the step once. When it fails the arguments are as before, or the engine says in the message
 * that they are not. */
sf_status sf_engine_step(sf_engine *engine, sf_diag *diag);

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

#endif
