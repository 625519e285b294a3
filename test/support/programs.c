#include "support/programs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "prog/check_program.h"
#include "run/cpu/cpu_target.h"
#include "sheaf/sheaf.h"
#include "support/indexing.h"
#include "support/plans.h"

static sf_program *lower(const sf_graph *graph, const sf_lower_options *options, const char *what)
{
    sf_program *program = sf_lower(graph, options, NULL);
    sf_diag *diag = sf_diag_new();
    if (sf_program_check(program, diag) != SF_OK)
        fail_msg("%s: %s", what, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return program;
}

sf_program *test_lower_text(const char *text, const sf_target *target)
{
    sf_graph *graph = test_step_text(text);
    sf_lower_options options = {.target = target ? target : &sf_target_cpu};
    sf_program *program = lower(graph, &options, text);
    sf_graph_free(graph);
    return program;
}

static sf_program *lower_split(const sf_graph *graph, const sf_plan *plan, int rank,
                               const char *what)
{
    sf_local *local = test_local(graph, plan, rank);
    sf_lower_options options = {.target = &sf_target_cpu, .mesh = &plan->mesh, .rank = rank};
    sf_program *program = lower(local->graph, &options, what);
    sf_local_free(local);
    return program;
}

static int with_splits(const sf_graph *graph, const char *step, test_random *random,
                       test_with_program *with, void *context)
{
    static const int ranks[] = {2, 4};
    int count = 0;
    for (int k = 0; sf_recipe_name(k); k++)
        for (size_t n = 0; n < sizeof ranks / sizeof *ranks; n++) {
            char what[100];
            test_refusal refusal;
            sf_plan *plan = test_pin(graph, sf_recipe_name(k), ranks[n], NULL, NULL, &refusal);
            if (!plan)
                continue;
            int rank = (int)test_draw(random, 0, ranks[n] - 1);
            snprintf(what, sizeof what, "%s, %s, rank %d of %d", step, sf_recipe_name(k), rank,
                     ranks[n]);
            sf_program *program = lower_split(graph, plan, rank, what);
            sf_program *other = lower_split(graph, plan, (rank + 1) % ranks[n], what);
            with(context, what, program, other);
            sf_program_free(program);
            sf_program_free(other);
            sf_plan_free(plan);
            count++;
        }
    return count;
}

static int each(const sf_target *target, bool split, test_with_program *with, void *context)
{
    test_random random = {.key = 17};
    sf_lower_options options = {.target = target};
    int count = 0;
    for (int i = 0; test_steps[i]; i++) {
        sf_graph *graph = test_step(test_steps[i]);
        sf_program *program = lower(graph, &options, test_steps[i]);
        with(context, test_steps[i], program, NULL);
        sf_program_free(program);
        count += 1 + (split ? with_splits(graph, test_steps[i], &random, with, context) : 0);
        sf_graph_free(graph);
    }
    return count;
}

int test_each_program(test_with_program *with, void *context)
{
    return each(&sf_target_cpu, true, with, context);
}

int test_each_whole(const sf_target *target, test_with_program *with, void *context)
{
    return each(target, false, with, context);
}

static void *copy(test_copy *c, const void *from, size_t bytes)
{
    return bytes > 0 ? sf_arena_copy(&c->arena, from, bytes) : NULL;
}

void test_copy_program(const sf_program *from, test_copy *out)
{
    *out = (test_copy){.p = *from};
    sf_program *p = &out->p;
    p->arena = (sf_arena){0};
    p->buffers = copy(out, p->buffers, p->nbuffers * sizeof *p->buffers);
    p->results = copy(out, p->results, p->nresults * sizeof *p->results);
    p->insts = copy(out, p->insts, p->ninsts * sizeof *p->insts);
    p->streams = copy(out, p->streams, p->nstreams * sizeof *p->streams);
    p->stream_capacity = p->nstreams;
    p->buffer_capacity = p->nbuffers;
    p->inst_capacity = p->ninsts;
    for (size_t i = 0; i < p->ninsts; i++) {
        sf_inst *inst = &p->insts[i];
        inst->in = copy(out, inst->in, inst->nin * sizeof *inst->in);
        inst->out = copy(out, inst->out, inst->nout * sizeof *inst->out);
        inst->waits = copy(out, inst->waits, inst->nwaits * sizeof *inst->waits);
        if (inst->kind == SF_INST_COMM)
            inst->exchange = copy(out, inst->exchange, sizeof *inst->exchange);
    }
}

void test_copy_free(test_copy *c)
{
    sf_arena_free(&c->p.arena);
    sf_arena_free(&c->arena);
}
