/* The arguments of a step, from a file of values: in.I at first, then batch.K.NAME for step K, while the
 * state goes from step to step. */
#ifndef SF_API_REPLAY_H
#define SF_API_REPLAY_H

#include "api/value_files.h"

/* Zeroed before it is opened; closing it is always allowed. */
typedef struct sf_replay {
    const sf_graph *graph;
    const char *path;
    sf_safetensors file;
    sf_tensor *arguments; /* of the current step: views of the file, or tensors of the caller */
    sf_str *batches;      /* by argument: NAME of the batch.K.NAME that feed it, or empty */
} sf_replay;

/* Reads the file and finds every argument in it. Arrays live in the arena. */
sf_status sf_replay_open(const sf_graph *graph, const char *path, sf_arena *arena, sf_diag *diag,
                         sf_replay *out);
void sf_replay_close(sf_replay *replay);

/* Finds out which argument is fed by which batches. */
void sf_replay_find(sf_replay *replay, sf_arena *arena);

/* How many steps there are batches for; INT_MAX when the step takes none. */
int sf_replay_count(const sf_replay *replay);

/* Points the arguments to the batch of a step; *changed when one of them is another now. Arguments
 * that are neither state nor in the file stay as they are. */
sf_status sf_replay_batch(sf_replay *replay, int step, sf_diag *diag, bool *changed);

/* Points the state among the arguments to the results that it becomes. */
void sf_carry_state(const sf_graph *graph, const sf_tensor *results, sf_tensor *arguments);

/* Whether results have the types of the arguments that they become. */
sf_status sf_check_state(const sf_graph *graph, sf_diag *diag);

/* Which result is the loss; SF_EINPUT when none is. */
sf_status sf_find_loss(const sf_graph *graph, sf_diag *diag, uint32_t *out);

#endif
