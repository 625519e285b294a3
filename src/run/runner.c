#include "run/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/recompute_policy.h"
#include "prog/check_program.h"
#include "run/cpu/cpu_target.h"
#include "run/cuda/cuda_device.h"
#include "run/cuda/cuda_target.h"
#include "run/gemm/blas.h"
#include "run/mixed_precision.h"
#include "run/vec/isa.h"

/* The fast one first. */
static const struct {
    const char *name;
    const sf_target *target; /* NULL: runs graphs */
} engines[] = {{"cpu", &sf_target_cpu}, {"cuda", &sf_target_cuda}, {"oracle", NULL}};
enum { ENGINES = sizeof engines / sizeof *engines };

static size_t find_engine(const char *name)
{
    size_t i = 0;
    while (name && i < ENGINES && strcmp(name, engines[i].name) != 0)
        i++;
    return i;
}

sf_status sf_engine_find(const char *name, sf_diag *diag, const char **out)
{
    size_t found = find_engine(name);
    if (found == ENGINES)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "an engine is auto, cpu, cuda or oracle, not '%s'", name);
    *out = engines[found].name;
    return SF_OK;
}

static bool is_auto(const char *name)
{
    return !name || strcmp(name, "auto") == 0;
}

sf_status sf_engine_choose(const char *name, sf_diag *diag, const char **out)
{
    const char *said = getenv("SHEAF_ENGINE");
    if (!is_auto(name))
        return sf_engine_find(name, diag, out);
    if (is_auto(said) || !*said)
        return sf_engine_find(sf_device_is_there() ? "cuda" : "cpu", diag, out);
    if (find_engine(said) == ENGINES)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "SHEAF_ENGINE in the environment is auto, cpu, cuda or oracle, not '%s'",
                       said);
    return sf_engine_find(said, diag, out);
}

const sf_target *sf_engine_target(const char *name)
{
    size_t found = find_engine(name);
    return found < ENGINES ? engines[found].target : NULL;
}

const sf_target *sf_cluster_target(const sf_cluster *cluster)
{
    const sf_device_kind *kind = &cluster->kinds[cluster->nodes[0].kind];
    if (!kind->is_gpu)
        return kind->is_plain ? &sf_target_cpu_plain : &sf_target_cpu;
    if (kind->flops[SF_MATH_TF32] > 0)
        return kind->is_plain ? &sf_target_cuda_tf32_plain : &sf_target_cuda_tf32;
    return kind->is_plain ? &sf_target_cuda_plain : &sf_target_cuda;
}

sf_status sf_precision_find(const char *name, sf_diag *diag, sf_precision *out)
{
    static const char *const names[SF_PRECISION_COUNT] = {"f32", "tf32", "bf16", "f16", "fp8"};
    for (int i = 0; i < SF_PRECISION_COUNT; i++)
        if (!name || strcmp(name, names[i]) == 0) {
            *out = (sf_precision)i;
            return SF_OK;
        }
    return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                   "there is no precision '%s': it is f32, tf32, bf16, f16 or fp8", name);
}

sf_program *sf_lower_as_text(const sf_graph *graph, const sf_lower_options *options)
{
    if (!sf_text_has_recompute(graph))
        return sf_lower(graph, options, NULL);
    sf_recomputed_step recomputed_step = sf_recompute_as_text(graph);
    sf_program *program = sf_lower(recomputed_step.graph, options, NULL);
    sf_recomputed_step_free(&recomputed_step);
    return program;
}

/* An engine on the graph as it is. */
static sf_status open_as_is(const sf_graph *graph, const sf_runner_options *options, sf_diag *diag,
                            sf_runner *out)
{
    const char *name;
    SF_TRY(sf_engine_find(options->engine, diag, &name));
    const sf_target *target = sf_engine_target(name);
    if (!target)
        return sf_engine_open_oracle(graph, options->mesh, &options->with, diag, &out->engine);
    sf_lower_options lower = {.target = target,
                              .mesh = options->mesh,
                              .rank = options->rank,
                              .rounds = options->with.precision == SF_PRECISION_TF32,
                              .narrows = sf_narrows(options->with.precision)};
    out->program = sf_lower_as_text(graph, &lower);
    if (options->rewrite)
        SF_TRY(options->rewrite(options->context, out->program, diag));
    if (options->check)
        SF_TRY(sf_program_check(out->program, diag));
    return sf_engine_open(out->program, &options->with, diag, &out->engine);
}

static bool multiplies_fp8(const sf_runner_options *options)
{
    const sf_target *target = sf_engine_target(options->engine);
    return options->with.precision == SF_PRECISION_FP8 && target &&
           target->multiplies(SF_F8E4M3FN, SF_F8E4M3FN, SF_F32) && sf_device_multiplies_fp8();
}

sf_status sf_runner_open(const sf_graph *graph, const sf_runner_options *options, sf_diag *diag,
                         sf_runner *out)
{
    *out = (sf_runner){0};
    if (sf_narrows(options->with.precision))
        graph = out->narrowed =
            sf_narrow_products(graph, options->with.precision, multiplies_fp8(options));
    return open_as_is(graph, options, diag, out);
}

void sf_runner_close(sf_runner *runner)
{
    sf_engine_free(runner->engine);
    sf_program_free(runner->program);
    sf_graph_free(runner->narrowed);
    *runner = (sf_runner){0};
}

const char *sf_engine_arithmetic(const char *name, char *text)
{
    const char *library = sf_blas_name();
    const sf_target *target = sf_engine_target(name ? name : engines[0].name);
    if (!target)
        return "the kernels of the oracle";
    if (target == &sf_target_cuda)
        return sf_device_name();
    int best = SF_ISA_COUNT - 1;
    while (best > 0 && !sf_isa_allowed((sf_isa)best))
        best--;
    snprintf(text, SF_ARITHMETIC, "%s%s%s", sf_isa_name((sf_isa)best), library ? ", " : "",
             library ? library : "");
    return text;
}
