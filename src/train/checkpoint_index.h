/* The texts inside of a checkpoint. */
#ifndef SF_TRAIN_CHECKPOINT_INDEX_H
#define SF_TRAIN_CHECKPOINT_INDEX_H

#include "file/safetensors.h"
#include "train/checkpoint.h"

/* checkpoint.json. For a run of one rank, the hashes of the tensors, by argument, stand in it. */
void sf_checkpoint_put_index(const sf_state *state, const sf_checkpoint_info *info,
                             const uint64_t *hashes, sf_buf *out);

/* The file beside a rank's pieces: the names and hashes of these arguments. */
void sf_checkpoint_put_hashes(const sf_state *state, size_t count, const uint32_t *arguments,
                              const uint64_t *hashes, sf_buf *out);

#endif
