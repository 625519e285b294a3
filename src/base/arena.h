/* Arena: memory that is freed all at once.
 *
 * A graph, a plan or a program owns one arena; nothing in it is freed singly. Scratch work marks the
 * arena and resets it. All memory is zeroed.
 */
#ifndef SF_BASE_ARENA_H
#define SF_BASE_ARENA_H

#include <stddef.h>

typedef struct sf_arena {
    struct sf_arena_chunk *chunk; /* newest first */
    size_t used;                  /* of the newest chunk */
    size_t next_size;
} sf_arena;

/* A zeroed sf_arena is an empty arena. */
void sf_arena_free(sf_arena *arena);

/* `bytes` zeroed bytes, aligned to 16. */
void *sf_arena_alloc(sf_arena *arena, size_t bytes);

/* As sf_arena_alloc, but NULL when there is none: for a caller that holds an outside handle. */
void *sf_arena_alloc_try(sf_arena *arena, size_t bytes);

/* An array of `count` elements; the product is checked. */
void *sf_arena_array(sf_arena *arena, size_t count, size_t size);

/* A copy of `bytes` bytes. */
void *sf_arena_copy(sf_arena *arena, const void *from, size_t bytes);

/* A copy of the string, with a terminating zero. */
char *sf_arena_string(sf_arena *arena, const char *from, size_t length);

#define SF_NEW(arena, type) ((type *)sf_arena_alloc((arena), sizeof(type)))
#define SF_ARRAY(arena, count, type)                                                               \
    ((type *)sf_arena_array((arena), (size_t)(count), sizeof(type)))

typedef struct sf_mark {
    struct sf_arena_chunk *chunk;
    size_t used;
} sf_mark;

sf_mark sf_arena_mark(const sf_arena *arena);
void sf_arena_reset(sf_arena *arena, sf_mark mark);

/* Grows an array in the arena so that it holds one element more than `count`; the capacity doubles.
 * The old copy stays until the arena is reset or freed. */
void *sf_arena_grow(sf_arena *arena, void *array, size_t count, size_t *capacity, size_t size);

#define SF_PUSH(arena, array, count, capacity, value)                                              \
    do {                                                                                           \
        if ((count) == (capacity))                                                                 \
            (array) = sf_arena_grow((arena), (array), (count), &(capacity), sizeof *(array));      \
        (array)[(count)++] = (value);                                                              \
    } while (0)

#endif
