#include "base/intern.h"

#include <string.h>

#include "base/hash.h"

static void rehash_slots(sf_interner *interner, sf_arena *arena)
{
    size_t capacity = interner->capacity ? interner->capacity * 2 : 64;
    sf_intern_slot *slots = SF_ARRAY(arena, capacity, sf_intern_slot);
    for (size_t i = 0; i < interner->capacity; i++) {
        if (!interner->slots[i].item)
            continue;
        size_t at = interner->slots[i].hash & (capacity - 1);
        while (slots[at].item)
            at = (at + 1) & (capacity - 1);
        slots[at] = interner->slots[i];
    }
    interner->slots = slots;
    interner->capacity = capacity;
}

sf_intern_slot *sf_intern_find(sf_interner *interner, sf_arena *arena, uint64_t hash,
                               sf_intern_equal *equal, const void *key)
{
    if (interner->count * 4 >= interner->capacity * 3)
        rehash_slots(interner, arena);
    size_t at = hash & (interner->capacity - 1);
    for (;; at = (at + 1) & (interner->capacity - 1)) {
        sf_intern_slot *slot = &interner->slots[at];
        if (!slot->item) {
            slot->hash = hash;
            interner->count++;
            return slot;
        }
        if (slot->hash == hash && equal(slot->item, key))
            return slot;
    }
}

const void *sf_intern_look(const sf_interner *interner, uint64_t hash, sf_intern_equal *equal,
                           const void *key)
{
    if (interner->capacity == 0)
        return NULL;
    size_t at = hash & (interner->capacity - 1);
    for (;; at = (at + 1) & (interner->capacity - 1)) {
        const sf_intern_slot *slot = &interner->slots[at];
        if (!slot->item || (slot->hash == hash && equal(slot->item, key)))
            return slot->item;
    }
}

/* The length comes before the text, so that texts with zero bytes compare right. */
struct interned {
    size_t length;
    char text[];
};

static bool string_equal(const void *item, const void *key)
{
    const struct interned *have = item;
    const sf_str *want = key;
    return have->length == want->length && memcmp(have->text, want->at, want->length) == 0;
}

static uint64_t string_hash(sf_str text)
{
    return sf_hash_bytes(1, text.at, text.length);
}

const char *sf_intern_look_string(const sf_interner *strings, sf_str text)
{
    if (!text.at)
        text.at = "";
    const struct interned *found = sf_intern_look(strings, string_hash(text), string_equal, &text);
    return found ? found->text : NULL;
}

const char *sf_intern_string(sf_interner *strings, sf_arena *arena, sf_str text)
{
    if (!text.at)
        text.at = "";
    uint64_t hash = string_hash(text);
    sf_intern_slot *slot = sf_intern_find(strings, arena, hash, string_equal, &text);
    if (!slot->item) {
        struct interned *copy = sf_arena_alloc(arena, sizeof *copy + text.length + 1);
        copy->length = text.length;
        memcpy(copy->text, text.at, text.length);
        slot->item = copy;
    }
    return ((const struct interned *)slot->item)->text;
}
