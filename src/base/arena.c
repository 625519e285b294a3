#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

struct sf_arena_chunk {
    struct sf_arena_chunk *older;
    size_t older_used; /* of the older chunk, when this one was begun */
    size_t size;
    _Alignas(16) char data[];
};

enum { ALIGN = 16, FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20 };

/* Rounded up; a size that is out of range stays so, and fails in sf_alloc, which handles it. */
static size_t round_up(size_t bytes)
{
    if (bytes > SIZE_MAX / 4)
        return SIZE_MAX / 4;
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static bool has_room(const sf_arena *arena, size_t bytes)
{
    return arena->chunk && arena->chunk->size - arena->used >= bytes;
}

static size_t chunk_size(const sf_arena *arena, size_t bytes)
{
    size_t size = arena->next_size ? arena->next_size : FIRST_CHUNK;
    return size < bytes ? bytes : size;
}

static void add_chunk(sf_arena *arena, struct sf_arena_chunk *chunk, size_t size)
{
    chunk->older = arena->chunk;
    chunk->older_used = arena->used;
    chunk->size = size;
    arena->chunk = chunk;
    arena->used = 0;
    if (size < LARGEST_CHUNK)
        arena->next_size = size * 2;
}

static void *take_bytes(sf_arena *arena, size_t bytes)
{
    void *memory = arena->chunk->data + arena->used;
    arena->used += bytes;
    return memory;
}

void *sf_arena_alloc(sf_arena *arena, size_t bytes)
{
    bytes = round_up(bytes);
    if (!has_room(arena, bytes)) {
        size_t size = chunk_size(arena, bytes);
        add_chunk(arena, sf_alloc(sizeof(struct sf_arena_chunk) + size), size);
    }
    return take_bytes(arena, bytes);
}

void *sf_arena_alloc_try(sf_arena *arena, size_t bytes)
{
    bytes = round_up(bytes);
    if (!has_room(arena, bytes)) {
        size_t size = chunk_size(arena, bytes);
        struct sf_arena_chunk *chunk = sf_alloc_try(sizeof *chunk + size);
        if (!chunk)
            return NULL;
        add_chunk(arena, chunk, size);
    }
    return take_bytes(arena, bytes);
}

void *sf_arena_array(sf_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = SIZE_MAX;
    return sf_arena_alloc(arena, bytes);
}

void *sf_arena_copy(sf_arena *arena, const void *from, size_t bytes)
{
    void *to = sf_arena_alloc(arena, bytes);
    if (bytes)
        memcpy(to, from, bytes);
    return to;
}

char *sf_arena_string(sf_arena *arena, const char *from, size_t length)
{
    char *to = sf_arena_alloc(arena, length + 1);
    if (length)
        memcpy(to, from, length);
    return to;
}

void sf_arena_free(sf_arena *arena)
{
    while (arena->chunk) {
        struct sf_arena_chunk *older = arena->chunk->older;
        sf_free(arena->chunk);
        arena->chunk = older;
    }
    *arena = (sf_arena){0};
}

sf_mark sf_arena_mark(const sf_arena *arena)
{
    return (sf_mark){arena->chunk, arena->used};
}

/* The oldest chunk stays also when the mark was made before it, so that repeated marks of an empty
 * arena cost nothing. */
void sf_arena_reset(sf_arena *arena, sf_mark mark)
{
    size_t dirty = arena->used; /* end of the allocated part of the chunk that stays */
    while (arena->chunk != mark.chunk && arena->chunk->older) {
        struct sf_arena_chunk *older = arena->chunk->older;
        dirty = arena->chunk->older_used;
        sf_free(arena->chunk);
        arena->chunk = older;
    }
    if (arena->chunk)
        memset(arena->chunk->data + mark.used, 0, dirty - mark.used);
    arena->used = mark.used;
}

void *sf_arena_grow(sf_arena *arena, void *array, size_t count, size_t *capacity, size_t size)
{
    *capacity = *capacity ? *capacity * 2 : 8;
    void *larger = sf_arena_array(arena, *capacity, size);
    if (count)
        memcpy(larger, array, count * size);
    return larger;
}
