/* What the CPU engine can do, for lowering. */
#ifndef SF_RUN_CPU_TARGET_H
#define SF_RUN_CPU_TARGET_H

#include "prog/target.h"

extern const sf_target sf_target_cpu;

#endif
