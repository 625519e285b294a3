/* Where exchanges by NCCL are put on lanes, where ranks run different programs: stages. Each is put where its members all have come to it
 * (run/comm/exchange_order.h), not where its rank does; so a GPU that does one thing after the other comes to the end, too. */
#ifndef SF_RUN_CUDA_NCCL_ORDER_H
#define SF_RUN_CUDA_NCCL_ORDER_H

#include "run/cuda/cuda.h"

/* Ranks exchange their lists of events, if one of them sends messages. *is_found, the same on all:
 * there is an order. */
sf_status sf_cuda_find_puts(cuda *c, sf_diag *diag, bool *is_found);

#endif
