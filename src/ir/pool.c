/* The pool: where types, attributes, strings and scopes become unique. */
#include <limits.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/mem.h"
#include "ir/attr.h"

struct sf_pool_tables {
    sf_interner strings, types, attrs, scopes;
    const sf_scope *root;
};

sf_pool *sf_pool_new(void)
{
    sf_pool *pool = sf_alloc(sizeof *pool);
    pool->references = 1;
    pool->tables = SF_NEW(&pool->arena, struct sf_pool_tables);
    sf_scope *root = SF_NEW(&pool->arena, sf_scope);
    root->name = root->path = "";
    pool->tables->root = root;
    return pool;
}

/* The pool goes with its guard; the one that it is derived from stays. */
static void forget_derived(void *memory)
{
    sf_pool *pool = memory;
    pool->from->references--;
}

sf_pool *sf_pool_derive(sf_pool *from)
{
    sf_pool *pool = sf_alloc(sizeof *pool);
    pool->references = 1;
    pool->from = sf_pool_retain(from);
    sf_mem_undo(pool, forget_derived);
    pool->tables = SF_NEW(&pool->arena, struct sf_pool_tables);
    pool->tables->root = from->tables->root;
    return pool;
}

sf_pool *sf_pool_retain(sf_pool *pool)
{
    pool->references++;
    return pool;
}

void sf_pool_release(sf_pool *pool)
{
    if (!pool || --pool->references > 0)
        return;
    sf_pool_release(pool->from);
    sf_arena_free(&pool->arena);
    sf_free(pool);
}

const char *sf_pool_bytes(sf_pool *pool, sf_str text)
{
    for (const sf_pool *from = pool->from; from; from = from->from) {
        const char *found = sf_intern_look_string(&from->tables->strings, text);
        if (found)
            return found;
    }
    return sf_intern_string(&pool->tables->strings, &pool->arena, text);
}

const char *sf_pool_string(sf_pool *pool, sf_str text)
{
    if (text.at)
        text.length = strnlen(text.at, text.length);
    return sf_pool_bytes(pool, text);
}

const char *sf_pool_name(sf_pool *pool, sf_str text)
{
    if (!text.at || sf_utf8_is(text))
        return sf_pool_string(pool, text);
    sf_buf name = {0};
    for (int length; text.length > 0; text.at += length, text.length -= (size_t)length) {
        length = sf_utf8_length(text);
        if (length > 0)
            sf_buf_add(&name, text.at, (size_t)length);
        else
            sf_buf_printf(&name, "\\x%02x", (unsigned char)*text.at);
        length = length > 0 ? length : 1;
    }
    const char *found = sf_pool_string(pool, (sf_str){name.text, name.length});
    sf_buf_free(&name);
    return found;
}

struct type_key {
    sf_dtype dtype;
    int rank;
    const int64_t *dims;
};

static bool type_equal(const void *item, const void *key)
{
    const sf_type *type = item;
    const struct type_key *want = key;
    if (type->dtype != want->dtype || type->rank != want->rank)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i] != want->dims[i])
            return false;
    return true;
}

