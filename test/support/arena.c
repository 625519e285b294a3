#include "support/arena.h"

#include "prog/program.h"

test_arena test_find_arena(const sf_graph *graph, sf_engine *engine)
{
    sf_program *program = sf_lower(graph); /* the same as the engine's: lowering is a function */
    test_arena arena = {0};
    for (uint32_t i = 0; i < graph->top->nresults && !arena.at; i++) {
        const sf_view *view = &program->results[i];
        const sf_buffer *buffer = &program->buffers[view->buffer];
        if (buffer->home != SF_HOME_ARENA || buffer->bytes == 0)
            continue;
        char *result = sf_engine_result(engine, i).data;
        arena.at = result - view->offset * sf_dtype_get(view->dtype)->bytes - buffer->offset;
        arena.bytes = program->arena_bytes;
    }
    sf_program_free(program);
    return arena;
}
