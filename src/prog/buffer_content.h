/* What buffers hold, as a number: equal numbers mean equal contents, whatever the order, the place and the buffer in
 * which they were made. So two programs are known to compute the same where one was made from the other by moving
 * instructions, by joining or parting collectives, or by leaving out what was there already. What the
 * checker (prog/check_program.h) does not look at, this does.
 *
 * The content of a result is that of the instruction's operands, and what it does with them. A part of a collective is
 * the same alone and among others. A body is followed once, with what a loop carries as an unknown: it is what
 * the loop makes of it that is compared.
 *
 * Only instructions that were copied from each other are known to be equal, but for loops, whose steps are looked at.
 */
#ifndef SF_PROG_BUFFER_CONTENT_H
#define SF_PROG_BUFFER_CONTENT_H

#include "prog/program.h"

typedef uint64_t sf_content;

/* By instruction: the contents of its results once it is done. In the arena, for the instructions of this program;
 * `arguments`, by argument, is what these hold at the beginning; NULL: each something of its own. */
sf_content **sf_contents_of(const sf_program *program, const sf_content *arguments,
                            sf_arena *arena);

/* What the arguments of a body hold when it begins, where the program's own hold `arguments` and all before the
 * instruction is done. In the arena. */
sf_content *sf_contents_of_body(const sf_program *program, const sf_content *arguments,
                                uint32_t inst, sf_arena *arena);

/* What the program leaves: the results, and every argument. Equal for programs that compute the same. */
uint64_t sf_program_meaning(const sf_program *program);

#endif
