/* A plan specification: the decisions of a plan that the user fixes. The planner chooses all
 * others; a plan that is pinned has their defaults.
 *
 * One struct serves sf_pin_step, sf_plan_search, sf_space_plan, sf_primitives_pin and
 * sf_primitives_search; the options of `sheaf pin` and `sheaf plan` and the settings of a schedule
 * in Lua have the names of its fields. Texts are read by one parser, whose errors (SF_EUSAGE) name
 * the field, the character and what was expected there. Texts are borrowed for the call. */
#ifndef SHEAF_SPEC_H
#define SHEAF_SPEC_H

#include <stddef.h>
#include <stdint.h>

#include "sheaf/api.h"
#include "sheaf/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sf_plan_spec {
    size_t size;      /* sizeof this struct, see api.h */
    const char *mesh; /* "data=2,model=4"; NULL: the recipe's for `ranks`, or, in a search, any */
    const char *const *
        pins; /* "PATTERN=SHARE@AXIS", docs/guides/split-by-hand.md; they precede those of the recipe */
    int npins;
    int ranks; /* 0: those of the mesh, or of the cluster */
    const char *
        recipe; /* "dp", "megatron", "2d+zero1", ...; in a search its pins hold, on `mesh`. NULL: none */
    /* A pipeline, docs/guides/pipelines.md: its number of stages, "4"; the scopes that begin all stages but the first,
     * "layer_3,layer_6"; or, for sf_pin_step, also the groups of devices of each stage, "@0-1,layer_3@2". NULL, "auto": none,
     * or, in a search, as many as are fast; "1": none. */
    const char *stages;
    const char *
        schedule; /* of a pipeline: "1f1b", ..., or, for sf_pin_step, a file with a table. NULL: 1f1b, or any */
    int micro_batches; /* the batch is cut into; 1: none. 0: none, or, in a search, as few as it needs */
    /* The activations that are recomputed rather than kept for the backward pass, docs/guides/micro-batches-and-recompute.md: "none", "text", "layer",
     * "parts", "cheap", "full", "layer:2" and "full:2" for two layers together, or scopes, "layer_?/attn,head". NULL: "text".
     * In a search "auto" is as little as is needed, and NULL is "text" where that fits, else "auto". */
    const char *recompute;
    /* Heads and features of a rank in chunks: "4"; of a recipe of one axis, "sequence:2"; in a scope, "4@layer_0,2", of which
     * the first that matches counts. NULL, "auto": "none", or, in a search, as few as it needs. */
    const char *co_shard;
    /* "full": all state is sharded, and gathered when it is used (zero3 and SF_FULL_STATE_PASSES of sheaf/pass.h); "between":
     * parameters are sharded between steps (zero1-between, or zero3 in place of zero2, and SF_BETWEEN_PASSES). NULL, "auto":
     * as the recipe says, or, in a search, whatever is fastest. */
    const char *shard_state;
    const char *
        passes; /* that rewrite each rank's program, docs/reference/passes.md; NULL: those that shard_state needs */
    /* kernels that replace several ops: "best", "none" or "all"; NULL: as in the graph */
    const char *kernels;
    int64_t memory; /* bytes of a device that a plan and its passes may use; 0: all */
} sf_plan_spec;

/* Sets one field from its text: ("micro_batches", "4"), ("recompute", "layer:2"). SF_EUSAGE where there is no such field, or the
 * parser does not take the text; the specification is then unchanged. Pins are no text. `value` is borrowed. */
SF_API sf_status sf_plan_spec_set(sf_plan_spec *spec, const char *field, const char *value,
                                  sf_diag *diag);

#ifdef __cplusplus
}
#endif

#endif
