/* Whether a program can be run: what it says of itself holds, whoever made it.
 *
 *  - views lie inside of their buffers, and what instructions say of their operands fits these;
 *  - what is read was written, constants are not, and arguments only where they have a next value;
 *  - buffers live when they are announced to; those that do at the same time do not overlap, and bytes are those
 *    that are announced;
 *  - an instruction writes what it reads only where its kind allows that;
 *  - nothing touches what an instruction of another stream is still writing, or writes what it is still reading;
 *    every event that is waited for is raised, once, by an instruction that stands before;
 *  - nothing but copies reaches memory of the host, and what they brought there comes back before it is used;
 *  - collectives are along axes of the mesh, on the stream of these, and their numbers rise.
 *
 * It trusts no pass: lives and conflicts are found anew, from the instructions alone. What is computed it does not
 * look at: an instruction in place of another, or a collective in the same way wrong on all ranks, is a program,
 * too.
 */
#ifndef SF_PROG_CHECK_PROGRAM_H
#define SF_PROG_CHECK_PROGRAM_H

#include "prog/program.h"

/* SF_EMISMATCH, naming the instruction and what is wrong with it. Bodies are checked, too. */
sf_status sf_program_check(const sf_program *program, sf_diag *diag);

/* Whether two ranks of a mesh come to the same collectives in the same order, with the same parts: otherwise they
 * would wait for each other. SF_EMISMATCH, naming the first that differs. */
sf_status sf_program_match(const sf_program *a, const sf_program *b, sf_diag *diag);

#endif
