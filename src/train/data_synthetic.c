#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "train/data_kind.h"

/* Synthetic numbers: floats, and parts of complex numbers, of the standard normal distribution, integers from 0 to self->below - 1. */
struct synthetic {
    int64_t below;
};

/* Elements, or parts of them, of which the first has that number in the batch. */
static void fill_tensor(const struct synthetic *self, const sf_draw *draw, uint64_t first,
                        int64_t count, const sf_tensor *to)
{
    enum { CHUNK = 1024 };
    sf_dtype dtype = sf_part_of(to->type->dtype);
    double values[CHUNK];
    for (int64_t at = 0; at < count; at += CHUNK) {
        int64_t some = count - at < CHUNK ? count - at : CHUNK;
        if (sf_is_float(dtype)) {
            sf_draw_normals(draw, first + (uint64_t)at, some, 0, values);
            sf_store_f64s(dtype, to->data, at, some, values);
            continue;
        }
        for (int64_t k = at; k < at + some; k++)
            sf_store_i64(
                dtype, to->data, k,
                (int64_t)(sf_draw_bits(draw, first + (uint64_t)k) % (uint64_t)self->below));
    }
}

static sf_status fill_synthetic(sf_data *data, int64_t number, const sf_tensor *arguments,
                                sf_diag *diag)
{
    (void)diag;
    sf_draw draw = sf_draw_of(data->options.seed, SF_DRAW_BATCH, (uint64_t)number);
    uint64_t next = 0;
    for (uint32_t i = 0; i < data->graph->top->narguments; i++) {
        const sf_tensor *to = &arguments[i];
        int64_t count = to->type->count * sf_parts_of(to->type->dtype);
        if (!data->wanted[i])
            continue;
        fill_tensor(data->self, &draw, next, count, to);
        next += (uint64_t)count;
    }
    return SF_OK;
}

sf_status sf_data_open_synthetic(sf_data *data, sf_diag *diag)
{
    static const sf_data_kind kind = {.batch = fill_synthetic};
    struct synthetic *self = SF_NEW(&data->arena, struct synthetic);
    const char *colon = strchr(data->options.source, ':');
    self->below = 2;
    if (colon && (!sf_number_int(sf_str_of(colon + 1), &self->below) || self->below < 1))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "'%s' is not synthetic:N with N of 1 or more",
                       data->options.source);
    char about[80];
    snprintf(about, sizeof about, "synthetic, integers below %" PRId64, self->below);
    data->about = sf_arena_string(&data->arena, about, strlen(about));
    data->self = self;
    data->kind = &kind;
    data->count = 1;
    return SF_OK;
}
