/* Passes: how the programs of a plan's ranks are rewritten before they run. docs/reference/passes.md explains them. */
#ifndef SHEAF_PASS_H
#define SHEAF_PASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sheaf/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The passes of plans with fully sharded state, unless others are given: they gather parameters where they are used. */
#define SF_FULL_STATE_PASSES "fsdp,prefetch,unshard"

/* The passes of plans whose state is sharded between steps alone: a gathered parameter stays until its last use, where memory
 * allows. */
#define SF_BETWEEN_PASSES "fsdp,unshard,prefetch,defer-gradient-readers"

/* Rewrites the programs of the plan by these passes, in this order:
 * "fsdp,prefetch:group=64M,unshard"; "" or "none": no passes. Passes use the costs of `cluster`
 * (NULL: cores of a machine) and this many bytes of device memory (0: the memory of the cluster's
 * devices). The plan keeps all of it. The message of SF_EUSAGE lists the passes. */
SF_API sf_status sf_plan_use_passes(sf_plan *plan, const char *passes, const sf_cluster *cluster,
                                    int64_t memory, sf_diag *diag);

/* The passes of a plan, "" where there are none; as long as the plan. */
SF_API const char *sf_plan_passes_of(const sf_plan *plan);

/* Lists all passes with their options. `options` may be NULL. */
SF_API sf_status sf_passes_show(const sf_show_options *options, const sf_output *output,
                                sf_diag *diag);

/* The passes by number: their names, and half a sentence about each; NULL past the last. */
SF_API const char *sf_pass_name(int index);
SF_API const char *sf_pass_about(int index);

/* Passes of your own: a shared object that exports sheaf_pass, named by its path, with a slash in it, in a list of passes:
 * "fsdp,./mine.so". Only a caller of this library, or who types a command, can name one: of those in a plan that was read
 * from a file, or in a schedule, files are refused. It stays loaded until the process ends.
 *
 * Such a pass puts the instructions of a program into another order. It is called for the step and for each body of a loop or
 * branch in it. The library checks its result as that of any pass: dependent instructions keep their order, the program passes the
 * checks, and it is kept where it is predicted to be faster, or to take less memory. All ranks must come
 * to the same order: look at nothing that differs between them. */
#define SF_USER_PASS_VERSION 1

/* An instruction of the list. */
typedef struct sf_user_inst {
    size_t size;       /* of this struct, as the library has it */
    const char *kind;  /* "loop", "dot", "all_gather", "reduce_scatter", "copy", ... */
    const char *scope; /* of the step's text; "" */
    double seconds; /* that it takes, predicted; of a collective or a copy, from when it begins */
    double exposed; /* of these, waited for */
    int64_t bytes;  /* of its results */
    int64_t memory; /* of the device while it runs */
    /* asynchronous: later instructions do not wait for it unless they read its results */
    bool goes_beside;
    uint32_t nbefore; /* the instructions that must come before it, by number */
    const uint32_t *before;
} sf_user_inst;

typedef struct sf_user_passing {
    size_t size; /* of this struct, as the library has it */
    uint32_t count;
    const sf_user_inst *const *insts; /* [count] */
    int64_t limit;                    /* bytes of the device */
    double runs; /* how often it runs in a step: 1, or the trip count of a loop */
    uint32_t *
        order; /* to be filled: numbers of instructions, each once; the present order, until then */
    char note[200]; /* what the pass did, as text; or "" */
} sf_user_passing;

typedef enum sf_user_aim { SF_USER_FOR_TIME, SF_USER_FOR_MEMORY } sf_user_aim;

typedef struct sf_user_pass {
    size_t size; /* sizeof this struct, see api.h */
    int version; /* SF_USER_PASS_VERSION */
    const char *name;
    sf_user_aim aim;
    int (*run)(
        sf_user_passing *passing); /* 0: good; else the run ends, with the note as the reason */
} sf_user_pass;

/* The function that the shared object exports. */
typedef const sf_user_pass *sf_user_pass_get(void);
#define SF_USER_PASS_SYMBOL "sheaf_pass"

#ifdef __cplusplus
}
#endif

#endif
