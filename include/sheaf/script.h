/* Schedules in Lua: programs that apply primitives. docs/schedules.md describes the language. */
#ifndef SHEAF_SCRIPT_H
#define SHEAF_SCRIPT_H

#include "sheaf/primitive.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sf_script_options {
    size_t size;          /* of this struct, or 0: see sheaf.h */
    bool unsafe;          /* all of Lua's libraries: files, other programs, C modules */
    int64_t instructions; /* the most that it may take; 0: a hundred million */
    int64_t memory;       /* the most bytes; 0: 64 MiB */
    int ranks;            /* sheaf.ranks; 0: nil */
} sf_script_options;

/* Runs the file, which applies primitives to the list; what it prints goes to standard error. SF_EINPUT, with file and line, for what is
 * wrong in it or goes past a limit; the list then has what was applied before. SF_EUNSUPPORTED in a build without Lua. */
SF_API sf_status sf_script_run(const char *path, const sf_script_options *options,
                               sf_primitives *list, sf_diag *diag);

#ifdef __cplusplus
}
#endif

#endif
