/* Whether instructions, each by itself, are well formed. */
#ifndef SF_PROG_CHECK_SHAPE_H
#define SF_PROG_CHECK_SHAPE_H

#include "prog/program.h"

/* Fails about an instruction: "instruction 3, dot in layer_0/mlp: ...". */
sf_status sf_inst_fail(const sf_program *program, uint32_t index, sf_diag *diag, const char *format,
                       ...) __attribute__((format(printf, 4, 5)));

/* Numbers of buffers, events and streams are in range; views lie in their buffers; operands fit the
 * kind of instruction. */
sf_status sf_check_shape(const sf_program *program, uint32_t index, sf_diag *diag);

/* Whether a result lies in its buffer, row by row, and is of its type. */
bool sf_result_fits(const sf_program *program, uint32_t index);

/* Whether the instruction, which reads and writes the buffer, may. */
bool sf_may_write_over(const sf_inst *inst, uint32_t buffer);

#endif
