/* Ops that no step may have, however it is written: parallelism of its own, calls back into Python,
 * dynamic sizes. Each is refused by one sentence that names the op, its place, and the remedy; a
 * reader ends there, because more errors of the same kind would follow. */
#ifndef SF_FRONT_REFUSED_OPS_H
#define SF_FRONT_REFUSED_OPS_H

#include "base/diag.h"
#include "base/str.h"

/* An op by its name in StableHLO ("stablehlo.all_reduce") or HLO ("all-reduce"), and a custom call by its target. SF_OK
 * when it is none of those. */
sf_status sf_refuse_op(sf_str name, sf_loc loc, sf_diag *diag);
sf_status sf_refuse_target(sf_str target, sf_loc loc, sf_diag *diag);

/* The type of a tensor with such a size, and that of tokens. */
sf_status sf_refuse_dynamic(sf_str type, sf_loc loc, sf_diag *diag);
sf_status sf_refuse_token(sf_str type, sf_loc loc, sf_diag *diag);

#endif
