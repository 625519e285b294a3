/* Problems of choice: built or read, and solved. */
#include "sheaf/solve.h"

#include <inttypes.h>

#include "api/api_options.h"
#include "base/guard.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/output.h"
#include "solve/solve.h"

/* Built: `builder` grows, and is finished for each solution. Read: `read` is all there is, and is
 * constant. */
struct sf_choices {
    sf_arena arena;
    sf_problem_builder builder;
    bool loaded;
    sf_problem read;
};

static sf_status make_choices(void *context)
{
    sf_choices **out = context;
    *out = sf_alloc(sizeof **out);
    (*out)->builder.arena = &(*out)->arena;
    return SF_OK;
}

sf_status sf_choices_new(sf_diag *diag, sf_choices **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, out);
    return sf_guarded(make_choices, out, diag);
}

void sf_choices_free(sf_choices *choices)
{
    if (!choices)
        return;
    sf_arena_free(&choices->arena);
    sf_free(choices);
}

struct loading {
    const char *path;
    sf_choices *choices;
    sf_diag *diag;
};

static sf_status load(void *context)
{
    struct loading *job = context;
    sf_choices *choices = sf_alloc(sizeof *choices);
    choices->loaded = true;
    sf_status status = sf_problem_read(job->path, &choices->arena, &choices->read, job->diag);
    if (status == SF_OK)
        job->choices = choices;
    else
        sf_choices_free(choices);
    return status;
}

sf_status sf_choices_load(const char *path, sf_diag *diag, sf_choices **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, path, out);
    struct loading job = {.path = path, .diag = diag};
    SF_TRY(sf_guarded(load, &job, diag));
    *out = job.choices;
    return SF_OK;
}

/* One thing to add: a node, a use or an edge. */
struct adding {
    sf_choices *choices;
    enum { NODE, USE, EDGE } what;
    uint32_t a, b;
    int64_t begin, end;
    const int64_t *values;
    sf_diag *diag;
};

static sf_status add_guarded(void *context)
{
    struct adding *job = context;
    sf_problem_builder *builder = &job->choices->builder;
    switch (job->what) {
    case NODE:
        return sf_problem_add_node(builder, job->a, job->values, job->diag);
    case USE:
        return sf_problem_add_use(builder, job->a, job->begin, job->end, job->values, job->diag);
    case EDGE:
        return sf_problem_add_edge(builder, job->a, job->b, job->values, job->diag);
    }
    return SF_EUSAGE;
}

/* If memory runs out, memory of the call is freed: arena and builder are restored. */
static sf_status add_or_undo(struct adding job)
{
    sf_choices *choices = job.choices;
    if (choices->loaded)
        return sf_fail(job.diag, SF_EUSAGE, SF_NOWHERE,
                       "nothing can be added to a problem that was read from a file");
    sf_choices before = *choices;
    sf_status status = sf_guarded(add_guarded, &job, job.diag);
    if (status == SF_ENOMEM)
        *choices = before;
    return status;
}

sf_status sf_choices_add_node(sf_choices *choices, uint32_t count, const int64_t *costs,
                              sf_diag *diag)
{
    SF_NEED(diag, choices, costs);
    return add_or_undo((struct adding){
        .choices = choices, .what = NODE, .a = count, .values = costs, .diag = diag});
}

sf_status sf_choices_add_use(sf_choices *choices, uint32_t node, int64_t begin, int64_t end,
                             const int64_t *usages, sf_diag *diag)
{
    SF_NEED(diag, choices, usages);
    return add_or_undo((struct adding){.choices = choices,
                                       .what = USE,
                                       .a = node,
                                       .begin = begin,
                                       .end = end,
                                       .values = usages,
                                       .diag = diag});
}

sf_status sf_choices_add_edge(sf_choices *choices, uint32_t a, uint32_t b, const int64_t *costs,
                              sf_diag *diag)
{
    SF_NEED(diag, choices, costs);
    return add_or_undo((struct adding){
        .choices = choices, .what = EDGE, .a = a, .b = b, .values = costs, .diag = diag});
}

void sf_choices_set_limit(sf_choices *choices, int64_t limit)
{
    SF_NEED_OR(, choices);
    sf_problem_set_limit(&choices->builder, limit);
}

uint32_t sf_choices_nodes(const sf_choices *choices)
{
    SF_NEED_OR(0, choices);
    return choices->loaded ? choices->read.nnodes : (uint32_t)choices->builder.nnodes;
}

/* A solution with its choices after it, in one block. */
struct solving {
    const sf_choices *choices;
    sf_solve_options options;
    sf_threads *threads;
    sf_diag *diag;
    sf_solution *solution;
};

static sf_solution *make_solution(const sf_solve_result *result, uint32_t nodes)
{
    sf_solution *solution = sf_alloc(sizeof *solution + nodes * sizeof(uint32_t));
    uint32_t *choice = (uint32_t *)(solution + 1);
    for (uint32_t v = 0; v < nodes; v++)
        choice[v] = result->choice[v];
    *solution = (sf_solution){.size = sizeof *solution,
                              .stop = result->stop,
                              .feasible = result->feasible,
                              .nodes = nodes,
                              .choice = choice,
                              .cost = result->cost,
                              .bound = result->bound,
                              .gap = result->gap,
                              .time = result->time,
                              .over = result->over,
                              .work = result->work,
                              .seconds = result->seconds};
    return solution;
}

static sf_status solve(void *context)
{
    struct solving *job = context;
    sf_arena arena = {0};
    sf_problem problem = job->choices->read;
    sf_solve_result result;
    sf_status status = SF_OK;
    if (!job->choices->loaded) {
        sf_problem_builder builder = job->choices->builder;
        builder.arena = &arena;
        status = sf_problem_finish(&builder, &problem, job->diag);
    }
    if (status == SF_OK)
        status = sf_solve(&problem, &job->options, job->threads, &arena, &result, job->diag);
    if (status == SF_OK)
        job->solution = make_solution(&result, problem.nnodes);
    sf_arena_free(&arena);
    return status;
}

sf_status sf_choices_solve(const sf_choices *choices, const sf_solve_options *options,
                           sf_diag *diag, sf_solution **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, choices, out);
    struct solving job = {.choices = choices, .diag = diag};
    SF_TRY(SF_TAKE(sf_solve_options, options, &job.options, diag));
    SF_TRY(sf_threads_open(job.options.threads, diag, &job.threads));
    sf_status status = sf_guarded(solve, &job, diag);
    sf_threads_free(job.threads);
    *out = job.solution;
    return status;
}

void sf_solution_free(sf_solution *solution)
{
    sf_free(solution);
}

struct saving {
    const sf_solution *solution;
    const sf_output *output;
    sf_diag *diag;
};

static sf_status save(void *context)
{
    struct saving *job = context;
    sf_buf text = {0};
    sf_json_writer writer = {.buf = &text};
    sf_json_begin_array(&writer);
    for (uint32_t v = 0; v < job->solution->nodes; v++)
        sf_json_put_int(&writer, job->solution->choice[v]);
    sf_json_end_array(&writer);
    sf_buf_printf(&text, "\n");
    sf_status status = sf_output_write(job->output, &text, job->diag);
    sf_buf_free(&text);
    return status;
}

sf_status sf_solution_save(const sf_solution *solution, const sf_output *output, sf_diag *diag)
{
    SF_NEED(diag, solution);
    struct saving job = {solution, output, diag};
    return sf_guarded(save, &job, diag);
}