const sf_type *sf_type_get(sf_pool *pool, sf_dtype dtype, int rank, const int64_t *dims)
{
    if (rank < 0 || rank > SF_MAX_RANK + 1 - sf_parts_of(dtype))
        return NULL;
    uint64_t hash = sf_hash_mix((uint64_t)dtype, (uint64_t)rank);
    for (int i = 0; i < rank; i++)
        hash = sf_hash_mix(hash, (uint64_t)dims[i]);
    struct type_key key = {dtype, rank, dims};
    for (const sf_pool *from = pool->from; from; from = from->from) {
        const sf_type *found = sf_intern_look(&from->tables->types, hash, type_equal, &key);
        if (found)
            return found->count < 0 ? NULL : found;
    }
    sf_intern_slot *slot =
        sf_intern_find(&pool->tables->types, &pool->arena, hash, type_equal, &key);
    if (slot->item)
        return ((const sf_type *)slot->item)->count < 0 ? NULL : slot->item;
    sf_type *type = sf_arena_alloc(&pool->arena, sizeof *type + (size_t)rank * sizeof *dims);
    type->dtype = dtype;
    type->rank = rank;
    type->count = 1;
    /* The size must not overflow whatever the order in which dimensions are multiplied, so zeros
     * count as ones for the check. */
    int64_t bytes = sf_dtype_get(dtype)->bytes;
    bool fits = true;
    for (int i = 0; i < rank; i++) {
        type->dims[i] = dims[i];
        fits = fits && dims[i] >= 0 && sf_mul(bytes, dims[i] ? dims[i] : 1, &bytes);
        type->count *= fits ? dims[i] : 0;
    }
    if (!fits)
        type->count = -1;
    slot->item = type;
    return fits ? type : NULL;
}

const sf_type *sf_type_with(sf_pool *pool, const sf_type *type, sf_dtype dtype)
{
    return sf_type_get(pool, dtype, type->rank, type->dims);
}

const sf_type *sf_type_scalar(sf_pool *pool, sf_dtype dtype)
{
    return sf_type_get(pool, dtype, 0, NULL);
}

static bool attr_equal(const void *item, const void *key)
{
    const sf_attr *a = item, *b = key;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case SF_ATTR_INT:
        return a->integer == b->integer;
    case SF_ATTR_INTS:
        return a->count == b->count &&
               (a->count == 0 || memcmp(a->ints, b->ints, (size_t)a->count * sizeof *a->ints) == 0);
    case SF_ATTR_TEXT:
        return a->text == b->text;
    case SF_ATTR_DENSE: {
        if (a->dense.type != b->dense.type || a->dense.splat != b->dense.splat)
            return false;
        size_t count = a->dense.splat ? 1 : (size_t)a->dense.type->count;
        size_t bytes = count * sf_dtype_get(a->dense.type->dtype)->bytes;
        if (!a->dense.data || !b->dense.data)
            return a->dense.data == b->dense.data;
        return bytes == 0 || memcmp(a->dense.data, b->dense.data, bytes) == 0;
    }
    }
    return false;
}

/* `key` lives on the caller's stack; its payload is copied when the attribute is new. */
static const sf_attr *intern_attr(sf_pool *pool, const sf_attr *key, size_t payload)
{
    for (const sf_pool *from = pool->from; from; from = from->from) {
        const sf_attr *found = sf_intern_look(&from->tables->attrs, key->hash, attr_equal, key);
        if (found)
            return found;
    }
    sf_intern_slot *slot =
        sf_intern_find(&pool->tables->attrs, &pool->arena, key->hash, attr_equal, key);
    if (slot->item)
        return slot->item;
    sf_attr *attr = sf_arena_copy(&pool->arena, key, sizeof *key);
    if (key->kind == SF_ATTR_INTS)
        attr->ints = sf_arena_copy(&pool->arena, key->ints, payload);
    if (key->kind == SF_ATTR_DENSE && key->dense.data)
        attr->dense.data = sf_arena_copy(&pool->arena, key->dense.data, payload);
    slot->item = attr;
    return attr;
}

const sf_attr *sf_attr_int(sf_pool *pool, int64_t value)
{
    sf_attr key = {.kind = SF_ATTR_INT, .integer = value};
    key.hash = sf_hash_mix(SF_ATTR_INT, (uint64_t)value);
    return intern_attr(pool, &key, 0);
}

const sf_attr *sf_attr_ints(sf_pool *pool, int count, const int64_t *values)
{
    sf_attr key = {.kind = SF_ATTR_INTS, .count = count, .ints = values};
    key.hash = sf_hash_mix(SF_ATTR_INTS, (uint64_t)count);
    for (int i = 0; i < count; i++)
        key.hash = sf_hash_mix(key.hash, (uint64_t)values[i]);
    return intern_attr(pool, &key, (size_t)count * sizeof *values);
}

