/* Sheaf: run a training step that was written for one device on a cluster, provably unchanged. */
#ifndef SHEAF_SHEAF_H
#define SHEAF_SHEAF_H

#include "sheaf/api.h"
#include "sheaf/cluster.h"
#include "sheaf/eval.h"
#include "sheaf/graph.h"
#include "sheaf/plan.h"
#include "sheaf/report.h"
#include "sheaf/solve.h"
#include "sheaf/status.h"
#include "sheaf/train.h"
#include "sheaf/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs; SF_VERSION is that of the headers. */
SF_API const char *sf_version(void);

#ifdef __cplusplus
}
#endif

#endif
