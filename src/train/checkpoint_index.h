/* The texts inside of a checkpoint. */
#ifndef SF_TRAIN_CHECKPOINT_INDEX_H
#define SF_TRAIN_CHECKPOINT_INDEX_H

#include "file/safetensors.h"
#include "train/checkpoint.h"

/* checkpoint.json. For a run of one rank, hashes of the tensors stand in it. */
void sf_checkpoint_put_index(const sf_state *state, const sf_checkpoint_info *info, sf_buf *out);

/* The file beside a rank's pieces: their names and hashes. */
void sf_checkpoint_put_hashes(size_t count, const sf_named_tensor *tensors, sf_buf *out);

#endif
