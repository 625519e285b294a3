/* Moves between memory spaces: what passes add to a program before it is settled. */
#ifndef SF_PROG_MEMORY_SPACES_H
#define SF_PROG_MEMORY_SPACES_H

#include "prog/edit_program.h"

/* A new buffer of the host's arena, for what stands in a buffer of the device; its number. */
uint32_t sf_add_host_buffer(sf_program *program, uint32_t buffer);

/* A copy of all bytes from one buffer to another, of the other space. */
sf_inst sf_copy_inst(sf_program *program, uint32_t from, uint32_t to);

/* Waits for the copies that fill the buffers. */
sf_inst sf_join_inst(sf_program *program, const uint32_t *buffers, uint32_t count);

/* Gives arguments their home on the host: what touched one touches a buffer of the device from now on, whose number is in
 * `buffers`, and which the caller has copies fill, and brought back where it was written. */
void sf_house_on_host(sf_program *program, const uint32_t *arguments, size_t count,
                      uint32_t *buffers);

/* Instructions that are to stand before those of these numbers, in the order of the list, which is by number;
 * `before` = ninsts: at the end. */
typedef struct sf_insertion {
    uint32_t before;
    sf_inst inst;
} sf_insertion;
void sf_insert_insts(sf_program *program, const sf_insertion *list, size_t count);

#endif
