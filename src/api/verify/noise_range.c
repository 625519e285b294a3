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

void sf_spread_init(const sf_graph *step, const sf_runner_options *options, sf_arena *arena,
                    sf_spread *out)
{
    uint32_t count = step->top->nresults;
    *out = (sf_spread){.step = step, .options = *options};
    out->at = SF_ARRAY(arena, count, float *);
    for (uint32_t i = 0; i < count; i++)
        out->at[i] = SF_ARRAY(arena, number_count(sf_result_type(step, i)), float);
}

void sf_spread_close(sf_spread *spread)
{
    sf_runner_close(&spread->runner);
    if (spread->noisy)
        sf_graph_free(spread->noisy);
    spread->noisy = NULL;
}

int sf_spread_pairs(const sf_spread *spread)
{
    return sf_narrows(spread->precision) ? SF_SPREAD_PAIRS_NARROWED : SF_SPREAD_PAIRS;
}

static sf_status write_noise(const sf_spread *spread, int run, sf_diag *diag)
{
    uint32_t first = spread->step->top->narguments, pattern = (uint32_t)run / 2 + 1;
    float sign = run % 2 == 0 ? 1 : -1;
    SF_TRY(sf_engine_write(spread->runner.engine, first + SF_NOISE_PATTERN, &pattern, diag));
    return sf_engine_write(spread->runner.engine, first + SF_NOISE_SIGN, &sign, diag);
}

sf_status sf_spread_run(sf_spread *spread, const sf_tensor *arguments, int run, sf_tensor *results,
                        sf_diag *diag)
{
    const sf_block *top = spread->step->top;
    if (!spread->noisy) {
        sf_graph *narrowed = sf_narrows(spread->precision)
                                 ? sf_narrow_products(spread->step, spread->precision, false)
                                 : NULL;
        spread->noisy = sf_noisy_graph(narrowed ? narrowed : spread->step);
        sf_graph_free(narrowed);
        SF_TRY(sf_runner_open(spread->noisy, &spread->options, diag, &spread->runner));
    }
    for (uint32_t i = 0; i < top->narguments; i++)
        SF_TRY(sf_engine_write(spread->runner.engine, i, arguments[i].data, diag));
    SF_TRY(write_noise(spread, run, diag));
    SF_TRY(sf_engine_step(spread->runner.engine, diag));
    for (uint32_t i = 0; i < top->nresults; i++)
        SF_TRY(sf_engine_see(spread->runner.engine, i, diag, &results[i]));
    spread->runs++;
    return SF_OK;
}

void sf_spread_clear(sf_spread *spread)
{
    const sf_graph *step = spread->step;
    for (uint32_t i = 0; spread->pairs > 0 && i < step->top->nresults; i++)
        memset(spread->at[i], 0,
               (size_t)number_count(sf_result_type(step, i)) * sizeof *spread->at[i]);
    spread->pairs = 0;
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

static sf_status widen(sf_spread *spread, const sf_tensor *arguments, const sf_tensor *expected,
                       sf_tensor *noisy, sf_diag *diag)
{
    for (int run = 2 * spread->pairs; run < 2 * spread->pairs + 2; run++) {
        SF_TRY(sf_spread_run(spread, arguments, run, noisy, diag));
        for (uint32_t i = 0; i < spread->step->top->nresults; i++)
            widen_result(spread->at[i], &noisy[i], &expected[i]);
    }
    spread->pairs++;
    return SF_OK;
}

sf_status sf_spread_widen(sf_spread *spread, const sf_tensor *arguments, const sf_tensor *expected,
                          sf_diag *diag)
{
    sf_tensor *noisy = sf_alloc(spread->step->top->nresults * sizeof *noisy + 1);
    sf_status status = widen(spread, arguments, expected, noisy, diag);
    sf_free(noisy);
    return status;
}
