#include "api/verify/noise_range.h"

#include <math.h>
#include <string.h>

#include "api/verify/noise.h"
#include "base/mem.h"
#include "run/mixed_precision.h"

enum { CHUNK = 1024 };

static int64_t number_count(const sf_type *type)
{
    return type->count * sf_parts_of(type->dtype);
}

void sf_noise_range_init(const sf_graph *step, const sf_runner_options *options, sf_arena *arena,
                         sf_noise_range *out)
{
    uint32_t count = step->top->nresults;
    *out = (sf_noise_range){.step = step, .options = *options};
    out->at = SF_ARRAY(arena, count, float *);
    for (uint32_t i = 0; i < count; i++)
        out->at[i] = SF_ARRAY(arena, number_count(sf_result_type(step, i)), float);
}

void sf_noise_range_close(sf_noise_range *noise)
{
    sf_runner_close(&noise->runner);
    if (noise->noisy)
        sf_graph_free(noise->noisy);
    noise->noisy = NULL;
}

int sf_noise_range_pairs(const sf_noise_range *noise)
{
    return sf_narrows(noise->precision) ? SF_NOISE_PAIRS_NARROWED : SF_NOISE_PAIRS;
}

static sf_status write_noise(const sf_noise_range *noise, int run, sf_diag *diag)
{
    uint32_t first = noise->step->top->narguments, pattern = (uint32_t)run / 2 + 1;
    float sign = run % 2 == 0 ? 1 : -1;
    SF_TRY(sf_engine_write(noise->runner.engine, first + SF_NOISE_PATTERN, &pattern, diag));
    return sf_engine_write(noise->runner.engine, first + SF_NOISE_SIGN, &sign, diag);
}

sf_status sf_noise_range_run(sf_noise_range *noise, const sf_tensor *arguments, int run,
                             sf_tensor *results, sf_diag *diag)
{
    const sf_block *top = noise->step->top;
    if (!noise->noisy) {
        sf_graph *narrowed = sf_narrows(noise->precision)
                                 ? sf_narrow_products(noise->step, noise->precision, false)
                                 : NULL;
        noise->noisy = sf_noisy_graph(narrowed ? narrowed : noise->step);
        sf_graph_free(narrowed);
        SF_TRY(sf_runner_open(noise->noisy, &noise->options, diag, &noise->runner));
    }
    for (uint32_t i = 0; i < top->narguments; i++)
        SF_TRY(sf_engine_write(noise->runner.engine, i, arguments[i].data, diag));
    SF_TRY(write_noise(noise, run, diag));
    SF_TRY(sf_engine_step(noise->runner.engine, diag));
    for (uint32_t i = 0; i < top->nresults; i++)
        SF_TRY(sf_engine_see(noise->runner.engine, i, diag, &results[i]));
    noise->runs++;
    return SF_OK;
}

void sf_noise_range_clear(sf_noise_range *noise)
{
    const sf_graph *step = noise->step;
    for (uint32_t i = 0; noise->pairs > 0 && i < step->top->nresults; i++)
        memset(noise->at[i], 0,
               (size_t)number_count(sf_result_type(step, i)) * sizeof *noise->at[i]);
    noise->pairs = 0;
}

static float distance(double noisy, double expected)
{
    if (noisy == expected || (isnan(noisy) && isnan(expected)))
        return 0;
    double distance = fabs(noisy - expected);
    return isfinite(distance) ? (float)distance : INFINITY;
}

static void widen_result(float *at, const sf_tensor *noisy, const sf_tensor *expected)
{
    double a[CHUNK], b[CHUNK];
    int64_t count = number_count(expected->type);
    sf_dtype number = sf_part_of(expected->type->dtype);
    for (int64_t first = 0; first < count; first += CHUNK) {
        int64_t length = count - first < CHUNK ? count - first : CHUNK;
        sf_load_f64s(number, noisy->data, first, length, a);
        sf_load_f64s(number, expected->data, first, length, b);
        for (int64_t i = 0; i < length; i++) {
            float far = distance(a[i], b[i]);
            if (far > at[first + i])
                at[first + i] = far;
        }
    }
}

static sf_status widen(sf_noise_range *noise, const sf_tensor *arguments, const sf_tensor *expected,
                       sf_tensor *noisy, sf_diag *diag)
{
    for (int run = 2 * noise->pairs; run < 2 * noise->pairs + 2; run++) {
        SF_TRY(sf_noise_range_run(noise, arguments, run, noisy, diag));
        for (uint32_t i = 0; i < noise->step->top->nresults; i++)
            widen_result(noise->at[i], &noisy[i], &expected[i]);
    }
    noise->pairs++;
    return SF_OK;
}

sf_status sf_noise_range_widen(sf_noise_range *noise, const sf_tensor *arguments,
                               const sf_tensor *expected, sf_diag *diag)
{
    sf_tensor *noisy = sf_alloc(noise->step->top->nresults * sizeof *noisy + 1);
    sf_status status = widen(noise, arguments, expected, noisy, diag);
    sf_free(noisy);
    return status;
}
