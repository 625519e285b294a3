/* Pieces of instructions: some rows of a product, and the same rows of the collective beside it, so that one piece is sent
 * while another is computed.
 *
 * What is cut lies in cells, stretches of one size, one behind the other. A piece of a product has one cell of what it makes,
 * and of the operand that it takes row by row; a piece of a collective has one of every block:
 *
 *     a product of 8 rows, made for two places, in two turns      | 0 0 1 1 | 0 0 1 1 |    four cells, turn by turn
 *
 * So all that was one instruction is read and written in the same places, by several, and elements are combined in the order
 * in which they were. A piece says what it is a piece of; prog/buffer_content.h takes all of them together for that.
 */
#ifndef SF_PROG_SPLIT_INSTRUCTION_H
#define SF_PROG_SPLIT_INSTRUCTION_H

#include "prog/program.h"

/* Cells first, first + step, ..., so many, out of `of`; 0 of 0: it is not cut. */
typedef struct sf_cells {
    uint32_t of, first, step, count;
} sf_cells;

typedef struct sf_inst_piece {
    const sf_inst *whole; /* as it was; which buffers it is on, the piece itself says */
    uint32_t cut;         /* the operand that `in` speaks of; others are read whole */
    sf_cells in, out;     /* of that operand, and of every result */
} sf_inst_piece;

/* Whether the product, and the loop behind it, can be cut into so many pieces by the rows of what it makes: along m, or
 * along n, whichever lies one behind the other there. *cut is the operand that has these rows. */
bool sf_dot_can_cut(const sf_inst *inst, uint32_t cells, uint32_t *cut);

/* Cell `cell` of these. */
sf_inst sf_dot_piece(sf_program *program, const sf_inst *whole, uint32_t cells, uint32_t cell);

/* Turn `turn` of a collective of one part: of what it takes, and makes, these cells. */
sf_inst sf_exchange_piece(sf_program *program, const sf_inst *whole, sf_cells in, sf_cells out);

/* Whether the instruction is the piece that it says it is. */
bool sf_piece_fits(const sf_inst *inst);

/* Whether two instructions may touch the same bytes, by views that are of one buffer. Only pieces are known not to. */
bool sf_insts_meet(const sf_inst *a, const sf_view *of_a, const sf_inst *b, const sf_view *of_b);

#endif
