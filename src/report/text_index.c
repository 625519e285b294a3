#include "report/text_index.h"

#include "base/hash.h"

typedef struct numbered {
    const char *text;
    uint32_t number;
} numbered;

static bool is_numbered(const void *item, const void *key)
{
    return strcmp(((const numbered *)item)->text, key) == 0;
}

static uint64_t hash_text(const char *text)
{
    return sf_hash_bytes(0, text, strlen(text));
}

void sf_index_add(sf_index *index, sf_arena *arena, const char *text, uint32_t number)
{
    numbered *added = SF_NEW(arena, numbered);
    *added = (numbered){text, number};
    sf_intern_slot *slot = sf_intern_find(&index->texts, arena, hash_text(text), is_numbered, text);
    if (!slot->item)
        slot->item = added;
}

uint32_t sf_index_find(const sf_index *index, const char *text, uint32_t otherwise)
{
    const numbered *found = sf_intern_look(&index->texts, hash_text(text), is_numbered, text);
    return found ? found->number : otherwise;
}
