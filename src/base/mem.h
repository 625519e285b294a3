/* Memory.
 *
 * Every byte of the library comes from sf_alloc, so a test can make the Nth allocation fail. An
 * allocation that fails does not return: it jumps to the guard that the API boundary set up, which
 * frees whatever was allocated under it and reports SF_ENOMEM. Code below the API therefore never
 * checks for NULL and never has a half-built object to undo.
 *
 * Because of the jump, a function that holds an outside handle (a file, a decompressor) must not
 * allocate with sf_alloc while it holds it; sf_alloc_try is for those few places.
 */
#ifndef SF_BASE_MEM_H
#define SF_BASE_MEM_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

/* Zeroed memory, aligned to 64 bytes. Never NULL. Free with sf_free. */
void *sf_alloc(size_t bytes);

/* As sf_alloc, but NULL when there is none. */
void *sf_alloc_try(size_t bytes);

/* As sf_alloc_try, but no guard frees it: for memory that outlives a failure, such as its
 * diagnostic. */
void *sf_alloc_kept(size_t bytes);

void sf_free(void *memory);

/* A guard is a scope on one thread: between enter and leave every failed allocation lands in it.
 *
 *     sf_guard guard;
 *     sf_guard_enter(&guard);
 *     if (setjmp(guard.target) != 0)
 *         return SF_ENOMEM;          // the guard has been left, its memory freed
 *     ... work ...
 *     sf_guard_leave(&guard);        // allocations stay with their owners */
typedef struct sf_guard {
    jmp_buf target;
    struct sf_guard *outer;
    struct sf_mem_header *blocks;
} sf_guard;

/* When a guard is hit, `undo` is called for this block, before any block is freed: to undo changes
 * that making it caused in blocks that stay. */
void sf_mem_undo(void *memory, void (*undo)(void *memory));

void sf_guard_enter(sf_guard *guard);
void sf_guard_leave(sf_guard *guard);

/* Instead of sf_guard_leave: what was allocated stays with the guard, until another thread takes it over for its own. */
void sf_guard_part(sf_guard *guard);
void sf_guard_take(sf_guard *parted);

/* Ends the guard of this thread as an allocation does that fails. */
_Noreturn void sf_guard_fail(void);

/* Bytes in live blocks of this process, and the most there ever were, or since the last restart. */
size_t sf_mem_live(void);
size_t sf_mem_peak(void);
void sf_mem_restart_peak(void);

/* For tests: let the next `successes` allocations of this thread pass and fail all after them; a
 * negative number switches this off. */
void sf_mem_fail_after(long successes);

/* For tests: from now on allocations of more bytes fail, on all threads; 0: none for that reason. */
void sf_mem_fail_above(size_t bytes);

#endif
