/* The reader of a reduction waits for it, and all later instructions wait with it. Gradients of
 * micro-batches are accumulated, and those of a step applied, as soon as they are available:
 * compute of the next layer does not overlap with their reductions. So this pass moves such readers
 * down, after some more reductions, or to the end; the reduced tensor stays in memory until then.
 * It tries several distances. */
#include "base/units.h"
#include "pass/pass_scope.h"
#include "pass/passes.h"
#include "pass/reorder.h"

/* By instruction: the number, plus one, of the last reduction whose result it reads; *list has the reductions. */
static uint32_t *find_readers(const sf_program *p, sf_arena *arena, uint32_t **list,
                              uint32_t *count)
{
    uint32_t *reads = SF_ARRAY(arena, p->ninsts, uint32_t);
    uint32_t *made = SF_ARRAY(arena, p->nbuffers, uint32_t);
    *list = SF_ARRAY(arena, p->ninsts, uint32_t);
    *count = 0;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        for (uint32_t j = 0; j < inst->nin; j++)
            if (made[inst->in[j].buffer] > reads[i])
                reads[i] = made[inst->in[j].buffer];
        if (sf_inst_reduces(inst))
            (*list)[(*count)++] = i;
        for (uint32_t j = 0; j < inst->nout; j++)
            made[inst->out[j].buffer] = sf_inst_reduces(inst) ? *count : 0;
    }
    return reads;
}

/* `behind`: after so many reductions; 0: at the end. */
static size_t defer_in(sf_program *p, sf_arena *arena, uint32_t after)
{
    uint32_t *list, count;
    size_t moved = 0;
    uint32_t *reads = find_readers(p, arena, &list, &count);
    if (count == 0)
        return 0;
    sf_emission e = sf_emission_of(p, arena);
    for (uint32_t i = 0; i < p->ninsts; i++) {
        if (reads[i] == 0 || p->insts[i].kind != SF_INST_LOOP)
            continue;
        uint32_t until = reads[i] + after; /* the number of a reduction */
        if (after > 0 && until < count && list[until] > i)
            sf_emit_before(&e, i, list[until]);
        else
            e.lazy[i] = true;
        moved++;
    }
    sf_emission_end(&e);
    return moved;
}

sf_status sf_pass_defer_gradient_readers(sf_passing *passing)
{
    static const uint32_t ways[SF_DEFER_WAYS] = {0, 16, 4, 1};
    uint32_t after = ways[passing->variant];
    sf_pass_scope *scopes;
    size_t count = sf_scopes_find(passing, passing->scratch, &scopes), moved = 0;
    for (size_t s = 0; s < count; s++)
        moved += defer_in(scopes[s].program, passing->scratch, after);
    sf_buf_printf(passing->note, "%zu reader%s of reductions ", moved, sf_plural(moved));
    if (after > 0)
        sf_buf_printf(passing->note, "%u reductions later", after);
    else
        sf_buf_puts(passing->note, "as late as can be");
    return SF_OK;
}
