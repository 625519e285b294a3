/* What stands behind an engine: one table of functions per kind. */
#ifndef SF_RUN_ENGINE_KIND_H
#define SF_RUN_ENGINE_KIND_H

#include "run/engine.h"

/* The functions of engine.h for one kind; `self` is what `open` made. They come as the contracts
 * there say. `open` leaves nothing behind when it fails. */
typedef struct sf_engine_table {
    const char *name;
    sf_status (*open)(const sf_graph *graph, const sf_engine_options *options, sf_diag *diag,
                      void **self);
    void (*close)(void *self);
    sf_tensor (*argument)(void *self, uint32_t index);
    sf_tensor (*result)(void *self, uint32_t index);
    sf_status (*step)(void *self, sf_diag *diag);
    int64_t (*memory)(const void *self);
    int (*threads)(const void *self);
    void (*profile)(const void *self, sf_buf *out); /* NULL: it keeps none */
} sf_engine_table;

extern const sf_engine_table sf_engine_oracle, sf_engine_cpu;

#endif
