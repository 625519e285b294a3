/* Clean names of a step's arguments: the names of their tensors in files.
 *
 *     params['params']['layer_0']['attn']['q']['kernel']     params/layer_0/attn/q/kernel
 *     opt[0].mu['params']['wte']['embedding']                opt/0/mu/params/wte/embedding
 *     batch__ids__.1  (HLO's spelling of batch['ids'])       batch/ids
 *     layers.0.weight                                        layers/0/weight
 *
 * A first part that is repeated ("params/params") is written once. */
#ifndef SF_IR_NAME_H
#define SF_IR_NAME_H

#include "base/arena.h"
#include "ir/graph.h"

/* The clean form of any name; "" when nothing of it is left. Lives in the arena. */
const char *sf_clean_name(sf_str name, sf_arena *arena);

/* Without the ".7" that makes names unique in HLO. */
sf_str sf_name_without_number(sf_str name);

/* One for each argument: all different, never empty, the same for the same step. */
const char **sf_clean_names(const sf_graph *graph, sf_arena *arena);

/* The part of a clean name that does not depend on its spelling: letters and digits, and '_' for
 * any characters between them. HLO writes opt[0] and opt_0 alike, so names of two texts are
 * compared by this. Lives in the arena. */
const char *sf_name_key(sf_str name, sf_arena *arena);

/* "params/w", "layer_0/mlp/dot_general": the name of a value of the step in messages. Appends to
 * `buf` and returns its text. */
const char *sf_value_name(const sf_graph *graph, sf_value value, sf_buf *buf);

/* Whether the last parts of a clean name are `ending`, a clean name too: "attn/q/kernel" ends with
 * "q/kernel" and with itself, but not with "rnel". */
bool sf_name_ends(const char *name, const char *ending);

/* Whether the pattern, in which * matches any characters and ? one, matches the name or the last
 * parts of it; after a slash, the whole name only. */
bool sf_name_matches(const char *pattern, const char *name);

/* Whether it matches the name, or an outer scope: "attn" contains "layer_0/attn/dot_general". */
bool sf_name_is_in(const char *pattern, const char *name);

/* The last part. */
const char *sf_name_last(const char *name);

/* Whether the argument is kept from step to step and so belongs in a checkpoint: arguments with a
 * next value, and parameters that never change. */
bool sf_argument_is_kept(const sf_argument *argument);

#endif
