/* Edits an existing program; passes (pass/pass.h) use these functions. Events, lives and places
 * keep their old values until sf_program_settle recomputes them. */
#ifndef SF_PROG_EDIT_PROGRAM_H
#define SF_PROG_EDIT_PROGRAM_H

#include "prog/program.h"

/* A snapshot of a program: its lists, the operands of its instructions, attributes of collectives,
 * and its bodies likewise. Kernels, loops and types are shared with it. */
typedef struct sf_kept sf_kept;
sf_kept *sf_program_keep(const sf_program *program, sf_arena *arena);

/* The program is as it was kept; any number of times, for the memory of once. What was made of it since is lost. */
void sf_program_put_back(sf_program *program, sf_kept *kept);

/* The instructions in this order, by their numbers, which may leave some out. Buffers that nothing touches then are
 * empty. */
void sf_program_arrange(sf_program *program, const uint32_t *order, size_t count);

/* A new instruction, to be put in its place by sf_program_arrange; its number is the last. */
uint32_t sf_program_add(sf_program *program, const sf_inst *inst);

/* A new buffer of the device's arena. */
uint32_t sf_program_add_buffer(sf_program *program, int64_t bytes, sf_value value);

/* All readers of buffer `from` after the instruction of number `after` read `to`. */
void sf_program_read_instead(sf_program *program, uint32_t after, uint32_t from, uint32_t to);

/* Lets the bodies of an instruction see buffers of the program; the number of the first in all of them is returned, that of an
 * argument that they only read, and the others follow. Numbers of their buffers from there on are as much higher than they were. */
uint32_t sf_nest_capture(sf_program *program, uint32_t inst, const sf_view *views, uint32_t count);

/* Joins collectives of a kind along the same axes into the first of them; a part of each is then a part of it. */
void sf_join_exchanges(sf_program *program, const uint32_t *insts, size_t count);

/* Gives each part of a collective an instruction of its own: the first stays where it is, and the numbers of the others
 * are the last ones. */
void sf_part_exchange(sf_program *program, uint32_t inst);

/* The collective without the parts that are gone; false: none is left. Its lists are then its own. */
bool sf_drop_parts(sf_program *program, sf_inst *exchange, const bool *gone);

/* Collectives are numbered in the order in which a rank reaches them, those of bodies where their
 * instruction is. */
void sf_program_number(sf_program *program);

/* The collectives of a program, in order: ranks whose numbers are equal meet at each of them. */
uint64_t sf_program_traffic(const sf_program *program);

#endif
