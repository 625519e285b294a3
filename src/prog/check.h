/* Whether a program can be run: what it says of itself holds, whoever made it.
 *
 *  - views lie inside of their buffers, and what instructions say of their operands fits these;
 *  - what is read was written, constants are not, and arguments only where they have a next value;
 *  - buffers that live at the same time do not overlap, and the peak is the one that is announced;
 *  - an instruction writes what it reads only where its kind allows that;
 *  - nothing touches what an instruction of another stream is still writing, or writes what it is still reading;
 *    every event that is waited for is raised, once, by an instruction that stands before.
 *
 * It trusts no pass: lives and conflicts are found anew, from the instructions alone. What is computed it does not
 * look at.
 */
#ifndef SF_PROG_CHECK_H
#define SF_PROG_CHECK_H

#include "prog/program.h"

/* SF_EWRONG, naming the instruction and what is wrong with it. Bodies are checked, too. */
sf_status sf_program_check(const sf_program *program, sf_diag *diag);

#endif
