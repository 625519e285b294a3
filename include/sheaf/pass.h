/* Passes: how the programs of a plan's ranks are rewritten before they run. docs/passes.md explains them. */
#ifndef SHEAF_PASS_H
#define SHEAF_PASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sheaf/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What state that is in pieces is gathered by, unless passes are said. */
#define SF_FULL_STATE_PASSES "fsdp,prefetch,unshard"

/* And state that is in pieces between steps: it is whole until the last who reads it, where memory allows. */
#define SF_BETWEEN_PASSES "fsdp,unshard,prefetch,defer-gradient-readers"

/* Has the programs of the plan rewritten by these passes, in this order: "fsdp,prefetch:group=64M,unshard"; "" or
 * "none": by none. They go by the costs of the cluster, NULL: of cores of a machine, and by so many bytes of memory of a
 * device; 0: what devices of the cluster have. All is kept in the plan. SF_EUSAGE names what there is. */
SF_API sf_status sf_plan_use_passes(sf_plan *plan, const char *passes, const sf_cluster *cluster,
                                    int64_t memory, sf_diag *diag);

/* The passes of a plan, "" where there are none; as long as the plan. */
SF_API const char *sf_plan_passes_of(const sf_plan *plan);

/* Writes what passes there are, with their options. `options` may be NULL. */
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
 * branch in it. What it leaves is held to what holds for all passes: what depends on each other keeps its order, the program is
 * checked and computes the same, and it is kept where it is predicted to be faster, or to take less. All ranks must come
 * to the same order: look at nothing that differs between them. */
#define SF_USER_PASS_VERSION 1

/* An instruction, as it stands in the list. */
typedef struct sf_user_inst {
    const char *kind;  /* "loop", "dot", "all_gather", "reduce_scatter", "copy", ... */
    const char *scope; /* of the step's text; "" */
    double seconds;   /* that it takes, predicted; of a collective or a copy, from when it begins */
    double exposed;   /* of these, waited for */
    int64_t bytes;    /* of what it makes */
    int64_t memory;   /* of the device while it runs */
    bool goes_beside; /* what follows does not wait for it, unless it reads what this makes */
    uint32_t nbefore; /* those that must stand before it, by their numbers */
    const uint32_t *before;
} sf_user_inst;

typedef struct sf_user_passing {
    uint32_t count;
    const sf_user_inst *insts;
    int64_t limit; /* bytes of the device */
    double runs;   /* how often it runs in a step: 1, or the turns of a loop */
    uint32_t
        *order; /* to be filled: numbers of instructions, each once; as they stand, until then */
    char note[200]; /* what was done, for people; or "" */
} sf_user_passing;

typedef enum sf_user_aim { SF_USER_FOR_TIME, SF_USER_FOR_MEMORY } sf_user_aim;

typedef struct sf_user_pass {
    int version; /* SF_USER_PASS_VERSION */
    const char *name;
    sf_user_aim aim;
    int (*run)(
        sf_user_passing *passing); /* 0: good; else the run ends, with the note as the reason */
} sf_user_pass;

/* What the shared object exports. */
typedef const sf_user_pass *sf_user_pass_get(void);
#define SF_USER_PASS_SYMBOL "sheaf_pass"

#ifdef __cplusplus
}
#endif

#endif
