/* The work of an instruction on a device: operations, and bytes that it reads and writes. */
#ifndef SF_SIM_INSTRUCTION_WORK_H
#define SF_SIM_INSTRUCTION_WORK_H

#include "cluster/cost_model.h"
#include "prog/program.h"
#include "sim/cache_model.h"

/* That reading or writing the view touches. An element that is read several times, because a stride
 * is 0, counts once. */
double sf_view_bytes(const sf_view *view);

/* Of everything but COMM, COPY, WHILE and CASE; nothing is near. */
sf_effort sf_inst_effort(const sf_inst *inst);

/* Of all that an instruction does, as a device sees it: those that do the same have the same. Not of COMM, COPY, WHILE and CASE. */
uint64_t sf_inst_key(const sf_inst *inst);

/* Bytes of the operands or of the results of a member of the group, whichever is more: the argument
 * of sf_costs_collective. */
double sf_exchange_bytes(const sf_inst *inst);

/* Bytes that a copy brings. */
double sf_copy_bytes(const sf_inst *inst);

/* Seconds on the slowest device, or the measured time of an equal instruction, if the cluster has
 * one; of everything but COMM, COPY, WHILE and CASE; a join takes none. near: NULL: nothing is. */
double sf_inst_seconds(const sf_inst *inst, const sf_nearness *near, const sf_costs *costs);

/* The same of all of a fused launch (prog/fused_launch.h): `count` loops that are launched as
 * one. */
double sf_fused_launch_seconds(const sf_inst *insts, uint32_t count, const sf_nearness *near,
                               const sf_costs *costs);

#endif
