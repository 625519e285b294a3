#include "api/launch.h"

#include "run/runner.h"
#include "sheaf/graph.h"

enum { CHAIN = 64 };

/* Products in which each reads the one before: nothing is fused, merged or left out. */
static void write_chain(sf_buf *text)
{
    sf_buf_puts(text, "func.func public @main(%v0: tensor<4x4xf32>) -> tensor<4x4xf32> {\n");
    for (int i = 0; i < CHAIN; i++)
        sf_buf_printf(text,
                      "%%v%d = stablehlo.dot_general %%v%d, %%v0, contracting_dims = [1] x [0] : "
                      "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>\n",
                      i + 1, i);
    sf_buf_printf(text, "return %%v%d : tensor<4x4xf32>\n}\n", CHAIN);
}

struct step {
    sf_runner runner;
    sf_diag *diag;
};

static sf_status run_step(void *context)
{
    struct step *step = context;
    return sf_engine_step(step->runner.engine, step->diag);
}

static sf_status measure_chain(const sf_meter *meter, const sf_graph *graph, double *out)
{
    struct step step = {.diag = meter->diag};
    sf_runner_options options = {.with = {.pool = meter->threads}};
    double seconds;
    sf_status status = sf_runner_open(graph, &options, meter->diag, &step.runner);
    if (status == SF_OK)
        status = sf_measure(meter, meter->seconds / 8, run_step, &step, &seconds, NULL);
    if (status == SF_OK)
        *out = seconds / CHAIN;
    sf_runner_close(&step.runner);
    return status;
}

sf_status sf_measure_launch(const sf_meter *meter, double *out)
{
    sf_graph *graph;
    sf_buf text = {0};
    write_chain(&text);
    sf_status status = sf_load_text(text.text, text.length, "chain", NULL, meter->diag, &graph);
    sf_buf_free(&text);
    SF_TRY(status);
    status = measure_chain(meter, graph, out);
    sf_graph_free(graph);
    return status;
}
