#include "shard/reshard_cache.h"

#include "base/hash.h"

static bool is_way(const void *item, const void *key)
{
    const sf_way *a = item, *b = key;
    return a->type == b->type && sf_layout_equal(&a->from, &b->from) &&
           sf_layout_equal(&a->to, &b->to);
}

static void find_way(const sf_ways *ways, sf_way *way)
{
    sf_path path;
    way->exists =
        sf_reshard(ways->mesh, way->type, &way->from, &way->to, sf_reshard_bytes, NULL, &path);
    if (!way->exists)
        return;
    way->cost = path.cost;
    way->count = path.count;
    way->reshards =
        sf_arena_copy(ways->arena, path.reshards, (size_t)path.count * sizeof *path.reshards);
}

const sf_way *sf_ways_find(sf_ways *ways, const sf_type *type, const sf_layout *from,
                           const sf_layout *to)
{
    sf_way key = {.type = type, .from = *from, .to = *to};
    uint64_t hash = sf_hash_mix(sf_layout_hash(from), sf_layout_hash(to));
    hash = sf_hash_mix(hash, (uint64_t)type->count);
    sf_intern_slot *slot = sf_intern_find(&ways->table, ways->arena, hash, is_way, &key);
    if (!slot->item) {
        sf_way *way = SF_NEW(ways->arena, sf_way);
        *way = key;
        slot->item = way;
        find_way(ways, way);
    }
    return slot->item;
}
