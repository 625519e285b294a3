/* Evaluate a step, and compare it with known results. */
#ifndef SHEAF_EVAL_H
#define SHEAF_EVAL_H

#include "sheaf/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sf_eval_options {
    size_t size;         /* of this struct, or 0: see sheaf.h */
    const char *inputs;  /* safetensors with in.0, in.1, ... (or the arguments' names); NULL: zeros
                            if all arguments are floats, else an error */
    const char *outputs; /* where to write out.0, out.1, ...; NULL: nowhere */
    int64_t memory;      /* most bytes of live tensors; 0: what the machine has */
    const char *engine;  /* "oracle" or "cpu"; NULL: "oracle" */
    int threads;         /* of the engine "cpu"; 0: as many as the process may use */
} sf_eval_options;

/* Evaluates once. SF_EWRONG when the program checks itself and a check does not hold. */
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
 * is the quadratic mean of the differences over that of what is expected, or a fifth of the error of
 * the worst element, if that is more.
 *
 * Adam divides a gradient by its own size. Where a gradient is zero in mathematics, both runs
 * compute rounding noise, and the weight takes a step of up to the learning rate in any direction.
 * So
 *
 * - an element of optimizer state that is noise in both runs (below 5e-7 of the largest of the same
 *   moment of all weights; where the step computes in 16 bits, 2e-2; of squares, the squares of
 *   these) counts as equal;
 * - an element of a weight counts as equal if it differs by no more than twice the largest update
 *   of any weight (in the run where that is smaller), times the relative error of its moments where
 *   that is below 1. Where gradients are not noise, that is next to nothing;
 * - a difference of a weight below 5e-7 (or 2e-2) of the largest update of any weight counts as
 *   nothing, so that noise is noise under plain gradient descent as well. */
typedef struct sf_difference {
    const char *name; /* of the result */
    double error;
    int64_t index; /* flat, of the worst element */
    double ours, theirs;
    bool is_weight; /* a parameter that the step replaces */
    double before;  /* what the step took there, for a weight */
    double tolerance;
    bool by_moment; /* elements past the tolerance counted as equal by the rules on noise */
    int step, rank; /* of sf_verify_plan: where the error is largest */
} sf_difference;

typedef struct sf_verify_report {
    int nresults;
    sf_difference *results; /* of step 0, in order; of sf_verify_plan, the worst of all steps */
    int worst;              /* the one with the largest error / tolerance; -1 when there is none */
    int nlosses;
    double *losses, *expected_losses;
    double loss_error; /* largest relative error */
    double loss_tolerance;
    bool passed;
    int ranks; /* of the plan; 0 without one */
    int rank;  /* which of them this process speaks for: 0 unless it is one of mpirun */
} sf_verify_report;

typedef struct sf_verify_options {
    size_t size;           /* of this struct, or 0: see sheaf.h */
    const char *against;   /* safetensors: in.I, out.I, batch.K.NAME, losses */
    double tolerance;      /* of results; 0: 1e-4, or 5e-2 where the step computes in 16 bits */
    double loss_tolerance; /* of losses, relative; 0: 1e-4, or 2e-2 where it computes in 16 bits */
    int steps;             /* 0: as many as there are losses; negative: none, step 0 alone */
    sf_listener *listener; /* told after each step; or NULL */
    void *context;         /* for the listener */
    const char *engine;    /* "cpu" or "oracle"; NULL: "cpu". Of a plan, that of the unsplit run */
    int threads;           /* of the engine "cpu"; 0: as many as the process may use */
    const char *init,
        *data;    /* of a plan, without `against`: rules and data as of training; NULL: the
                                default, "synthetic" */
    bool shrunk;  /* the step is one of sf_plan_shrink, which may be badly conditioned: where no
                           tolerance is given, more is allowed as far as one unit in the last place
                           of the arguments changes results and losses, measured in every step */
    double limit; /* of a plan: seconds that a rank may wait for another; 0: 300 */
    bool check;   /* programs before they run, see docs/architecture.md */
} sf_verify_options;

/* Runs step 0 and compares its results, then further steps and compares the losses. The report is
 * for sf_verify_free, also when the status is SF_EWRONG. */
SF_API sf_status sf_verify(const sf_graph *graph, const sf_verify_options *options, sf_diag *diag,
                           sf_verify_report **out);
SF_API void sf_verify_free(sf_verify_report *report);

/* Runs the step split as the plan says, and unsplit, and compares the two. Its ranks are threads of this
 * process, or, under mpirun, processes, which all call this.
 *
 * Both start from the same state: that of `against`, or, where that is NULL, the one that training starts
 * from, with synthetic batches. The losses are those of two runs that go their own ways. The results are
 * judged in every step, each rank's pieces by themselves: against those of the unsplit step on the state
 * that the split run has come to, so that nothing adds up. Every rank gets the same report, for
 * sf_verify_free. The tolerance of losses is 1e-5, or 2e-2 where the step computes in 16 bits; `steps` are
 * 10, of a shrunk step 3, or as many as `against` has batches for, if those are fewer. */
SF_API sf_status sf_verify_plan(const sf_graph *graph, const sf_plan *plan,
                                const sf_verify_options *options, sf_diag *diag,
                                sf_verify_report **out);

#ifdef __cplusplus
}
#endif

#endif
