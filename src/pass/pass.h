/* Passes: programs rewritten under a profile (DeepCompile).
 *
 * A pass takes the program of a rank and its profile, and changes the program: it moves, adds,
 * joins or drops instructions (prog/edit_program.h). It sets no events and no places: those are
 * recomputed after it. Four checks follow, whoever wrote the pass; if one fails, the program is
 * restored:
 *
 *  - the program can be run (prog/check_program.h);
 *  - it computes the same (prog/buffer_content.h), unless the pass declares that it rounds
 *    differently;
 *  - it takes no more memory than the limit, or than it took;
 *  - its predicted time is no longer, if the pass is for time; or its memory no larger, if it is
 *    for memory.
 *
 * Then the profile is recomputed for the next pass: the inner loop of the paper's Figure 3.
 * sf_passes_run is that loop. Its outer loop is a list that names a pass twice.
 *
 * The list as a whole is checked alike: if the program fitted without it and is slower after it, or
 * if it does not fit any better, it is restored as lowered. The pass "force" disables this, for
 * comparisons.
 *
 * A pass is one row in pass_list.c. It gets the program of the step as `program`, bodies inside;
 * most passes work on each of these alone, which is a scope (pass/pass_scope.h). All ranks must
 * make the same decision, or they would wait for each other: a pass reads only data that is equal
 * on all ranks, and the engine compares sf_program_traffic before it runs the program. */
#ifndef SF_PASS_PASS_H
#define SF_PASS_PASS_H

#include "cluster/cost_model.h"
#include "prog/program.h"
#include "sim/sim.h"

enum { SF_PASS_OPTIONS = 4, SF_PASSES_MOST = 32 };

/* Time and memory of a program, by the simulator. */
typedef struct sf_profile {
    sf_simulation sim;
    int64_t *memory; /* by instruction of the top: bytes of the device in use while it runs */
    int64_t bytes;   /* of the device: the memory of a run (sf_program_bytes) */
} sf_profile;

/* In the arena. The program is settled, or its lives are. */
void sf_profile_take(const sf_program *program, const sf_costs *costs, sf_arena *arena,
                     sf_profile *out);

typedef struct sf_passing {
    sf_program *program; /* to be changed */
    const sf_costs *costs;
    sf_profile profile; /* of the program as it was given */
    int64_t
        limit; /* bytes of the device that it may take; a little less than there are where a try before took more */
    int variant;   /* which way to do it, below the pass's `variants` */
    bool is_last;  /* set by the pass: later variants do not apply to this program */
    bool is_trial; /* of several variants, to be compared by lives: places are not looked at */
    double options[SF_PASS_OPTIONS]; /* as of the pass; NAN: not said */
    const struct sf_user_pass *user; /* of a pass that was loaded */
    sf_arena *scratch;
    sf_buf *note; /* what the pass did, as text: a line */
    sf_diag *diag;
} sf_passing;

typedef struct sf_pass_option {
    const char *name; /* or NULL: there are no more */
    bool is_size;     /* in bytes, such as 64M; else a number */
    double usual;     /* NAN: the pass chooses */
    const char *about;
} sf_pass_option;

typedef enum sf_pass_aim {
    SF_PASS_FOR_TIME,
    SF_PASS_FOR_MEMORY, /* may take longer */
    SF_PASS_TO_BEGIN,   /* the ground for others: may take longer, and more */
} sf_pass_aim;

typedef struct sf_program_pass {
    const char *name, *about;
    const char *needs,
        *provides; /* words; one that is needed was provided by a pass before. "": nothing */
    sf_pass_aim aim;
    bool rounds;         /* its results may differ in the last bits: they are not compared */
    bool is_approximate; /* nor in those alone: results are another training's, near this one */
    bool is_forced;      /* does nothing, but that its list is kept though it is slower than none */
    bool hides;   /* it moves gathers: the report has the share of hideable time that it hides */
    int variants; /* ways to do it that are tried, of which the best is taken; 0 is 1 */
    int sure;     /* the first so many of these take the memory of their lives, or little more */
    sf_pass_option options[SF_PASS_OPTIONS];
    sf_status (*run)(sf_passing *passing);
} sf_program_pass;

/* All that there are. */
const sf_program_pass *sf_pass_at(int index); /* NULL: there are no more */

/* A pass of a list with its options. */
typedef struct sf_chosen_pass {
    const sf_program_pass *pass;
    double options[SF_PASS_OPTIONS];
    const char *file;                /* of a pass that was loaded, or NULL; */
    const struct sf_user_pass *user; /* then it */
} sf_chosen_pass;

typedef struct sf_pass_list {
    int count;
    sf_chosen_pass at[SF_PASSES_MOST];
} sf_pass_list;

/* Reads "fsdp,prefetch:group=64M:alpha=1.5"; "" and "none" are none. SF_EUSAGE, with the valid
 * ones, if a name or an option is not known, or a requirement is not met. Strings live in the
 * arena. */
sf_status sf_pass_list_read(const char *text, sf_arena *arena, sf_diag *diag, sf_pass_list *out);

/* The same for who may run code: a name with a slash is that of a file, which is loaded (sheaf/pass.h). */
sf_status sf_pass_list_load(const char *text, sf_arena *arena, sf_diag *diag, sf_pass_list *out);

/* Whether one of them is an approximation. */
bool sf_pass_list_is_approximate(const sf_pass_list *list);

/* The effect of a pass. */
typedef struct sf_pass_outcome {
    const char *name;
    const char *note; /* what it did, or why it did nothing */
    bool kept;        /* the program is as the pass left it */
    double seconds;   /* of a step, predicted, after it */
    double exposed;   /* of these, waiting for collectives */
    double hides,
        could_hide;   /* of a pass that moves gathers: seconds that it does, and at most could */
    int64_t bytes;    /* memory after it */
    int ncollectives; /* of a step, bodies as often as they run */
    double traffic;
    uint32_t npoints; /* the memory curve after it, */
    int64_t *memory;  /* by instruction of the top, at its own peak where that has bodies */
} sf_pass_outcome;

typedef struct sf_pass_run {
    const sf_pass_list *list;
    const sf_costs *costs;
    int64_t
        limit; /* of the device, with what kernels work in; 0: that of the slowest device of the costs */
    sf_arena *arena; /* of the outcomes */
} sf_pass_run;

/* Runs the passes on the program, which is settled, and checked unless it is without places, after each. `outcomes`, or NULL, has
 * room for two more than there are passes, and *count is their number: the first is the original
 * program, which is also the last if the list as a whole was dropped. SF_EMISMATCH if a pass broke
 * the program, with the error. */
sf_status sf_passes_run(sf_program *program, const sf_pass_run *run, sf_diag *diag,
                        sf_pass_outcome *outcomes, int *count);

#endif
