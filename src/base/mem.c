#include "base/mem.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Blocks made under a guard are chained to it, so that the guard can free them when it is hit. */
struct sf_mem_header {
    struct sf_mem_header *next, *prev;
    struct sf_guard *guard; /* NULL once the guard has been left */
    size_t bytes;
    void (*undo)(void *memory);
    void *raw; /* the result of calloc; the header is at the first multiple of ALIGN in it */
};

enum { ALIGN = 64 };
_Static_assert(sizeof(struct sf_mem_header) <= ALIGN, "the header fits in front of the block");

static _Thread_local sf_guard *current_guard;
static _Thread_local long fail_after = -1;
static atomic_size_t live_bytes, peak_bytes;
static atomic_size_t most_bytes = SIZE_MAX / 8; /* of one allocation */

static void count_bytes(size_t bytes)
{
    size_t now = atomic_fetch_add(&live_bytes, bytes) + bytes;
    size_t peak = atomic_load(&peak_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now)) {
    }
}

static void link_block(struct sf_mem_header *block, sf_guard *guard)
{
    block->guard = guard;
    block->prev = NULL;
    block->next = guard ? guard->blocks : NULL;
    if (block->next)
        block->next->prev = block;
    if (guard)
        guard->blocks = block;
}

static void unlink_block(struct sf_mem_header *block)
{
    if (!block->guard)
        return;
    if (block->prev)
        block->prev->next = block->next;
    else
        block->guard->blocks = block->next;
    if (block->next)
        block->next->prev = block->prev;
}

static void *allocate_block(size_t bytes, sf_guard *guard)
{
    if (fail_after == 0 || bytes > atomic_load_explicit(&most_bytes, memory_order_relaxed))
        return NULL;
    if (fail_after > 0)
        fail_after--;
    size_t padded = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    /* calloc, because it knows which pages are zero already; large blocks are then never touched
     * before they are used. */
    char *raw = calloc(1, 2 * ALIGN + padded);
    if (!raw)
        return NULL;
    size_t skip = (ALIGN - (uintptr_t)raw % ALIGN) % ALIGN;
    struct sf_mem_header *block = (struct sf_mem_header *)(void *)(raw + skip);
    block->raw = raw;
    block->bytes = padded;
    link_block(block, guard);
    count_bytes(padded);
    return (char *)block + ALIGN;
}

void *sf_alloc_try(size_t bytes)
{
    return allocate_block(bytes, current_guard);
}

void *sf_alloc_kept(size_t bytes)
{
    return allocate_block(bytes, NULL);
}

static struct sf_mem_header *header_of(void *memory)
{
    return (struct sf_mem_header *)(void *)((char *)memory - ALIGN);
}

void *sf_alloc(size_t bytes)
{
    void *memory = sf_alloc_try(bytes);
    if (memory)
        return memory;
    sf_guard_fail();
}

void sf_guard_fail(void)
{
    sf_guard *guard = current_guard;
    if (!guard) {
        fprintf(stderr, "sheaf: out of memory outside of any guard\n");
        abort();
    }
    for (struct sf_mem_header *block = guard->blocks; block; block = block->next)
        if (block->undo)
            block->undo((char *)block + ALIGN);
    while (guard->blocks)
        sf_free((char *)guard->blocks + ALIGN);
    current_guard = guard->outer;
    longjmp(guard->target, 1);
}

void sf_free(void *memory)
{
    if (!memory)
        return;
    struct sf_mem_header *block = header_of(memory);
    unlink_block(block);
    atomic_fetch_sub(&live_bytes, block->bytes);
    free(block->raw);
}

void sf_mem_undo(void *memory, void (*undo)(void *memory))
{
    header_of(memory)->undo = undo;
}

void sf_guard_enter(sf_guard *guard)
{
    guard->outer = current_guard;
    guard->blocks = NULL;
    current_guard = guard;
}

static void move_blocks(sf_guard *from, sf_guard *to)
{
    while (from->blocks) {
        struct sf_mem_header *block = from->blocks;
        from->blocks = block->next;
        link_block(block, to);
    }
}

void sf_guard_leave(sf_guard *guard)
{
    move_blocks(guard, guard->outer);
    current_guard = guard->outer;
}

void sf_guard_part(sf_guard *guard)
{
    current_guard = guard->outer;
}

void sf_guard_take(sf_guard *parted)
{
    move_blocks(parted, current_guard);
}

size_t sf_mem_live(void)
{
    return atomic_load(&live_bytes);
}

size_t sf_mem_peak(void)
{
    return atomic_load(&peak_bytes);
}

void sf_mem_restart_peak(void)
{
    atomic_store(&peak_bytes, atomic_load(&live_bytes));
}

void sf_mem_fail_after(long successes)
{
    fail_after = successes;
}

void sf_mem_fail_above(size_t bytes)
{
    atomic_store(&most_bytes, bytes > 0 ? bytes : SIZE_MAX / 8);
}
