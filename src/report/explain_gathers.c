/* Why a gather is at its place: of tensors whose state is split, after the passes of the plan. */
#include <string.h>

#include "base/units.h"
#include "pass/pass_scope.h"
#include "report/report_explain.h"
#include "search/price/price_pipeline.h"

typedef struct finding {
    sf_explanation *e;
    const sf_rank_run *run;
    const bool *is_wanted; /* by argument of the step */
    int64_t limit;
    sf_explained_gather *list;
    size_t count, capacity;
} finding;

/* The argument of the step that a buffer of the scope comes from, by loops that bring it into shape; SF_NONE: none. */
static uint32_t argument_behind(const sf_pass_scope *scope, uint32_t before, uint32_t buffer)
{
    const sf_program *p = scope->program;
    if (p->buffers[buffer].home == SF_HOME_ARGUMENT && !scope->outer)
        return p->buffers[buffer].argument;
    if (p->buffers[buffer].home == SF_HOME_ARGUMENT)
        return argument_behind(
            scope->around, scope->inst,
            sf_body_argument(&scope->outer->insts[scope->inst], p->buffers[buffer].argument)
                ->buffer);
    for (uint32_t i = before; i-- > 0;)
        for (uint32_t j = 0; j < p->insts[i].nout; j++)
            if (p->insts[i].out[j].buffer == buffer)
                return p->insts[i].nin > 0 ? argument_behind(scope, i, p->insts[i].in[0].buffer)
                                           : SF_NONE;
    return SF_NONE;
}

static uint32_t first_to_read(const sf_program *p, uint32_t after, uint32_t buffer)
{
    for (uint32_t i = after + 1; i < p->ninsts; i++)
        for (uint32_t j = 0; j < p->insts[i].nin; j++)
            if (p->insts[i].in[j].buffer == buffer)
                return i;
    return SF_NONE;
}

/* The compute before it; SF_NONE: none. */
static uint32_t work_before(const sf_gathers *gathers, uint32_t gather)
{
    uint32_t i = gather;
    while (i > 0 && gathers->is_still[i - 1])
        i--;
    return i > 0 ? i - 1 : SF_NONE;
}

static const char *why(const finding *f, const sf_pass_scope *scope, const sf_gathers *gathers,
                       uint32_t gather)
{
    const sf_inst *inst = &scope->program->insts[gather];
    uint32_t before = work_before(gathers, gather);
    int64_t bytes = sf_gather_bytes(scope->program, inst);
    sf_buf text = {0};
    if (before == SF_NONE)
        sf_buf_puts(&text, scope->outer ? "nothing is computed before it in the loop"
                                        : "nothing is computed before it");
    else if (scope->base + scope->live[before] + bytes > f->limit)
        sf_buf_printf(&text, "no room earlier: at instruction %u %s stand, and %s are all there is",
                      before, sf_text_bytes((double)(scope->base + scope->live[before])).at,
                      sf_text_bytes((double)f->limit).at);
    else if (scope->sim->insts[gather].exposed <= 0)
        sf_buf_puts(&text, "all of it is hidden from here on");
    else if (sf_program_bytes(f->run->program) + bytes > f->limit)
        sf_buf_printf(&text, "no room to stand longer: all takes %s already, of %s",
                      sf_text_bytes((double)sf_program_bytes(f->run->program)).at,
                      sf_text_bytes((double)f->limit).at);
    else
        sf_buf_puts(&text, "there is room earlier, but no faster place was found");
    if (inst->nin > 1)
        sf_buf_printf(&text, "; goes with %u others", inst->nin - 1);
    const char *kept = sf_arena_string(&f->e->arena, text.text, text.length);
    sf_buf_free(&text);
    return kept;
}

static void see_gather(finding *f, const sf_pass_scope *scope, const sf_gathers *gathers,
                       uint32_t gather)
{
    const sf_program *p = scope->program;
    const sf_inst *inst = &p->insts[gather];
    const sf_timing *timing = &scope->sim->insts[gather];
    for (uint32_t i = 0; i < inst->nin; i++) {
        uint32_t argument = argument_behind(scope, gather, inst->in[i].buffer);
        uint32_t reader = first_to_read(p, gather, inst->out[i].buffer);
        if (argument == SF_NONE || !f->is_wanted[argument])
            continue;
        sf_explained_gather g = {.argument = argument,
                                 .inst = gather,
                                 .in_loop = scope->outer != NULL,
                                 .reader = reader,
                                 .read_by = reader == SF_NONE ? "" : p->insts[reader].origin.scope,
                                 .seconds = timing->end - timing->start,
                                 .exposed = timing->exposed,
                                 .why = why(f, scope, gathers, gather)};
        g.read_by = sf_arena_string(&f->e->arena, g.read_by, strlen(g.read_by));
        SF_PUSH(&f->e->arena, f->list, f->count, f->capacity, g);
    }
}

static void see_scopes(finding *f)
{
    sf_arena scratch = {0};
    sf_passing passing = {.program = f->run->program, .profile = {.sim = f->run->sim}};
    sf_pass_scope *scopes;
    size_t count = sf_scopes_find(&passing, &scratch, &scopes);
    for (size_t s = count; s-- > 0;) {
        sf_gathers gathers = sf_gathers_find(scopes[s].program, &scratch);
        for (uint32_t i = 0; i < scopes[s].program->ninsts; i++)
            if (gathers.is_gather[i])
                see_gather(f, &scopes[s], &gathers, i);
    }
    sf_arena_free(&scratch);
}

sf_status sf_explain_gathers(sf_explanation *e, const bool *is_wanted, size_t *count,
                             sf_explained_gather **out)
{
    sf_group_runs runs = {0};
    *count = 0;
    if (!*e->plan->passes.list)
        return SF_OK;
    sf_status status = sf_group_runs_new(e->graph, e->plan, e->target, e->costs, e->diag, &runs);
    if (status == SF_OK) {
        finding f = {.e = e, .run = &runs.at[runs.busiest], .is_wanted = is_wanted};
        f.limit = e->plan->passes.memory > 0 ? e->plan->passes.memory : sf_costs_memory(e->costs);
        see_scopes(&f);
        *count = f.count;
        *out = f.list;
    }
    sf_group_runs_free(&runs);
    return status;
}
