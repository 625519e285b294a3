/* Checks that a program can be run: that its records are true, whoever made it.
 *
 *  - views lie inside their buffers, and an instruction's attributes fit its operands;
 *  - every read has a write before it, constants are not written, and arguments only if they have
 *    a next value;
 *  - buffers live within their recorded lives; buffers that live at the same time do not overlap,
 *    and sizes are as recorded;
 *  - an instruction writes an operand only if its kind allows that;
 *  - no instruction touches data that an instruction of another stream is still writing, or writes
 *    data that one is still reading; every awaited event is raised once, by an earlier
 *    instruction;
 *  - only copies access memory of the host, and data on the host is copied back before it is used;
 *  - collectives are along axes of the mesh, on their stream, in rising order of their numbers.
 *
 * It trusts no pass: it derives lives and conflicts from the instructions alone. It does not check
 * which values are computed: an instruction in place of another, or a collective with the same
 * error on all ranks, passes. */
#ifndef SF_PROG_CHECK_PROGRAM_H
#define SF_PROG_CHECK_PROGRAM_H

#include "prog/program.h"

/* SF_EMISMATCH, naming the instruction and its error. Bodies are checked, too. */
sf_status sf_program_check(const sf_program *program, sf_diag *diag);

/* Whether two ranks mean one collective by these: of one kind, set and monoid, on the same tensors. Passes number
 * collectives anew: numbers are those of lowering. */
bool sf_exchange_matches(const sf_inst *a, const sf_inst *b);

/* Whether two ranks of a mesh come to the same collectives in the same order, with the same parts: otherwise they
 * would wait for each other. SF_EMISMATCH, naming the first that differs. */
sf_status sf_program_match(const sf_program *a, const sf_program *b, sf_diag *diag);

#endif
