/* The functions of the passes in the list; each has a file. */
#ifndef SF_PASS_PASSES_H
#define SF_PASS_PASSES_H

#include "pass/pass.h"

/* Bytes of tensors that are worth a move, usually. */
enum { SF_OFFLOAD_LEAST = 4096 };

sf_status sf_pass_fsdp(sf_passing *passing);
sf_status sf_pass_prefetch(sf_passing *passing);
enum { SF_UNSHARD_WAYS = 4 }; /* and as many that consider how long a tensor stays */
sf_status sf_pass_unshard(sf_passing *passing);
enum { SF_DEFER_WAYS = 4 };
sf_status sf_pass_defer_gradient_readers(sf_passing *passing);
enum { SF_OVERLAP_WAYS = 5 };
sf_status sf_pass_overlap(sf_passing *passing);
sf_status sf_pass_compress(sf_passing *passing);
sf_status sf_pass_offload(sf_passing *passing);
enum { SF_BALANCE_ORDERS = SF_UNSHARD_WAYS + 12, SF_BALANCE_SETS = 64 };
sf_status sf_pass_balance(sf_passing *passing);
sf_status sf_pass_force(sf_passing *passing);

/* Loads the pass of a user. SF_EUSAGE where the file has none, or one of another version. */
sf_status sf_pass_load(const char *path, sf_arena *arena, sf_diag *diag, sf_chosen_pass *out);

#endif
