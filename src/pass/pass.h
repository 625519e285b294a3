/* Passes: programs rewritten under a profile (DeepCompile).
 *
 * A pass takes the program of a rank and its profile, and changes the program: it moves, adds, joins or leaves out
 * instructions (prog/edit_program.h). It sets no events and no places: those are found anew behind it. What it did is then
 * held to four things, whoever wrote it; where one does not hold, the program is as it was:
 *
 *  - the program can be run (prog/check_program.h);
 *  - it computes the same (prog/buffer_content.h), unless the pass says that it rounds differently;
 *  - it takes no more memory than there is, or than it took;
 *  - it is predicted to take no longer, if time is what the pass is for; or no more memory, if that is.
 *
 * Then the profile is taken anew for the next: the inner loop of the paper's Figure 3. sf_passes_run is that loop. Its
 * outer loop is a list that names a pass twice.
 *
 * The list as a whole is held to the same: where the program fitted without it and is slower behind it, or where it does
 * not fit any better, it is as it was lowered. A list to compare with says "force".
 *
 * A pass is one row in pass_list.c. It sees the program of the step at `program`, bodies inside; most work on each of these
 * alone, which is a scope (pass/pass_scope.h). All ranks must come to the same answer, or they would wait for each other: a
 * pass looks at nothing that differs between ranks, and whoever runs the program compares sf_program_traffic.
 */
#ifndef SF_PASS_PASS_H
#define SF_PASS_PASS_H

#include "cluster/cost_model.h"
#include "prog/program.h"
#include "sim/sim.h"

enum { SF_PASS_OPTIONS = 4, SF_PASSES_MOST = 32 };

/* What a program takes, by the simulator. */
typedef struct sf_profile {
    sf_simulation sim;
    int64_t *
        memory; /* by instruction of the top: bytes of the device while it runs, all that stands included */
    int64_t bytes; /* of the device: what a run takes (sf_program_bytes) */
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
    bool is_last;  /* set by the pass: the variants behind this one are none for this program */
    bool is_trial; /* of several variants, to be compared by lives: places are not looked at */
    double options[SF_PASS_OPTIONS]; /* as of the pass; NAN: not said */
    const struct sf_user_pass *user; /* of a pass that was loaded */
    sf_arena *scratch;
    sf_buf *note; /* what was done, for people: a line */
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
    bool rounds; /* what it computes may differ in the last bits: its meaning is not compared */
    bool is_approximate; /* nor in those alone: results are another training's, near this one */
    bool is_forced;      /* does nothing, but that its list is kept though it is slower than none */
    bool
        is_uncached; /* does nothing, but that nothing is taken from disk for its list, or put there */
    bool hides;      /* it moves gathers: how much of what it could hide it does is told */
    int variants;    /* ways to do it that are tried, of which the best is taken; 0 is 1 */
    int sure;        /* the first so many of these take what lives say, or little more */
    sf_pass_option options[SF_PASS_OPTIONS];
    sf_status (*run)(sf_passing *passing);
} sf_program_pass;

/* All that there are. */
const sf_program_pass *sf_pass_at(int index); /* NULL: there are no more */

/* A pass of a list with what was said of it. */
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

/* Reads "fsdp,prefetch:group=64M:alpha=1.5"; "" and "none" are none. SF_EUSAGE, with what there is, where a name or an option is not known, or a need is not met. Strings
 * live in the arena. */
sf_status sf_pass_list_read(const char *text, sf_arena *arena, sf_diag *diag, sf_pass_list *out);

/* The same for who may run code: a name with a slash is that of a file, which is loaded (sheaf/pass.h). */
sf_status sf_pass_list_load(const char *text, sf_arena *arena, sf_diag *diag, sf_pass_list *out);

/* Whether one of them is an approximation. */
bool sf_pass_list_is_approximate(const sf_pass_list *list);

/* What a pass did. */
typedef struct sf_pass_outcome {
    const char *name;
    const char *note; /* what it did, or why it did nothing */
    bool kept;        /* the program is as the pass left it */
    double seconds;   /* of a step, predicted, behind it */
    double exposed;   /* of these, waiting for collectives */
    double hides,
        could_hide;   /* of a pass that moves gathers: seconds that it does, and at most could */
    int64_t bytes;    /* that it takes in memory, behind it */
    int ncollectives; /* of a step, bodies as often as they run */
    double traffic;
    uint32_t npoints; /* the memory curve behind it, */
    int64_t *memory;  /* by instruction of the top, at its own peak where that has bodies */
} sf_pass_outcome;

typedef struct sf_pass_run {
    const sf_pass_list *list;
    const sf_costs *costs;
    int64_t limit;   /* of the device; 0: what the slowest device of the costs has */
    sf_arena *arena; /* of the outcomes */
    bool
        is_cached; /* what was decided for the same before is taken from disk, and what is now is put there (pass/decision_cache.h) */
} sf_pass_run;

/* Runs the passes on the program, which is settled and checked behind each. `outcomes`, or NULL, has room for two more than
 * there are passes, and *count is how many there are: the first is the program as it was, which is the last, too, where the
 * list as a whole was given up. SF_EMISMATCH where a pass broke it, with what. */
sf_status sf_passes_run(sf_program *program, const sf_pass_run *run, sf_diag *diag,
                        sf_pass_outcome *outcomes, int *count);

#endif
