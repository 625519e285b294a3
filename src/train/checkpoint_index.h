/* The texts inside of a checkpoint. */
#ifndef SF_TRAIN_CHECKPOINT_INDEX_H
#define SF_TRAIN_CHECKPOINT_INDEX_H

#include "file/safetensors.h"
#include "train/checkpoint.h"

/* checkpoint.json. For a run of one rank, it has the hashes of the tensors, by argument; else
 * `pieces`, by rank, sf_text_hash of the file beside its shards. */
void sf_checkpoint_put_index(const sf_state *state, const sf_checkpoint_info *info,
                             const uint64_t *hashes, const uint64_t *shards, sf_buf *out);

/* The last key of checkpoint.json: a hash of all before it. */
#define SF_CHECKPOINT_DIGEST "digest"

/* Of the text of checkpoint.json, up to that key; false when it has none. */
bool sf_checkpoint_digest(sf_str index, uint64_t *out);

uint64_t sf_text_hash(sf_str text);

/* The file beside a rank's shards: the names and hashes of these arguments. */
void sf_checkpoint_put_hashes(const sf_state *state, size_t count, const uint32_t *arguments,
                              const uint64_t *hashes, sf_buf *out);

#endif
