/* Other texts of one computation. */
#ifndef TEST_SUPPORT_SHUFFLE_H
#define TEST_SUPPORT_SHUFFLE_H

#include "prog/program.h"

/* A micro step from its text, "stablehlo.mlir" or "hlo", with nodes shuffled and operands of commutative ops exchanged
 * by a seed; 0: as it is. */
sf_graph *test_shuffled(const char *name, const char *form, uint64_t seed);

/* Fails the test where the programs print otherwise. Scopes aside: HLO may tell others. */
void test_same_program(const char *what, const sf_program *x, const sf_program *y);

#endif
