/* ZeRO-3's prefetch, to compare prefetch with: when a tensor is gathered, those that are needed next are gathered, too, as long as what
 * was gathered ahead is at most BUCKET bytes. Memory is not looked at. Gathers keep to their own collectives.
 *
 *     cc -shared -fPIC -DBUCKET=200e6 -o zero3_prefetch.so bench/zero3_prefetch.c -I include
 *     sheaf sim plan.json --cluster deepcompile --passes fsdp,./zero3_prefetch.so,force
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sheaf/pass.h>

#ifndef BUCKET
#define BUCKET 100e6
#endif

typedef struct placing {
    sf_user_passing *passing;
    bool *done;
    uint32_t at;
} placing;

/* Puts an instruction, after all that it needs. */
static void put(placing *p, uint32_t inst)
{
    const sf_user_inst *i = &p->passing->insts[inst];
    if (p->done[inst])
        return;
    p->done[inst] = true;
    for (uint32_t b = 0; b < i->nbefore; b++)
        put(p, i->before[b]);
    p->passing->order[p->at++] = inst;
}

static bool is_gather(const sf_user_inst *inst)
{
    return strcmp(inst->kind, "all_gather") == 0;
}

static int fetch_ahead(sf_user_passing *passing)
{
    placing p = {passing, calloc(passing->count + 1, sizeof *p.done), 0};
    uint32_t next = 0, moved = 0;
    double ahead = 0;
    if (!p.done) {
        snprintf(passing->note, sizeof passing->note, "out of memory");
        return 1;
    }
    for (uint32_t i = 0; i < passing->count; i++) {
        if (is_gather(&passing->insts[i])) {
            if (p.done[i])
                ahead -= (double)passing->insts[i].bytes; /* it is used now */
            next = next > i ? next : i + 1;
            put(&p, i);
            for (; next < passing->count; next++) {
                if (!is_gather(&passing->insts[next]))
                    continue;
                if (ahead + (double)passing->insts[next].bytes > BUCKET)
                    break;
                ahead += (double)passing->insts[next].bytes;
                moved += !p.done[next];
                put(&p, next);
            }
        }
        put(&p, i);
    }
    snprintf(passing->note, sizeof passing->note, "%u gathers ahead", moved);
    free(p.done);
    return 0;
}

SF_API const sf_user_pass *sheaf_pass(void)
{
    static const sf_user_pass pass = {SF_USER_PASS_VERSION, "zero3-prefetch", SF_USER_FOR_TIME,
                                      fetch_ahead};
    return &pass;
}
