/* Measuring: the time of a kernel or a collective when all ranks do the same at the same time.
 *
 * A number is the median of several samples, and of all ranks the largest, so all ranks have the
 * same numbers and, deciding by them alone, do the same. All ranks make the same calls in the same
 * order. */
#ifndef SF_RUN_MEASURE_H
#define SF_RUN_MEASURE_H

#include "base/thread_pool.h"
#include "cluster/curve.h"
#include "run/comm/comm.h"

typedef struct sf_meter {
    sf_comm *comm;
    sf_group *world; /* of all ranks */
    sf_threads *threads;
    sf_arena *arena; /* of curves */
    double seconds;  /* about how long each curve may take */
    bool sharing;    /* ranks share processors: while one waits, others compute */
    sf_diag *diag;
} sf_meter;

/* One run of the measured work. */
typedef sf_status sf_measured_work(void *context);

/* Seconds of the work, measured for about `budget` seconds; *spent is the time of that, or NULL. */
sf_status sf_measure(const sf_meter *meter, double budget, sf_measured_work *work, void *context,
                     double *seconds, double *spent);

/* Products of square matrices of the type: seconds by flops. sf_gemm_can must say that it can. */
sf_status sf_measure_products(const sf_meter *meter, sf_dtype dtype, sf_curve *out);

/* One of as many as keep all threads busy, likewise; empty where there is one thread, to which it makes no difference. */
sf_status sf_measure_batched(const sf_meter *meter, sf_dtype dtype, sf_curve *out);

/* A sum of two f32 tensors: seconds by bytes read and written. */
sf_status sf_measure_loops(const sf_meter *meter, sf_curve *out);

/* Such a sum, repeatedly over the same tensors: seconds per byte by the bytes of all three, all of
 * which each run touches. */
sf_status sf_measure_paces(const sf_meter *meter, sf_curve *out);

/* Elements of f32 that are multiplied in a second, in cache. */
sf_status sf_measure_vector(const sf_meter *meter, double *out);

/* The time of the engine's loops beside memory traffic: seconds per element or run, as in
 * cluster/cost_model.h. */
typedef struct sf_pass_costs {
    double divide, function, fold, strided, run;
} sf_pass_costs;
sf_status sf_measure_passes(const sf_meter *meter, sf_pass_costs *out);

/* Convolutions of f32 images: seconds by flops without packing, and those of an element and a run that are packed
 * (cluster/cost_model.h). */
typedef struct sf_conv_costs {
    sf_curve curve;
    double pack, pack_across, pack_run;
} sf_conv_costs;
sf_status sf_measure_convolutions(const sf_meter *meter, sf_conv_costs *out);

/* Seconds that kernels lose for a second of a collective beside them, 0 to 1; 0 where there is one rank. */
sf_status sf_measure_drag(const sf_meter *meter, double *out);

/* A collective in the group, while the other ranks do the same in theirs: seconds by bytes on the larger
 * side of a member, up to `largest`. It stops earlier when the time is up.
 *
 * As in a step, ranks come to it from kernels, never quite at the same time, and have to be woken:
 * the numbers include that time. */
sf_status sf_measure_collective(const sf_meter *meter, sf_group *group, sf_collective kind,
                                int64_t largest, sf_curve *out);

#endif
