/* Attributes: the parameters of an op besides its operands.
 *
 * An attribute value is interned, so equal values of one pool are the same pointer; NULL means
 * "absent". The op's definition lists its attributes, their order and kinds. */
#ifndef SF_IR_ATTR_H
#define SF_IR_ATTR_H

#include "ir/type.h"

typedef enum sf_attrkind {
    SF_ATTR_INT,   /* also booleans */
    SF_ATTR_INTS,  /* a list */
    SF_ATTR_TEXT,  /* a string or the name of an enumerator */
    SF_ATTR_DENSE, /* the payload of a constant */
} sf_attrkind;

/* A tensor of constants. A splat holds its one element, whatever the type's size. The data is in
 * storage order of the machine; NULL where the text left the elements out ("constant({...})"): such
 * a step can be planned but not evaluated. */
typedef struct sf_dense {
    const sf_type *type;
    bool splat;
    const void *data;
} sf_dense;

typedef struct sf_attr {
    sf_attrkind kind;
    uint64_t hash;
    int count; /* of INTS; bytes of TEXT, which may be any and are followed by a zero */
    union {
        int64_t integer;
        const int64_t *ints;
        const char *text; /* interned */
        sf_dense dense;
    };
} sf_attr;

static inline sf_str sf_attr_bytes(const sf_attr *text)
{
    return (sf_str){text->text, (size_t)text->count};
}

const sf_attr *sf_attr_int(sf_pool *pool, int64_t value);
const sf_attr *sf_attr_ints(sf_pool *pool, int count, const int64_t *values);
const sf_attr *sf_attr_text(sf_pool *pool, sf_str text);

/* The data is copied; NULL means elements that are not known. A dense value whose elements all have
 * the same bits becomes a splat. */
const sf_attr *sf_attr_dense(sf_pool *pool, const sf_type *type, bool splat, const void *data);

/* Element of a dense constant, splat or not. */
static inline int64_t sf_dense_at(const sf_dense *dense, int64_t index)
{
    return dense->splat ? 0 : index;
}

/* Interned types, attributes, strings and scopes, and their arena. Counted references: a graph
 * retains the pool that its nodes point into.
 *
 * A pool may be derived from another: items of that are found there and so have the same pointer,
 * and new items go into the derived one. Threads that each derive a pool from the same one run
 * independently, as long as no thread adds to that. */
struct sf_pool {
    sf_arena arena;
    struct sf_pool_tables *tables;
    struct sf_pool *from; /* or NULL */
    _Atomic int references;
};

sf_pool *sf_pool_new(void);
sf_pool *sf_pool_derive(sf_pool *from); /* retains it */
sf_pool *sf_pool_retain(sf_pool *pool);
void sf_pool_release(sf_pool *pool);

/* The one copy of these bytes, with a zero after them. */
const char *sf_pool_bytes(sf_pool *pool, sf_str text);

/* The same, up to the first zero byte if there is one. */
const char *sf_pool_string(sf_pool *pool, sf_str text);

/* The same for a name out of a text: a byte that is not UTF-8 becomes "\xff", four characters, so
 * that names stay distinct and can be written to files that hold only UTF-8. */
const char *sf_pool_name(sf_pool *pool, sf_str text);

/* A scope is a path of module names: "layer_0/attn/q". The empty path is the root, NULL is never
 * used. Children know their parent; equal paths are the same pointer. */
typedef struct sf_scope {
    const struct sf_scope *parent; /* NULL for the root */
    const char *name;              /* last part */
    const char *path;              /* whole */
    uint32_t id;                   /* dense within the pool, in order of creation */
    uint32_t depth;                /* 0 for the root */
} sf_scope;

const sf_scope *sf_scope_root(sf_pool *pool);
const sf_scope *sf_scope_child(sf_pool *pool, const sf_scope *parent, sf_str name);
uint32_t sf_scope_count(const sf_pool *pool);
const sf_scope *sf_scope_common(const sf_scope *a,
                                const sf_scope *b); /* the deepest that has both */

#endif
