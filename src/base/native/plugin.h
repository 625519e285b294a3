/* Shared objects of users. Each exports a function without arguments that returns a struct, which
 * begins with its size and an int, its version. An object stays loaded until the process ends,
 * because pointers to its struct may live that long. */
#ifndef SF_BASE_NATIVE_PLUGIN_H
#define SF_BASE_NATIVE_PLUGIN_H

#include "base/diag.h"

typedef struct sf_plugin_kind {
    const char *what; /* "pass" */
    const char *symbol;
    int version;
    size_t size; /* of the struct */
} sf_plugin_kind;

/* SF_EUSAGE, about the file, where it is none of the kind, or of another version. */
sf_status sf_plugin_open(const char *path, const sf_plugin_kind *kind, sf_diag *diag,
                         const void **out);

#endif
