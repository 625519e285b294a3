/* Copies between memory spaces: passes add them to a program before it is settled. */
#ifndef SF_PROG_MEMORY_SPACES_H
#define SF_PROG_MEMORY_SPACES_H

#include "prog/edit_program.h"

/* A new buffer of the host's arena, for the content of a buffer of the device; its number. */
uint32_t sf_add_host_buffer(sf_program *program, uint32_t buffer);

/* A copy of all bytes from one buffer to another, of the other space. */
sf_inst sf_copy_inst(sf_program *program, uint32_t from, uint32_t to);

/* Waits for the copies that fill the buffers. */
sf_inst sf_join_inst(sf_program *program, const uint32_t *buffers, uint32_t count);

/* Moves arguments to the host: their accesses become accesses of a buffer of the device, whose
 * number is in `buffers`. The caller adds the copies that fill it, and copy it back after
 * writes. */
void sf_house_on_host(sf_program *program, const uint32_t *arguments, size_t count,
                      uint32_t *buffers);

/* Instructions to insert before those of these numbers, sorted by number; `before` = ninsts: at the
 * end. */
typedef struct sf_insertion {
    uint32_t before;
    sf_inst inst;
} sf_insertion;
void sf_insert_insts(sf_program *program, const sf_insertion *list, size_t count);

#endif
