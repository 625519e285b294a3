#include "sim/cache_model.h"

#include <math.h>

#include "sim/instruction_work.h"

enum { LEAST_PAGE = 4096, MOST_PAGES = 1 << 15 };

/* Buffers one after the other: arguments, constants, and arenas, whose buffers share memory. */
typedef struct memory {
    const sf_program *program;
    int64_t *places; /* by buffer */
    int64_t page;    /* bytes */
    double *touched; /* by page: when */
    double clock;
} memory;

/* A pass simulates a program that it has added buffers to before they have places in the arena. */
static int64_t place_buffers(memory *m)
{
    const sf_program *p = m->program;
    int64_t end = 0, arenas[SF_SPACE_COUNT];
    for (int s = 0; s < SF_SPACE_COUNT; s++) {
        arenas[s] = end;
        end += p->arena_bytes[s];
    }
    for (size_t i = 0; i < p->nbuffers; i++) {
        const sf_buffer *buffer = &p->buffers[i];
        bool placed = buffer->home == SF_HOME_ARENA && buffer->offset >= 0 &&
                      buffer->offset + buffer->bytes <= p->arena_bytes[buffer->space];
        m->places[i] = placed ? arenas[buffer->space] + buffer->offset : end;
        end += placed ? 0 : buffer->bytes;
    }
    return end;
}

static memory new_memory(const sf_program *p, sf_arena *arena)
{
    memory m = {.program = p, .places = SF_ARRAY(arena, p->nbuffers, int64_t)};
    int64_t bytes = place_buffers(&m);
    for (m.page = LEAST_PAGE; bytes / m.page > MOST_PAGES;)
        m.page *= 2;
    int64_t pages = bytes / m.page + 1;
    m.touched = SF_ARRAY(arena, pages, double);
    for (int64_t i = 0; i < pages; i++)
        m.touched[i] = -HUGE_VAL;
    return m;
}

/* Pages of a view, the last included. */
static void find_pages(const memory *m, const sf_view *view, int64_t *first, int64_t *last)
{
    int64_t low = view->offset, high = view->offset, width = sf_dtype_get(view->dtype)->bytes;
    for (int d = 0; d < view->rank; d++) {
        int64_t reach = (view->dims[d] - 1) * view->strides[d];
        *(reach < 0 ? &low : &high) += reach;
    }
    *first = (m->places[view->buffer] + low * width) / m->page;
    *last = (m->places[view->buffer] + high * width) / m->page;
}

/* The smallest step that a distance is within; SF_NEAR_STEPS: none. */
static int step_of(double distance)
{
    int step = 0;
    while (step < SF_NEAR_STEPS && distance > sf_near_distance(step))
        step++;
    return step;
}

/* Notes how far its pages are, and touches them. */
static void touch_view(memory *m, const sf_view *view, double *near)
{
    double bytes = sf_view_bytes(view);
    int64_t first, last;
    if (bytes == 0)
        return;
    find_pages(m, view, &first, &last);
    double each = bytes / (double)(last - first + 1), now = m->clock;
    for (int64_t page = first; page <= last; page++) {
        int step = step_of(now - m->touched[page]);
        if (near && step < SF_NEAR_STEPS)
            near[step] += each;
        m->clock += each;
        m->touched[page] = m->clock;
    }
}

static double touched_bytes(const sf_program *p);

/* By one run of the instruction: bodies touch the bytes of their instructions. */
static double bodies_bytes(const sf_inst *inst)
{
    double bytes = 0;
    for (uint32_t b = 0; b < sf_body_count(inst); b++)
        bytes += inst->nest->runs[b] * touched_bytes(inst->nest->bodies[b]);
    return bytes;
}

static double views_bytes(const sf_inst *inst)
{
    double bytes = 0;
    for (uint32_t i = 0; i < inst->nin; i++)
        bytes += sf_view_bytes(&inst->in[i]);
    for (uint32_t i = 0; i < inst->nout; i++)
        bytes += sf_view_bytes(&inst->out[i]);
    return bytes;
}

static double touched_bytes(const sf_program *p)
{
    double bytes = 0;
    for (size_t i = 0; i < p->ninsts; i++)
        bytes += views_bytes(&p->insts[i]) + bodies_bytes(&p->insts[i]);
    return bytes;
}

static void touch_views(memory *m, const sf_inst *inst, double *near)
{
    for (uint32_t i = 0; i < inst->nin; i++)
        touch_view(m, &inst->in[i], near);
    for (uint32_t i = 0; i < inst->nout; i++)
        touch_view(m, &inst->out[i], near);
    m->clock += bodies_bytes(inst);
}

sf_nearness *sf_nearness_of(const sf_program *program, sf_arena *arena)
{
    sf_nearness *out = SF_ARRAY(arena, program->ninsts, sf_nearness);
    sf_arena scratch = {0};
    memory m = new_memory(program, &scratch);
    for (size_t i = 0; i < program->ninsts; i++)
        touch_views(&m, &program->insts[i], NULL);
    for (size_t i = 0; i < program->ninsts; i++) {
        double all = views_bytes(&program->insts[i]);
        touch_views(&m, &program->insts[i], out[i].share);
        for (int s = 0; s < SF_NEAR_STEPS && all > 0; s++)
            out[i].share[s] /= all;
    }
    sf_arena_free(&scratch);
    return out;
}
