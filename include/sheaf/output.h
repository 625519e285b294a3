/* Where text goes: a file, standard output, or a function of the caller. */
#ifndef SHEAF_OUTPUT_H
#define SHEAF_OUTPUT_H

#include <stddef.h>

#include "sheaf/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Functions that write text take one. NULL, or one with neither `path` nor `write`, is standard output. */
typedef struct sf_output {
    size_t size;      /* sizeof this struct, see api.h */
    const char *path; /* a file, which is replaced as a whole; "-": standard output */

    /* Instead of a path, where it is not NULL: gets all of the text, in one or several calls, by one thread at
     * a time. `text` has no zero byte at its end and is valid during the call. False says that the text could not
     * be taken: the function that writes then returns SF_EIO. */
    bool (*write)(void *context, const char *text, size_t length);
    void *context; /* of `write` */
} sf_output;

#ifdef __cplusplus
}
#endif

#endif
