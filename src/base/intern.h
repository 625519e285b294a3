/* Interning: equal items become the same pointer, so equality is ==.
 *
 * An interner is a hash table of pointers. It does not own the items and does not depend on their
 * type: the caller hashes, compares and makes them. */
#ifndef SF_BASE_INTERN_H
#define SF_BASE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

typedef struct sf_intern_slot {
    uint64_t hash;
    const void *item;
} sf_intern_slot;

/* A zeroed sf_interner is empty. Its table lives in the arena that is passed to each call. */
typedef struct sf_interner {
    sf_intern_slot *slots;
    size_t count, capacity; /* a power of two */
} sf_interner;

typedef bool sf_intern_equal(const void *item, const void *key);

/* The slot of the item with this hash that equals the key, or an empty slot (item NULL) that the
 * caller must fill at once. */
sf_intern_slot *sf_intern_find(sf_interner *interner, sf_arena *arena, uint64_t hash,
                               sf_intern_equal *equal, const void *key);

/* The item with this hash that equals the key, or NULL. Changes nothing, so threads may look together. */
const void *sf_intern_look(const sf_interner *interner, uint64_t hash, sf_intern_equal *equal,
                           const void *key);

/* The one zero-terminated copy of this text. The second only looks: NULL when there is none. */
const char *sf_intern_string(sf_interner *strings, sf_arena *arena, sf_str text);
const char *sf_intern_look_string(const sf_interner *strings, sf_str text);

#endif
