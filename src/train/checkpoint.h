/* Checkpoints: the whole state of a training run on disk.
 *
 *     DIR/latest                      "step-000200": the one to resume from
 *     DIR/step-000100/
 *     DIR/step-000200/
 *         checkpoint.json             its index, see docs/guides/train.md
 *         state.safetensors           one tensor for each argument that is kept, by clean name
 *
 * A run on several ranks has a state-00001-of-00004.safetensors of each rank instead, with the
 * shards of which it is the first holder, and their hashes beside it in a file that ends in .json.
 * The index has the layouts of the shards, so any run can load any checkpoint: on other ranks, by
 * another plan, or on one device. The ranks must see one file system.
 *
 * A checkpoint is written beside, as DIR/.step-000200.tmp-RUN, synced to disk and renamed; `latest` is
 * replaced after that, and old checkpoints go last. So whatever stops the program, and whenever,
 * `latest` names a whole one. */
#ifndef SF_TRAIN_CHECKPOINT_H
#define SF_TRAIN_CHECKPOINT_H

#include "base/file.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "run/comm/comm.h"
#include "train/mapped_file.h"
#include "train/rank_shards.h"

/* Those before 3, of one rank 1 and of several 2, had no digests; they are read, too. */
enum { SF_CHECKPOINT_VERSION = 3 };

/* The properties of a checkpoint, besides its tensors. */
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
    /* in names of half-written files: of no other run. All ranks need that of the first one
     * before they save */
    int64_t run;
    char path[SF_PATH_SIZE];
} sf_checkpoints;

/* Makes the directory (and its parents) if it is not there, locks it, and removes half-written
 * files of a killed run. SF_EIO when another run writes there. */
sf_status sf_checkpoints_open(const char *path, sf_diag *diag, sf_checkpoints *out);

/* For ranks other than the first, which has opened it: they only write shards. */
sf_status sf_checkpoints_join(const char *path, sf_diag *diag, sf_checkpoints *out);
void sf_checkpoints_close(sf_checkpoints *dir);

/* The saved data: this rank's shards of the arguments that are kept. */
typedef struct sf_state {
    const sf_rank_shards *shards;
    const char *const *names; /* clean, by argument */
    sf_holder holder;         /* of the shards */
    sf_comm *comm;            /* all ranks save together; NULL for a run of one */
} sf_state;

/* Saves. Then removes the oldest checkpoints of earlier steps, so that `keep` are left, this one among
 * them; 0 keeps all. On failure `latest` is as before. */
sf_status sf_checkpoints_save(sf_checkpoints *dir, const sf_state *state,
                              const sf_checkpoint_info *info, int64_t keep, sf_diag *diag);

/* The checkpoint to resume from: `path` itself if it is one, else the one that `latest` in it
 * names, else the one of the most steps in it. "" when there is none, which is no failure. Fits
 * SF_PATH_SIZE. */
sf_status sf_checkpoint_find(const char *path, char out[SF_PATH_SIZE], sf_diag *diag);

/* Whether the path is a directory that holds a checkpoint. */
bool sf_checkpoint_is(const char *path);

/* Reads a checkpoint into the shards, however it was split when it was saved. Refuses one of
 * another step (by the hash of the graph), of other names, shapes or types, one that is not
 * complete, and one whose bytes have changed. Names may be spelled as another text of the same
 * step spells them (see sf_name_key), unless two of them become the same by that. The tensors
 * are never in memory twice: they are mapped, and `mappings`, empty before and after, is where
 * the files are found after a jump. *info lives in the arena. When it fails, the arguments may
 * be partly filled. */
sf_status sf_checkpoint_load(const char *path, const sf_state *state, sf_mappings *mappings,
                             sf_arena *arena, sf_checkpoint_info *info, sf_diag *diag);

/* The hash of a tensor's elements, the same on every machine. */
uint64_t sf_tensor_hash(const sf_tensor *tensor);

/* The names inside of a checkpoint. */
#define SF_CHECKPOINT_INDEX "checkpoint.json"
#define SF_CHECKPOINT_STATE "state.safetensors"
#define SF_CHECKPOINT_LATEST "latest"

/* The file of a rank's shards, "state-00001-of-00004.safetensors", or with the other ending,
 * ".json". */
enum { SF_SHARDS_NAME = 64 };
void sf_checkpoint_shards_name(int rank, int ranks, const char *ending, char out[SF_SHARDS_NAME]);

/* The number of steps in the name of a checkpoint, "step-000100" or, while it is being replaced,
 * "step-000100.old"; -1 for every other name. */
int64_t sf_checkpoint_number(const char *name);

#endif
