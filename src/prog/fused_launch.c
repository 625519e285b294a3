#include "prog/fused_launch.h"

typedef struct bunching {
    const sf_program *p;
    char *const *places;
    uint32_t first; /* of the current fused launch, */
    /* by buffer: the first instruction of the fused launch that last did so, plus one */
    uint32_t *read, *written;
} bunching;

bool sf_is_small_loop(const sf_program *p, const sf_inst *inst)
{
    return inst->kind == SF_INST_LOOP && !inst->piece &&
           sf_inst_touched(inst) <= (double)p->target->small_bytes;
}

static bool meets_in_memory(const bunching *b, uint32_t x, uint32_t y)
{
    const char *from = b->places[x], *other = b->places[y];
    return from < other + b->p->buffers[y].bytes && other < from + b->p->buffers[x].bytes;
}

/* Whether some view of the one list shares memory with a view of the other. */
static bool any_meet(const bunching *b, const sf_view *x, uint32_t nx, const sf_view *y,
                     uint32_t ny)
{
    for (uint32_t i = 0; i < nx; i++)
        for (uint32_t j = 0; j < ny; j++)
            if (meets_in_memory(b, x[i].buffer, y[j].buffer))
                return true;
    return false;
}

/* A buffer's content is lost when another buffer is written to its memory: so memory is compared,
 * too. */
static bool insts_meet(const bunching *b, const sf_inst *x, const sf_inst *y)
{
    return any_meet(b, x->out, x->nout, y->out, y->nout) ||
           any_meet(b, x->out, x->nout, y->in, y->nin) ||
           any_meet(b, x->in, x->nin, y->out, y->nout);
}

/* Whether it can join the fused launch of its predecessor. */
static bool joins(const bunching *b, uint32_t index)
{
    const sf_inst *inst = &b->p->insts[index];
    if (inst->nwaits > 0 || !sf_is_small_loop(b->p, inst) ||
        !sf_is_small_loop(b->p, &b->p->insts[b->first]))
        return false;
    for (uint32_t i = 0; i < inst->nin; i++)
        if (b->written[inst->in[i].buffer] == b->first + 1)
            return false;
    for (uint32_t i = 0; i < inst->nout; i++)
        if (b->written[inst->out[i].buffer] == b->first + 1 ||
            b->read[inst->out[i].buffer] == b->first + 1)
            return false;
    for (uint32_t i = b->first; b->places && i < index; i++)
        if (insts_meet(b, inst, &b->p->insts[i]))
            return false;
    return true;
}

static void note_touched(bunching *b, const sf_inst *inst)
{
    for (uint32_t i = 0; i < inst->nin; i++)
        b->read[inst->in[i].buffer] = b->first + 1;
    for (uint32_t i = 0; i < inst->nout; i++)
        b->written[inst->out[i].buffer] = b->first + 1;
}

uint32_t *sf_fused_launches_of(const sf_program *p, char *const *places, sf_arena *arena)
{
    sf_arena scratch = {0};
    bunching b = {.p = p, .places = places};
    uint32_t *firsts = SF_ARRAY(arena, p->ninsts, uint32_t);
    b.read = SF_ARRAY(&scratch, p->nbuffers, uint32_t);
    b.written = SF_ARRAY(&scratch, p->nbuffers, uint32_t);
    for (uint32_t i = 0; i < p->ninsts; i++) {
        if (p->target->small_bytes == 0 || i == 0 || !joins(&b, i))
            b.first = i;
        firsts[i] = b.first;
        note_touched(&b, &p->insts[i]);
    }
    sf_arena_free(&scratch);
    return firsts;
}
