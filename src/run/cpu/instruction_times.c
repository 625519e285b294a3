#include "run/cpu/instruction_times.h"

#include <string.h>

sf_watch sf_watch_new(const sf_program *program, sf_arena *arena)
{
    size_t count = program->ninsts;
    return (sf_watch){.count = count,
                      .seconds = SF_ARRAY(arena, count, double),
                      .spans = SF_ARRAY(arena, count, double),
                      .runs = SF_ARRAY(arena, count, double),
                      .insts = SF_ARRAY(arena, count, sf_timing)};
}

void sf_watch_note(const sf_watch *watch, uint32_t inst, double began, double start, double end)
{
    watch->seconds[inst] += end - start;
    watch->spans[inst] += end - start;
    watch->runs[inst]++;
    watch->insts[inst] = (sf_timing){.start = start - began, .end = end - began};
}

void sf_watch_wait(const sf_watch *watch, uint32_t inst, double began, double start, double end,
                   double over)
{
    sf_timing *t = &watch->insts[inst];
    double until = over - began > t->end ? over - began : t->end;
    watch->seconds[inst] += end - start;
    watch->spans[inst] += until - t->end;
    t->end = until;
    t->exposed += end - start;
}

void sf_watch_forget(const sf_watch *watch)
{
    if (watch->count == 0)
        return;
    memset(watch->spans, 0, watch->count * sizeof *watch->spans);
    memset(watch->runs, 0, watch->count * sizeof *watch->runs);
}

void sf_watch_settle(const sf_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++)
        watch->insts[i].mean = watch->runs[i] > 0 ? watch->spans[i] / watch->runs[i] : 0;
}
