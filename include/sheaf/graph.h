/* A training step: read it, look at it, write it. */
#ifndef SHEAF_GRAPH_H
#define SHEAF_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sheaf/output.h"
#include "sheaf/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sf_graph sf_graph;

typedef struct sf_load_options {
    size_t size; /* sizeof this struct, see api.h */
    int64_t
        unroll; /* loops of up to this many iterations are unrolled; negative: none; 0: 256, and up to
                     * 2048 where they become no more than 100,000 ops */
    int64_t most_nodes;  /* refuse a step that unrolls and inlines to more; 0: four million */
    const char *sidecar; /* path of the JSON with roles; "none" for none; NULL: NAME.json, or
                            that with .gz or .xz, beside the step, if it is there and has "args" */
    const char *state; /* which result becomes which argument, by hand: "ARGUMENT=RESULT,...", each
                            a number or a name; "none" for a step without state; NULL: infer */
    int64_t
        assume_trip_count; /* the trip count of loops whose text does not give one, in costs and simulations; 0: one.
                            Running a step does not use it */
    bool
        strict; /* what is guessed of roles and state against the sidecar or the text is SF_EINPUT, not a warning */
} sf_load_options;

/* Reads StableHLO or HLO text, also .gz and .xz; "-" is standard input. The text determines which
 * of the two it is. `options` may be NULL. On success *out is for sf_graph_free. */
SF_API sf_status sf_load(const char *path, const sf_load_options *options, sf_diag *diag,
                         sf_graph **out);

/* The same from memory; messages use `name` as the name of the file. */
SF_API sf_status sf_load_text(const char *text, size_t length, const char *name,
                              const sf_load_options *options, sf_diag *diag, sf_graph **out);

SF_API void sf_graph_free(sf_graph *graph);

/* The hash of the computation: equal for equal computations, whatever the text looked like. */
SF_API uint64_t sf_graph_hash(const sf_graph *graph);

/* Arguments and results have numbers, from 0 on; strings live as long as the graph. A number
 * that is out of range gives NULL, false or -1. */

SF_API int sf_graph_arguments(const sf_graph *graph);
SF_API int sf_graph_results(const sf_graph *graph);

/* As the text has them; a result without a name has "". */
SF_API const char *sf_graph_argument_name(const sf_graph *graph, int argument);
SF_API const char *sf_graph_result_name(const sf_graph *graph, int result);

/* The number of the argument with this name, or -1. A name is as the text has it, or the cleaned
 * form that files use ("params/layer_0/kernel"). */
SF_API int sf_graph_find_argument(const sf_graph *graph, const char *name);
SF_API int sf_graph_find_result(const sf_graph *graph, const char *name);

enum { SF_TENSOR_DIMS = 16 };

/* The type of a tensor. The caller sets `size`, the library fills the rest. */
typedef struct sf_tensor_type {
    size_t size;       /* sizeof this struct, see api.h */
    const char *dtype; /* as StableHLO spells it: "f32", "bf16", "i32", "ui8", "i1",
                          "complex<f32>", whose elements are a real and an imaginary part */
    int bytes;         /* of an element in memory; one of less than 8 bits has a byte of its own */
    int rank;          /* how many dimensions */
    int64_t count;     /* elements in all */
    int64_t dims[SF_TENSOR_DIMS];
} sf_tensor_type;

SF_API bool sf_graph_argument_type(const sf_graph *graph, int argument, sf_tensor_type *out);
SF_API bool sf_graph_result_type(const sf_graph *graph, int result, sf_tensor_type *out);

/* The role of an argument. */
typedef enum sf_role {
    SF_ROLE_PARAM = 0,
    SF_ROLE_STATE = 1, /* of the optimizer */
    SF_ROLE_BATCH = 2,
    SF_ROLE_KEY = 3, /* of random bits */
    SF_ROLE_OTHER = 4,
} sf_role;

SF_API sf_role sf_graph_argument_role(const sf_graph *graph, int argument);
SF_API const char *sf_role_name(sf_role role); /* "param", ... */

/* The result that becomes this argument in the next step, or -1. */
SF_API int sf_graph_argument_next(const sf_graph *graph, int argument);

/* The result that is the loss, or -1. */
SF_API int sf_graph_loss(const sf_graph *graph);

/* The scopes of the ops of the step, as paths ("layer_0/attn"), an outer scope before the scopes in it, without the outermost. Writes up to `capacity` of them to `out` and returns how many there are; -1 without memory. */
SF_API int sf_graph_scopes(const sf_graph *graph, int capacity, const char **out);

/* Writes canonical StableHLO text. */
SF_API sf_status sf_save_stablehlo(const sf_graph *graph, const sf_output *output, sf_diag *diag);

#ifdef __cplusplus
}
#endif

#endif