const sf_attr *sf_attr_text(sf_pool *pool, sf_str text)
{
    text.length = text.length < INT_MAX ? text.length : INT_MAX;
    sf_attr key = {
        .kind = SF_ATTR_TEXT, .count = (int)text.length, .text = sf_pool_bytes(pool, text)};
    key.hash = sf_hash_bytes(SF_ATTR_TEXT, key.text, text.length);
    return intern_attr(pool, &key, 0);
}

static bool all_equal(const char *data, size_t count, size_t width)
{
    return count > 0 && memcmp(data, data + width, (count - 1) * width) == 0;
}

const sf_attr *sf_attr_dense(sf_pool *pool, const sf_type *type, bool splat, const void *data)
{
    size_t width = sf_dtype_get(type->dtype)->bytes;
    if (type->count == 0) {
        splat = false;
        data = "";
    }
    splat = data && (splat || all_equal(data, (size_t)type->count, width));
    size_t count = !data ? 0 : splat ? 1 : (size_t)type->count;
    sf_attr key = {.kind = SF_ATTR_DENSE, .dense = {type, splat, data}};
    uint64_t hash = sf_hash_mix(SF_ATTR_DENSE, (uint64_t)type->dtype);
    for (int i = 0; i < type->rank; i++)
        hash = sf_hash_mix(hash, (uint64_t)type->dims[i]);
    hash = sf_hash_mix(hash, splat);
    hash = sf_hash_mix(hash, !data);
    for (size_t i = 0; i < count * (size_t)sf_parts_of(type->dtype); i++)
        hash = sf_hash_mix(hash, sf_load_bits(sf_part_of(type->dtype), data, (int64_t)i));
    key.hash = hash;
    return intern_attr(pool, &key, count * width);
}

struct scope_key {
    const sf_scope *parent;
    const char *name;
};

static bool scope_equal(const void *item, const void *key)
{
    const sf_scope *scope = item;
    const struct scope_key *want = key;
    return scope->parent == want->parent && scope->name == want->name;
}

const sf_scope *sf_scope_root(sf_pool *pool)
{
    return pool->tables->root;
}

const sf_scope *sf_scope_child(sf_pool *pool, const sf_scope *parent, sf_str name)
{
    struct scope_key key = {parent, sf_pool_string(pool, name)};
    uint64_t hash = sf_hash_bytes(sf_hash_mix(7, parent->id), name.at, name.length);
    sf_interner *scopes = &pool->tables->scopes;
    for (const sf_pool *from = pool->from; from; from = from->from) {
        const sf_scope *found = sf_intern_look(&from->tables->scopes, hash, scope_equal, &key);
        if (found)
            return found;
    }
    sf_intern_slot *slot = sf_intern_find(scopes, &pool->arena, hash, scope_equal, &key);
    if (slot->item)
        return slot->item;
    sf_scope *scope = SF_NEW(&pool->arena, sf_scope);
    scope->parent = parent;
    scope->name = key.name;
    scope->id = sf_scope_count(pool) - 1;
    scope->depth = parent->depth + 1;
    size_t before = strlen(parent->path);
    char *path = sf_arena_alloc(&pool->arena, before + name.length + 2);
    if (before) {
        memcpy(path, parent->path, before);
        path[before++] = '/';
    }
    memcpy(path + before, name.at, name.length);
    scope->path = path;
    slot->item = scope;
    return scope;
}

uint32_t sf_scope_count(const sf_pool *pool)
{
    return (uint32_t)pool->tables->scopes.count + (pool->from ? sf_scope_count(pool->from) : 1);
}

const sf_scope *sf_scope_common(const sf_scope *a, const sf_scope *b)
{
    while (a != b)
        if (a->depth >= b->depth)
            a = a->parent;
        else
            b = b->parent;
    return a;
}
