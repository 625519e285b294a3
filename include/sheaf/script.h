/* Schedules in Lua: programs that apply primitives. docs/reference/schedules.md describes the language. */
#ifndef SHEAF_SCRIPT_H
#define SHEAF_SCRIPT_H

#include "sheaf/primitive.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values of a program's variables: sheaf/tune.h. */
typedef struct sf_settings sf_settings;

typedef struct sf_script_options {
    size_t size;          /* sizeof this struct, see api.h */
    bool unsafe;          /* all of Lua's libraries: files, other programs, C modules */
    int64_t instructions; /* the most that it may take; 0: a hundred million */
    int64_t
        memory; /* the most bytes, of Lua's; 0: 64 MiB. The library takes 8 times as much, and the step, at most */
    int ranks;             /* sheaf.ranks; 0: nil */
    sf_settings *settings; /* results of tune.int and tune.choice; NULL: first values */
    double seconds;        /* the time limit, without sch:verify; 0: a minute */
} sf_script_options;

/* Runs the file, which applies primitives to the list. Its output goes to standard error.
 * SF_EINPUT, with file and line, for an error in the file or a limit that it exceeds; the list
 * keeps the primitives that were applied before. SF_ENOMEM where the machine has no memory left. SF_EUNSUPPORTED in a build without
 * Lua. */
SF_API sf_status sf_script_run(const char *path, const sf_script_options *options,
                               sf_primitives *list, sf_diag *diag);

/* A program that is run statement by statement: each call of sf_console_run continues where the
 * previous one ended, with as many instructions as the options allow. The values of an expression
 * are printed. A statement that fails keeps the effects that it had before the error. `name` and
 * the list outlive it. */
typedef struct sf_console sf_console;
SF_API sf_status sf_console_new(const char *name, const sf_script_options *options,
                                sf_primitives *list, sf_diag *diag, sf_console **out);
SF_API sf_status sf_console_run(sf_console *console, const char *text, size_t length,
                                sf_diag *diag);
SF_API void sf_console_free(sf_console *console);

#ifdef __cplusplus
}
#endif

#endif
