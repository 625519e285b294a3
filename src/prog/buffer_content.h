/* The contents of buffers, as hashes: equal hashes mean equal contents, whatever the order, the
 * place and the buffer in which they were made. So two programs are known to compute the same where
 * one was made from the other by moving instructions, by joining or parting collectives, or by
 * dropping an instruction whose result exists already. The checker (prog/check_program.h) does not
 * compare contents; this does.
 *
 * The content of a result is a hash of the operands' contents and of the instruction. A part of a
 * collective has the same content alone and among others. A body is followed once, with unknown
 * loop-carried values; the contents that one iteration makes of them are compared.
 *
 * Only instructions that were copied from each other are known to be equal. Loops are compared by
 * their steps. */
#ifndef SF_PROG_BUFFER_CONTENT_H
#define SF_PROG_BUFFER_CONTENT_H

#include "prog/program.h"

typedef uint64_t sf_content;

/* By instruction: the contents of its results after it. In the arena, for the instructions of this
 * program; `arguments`, by argument, are their initial contents; NULL: all are different. */
sf_content **sf_contents_of(const sf_program *program, const sf_content *arguments,
                            sf_arena *arena);

/* The contents of a body's arguments when it begins, given the program's initial `arguments` and
 * all instructions before this one. In the arena. */
sf_content *sf_contents_of_body(const sf_program *program, const sf_content *arguments,
                                uint32_t inst, sf_arena *arena);

/* A hash of the results and of the final contents of every argument. Equal for programs that
 * compute the same. */
uint64_t sf_program_meaning(const sf_program *program);

#endif
