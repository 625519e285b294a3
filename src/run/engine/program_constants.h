/* Constants of a program, as engines bring them to memory. */
#ifndef SF_RUN_ENGINE_PROGRAM_CONSTANTS_H
#define SF_RUN_ENGINE_PROGRAM_CONSTANTS_H

#include "prog/program.h"

/* Constants whose elements the text left out cannot be run: SF_EINPUT where there are any, in bodies too. */
sf_status sf_constants_check(const sf_program *program, sf_diag *diag);

/* The first `bytes` of its elements. */
void sf_constant_expand(const sf_dense *dense, char *to, int64_t bytes);

#endif
