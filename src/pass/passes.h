/* What the passes of the list do; each has a file. */
#ifndef SF_PASS_PASSES_H
#define SF_PASS_PASSES_H

#include "pass/pass.h"

sf_status sf_pass_fullshard(sf_passing *passing);
sf_status sf_pass_prefetch(sf_passing *passing);
sf_status sf_pass_zero3(sf_passing *passing);
sf_status sf_pass_unshard(sf_passing *passing);
sf_status sf_pass_offload(sf_passing *passing);
sf_status sf_pass_offload_all(sf_passing *passing);

#endif
