#include "api/probe/probe.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "sheaf/graph.h"
#include "sim/instruction_work.h"

struct step {
    sf_runner runner;
    sf_diag *diag;
};

static sf_status run_step(void *context)
{
    struct step *step = context;
    return sf_engine_step(step->runner.engine, step->diag);
}

/* Numbers of all sizes up to 1: the time of a product depends on how many bits change. */
static void fill_pattern(sf_dtype dtype, char *pattern, int64_t count)
{
    uint32_t bits = 1;
    for (int64_t i = 0; i < count; i++) {
        bits = bits * 1664525u + 1013904223u;
        sf_store_f64(dtype, pattern, i, (double)(bits >> 8) / (1 << 23) - 1);
    }
}

static sf_status fill_arguments(struct step *step)
{
    enum { PATTERN = 65521 }; /* a prime: rows of matrices differ */
    char *pattern = sf_alloc(PATTERN * sizeof(double));
    sf_status status = SF_OK;
    for (uint32_t i = 0; i < step->runner.program->narguments && status == SF_OK; i++) {
        sf_tensor to;
        status = sf_engine_lend(step->runner.engine, i, true, step->diag, &to);
        if (status != SF_OK)
            break;
        int64_t bytes = sf_type_bytes(to.type);
        int64_t each = PATTERN * sf_dtype_get(to.type->dtype)->bytes;
        fill_pattern(to.type->dtype, pattern, PATTERN);
        for (int64_t at = 0; at < bytes; at += each)
            memcpy((char *)to.data + at, pattern, (size_t)(bytes - at < each ? bytes - at : each));
        status = sf_engine_give_back(step->runner.engine, i, step->diag);
    }
    sf_free(pattern);
    return status;
}

static sf_status time_step(const sf_probe *probe, struct step *step, double *out)
{
    enum { WARM = 3 };
    const sf_meter *meter = probe->meter;
    SF_TRY(fill_arguments(step));
    for (int i = 0; i < WARM; i++)
        SF_TRY(run_step(step));
    return sf_measure(meter, meter->seconds * probe->share, run_step, step, out, NULL);
}

static void count_work(const sf_program *program, sf_probed *out)
{
    for (size_t i = 0; i < program->ninsts; i++) {
        sf_effort effort = sf_inst_effort(&program->insts[i]);
        out->flops += effort.flops / (double)program->ninsts;
        out->bytes += effort.bytes / (double)program->ninsts;
        out->folds += effort.passes.folds;
        out->runs += effort.passes.runs;
    }
}

sf_status sf_probe_graph(const sf_probe *probe, const sf_graph *graph, int count, sf_probed *out)
{
    const sf_meter *meter = probe->meter;
    struct step step = {.diag = meter->diag};
    sf_runner_options options = {.engine = probe->engine,
                                 .with = {.pool = meter->threads, .precision = probe->precision}};
    double seconds = 0;
    *out = (sf_probed){0};
    sf_status status = sf_runner_open(graph, &options, meter->diag, &step.runner);
    size_t made = status == SF_OK ? step.runner.program->ninsts : 0;
    if (status == SF_OK && (made == 0 || (count > 0 && made != (size_t)count)))
        status = sf_fail(meter->diag, SF_EMISMATCH, SF_NOWHERE,
                         "a step to be measured became %zu instructions, not %d", made, count);
    if (status == SF_OK)
        status = time_step(probe, &step, &seconds);
    if (status == SF_OK) {
        count_work(step.runner.program, out);
        out->all = fmax(seconds - probe->base, 0.1 * seconds);
        out->seconds = out->all / (double)made;
    }
    sf_runner_close(&step.runner);
    return status;
}

sf_status sf_probe_text(const sf_probe *probe, const sf_buf *text, int count, sf_probed *out)
{
    sf_graph *graph;
    SF_TRY(sf_load_text(text->text, text->length, "probe", NULL, probe->meter->diag, &graph));
    sf_status status = sf_probe_graph(probe, graph, count, out);
    sf_graph_free(graph);
    return status;
}

/* Products in which each reads the one before: nothing is fused, merged or left out. */
static void write_chain(int length, sf_buf *text)
{
    sf_buf_puts(text, "func.func public @main(%v0: tensor<4x4xf32>) -> tensor<4x4xf32> {\n");
    for (int i = 0; i < length; i++)
        sf_buf_printf(text,
                      "%%v%d = stablehlo.dot_general %%v%d, %%v0, contracting_dims = [1] x [0] : "
                      "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>\n",
                      i + 1, i);
    sf_buf_printf(text, "return %%v%d : tensor<4x4xf32>\n}\n", length);
}

static sf_status probe_chain(const sf_probe *probe, int length, double *seconds)
{
    sf_probed probed;
    sf_buf text = {0};
    write_chain(length, &text);
    sf_status status = sf_probe_text(probe, &text, length, &probed);
    sf_buf_free(&text);
    *seconds = probed.seconds * length;
    return status;
}

enum { SHORT_CHAIN = 8, LONG_CHAIN = 64 };

sf_status sf_measure_launch(const sf_probe *probe, double *out)
{
    SF_TRY(probe_chain(probe, LONG_CHAIN, out));
    *out /= LONG_CHAIN;
    return SF_OK;
}

sf_status sf_measure_base(const sf_probe *probe, double *out)
{
    double few, many;
    SF_TRY(probe_chain(probe, SHORT_CHAIN, &few));
    SF_TRY(probe_chain(probe, LONG_CHAIN, &many));
    *out = fmax(0, few - (many - few) * SHORT_CHAIN / (LONG_CHAIN - SHORT_CHAIN));
    return SF_OK;
}
