/* A training step: read it, look at it, write it. */
#ifndef SHEAF_GRAPH_H
#define SHEAF_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include "sheaf/output.h"
#include "sheaf/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sf_graph sf_graph;

typedef struct sf_load_options {
    size_t size;    /* of this struct, or 0: see sheaf.h */
    int64_t unroll; /* loops of up to this many iterations are unrolled; negative: none; 0: 256 */
    int64_t most_nodes;  /* refuse a step that unrolls and inlines to more; 0: four million */
    const char *sidecar; /* path of the JSON with roles; "none" for none; NULL: NAME.json, or
                            that with .gz or .xz, beside the step, if it is there and has "args" */
    const char *state; /* which result becomes which argument, by hand: "ARGUMENT=RESULT,...", each
                            a number or a name; "none" for a step without state; NULL: infer */
} sf_load_options;

/* Reads StableHLO or HLO text, also .gz and .xz; "-" is standard input. Which of the two it is, the
 * text tells. `options` may be NULL. On success *out is for sf_graph_free. */
SF_API sf_status sf_load(const char *path, const sf_load_options *options, sf_diag *diag,
                         sf_graph **out);

/* The same from memory; `name` stands for the file in messages. */
SF_API sf_status sf_load_text(const char *text, size_t length, const char *name,
                              const sf_load_options *options, sf_diag *diag, sf_graph **out);

SF_API void sf_graph_free(sf_graph *graph);

/* Names what the step computes: equal for equal computations, whatever the text looked like. */
SF_API uint64_t sf_graph_hash(const sf_graph *graph);

/* Writes canonical StableHLO text. */
SF_API sf_status sf_save_stablehlo(const sf_graph *graph, const sf_output *output, sf_diag *diag);

#ifdef __cplusplus
}
#endif

#endif
