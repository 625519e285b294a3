/* One small use of every op that is not element-wise, for docs/reference/ops.md: its factors are shown there. */
#ifndef SF_REPORT_SAMPLES_H
#define SF_REPORT_SAMPLES_H

#include "base/str.h"
#include "op/op.h"

/* Appends a step in StableHLO text with one use of the op. False when there is no sample. */
bool sf_sample(const sf_opdef *def, sf_buf *step);

/* A step that applies an element-wise op to tensors of this element type. */
void sf_sample_pointwise(const sf_opdef *def, sf_dtype dtype, sf_buf *step);

#endif
