/* Gradients are sent as bf16, half of their bytes. Each rank keeps its rounding error, and adds it
 * to the gradient of the next step (error feedback: Seide et al. 2014, 1-bit SGD; Karimireddy et
 * al. 2019), so that it is late and not lost:
 *
 *     t = gradient + kept       q = bf16(t)       kept = t - q       reduce q       gradient =
 *                               f32(q)
 *
 * Partial sums are bf16 as well, without error feedback. So training is only approximately the
 * same: only the user enables this pass. A reduction is one of gradients if its result goes through
 * loops alone into state. */
#include "base/units.h"
#include "pass/pass_scope.h"
#include "pass/passes.h"
#include "pass/reorder.h"
#include "prog/edit_program.h"

enum { LEAST };

typedef struct compressing {
    const sf_passing *passing;
    sf_program *p;
    double bytes; /* that travel in a step, before */
    size_t count;
} compressing;

/* Whether the content of a buffer after an instruction, or values that loops make of it, becomes
 * state, and has no other reader. */
static bool becomes_state(const compressing *c, uint32_t from, uint32_t buffer)
{
    const sf_program *p = c->p;
    bool *reached = SF_ARRAY(c->passing->scratch, p->nbuffers, bool), state = false;
    reached[buffer] = true;
    for (uint32_t i = from + 1; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        bool reads = false;
        for (uint32_t j = 0; j < inst->nin; j++)
            reads = reads || reached[inst->in[j].buffer];
        if (reads && inst->kind != SF_INST_LOOP && !sf_goes_beside(inst))
            return false;
        for (uint32_t j = 0; j < inst->nout; j++) {
            bool is_state = p->buffers[inst->out[j].buffer].home == SF_HOME_ARGUMENT;
            state = state || (reads && is_state);
            reached[inst->out[j].buffer] = reads && !is_state;
        }
    }
    return state;
}

/* By part of a collective: it is none of a gradient. *count is how many are of one; none where they are few bytes. */
static bool *find_others(const compressing *c, uint32_t index, uint32_t *count)
{
    const sf_inst *inst = &c->p->insts[index];
    bool *others = SF_ARRAY(c->passing->scratch, inst->nin, bool);
    int64_t bytes = 0;
    *count = 0;
    if (!sf_inst_reduces(inst) || inst->piece || inst->exchange->groups != 0 ||
        inst->exchange->monoid != SF_MONOID_ADD || inst->exchange->size < 2)
        return others;
    for (uint32_t i = 0; i < inst->nin; i++) {
        others[i] = inst->in[i].dtype != SF_F32 || sf_view_count(&inst->out[i]) < 2 ||
                    !becomes_state(c, index, inst->out[i].buffer);
        bytes += others[i] ? 0 : sf_view_size(&inst->in[i]);
        *count += !others[i];
    }
    if ((double)bytes < c->passing->options[LEAST])
        *count = 0;
    return others;
}

/* The others, a collective of their own. */
static uint32_t part_others(sf_program *p, uint32_t index, bool *others)
{
    sf_inst rest = p->insts[index];
    uint32_t count = rest.nin;
    sf_drop_parts(p, &p->insts[index], others);
    for (uint32_t i = 0; i < count; i++)
        others[i] = !others[i];
    return sf_drop_parts(p, &rest, others) ? sf_program_add(p, &rest) : SF_NONE;
}

/* Loops over elements that lie together */

static sf_view flat_view(uint32_t buffer, sf_dtype dtype, int64_t offset, int64_t count)
{
    return (sf_view){.buffer = buffer,
                     .dtype = dtype,
                     .rank = 1,
                     .offset = offset,
                     .dims = {count},
                     .strides = {1}};
}

/* The views in the order of accesses: `nin` that are loaded, then those that are stored. */
static sf_inst loop_over(sf_program *p, const sf_loop_step *steps, uint32_t nsteps,
                         uint32_t nregisters, const sf_view *views, uint32_t nin, uint32_t nout,
                         const sf_inst *like)
{
    sf_loop *loop = SF_NEW(&p->arena, sf_loop);
    *loop = (sf_loop){.rank = 1,
                      .dims = {views[0].dims[0]},
                      .rows = 1,
                      .columns = views[0].dims[0],
                      .nsteps = nsteps,
                      .nregisters = nregisters,
                      .naccesses = nin + nout};
    loop->steps = sf_arena_copy(&p->arena, steps, nsteps * sizeof *steps);
    loop->is_wide = SF_ARRAY(&p->arena, nregisters, bool);
    loop->accesses = SF_ARRAY(&p->arena, loop->naccesses, sf_access);
    for (uint32_t a = 0; a < nin + nout; a++)
        loop->accesses[a] =
            (sf_access){.view = a < nin ? a : a - nin, .dtype = views[a].dtype, .strides = {1}};
    sf_inst inst = {.kind = SF_INST_LOOP, .nin = nin, .nout = nout, .loop = loop};
    inst.in = sf_arena_copy(&p->arena, views, nin * sizeof *views);
    inst.out = sf_arena_copy(&p->arena, views + nin, nout * sizeof *views);
    inst.origin = like->origin;
    inst.origin.node = SF_NONE;
    return inst;
}

