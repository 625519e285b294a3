/* The CPU engine's target, for lowering. */
#ifndef SF_RUN_CPU_CPU_TARGET_H
#define SF_RUN_CPU_CPU_TARGET_H

#include "prog/target.h"

extern const sf_target sf_target_cpu;

/* The same for a device that is no processor and was not measured: thresholds of the CPU's speed do
 * not apply to it. */
extern const sf_target sf_target_cpu_plain;

#endif
