/* The CPU engine's target, for lowering. */
#ifndef SF_RUN_CPU_CPU_TARGET_H
#define SF_RUN_CPU_CPU_TARGET_H

#include "prog/target.h"

extern const sf_target sf_target_cpu;

/* The same for a device whose runtime has no kernel for attention. */
extern const sf_target sf_target_cpu_plain;
extern const sf_target sf_target_cpu_plain;

#endif
