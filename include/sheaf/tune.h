/* Tuning: finds the values of some variables that make the fastest plan.
 * docs/reference/schedules.md describes it.
 *
 * A program that applies primitives reads the values of variables as it runs, sf_settings_int and
 * sf_settings_choice. The range of a variable can depend on the values of earlier ones, so the
 * settings need not form a rectangle. The tuner runs the program once for each setting to list
 * them, and once more for each trial. */
#ifndef SHEAF_TUNE_H
#define SHEAF_TUNE_H

#include "sheaf/script.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The value of a variable, one of low, low + step, ... up to high; `step` is at least 1. Further
 * calls give the same value. `settings` may be NULL: the first value. SF_EUSAGE for an empty range,
 * or for a variable that was read with another range before. */
SF_API sf_status sf_settings_int(sf_settings *settings, const char *name, int64_t low, int64_t high,
                                 int64_t step, sf_diag *diag, int64_t *out);

/* The same of texts: *out is the number of the one that is taken. Texts that are all numbers are near each other as numbers
 * are. */
SF_API sf_status sf_settings_choice(sf_settings *settings, const char *name, int count,
                                    const char *const *values, sf_diag *diag, int *out);

/* Applies primitives for a setting. */
typedef sf_status sf_tune_apply(void *context, sf_settings *settings, sf_primitives *list,
                                sf_diag *diag);

typedef struct sf_tune_options {
    size_t size;               /* sizeof this struct, see api.h */
    const sf_cluster *cluster; /* the cluster of simulations; NULL, by run: CPUs */
    const char *cluster_name;  /* kept in the log; or NULL */
    bool by_run;               /* plans are run, on synthetic data; else they are simulated */
    const char *algorithm;     /* "model", "exhaustive"; NULL: the first */
    int trials;                /* the most settings to look at; 0: no limit */
    uint64_t seed;             /* not read: no algorithm draws anything */
    int ranks;                 /* of plans whose primitives leave that open; 0: those of the mesh */
    /* most bytes of a rank; 0: the memory of the devices or, by run, of the machine */
    int64_t memory;
    int steps;   /* by run: of a trial, the first of which does not count; 0: 5 */
    int threads; /* by run: of a rank; 0: as many as there are */
    /* A file to which a line of JSON is appended for each setting. Settings in it from an earlier
     * run of the same step, program and options are not tried. NULL: none. */
    const char *log;
    uint64_t program;      /* a hash of `apply`, for the log */
    sf_listener *listener; /* called after each setting, with SF_EVENT_STAGE; or NULL */
    void *context;         /* for the listener */
    bool by_processor;     /* by run: the time of processors counts, for machines with other work */
    sf_interrupt *interrupt; /* stops the call when it is raised; or NULL */
} sf_tune_options;

typedef struct sf_trial {
    size_t size;         /* of this struct, as the library has it */
    const char *setting; /* "batch=4,ratio=12" */
    const char *const *values;
    double seconds;  /* of a step; infinite where it was not tried, or failed */
    int64_t memory;  /* of a rank, as predicted; 0: not known */
    bool pruned;     /* it was predicted not to fit, and not tried */
    bool logged;     /* from the log */
    const char *why; /* it cannot be at all; else NULL */
} sf_trial;

typedef struct sf_tune_report {
    size_t size;    /* of this struct, as the library has it */
    int64_t points; /* settings in all */
    int nvariables;
    const char *const *variables; /* names, in the order in which the program reads them */
    int ntrials;
    const sf_trial *const *trials; /* [ntrials], in their order */
    int best;                      /* of the trials; -1: none fits */
    int64_t room;                  /* bytes of a rank that there are; 0: no limit */
    sf_plan *plan;                 /* of the best; NULL: none fits */
    sf_graph *step; /* that it is of, where the setting replaces ops of the step; else NULL */
} sf_tune_report;

/* Looks for the setting whose plan takes the least time. Where none fits, SF_EMISMATCH. The report is for sf_tune_free, also then. */
SF_API sf_status sf_tune(const sf_graph *graph, sf_tune_apply *apply, void *context,
                         const sf_tune_options *options, sf_diag *diag, sf_tune_report **out);
SF_API void sf_tune_free(sf_tune_report *report);

/* Writes a page about the trials, one self-contained file of HTML: for each pair of variables a map
 * of step times with contour lines, and a table. */
SF_API sf_status sf_tune_page(const sf_tune_report *report, const char *title,
                              const sf_output *output, sf_diag *diag);

/* The algorithms, by number; NULL past the last. */
SF_API const char *sf_tune_algorithm(int index);

/* The same, of a schedule in Lua, which calls tune.int and tune.choice. */
SF_API sf_status sf_tune_script(const sf_graph *graph, const char *path,
                                const sf_script_options *script, const sf_tune_options *options,
                                sf_diag *diag, sf_tune_report **out);

#ifdef __cplusplus
}
#endif

#endif
