/* SSA names. A hash table whose buckets are chains through a stack of names: the newest name is
 * first in its bucket, so closing a scope is popping names and their buckets' heads. */
#include <string.h>

#include "base/hash.h"
#include "front/stablehlo/mlir_reader.h"

enum { NUMERIC_DIGITS = 9 };
#define NOT_NUMERIC UINT32_C(0x80000000)

/* Most names are numbers, which are their own hash: neighbours in the text are then neighbours in the
 * table, and two of one length and hash are equal without a look at the text. */
static uint32_t hash_name(sf_str name)
{
    uint32_t number = 0;
    if (name.length > NUMERIC_DIGITS)
        return (uint32_t)sf_hash_bytes(0, name.at, name.length) | NOT_NUMERIC;
    for (size_t i = 0; i < name.length; i++) {
        if (name.at[i] < '0' || name.at[i] > '9')
            return (uint32_t)sf_hash_bytes(0, name.at, name.length) | NOT_NUMERIC;
        number = number * 10 + (uint32_t)(name.at[i] - '0');
    }
    return number;
}

static sf_mlir_name *find_defined_name(sf_mlir *r, sf_str name, uint32_t hash)
{
    if (r->nbuckets == 0)
        return NULL;
    for (uint32_t i = r->buckets[hash & (r->nbuckets - 1)]; i; i = r->names[i - 1].older) {
        sf_mlir_name *have = &r->names[i - 1];
        if (have->hash == hash && have->length == name.length &&
            (hash < NOT_NUMERIC || memcmp(have->at, name.at, name.length) == 0))
            return have;
    }
    return NULL;
}

static void link_newest(sf_mlir *r, size_t index)
{
    sf_mlir_name *name = &r->names[index];
    uint32_t *bucket = &r->buckets[name->hash & (r->nbuckets - 1)];
    name->older = *bucket;
    *bucket = (uint32_t)index + 1;
}

static void grow_buckets(sf_mlir *r)
{
    r->nbuckets = r->nbuckets ? r->nbuckets * 2 : 1024;
    r->buckets = SF_ARRAY(&r->arena, r->nbuckets, uint32_t);
    for (size_t i = 0; i < r->nnames; i++)
        link_newest(r, i);
}

static void push_name(sf_mlir *r, sf_str name, uint32_t hash, sf_value first, uint32_t count)
{
    if (r->nnames == r->nbuckets)
        grow_buckets(r);
    sf_mlir_name entry = {name.at, (uint32_t)name.length, hash, 0, first, count};
    SF_PUSH(&r->arena, r->names, r->nnames, r->name_capacity, entry);
    link_newest(r, r->nnames - 1);
}

size_t sf_mlir_scope_open(sf_mlir *r)
{
    size_t outer = r->scope;
    r->scope = r->nnames;
    return outer;
}

void sf_mlir_scope_close(sf_mlir *r, size_t outer)
{
    while (r->nnames > r->scope) {
        sf_mlir_name *newest = &r->names[--r->nnames];
        r->buckets[newest->hash & (r->nbuckets - 1)] = newest->older;
    }
    r->scope = outer;
}

sf_status sf_mlir_define(sf_mlir *r, sf_str name, sf_value first, uint32_t count, sf_loc loc)
{
    uint32_t hash = hash_name(name);
    sf_mlir_name *have = find_defined_name(r, name, hash);
    if (have && have >= r->names + r->scope)
        return SF_MLIR_FAIL(r, SF_EINPUT, loc, "%%%.*s is defined a second time",
                            SF_STR_ARGS(name));
    push_name(r, name, hash, first, count);
    return SF_OK;
}

void sf_mlir_poison(sf_mlir *r, sf_str name)
{
    uint32_t hash = hash_name(name);
    sf_mlir_name *have = find_defined_name(r, name, hash);
    if (!have || have < r->names + r->scope)
        push_name(r, name, hash, SF_NONE, 1);
}

sf_status sf_mlir_use(sf_mlir *r, sf_value *out)
{
    sf_scan start = r->scan;
    sf_str name = sf_scan_sigil(&r->scan, '%');
    if (!name.length)
        return sf_mlir_expected(r, "a value such as %0");
    int64_t index = 0;
    if (*r->scan.at == '#') {
        r->scan.at++;
        if (!sf_scan_int(&r->scan, &index))
            return sf_mlir_expected(r, "the number of a result");
    }
    uint32_t hash = hash_name(name);
    sf_mlir_name *have = find_defined_name(r, name, hash);
    if (have && (have->first == SF_NONE || (index >= 0 && index < have->count))) {
        *out = have->first == SF_NONE ? SF_NONE : have->first + (sf_value)index;
        return SF_OK;
    }
    r->scan = start;
    sf_loc loc = sf_mlir_here(r);
    if (have)
        return SF_MLIR_FAIL(r, SF_EINPUT, loc, "%%%.*s has %u results, there is no #%lld",
                            SF_STR_ARGS(name), have->count, (long long)index);
    push_name(r, name, hash, SF_NONE, 1); /* so that its other uses are not reported */
    return SF_MLIR_FAIL(r, SF_EINPUT, loc, "%%%.*s is not defined", SF_STR_ARGS(name));
}
