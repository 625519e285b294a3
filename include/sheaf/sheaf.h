/* Sheaf: run a training step that was written for one device on a cluster, provably unchanged. */
#ifndef SHEAF_SHEAF_H
#define SHEAF_SHEAF_H

#include "sheaf/cluster.h"
#include "sheaf/eval.h"
#include "sheaf/graph.h"
#include "sheaf/plan.h"
#include "sheaf/report.h"
#include "sheaf/solve.h"
#include "sheaf/status.h"
#include "sheaf/train.h"
#include "sheaf/version.h"

#endif
