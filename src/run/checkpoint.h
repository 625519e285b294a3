/* Checkpoints: the whole state of a training run on disk.
 *
 *     DIR/latest                      "step-000200": the one to resume from
 *     DIR/step-000100/
 *     DIR/step-000200/
 *         checkpoint.json             what it is, see docs/training.md
 *         state.safetensors           one tensor for each argument that is kept, by clean name
 *
 * A checkpoint is written beside, as DIR/.step-000200.tmp-PID, synced to disk and renamed; `latest` is
 * replaced after that, and old checkpoints go last. So whatever stops the program, and whenever,
 * `latest` names a whole one.
 */
#ifndef SF_RUN_CHECKPOINT_H
#define SF_RUN_CHECKPOINT_H

#include "base/file.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "run/mapping.h"

enum { SF_CHECKPOINT_VERSION = 1 };

/* What a checkpoint says about itself, besides its tensors. */
typedef struct sf_checkpoint_info {
    int64_t step; /* steps that were made; the next one has this number, counting from 0 */
    uint64_t seed;
    uint64_t graph;   /* hash of the step */
    const char *data; /* describes data and order, in one line, or "" */
} sf_checkpoint_info;

/* A directory of checkpoints that one run writes to. Holds a lock on it, which is an outside handle:
 * whoever opens it closes it, after a jump too. A zeroed one is closed. */
typedef struct sf_checkpoints {
    bool open;
    int lock; /* descriptor of the directory */
    char path[SF_PATH_SIZE];
} sf_checkpoints;

/* Makes the directory (and those above it) where it is not there, locks it, and clears away what a
 * killed run left half-written. SF_EUSAGE when another run writes there. */
sf_status sf_checkpoints_open(const char *path, sf_diag *diag, sf_checkpoints *out);
void sf_checkpoints_close(sf_checkpoints *dir);

/* Saves the arguments that are kept. `names` are clean names. Then removes the oldest checkpoints of
 * earlier steps, so that `keep` are left, this one among them; 0 keeps all. On failure `latest` is as
 * before. */
sf_status sf_checkpoints_save(sf_checkpoints *dir, const sf_graph *graph, const char *const *names,
                              const sf_tensor *arguments, const sf_checkpoint_info *info,
                              int64_t keep, sf_diag *diag);

/* The checkpoint to resume from: `path` itself if it is one, else what `latest` in it names, else the
 * one of the most steps in it. "" when there is none, which is no failure. Fits SF_PATH_SIZE. */
sf_status sf_checkpoint_find(const char *path, char out[SF_PATH_SIZE], sf_diag *diag);

/* Whether the path is a directory that holds a checkpoint. */
bool sf_checkpoint_is(const char *path);

/* Reads a checkpoint into the arguments. Refuses one of another step (by the hash of the graph), of
 * other names, shapes or types, one that is not complete, and one whose bytes have changed. Names may
 * be spelled as another text of the same step spells them (see sf_name_key), unless two of them become
 * the same by that. The tensors are never in memory twice: they are mapped, and `mappings`, empty
 * before and after, is where the file is found after a jump. *info lives in the arena. When it fails,
 * the arguments may be partly filled. */
sf_status sf_checkpoint_load(const char *path, const sf_graph *graph, const char *const *names,
                             const sf_tensor *arguments, sf_mappings *mappings, sf_arena *arena,
                             sf_checkpoint_info *info, sf_diag *diag);

/* The hash of a tensor's elements, the same on every machine. */
uint64_t sf_tensor_hash(const sf_tensor *tensor);

/* The names inside of a checkpoint. */
#define SF_CHECKPOINT_INDEX "checkpoint.json"
#define SF_CHECKPOINT_STATE "state.safetensors"
#define SF_CHECKPOINT_LATEST "latest"

/* The number of steps in the name of a checkpoint, "step-000100" or, while it is being replaced,
 * "step-000100.old"; -1 for every other name. */
int64_t sf_checkpoint_number(const char *name);

#endif
