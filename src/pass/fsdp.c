/* Fully sharded (DeepCompile, section 4.1): a sharded tensor is gathered right before its first
 * reader, and its memory is free right after the last, by dependencies and not by layer.
 * Instructions that reshape a gathered tensor move with it. Reductions go right after their
 * operands' makers, so that gradients are sharded as soon as they are complete.
 *
 * Lowering keeps gathers in flight, by its target; this pass is the starting point from which
 * others move them. */
#include "pass/pass_scope.h"
#include "pass/passes.h"
#include "pass/reorder.h"
#include "prog/edit_program.h"

/* Gathers of several tensors become several. */
static void part_gathers(sf_program *p, sf_arena *arena)
{
    sf_gathers gathers = sf_gathers_find(p, arena);
    size_t count = p->ninsts, at = 0;
    uint32_t *extra = SF_ARRAY(arena, count, uint32_t); /* by instruction: parts after it */
    for (uint32_t i = 0; i < count; i++)
        if (gathers.is_gather[i] && p->insts[i].nout > 1) {
            extra[i] = p->insts[i].nout - 1;
            sf_part_exchange(p, i);
        }
    if (p->ninsts == count)
        return;
    uint32_t *order = SF_ARRAY(arena, p->ninsts, uint32_t), next = (uint32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        order[at++] = i;
        for (uint32_t j = 0; j < extra[i]; j++)
            order[at++] = next++;
    }
    sf_program_arrange(p, order, at);
}

static bool reads_any(const sf_inst *inst, const bool *buffers)
{
    for (uint32_t j = 0; j < inst->nin; j++)
        if (buffers[inst->in[j].buffer])
            return true;
    return false;
}

static void mark(const sf_view *views, uint32_t count, bool *buffers)
{
    for (uint32_t j = 0; j < count; j++)
        buffers[views[j].buffer] = true;
}

/* Loops that make operands of gathers, and those that read their results. */
static void wait_for_need(sf_emission *e, const sf_gathers *gathers)
{
    sf_program *p = e->program;
    bool *sent = SF_ARRAY(e->arena, p->nbuffers, bool),
         *got = SF_ARRAY(e->arena, p->nbuffers, bool);
    for (uint32_t i = (uint32_t)p->ninsts; i-- > 0;) {
        const sf_inst *inst = &p->insts[i];
        bool makes = false;
        for (uint32_t j = 0; j < inst->nout; j++)
            makes = makes || sent[inst->out[j].buffer];
        e->lazy[i] = gathers->is_gather[i] || (gathers->is_still[i] && makes);
        if (e->lazy[i])
            mark(inst->in, inst->nin, sent);
    }
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        e->lazy[i] = e->lazy[i] || (gathers->is_still[i] && reads_any(inst, got));
        if (gathers->is_gather[i] || (gathers->is_still[i] && reads_any(inst, got)))
            mark(inst->out, inst->nout, got);
    }
}

static size_t shard(sf_program *p, sf_arena *arena)
{
    part_gathers(p, arena);
    sf_gathers gathers = sf_gathers_find(p, arena);
    sf_emission e = sf_emission_of(p, arena);
    wait_for_need(&e, &gathers);
    for (size_t i = 0; i < p->ninsts; i++)
        e.eager[i] = sf_inst_reduces(&p->insts[i]);
    sf_emission_end(&e);
    return gathers.count;
}

sf_status sf_pass_fsdp(sf_passing *passing)
{
    sf_pass_scope *scopes;
    size_t count = sf_scopes_find(passing, passing->scratch, &scopes), gathers = 0;
    for (size_t s = 0; s < count; s++)
        gathers += shard(scopes[s].program, passing->scratch);
    sf_buf_printf(passing->note, "%zu gather%s before the first use of what %s", gathers,
                  gathers == 1 ? "" : "s", gathers == 1 ? "it makes" : "they make");
    return SF_OK;
}
