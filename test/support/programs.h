/* Programs for tests of what makes, changes and checks them. */
#ifndef TEST_SUPPORT_PROGRAMS_H
#define TEST_SUPPORT_PROGRAMS_H

#include "local/local.h"
#include "prog/program.h"

/* Of a step in a text, loops as they are; fails the test where it cannot be read or does not pass sf_program_check.
 * `target` NULL: the CPU's. */
sf_program *test_lower_text(const char *text, const sf_target *target);

/* Calls `with` with the programs of every micro step: whole, and split by every recipe on 2 and on 4 ranks, of a
 * drawn rank and of the next one (NULL for a whole step). How often it did. */
typedef void test_with_program(void *context, const char *what, const sf_program *program,
                               const sf_program *other);
int test_each_program(test_with_program *with, void *context);

/* The same for whole steps only, lowered for a target. */
int test_each_whole(const sf_target *target, test_with_program *with, void *context);

/* A program with arrays of its own: instructions, their operands and waits, buffers, streams, results. What
 * instructions are, their bodies and their loops, is that of the original. */
typedef struct test_copy {
    sf_program p;
    sf_arena arena;
} test_copy;
void test_copy_program(const sf_program *from, test_copy *out);
void test_copy_free(test_copy *copy);

#endif
