/* The backend of an engine: one table of functions per kind. */
#ifndef SF_RUN_ENGINE_ENGINE_BACKEND_H
#define SF_RUN_ENGINE_ENGINE_BACKEND_H

#include "run/engine/engine.h"

/* The functions of engine.h for one kind; `self` is the result of `open`. Their contracts are those
 * of engine.h. */
typedef struct sf_engine_table {
    const char *name;
    void (*close)(void *self);
    sf_status (*lend)(void *self, uint32_t argument, bool writes, sf_diag *diag, void **data);
    sf_status (*give_back)(void *self, uint32_t argument, sf_diag *diag); /* NULL: nothing to do */
    bool (*is_clear)(const void *self, uint32_t argument); /* known to be zero; NULL: not known */
    sf_status (*see)(void *self, uint32_t result, sf_diag *diag, void **data);
    sf_status (*step)(void *self, sf_diag *diag);                 /* whole; or in halves, */
    sf_status (*start)(void *self, sf_diag *diag, bool *goes_on); /* with `finish` */
    sf_status (*finish)(void *self, sf_diag *diag);
    int64_t (*memory)(const void *self);
    int (*threads)(const void *self);
    void (*profile)(const void *self, sf_buf *out); /* NULL: it keeps none */
    const sf_timing *(*timeline)(const void *self,
                                 const sf_program *program); /* NULL: it keeps none */
} sf_engine_table;

struct sf_engine {
    const sf_engine_table *table;
    void *self;
    uint32_t narguments, nresults;
    const sf_type *const *argument_types,
        *const *result_types; /* borrowed from its program or graph */
};

/* sf_engine_open for a program of the target of that name; leaves no resources when it fails. */
typedef sf_status sf_engine_opener(const sf_program *program, const sf_engine_options *options,
                                   sf_diag *diag, sf_engine *out);
sf_engine_opener sf_cpu_open, sf_cuda_open;

#endif
