/* A text in C, compiled by the compiler of the system into a shared object that is loaded.
 *
 * The compiler is $CC, whose words are its name and first options, or cc. It is run without a shell, with these options
 * and names of files that are made here: nothing else reaches it but the text. An object stays loaded until the process
 * ends. */
#ifndef SF_BASE_NATIVE_COMPILE_H
#define SF_BASE_NATIVE_COMPILE_H

#include "base/diag.h"
#include "base/str.h"

typedef struct sf_compiling {
    sf_str text;
    const char *const *flags; /* those of the compiler, up to NULL */
    bool kept; /* between runs (base/native/disk_cache.h), by text, flags, compiler and processor */
} sf_compiling;

/* SF_EUNSUPPORTED where there is no compiler, or it does not take the text. */
sf_status sf_compile(const sf_compiling *what, sf_diag *diag, void **handle);

#endif
