/* Moves between memory spaces at drawn places, for tests of programs that have them. */
#ifndef TEST_SUPPORT_MOVES_H
#define TEST_SUPPORT_MOVES_H

#include "prog/program.h"
#include "support/indexing.h"

/* Brings drawn buffers to the host and back, between two instructions that touch them, and gives drawn arguments their
 * home on the host; settles the program. How many moves there are. */
int test_move_buffers(sf_program *program, test_random *random);

#endif
