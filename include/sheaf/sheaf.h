/* Sheaf: run a training step that was written for one device on a cluster, provably unchanged.
 *
 * Structs and NULL: see sheaf/api.h.
 *
 * Threads. A graph, a plan and a cluster do not change once they are made: threads may share them, and plan, lower, run
 * and train from them at the same time; they are freed when nobody uses them any more. A diag, a session and a problem
 * for the solver (sf_choices) belong to one thread at a time. In a program that mpirun started, calls that ranks make
 * together (sf_train, sf_verify_plan, sessions with a plan, sf_calibrate, sf_ranks_agree) come from one thread of each
 * process, one after another and in the same order everywhere.
 */
#ifndef SHEAF_SHEAF_H
#define SHEAF_SHEAF_H

#include "sheaf/api.h"
#include "sheaf/cache.h"
#include "sheaf/cluster.h"
#include "sheaf/eval.h"
#include "sheaf/event.h"
#include "sheaf/graph.h"
#include "sheaf/output.h"
#include "sheaf/pass.h"
#include "sheaf/plan.h"
#include "sheaf/plugin.h"
#include "sheaf/primitive.h"
#include "sheaf/report.h"
#include "sheaf/script.h"
#include "sheaf/session.h"
#include "sheaf/sketch.h"
#include "sheaf/solve.h"
#include "sheaf/space.h"
#include "sheaf/spec.h"
#include "sheaf/status.h"
#include "sheaf/train.h"
#include "sheaf/tune.h"
#include "sheaf/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs; SF_VERSION is that of the headers. */
SF_API const char *sf_version(void);

/* Whether there is a GPU here that engine "cuda" runs on: its driver and libraries load, and the driver finds one. SF_FEATURE_CUDA
 * (sheaf/version.h) says whether the library has that engine at all. */
SF_API bool sf_has_gpu(void);

/* The most bytes that are read of one file, a pipe or a device, after decompression: beyond that reading it fails with
 * SF_ENOMEM. It holds for the whole process; any thread may set it at any time. 0, or never set: for texts 1 GiB, or half
 * of the memory that is left, if that is less; for tensors the memory that is left; for
 * a device 64 MiB; and no file may then unpack to more than both 64 MiB and 900 times its size. */
SF_API void sf_limit_input(int64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
