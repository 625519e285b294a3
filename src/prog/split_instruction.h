/* Splits of instructions: some rows of a product, and the same rows of the collective after it, so
 * that one split is sent while another is computed.
 *
 * Memory is split into cells, ranges of one size, contiguous. A split of a product has one cell of
 * its result, and of the operand that it reads row by row; a split of a collective has one of every
 * block:
 *
 *     a product of 8 rows, made for two ranks, in two splits      | 0 0 1 1 | 0 0 1 1 |    four
 *     cells, split by split
 *
 * So all of the original instruction's data is read and written in the same places, by several
 * instructions, and elements are combined in the same order. A split refers to the original
 * instruction; prog/buffer_content.h takes all splits together for that. */
#ifndef SF_PROG_SPLIT_INSTRUCTION_H
#define SF_PROG_SPLIT_INSTRUCTION_H

#include "prog/program.h"

/* Cells first, first + step, ..., so many, out of `of`; 0 of 0: it is not cut. */
typedef struct sf_cells {
    uint32_t of, first, step, count;
} sf_cells;

typedef struct sf_inst_piece {
    const sf_inst *whole; /* the original; the split itself has its buffers */
    uint32_t cut;         /* the operand that `in` speaks of; others are read whole */
    sf_cells in, out;     /* of that operand, and of every result */
} sf_inst_piece;

/* Whether the product, and its epilogue, can be split this often by the rows of its result: along
 * m, or along n, whichever is contiguous there. *cut is the operand that has these rows. */
bool sf_dot_can_cut(const sf_inst *inst, uint32_t cells, uint32_t *cut);

/* Cell `cell` of these. */
sf_inst sf_dot_piece(sf_program *program, const sf_inst *whole, uint32_t cells, uint32_t cell);

/* The split of a collective of one part that has these cells of its operand and result. */
sf_inst sf_exchange_piece(sf_program *program, const sf_inst *whole, sf_cells in, sf_cells out);

/* Whether the instruction is a valid split of its original. */
bool sf_piece_fits(const sf_inst *inst);

/* Whether two instructions may touch the same bytes, by views of one buffer. Only splits of one
 * instruction are known not to. */
bool sf_insts_meet(const sf_inst *a, const sf_view *of_a, const sf_inst *b, const sf_view *of_b);

#endif
