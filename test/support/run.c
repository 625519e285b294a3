#include "support/run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "prog/check_program.h"
#include "run/cpu/cpu_target.h"
#include "support/plans.h"
#include "support/programs.h"

sf_program *test_lower(const sf_graph *graph)
{
    sf_lower_options options = {.target = &sf_target_cpu};
    sf_program *program = sf_lower(graph, &options, NULL);
    sf_diag *diag = sf_diag_new();
    if (sf_program_check(program, diag) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return program;
}

sf_runner test_open_engine(const sf_graph *graph, const char *engine, int threads, sf_threads *pool)
{
    sf_runner_options options = {
        .engine = engine, .check = true, .with = {.threads = threads, .pool = pool}};
    sf_diag *diag = sf_diag_new();
    sf_runner runner;
    if (sf_runner_open(graph, &options, diag, &runner) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return runner;
}

sf_tensor test_argument(sf_engine *engine, uint32_t index)
{
    sf_tensor tensor;
    assert_int_equal(sf_engine_lend(engine, index, true, NULL, &tensor), SF_OK);
    assert_int_equal(sf_engine_give_back(engine, index, NULL), SF_OK);
    return tensor;
}

sf_tensor test_result(sf_engine *engine, uint32_t index)
{
    sf_tensor tensor;
    assert_int_equal(sf_engine_see(engine, index, NULL, &tensor), SF_OK);
    return tensor;
}

sf_target test_few_passes(void)
{
    sf_target target = sf_target_cpu;
    target.few_passes = true;
    target.epilogue_columns = INT64_MAX;
    return target;
}

static void step_of_numbers(sf_engine *engine, const sf_graph *graph)
{
    for (uint32_t a = 0; a < graph->top->narguments; a++) {
        sf_tensor tensor = test_argument(engine, a);
        for (int64_t i = 0; i < tensor.type->count; i++)
            sf_store_f64(tensor.type->dtype, tensor.data, i,
                         (double)((i * 37 + a * 11) % 101) / 64 - 0.5);
    }
    assert_int_equal(sf_engine_step(engine, NULL), SF_OK);
}

void test_as_oracle(const char *text, const sf_target *target, const char *what)
{
    sf_graph *graph = test_step_text(text);
    sf_runner oracle = test_open_engine(graph, "oracle", 1, NULL);
    sf_program *p = test_lower_text(text, target);
    sf_engine *engine = NULL;
    assert_int_equal(sf_engine_open(p, &(sf_engine_options){.threads = 1}, NULL, &engine), SF_OK);
    step_of_numbers(engine, graph);
    step_of_numbers(oracle.engine, graph);
    for (uint32_t r = 0; r < p->nresults; r++) {
        sf_tensor got = test_result(engine, r), want = test_result(oracle.engine, r);
        for (int64_t n = 0; n < want.type->count; n++) {
            double x = sf_get_f64(&got, n), y = sf_get_f64(&want, n),
                   unit = ldexp(1, 1 - sf_dtype_get(want.type->dtype)->mantissa);
            if (!(fabs(x - y) <= fmax(1e-5, unit) * (1 + fabs(y))))
                fail_msg("%s: result %u[%d] is %g, not %g", what, r, (int)n, x, y);
        }
    }
    sf_engine_free(engine);
    sf_program_free(p);
    sf_runner_close(&oracle);
    sf_graph_free(graph);
}

test_arena test_find_arena(const sf_runner *runner)
{
    const sf_program *program = runner->program;
    test_arena arena = {0};
    for (uint32_t i = 0; i < program->nresults && !arena.at; i++) {
        const sf_view *view = &program->results[i];
        const sf_buffer *buffer = &program->buffers[view->buffer];
        if (buffer->home != SF_HOME_ARENA || buffer->bytes == 0)
            continue;
        char *result = test_result(runner->engine, i).data;
        arena.at = result - view->offset * sf_dtype_get(view->dtype)->bytes - buffer->offset;
        arena.bytes = program->arena_bytes[SF_SPACE_DEVICE];
    }
    return arena;
}