/* t = gradient + kept; q = bf16(t); kept = t - q. */
static sf_inst narrow(sf_program *p, const sf_inst *like, const sf_view *gradient,
                      const sf_view *kept, const sf_view *sent)
{
    enum { GRADIENT, KEPT, SUM, SENT, REGISTERS };
    const sf_loop_step steps[] = {
        {.kind = SF_STEP_LOAD, .dtype = SF_F32, .dst = GRADIENT, .access = 0},
        {.kind = SF_STEP_LOAD, .dtype = SF_F32, .dst = KEPT, .access = 1},
        {.kind = SF_STEP_OP, .op = SF_VADD, .dtype = SF_F32, .dst = SUM, .a = GRADIENT, .b = KEPT},
        {.kind = SF_STEP_ROUND, .dtype = SF_BF16, .dst = SENT, .a = SUM},
        {.kind = SF_STEP_OP, .op = SF_VSUB, .dtype = SF_F32, .dst = KEPT, .a = SUM, .b = SENT},
        {.kind = SF_STEP_STORE, .dtype = SF_F32, .a = KEPT, .access = 2},
        {.kind = SF_STEP_STORE, .dtype = SF_BF16, .a = SENT, .access = 3},
    };
    const sf_view views[] = {*gradient, *kept, *kept, *sent};
    return loop_over(p, steps, sizeof steps / sizeof *steps, REGISTERS, views, 2, 2, like);
}

static sf_inst widen(sf_program *p, const sf_inst *like, const sf_view *sent,
                     const sf_view *gradient)
{
    const sf_loop_step steps[] = {
        {.kind = SF_STEP_LOAD, .dtype = SF_BF16, .dst = 0, .access = 0},
        {.kind = SF_STEP_STORE, .dtype = SF_F32, .a = 0, .access = 1},
    };
    const sf_view views[] = {*sent, *gradient};
    return loop_over(p, steps, sizeof steps / sizeof *steps, 1, views, 1, 1, like);
}

/* Programs */

typedef struct around {
    uint32_t count;           /* parts; 0: it stays */
    uint32_t *before, *after; /* instructions before the collective, and its readers */
    uint32_t rest;            /* the collective of other parts, or SF_NONE */
} around;

static void compress_exchange(compressing *c, uint32_t index, around *at)
{
    sf_program *p = c->p;
    uint32_t count = at->count;
    at->before = SF_ARRAY(c->passing->scratch, count, uint32_t);
    at->after = SF_ARRAY(c->passing->scratch, count, uint32_t);
    for (uint32_t i = 0; i < count; i++) {
        sf_inst like = p->insts[index];
        int64_t sent = sf_view_count(&like.in[i]), got = sf_view_count(&like.out[i]);
        uint32_t kept = sf_program_add_buffer(p, sent * (int64_t)sizeof(float), SF_NONE);
        uint32_t out = sf_program_add_buffer(p, 2 * sent, SF_NONE);
        uint32_t in = sf_program_add_buffer(p, 2 * got, SF_NONE);
        p->buffers[kept].home = SF_HOME_KEPT;
        sf_view gradient = flat_view(like.in[i].buffer, SF_F32, like.in[i].offset, sent);
        sf_view result = flat_view(like.out[i].buffer, SF_F32, like.out[i].offset, got);
        sf_view error = flat_view(kept, SF_F32, 0, sent),
                narrowed = flat_view(out, SF_BF16, 0, sent);
        sf_view come = flat_view(in, SF_BF16, 0, got);
        sf_inst first = narrow(p, &like, &gradient, &error, &narrowed);
        sf_inst last = widen(p, &like, &come, &result);
        at->before[i] = sf_program_add(p, &first);
        at->after[i] = sf_program_add(p, &last);
        p->insts[index].in[i] = narrowed;
        p->insts[index].out[i] = come;
        c->bytes += (double)(sent * (int64_t)sizeof(float));
    }
    c->count += count;
}

/* A widened tensor waits for its first reader. */
static void wait_for_need(sf_program *p, sf_arena *arena, const bool *is_late)
{
    sf_emission e = sf_emission_of(p, arena);
    for (size_t i = 0; i < p->ninsts; i++)
        e.lazy[i] = is_late[i];
    sf_emission_end(&e);
}

static void compress_scope(compressing *c)
{
    sf_program *p = c->p;
    sf_arena *arena = c->passing->scratch;
    size_t count = p->ninsts, at = 0, before = c->count;
    around *all = SF_ARRAY(arena, count, around);
    for (uint32_t i = 0; i < count; i++) {
        bool *others = find_others(c, i, &all[i].count);
        if (all[i].count == 0)
            continue;
        all[i].rest = part_others(p, i, others);
        compress_exchange(c, i, &all[i]);
    }
    if (c->count == before)
        return;
    uint32_t *order = SF_ARRAY(arena, p->ninsts, uint32_t);
    bool *is_late = SF_ARRAY(arena, p->ninsts, bool);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < all[i].count; j++)
            order[at++] = all[i].before[j];
        order[at++] = i;
        if (all[i].count > 0 && all[i].rest != SF_NONE)
            order[at++] = all[i].rest;
        for (uint32_t j = 0; j < all[i].count; j++) {
            is_late[at] = true;
            order[at++] = all[i].after[j];
        }
    }
    sf_program_arrange(p, order, at);
    wait_for_need(p, arena, is_late);
}

sf_status sf_pass_compress(sf_passing *passing)
{
    sf_pass_scope *scopes;
    size_t count = sf_scopes_find(passing, passing->scratch, &scopes);
    compressing c = {.passing = passing};
    double bytes = 0;
    for (size_t s = 0; s < count; s++) {
        double before = c.bytes;
        c.p = scopes[s].program;
        compress_scope(&c);
        bytes += (c.bytes - before) * scopes[s].runs;
    }
    sf_buf_printf(
        passing->note,
        "an approximation: %zu gradient%s sent as bf16, %s instead of %s; what is rounded "
        "off is added in the next step",
        c.count, sf_plural(c.count), sf_text_bytes(bytes / 2).at, sf_text_bytes(bytes).at);
    return SF_OK;
}
