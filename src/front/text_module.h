/* The result of a reader: functions full of nodes, as the text has them.
 *
 * A reader (stablehlo/, hlo/) fills a module; import.h makes the one graph of it. In a module,
 * calls are `call` nodes, bodies of reductions are regions, loops are loops. A block may serve as
 * the region of several nodes (an HLO computation that is used twice). */
#ifndef SF_FRONT_TEXT_MODULE_H
#define SF_FRONT_TEXT_MODULE_H

#include "ir/graph.h"

typedef struct sf_func {
    const char *name; /* interned, without @ or % */
    sf_block *block;
    /* block->narguments: name (NULL if the text has none), sharding, and next if the text has an
     * alias; import fills the others */
    sf_argument *arguments;
    sf_result *results; /* block->nresults: name (NULL where none), sharding */
    sf_loc loc;
} sf_func;

typedef struct sf_module {
    sf_graph *graph; /* holds the nodes of all functions; its top block stays empty */
    sf_func **funcs;
    size_t nfuncs, func_capacity;
    sf_func *entry;     /* the function that is the step */
    const char **paths; /* by node id: the name path of the op ("jit(f)/jvp(M)/attn/add"), or NULL.
                           May be NULL as a whole. Length graph->nnodes. */
} sf_module;

/* An empty module. */
sf_module *sf_module_new(sf_pool *pool);
void sf_module_free(sf_module *module);

/* Adds a function with an empty block; its argument and result infos are for the reader to set. */
sf_func *sf_module_add(sf_module *module, sf_str name, sf_loc loc);

/* NULL when there is none. */
sf_func *sf_module_find(const sf_module *module, const char *interned_name);

/* The readers. `text` is zero-terminated. Several errors are reported in one go. */
sf_status sf_stablehlo_read(sf_str text, const char *file, sf_module *module, sf_diag *diag);
sf_status sf_hlo_read(sf_str text, const char *file, sf_module *module, sf_diag *diag);

/* The first check of both readers: refuses binary files, and names their kind; drops the mark that
 * some editors put in front (U+FEFF). */
sf_status sf_text_check(sf_str *text, const char *file, sf_diag *diag);

/* The deepest nesting of regions, attributes, types or locations that a reader follows. */
enum { SF_MAX_DEPTH = 64 };

#endif
