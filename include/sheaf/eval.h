/* Evaluate a step, and compare it with known results. */
#ifndef SHEAF_EVAL_H
#define SHEAF_EVAL_H

#include "sheaf/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sf_eval_options {
    size_t size;         /* sizeof this struct, see api.h */
    const char *inputs;  /* safetensors with in.0, in.1, ... (or the arguments' names); NULL: zeros
                            if all arguments are floats, else an error */
    const char *outputs; /* where to write out.0, out.1, ...; NULL: nowhere */
    int64_t memory;      /* most bytes of live tensors; 0: the memory of the machine */
    const char *engine;  /* "oracle", "cpu" or "cuda"; NULL: "oracle" */
    int threads;         /* of the engine "cpu"; 0: as many as the process may use */
} sf_eval_options;

/* Evaluates once. SF_EMISMATCH when the program checks itself and a check does not hold. */
SF_API sf_status sf_eval_file(const sf_graph *graph, const sf_eval_options *options, sf_diag *diag);

/* How many checks (check.expect_...) the program makes of itself. */
SF_API int64_t sf_graph_checks(const sf_graph *graph);

/* One compared tensor.
 *
 * The error of a float element is |ours - theirs| / max(|theirs|, scale), where the scale is the
 * quadratic mean of the expected tensor, so that an element that happens to be tiny does not count
 * for more than it weighs. A weight hardly moves in one step, so it is judged by its change, that
 * is with (theirs - before) in place of theirs, if that gives the larger error; two units in the
 * last place of a weight count as nothing. Integers and booleans must be equal: their error is
 * |ours - theirs|, their tolerance 0.
 *
 * The error of a tensor is that of its worst element. Where the step computes in 16 bits, compilers
 * round at different places, and single elements differ far more than tensors do: there the error
 * is the quadratic mean of the differences over that of the expected tensor, or a fifth of the
 * error of the worst element, if that is more.
 *
 * Where a step is not continuous, two good runs may differ by more than rounding: it may send a
 * token to another expert, or turn the sign of an update, or, where a gradient is zero in
 * mathematics, divide noise by its own size. So where an element is past the tolerance, the step is
 * also run with noise of the size of rounding, two or four times: every float that goes into an op
 * that adds up, or comes out of one, is multiplied by 1 + a or 1 - a, where a is 64 rounding errors
 * (of 16 bits, four), in pairs of runs of opposite noise. An element that noise moves past the
 * tolerance is unstable. It may differ by twice as much as any of these runs had it from where it
 * is without noise; it is then excused, and counts for no error. Noise misses an element now and
 * then: of 16 unstable elements of a tensor there may be one more that differs, by no more than
 * they do. State of which no element changes although it should is not excused. All other elements
 * are judged by the tolerance. If the caller sets a tolerance, there are no noise runs. */
typedef struct sf_difference {
    size_t size;      /* of this struct, as the library has it */
    const char *name; /* of the result */
    double error;
    int64_t index; /* flat, of the worst element */
    double ours, theirs;
    bool is_weight; /* a parameter that the step replaces */
    double before;  /* for a weight: its value before the step */
    double tolerance;
    bool differs; /* in any bit */
    int64_t
        unstable; /* elements that noise moves past the tolerance, in the step where there are most */
    int64_t excused; /* of a step, on a rank: those past the tolerance that noise explains */
    int step, rank;  /* of sf_verify_plan: where the error is largest */
} sf_difference;

typedef struct sf_verify_report {
    size_t size; /* of this struct, as the library has it */
    int nresults;
    sf_difference *const
        *results; /* [nresults]: of step 0, in order; of sf_verify_plan, the worst of all steps */
    int worst;    /* the one with the largest error / tolerance; -1 when there is none */
    int nlosses;
    double *losses, *expected_losses; /* [nlosses] */
    double loss_error;                /* largest relative error */
    double loss_tolerance;            /* where the ratio of error to tolerance is largest */
    bool passed;
    int ranks;          /* of the plan; 0 without one */
    int rank;           /* which of them this process speaks for: 0 unless it is one of mpirun */
    int64_t noisy_runs; /* steps that were run with noise; 0: there was no need */
    /* a pass of the plan rounds the data of collectives: the tolerances are those of 16 bits */
    bool approximate;
} sf_verify_report;

typedef struct sf_verify_options {
    size_t size;           /* sizeof this struct, see api.h */
    const char *against;   /* safetensors: in.I, out.I, batch.K.NAME, losses */
    double tolerance;      /* of results; 0: 1e-4, or 5e-2 where the step computes in 16 bits */
    double loss_tolerance; /* of losses, relative; 0: 1e-4, or 2e-2 where it computes in 16 bits */
    int steps;             /* 0: as many as there are losses; negative: none, step 0 alone */
    sf_listener *listener; /* called after each step; or NULL */
    void *context;         /* for the listener */
    const char *
        engine; /* "cpu", "cuda" or "oracle"; NULL, "auto": "cuda" where there is a GPU, else "cpu". Of a plan: "cuda" is that of ranks, others of the unsplit run */
    int threads; /* of the engine "cpu"; 0: as many as the process may use */
    const char *init,
        *data;             /* of a plan, without `against`: rules and data as of training; NULL: the
                                default, "synthetic" */
    bool shrunk;           /* the step is one of sf_plan_shrink: fewer steps, unless said */
    double limit;          /* of a plan: seconds that a rank may wait for another; 0: 300 */
    bool check;            /* programs before they run, see docs/design/correctness.md */
    uint64_t seed;         /* of a plan, without `against`: of weights, batches and keys */
    int64_t device_memory; /* of a plan: as of sf_train_options */
    const char *precision; /* as of sf_train_options; of a plan: of its ranks */
    sf_interrupt *interrupt; /* stops the call when it is raised; or NULL */
} sf_verify_options;

/* Runs step 0 and compares its results, then further steps and compares the losses. The report is
 * for sf_verify_free, also when the status is SF_EMISMATCH. */
SF_API sf_status sf_verify(const sf_graph *graph, const sf_verify_options *options, sf_diag *diag,
                           sf_verify_report **out);
SF_API void sf_verify_free(sf_verify_report *report);

/* Runs the step as the plan splits it, and unsplit, and compares the two. Its ranks are threads of this
 * process, or, under mpirun, processes, which all call this.
 *
 * Both start from the same state: that of `against`, or, where that is NULL, the one that training starts
 * from, with synthetic batches. The losses are those of two runs that go their own ways. The results are
 * compared in every step, each rank's shards by themselves: against those of the unsplit step on the state
 * that the split run has come to, so that nothing adds up. Every rank gets the same report, for
 * sf_verify_free. The tolerance of losses is 1e-5, or 2e-2 where the step computes in 16 bits; where a loss is
 * past it, the unsplit run is made four times with noise in every step, and a loss may differ by eight times as much as
 * one of those had by then. `steps` are 10, of a shrunk step 3, or as many as `against` has batches for, if those are
 * fewer. */
SF_API sf_status sf_verify_plan(const sf_graph *graph, const sf_plan *plan,
                                const sf_verify_options *options, sf_diag *diag,
                                sf_verify_report **out);

#ifdef __cplusplus
}
#endif

#endif
