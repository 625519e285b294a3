/* Reads texts for the tests of a reader, which is READER, of a file FILE_NAME. */
#ifndef SF_TEST_FRONT_READ_MODULE_H
#define SF_TEST_FRONT_READ_MODULE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "front/import.h"
#include "front/text_module.h"
#include "op/op.h"

typedef struct fixture {
    sf_pool *pool;
    sf_module *module;
    sf_diag *diag;
    sf_status status;
} fixture;

static inline fixture read_part(sf_pool *pool, const char *text, size_t length)
{
    fixture f = {.pool = sf_pool_retain(pool), .diag = sf_diag_new()};
    char *copy = sf_alloc(length + 1);
    memcpy(copy, text, length);
    f.module = sf_module_new(pool);
    f.status = READER((sf_str){copy, length}, FILE_NAME, f.module, f.diag);
    sf_free(copy);
    return f;
}

static inline fixture read_bytes(const char *text, size_t length)
{
    sf_pool *pool = sf_pool_new();
    fixture f = read_part(pool, text, length);
    sf_pool_release(pool);
    return f;
}

static inline fixture read_text(const char *text)
{
    return read_bytes(text, strlen(text));
}

static inline void drop(fixture *f)
{
    sf_module_free(f->module);
    sf_pool_release(f->pool);
    sf_diag_free(f->diag);
}

static inline void assert_good(const fixture *f)
{
    if (f->status != SF_OK)
        fail_msg("%s", sf_diag_text(f->diag, 0));
    assert_int_equal(sf_diag_count(f->diag), 0);
    assert_non_null(f->module->entry);
}

static inline fixture read_good(const char *text)
{
    fixture f = read_text(text);
    assert_good(&f);
    return f;
}

static inline const sf_node *node_at(const fixture *f, uint32_t index)
{
    const sf_block *block = f->module->entry->block;
    assert_true(index < block->nnodes);
    return f->module->graph->nodes[block->nodes[index]];
}

static inline const sf_attr *attr_of(const sf_node *node, const char *name)
{
    int slot = sf_attr_slot(node->def, sf_str_of(name));
    if (slot < 0)
        fail_msg("%s has no slot %s", node->def->name, name);
    return node->attrs[slot];
}

#endif
