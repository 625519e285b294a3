#include "support/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "prog/check.h"
#include "run/cpu/target.h"

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
