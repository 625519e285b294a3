#include "train/data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/number.h"
#include "ir/name.h"

/* How many samples or tokens a batch has, where the kind of data does not know better: whole-number
 * arguments of two dimensions hold tokens. */
static void count_amount(sf_data *data)
{
    for (uint32_t i = 0; i < data->graph->top->narguments; i++) {
        const sf_type *type = sf_data_type(data, i);
        if (!data->wanted[i] || type->rank == 0)
            continue;
        if (!sf_is_float(type->dtype) && type->rank == 2 && !data->counts_tokens) {
            data->counts_tokens = true;
            data->amount = type->count;
        } else if (data->amount == 0) {
            data->amount = type->dims[0];
        }
    }
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && strcmp(text + length - tail, ending) == 0;
}

static sf_status open_source(sf_data *data, sf_diag *diag)
{
    const char *source = data->options.source;
    struct stat info;
    if (!source) {
        sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the step takes batches, and there is no data");
        sf_hint(diag, "--data FILE, or --data synthetic for random numbers");
        return SF_EUSAGE;
    }
    if (strcmp(source, "synthetic") == 0 || strncmp(source, "synthetic:", 10) == 0)
        return sf_data_open_synthetic(data, diag);
    if (stat(source, &info) != 0)
        return sf_fail(diag, SF_EIO, (sf_loc){source, 0, 0}, "cannot open: %s", strerror(errno));
    if (S_ISDIR(info.st_mode) || ends_with(source, ".safetensors"))
        return sf_data_open_batches(data, S_ISDIR(info.st_mode), diag);
    return sf_data_open_tokens(data, diag);
}

sf_status sf_data_open(const sf_graph *graph, const char *const *names, const bool *wanted,
                       const sf_data_options *options, sf_diag *diag, sf_data *out)
{
    *out = (sf_data){.graph = graph, .names = names, .wanted = wanted, .options = *options};
    out->per_batch = 1;
    out->about = "";
    bool any = false;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        any = any || wanted[i];
    if (!any && !options->source)
        return SF_OK;
    SF_TRY(open_source(out, diag));
    count_amount(out);
    return SF_OK;
}

sf_status sf_data_batch(sf_data *data, int64_t number, const sf_tensor *arguments, sf_diag *diag)
{
    return data->kind ? data->kind->batch(data, number, arguments, diag) : SF_OK;
}

void sf_data_close(sf_data *data)
{
    if (data->kind && data->kind->close)
        data->kind->close(data);
    sf_arena_free(&data->arena);
    sf_mappings_close(&data->mappings);
    data->kind = NULL;
}

int64_t sf_data_item(const sf_data *data, int64_t place)
{
    int64_t epoch = place / data->count, index = place % data->count;
    if (!data->shuffled)
        return index;
    sf_draw draw = sf_draw_of(data->options.seed, SF_DRAW_ORDER, (uint64_t)epoch);
    return (int64_t)sf_draw_permuted(&draw, (uint64_t)data->count, (uint64_t)index);
}

uint64_t sf_data_fingerprint(sf_str bytes)
{
    enum { PIECES = 64, PIECE = 4096 };
    uint64_t hash = sf_hash_mix(0, bytes.length);
    for (size_t i = 0; i < PIECES; i++) {
        size_t at = bytes.length / PIECES * i, rest = bytes.length - at;
        hash = sf_hash_bytes(hash, bytes.at + at, rest < PIECE ? rest : PIECE);
    }
    return hash;
}

/* Synthetic numbers: floats of the standard normal distribution, integers from 0 to self->below - 1. */
struct synthetic {
    int64_t below;
};

static sf_status fill_synthetic(sf_data *data, int64_t number, const sf_tensor *arguments,
                                sf_diag *diag)
{
    (void)diag;
    const struct synthetic *self = data->self;
    sf_draw draw = sf_draw_of(data->options.seed, SF_DRAW_BATCH, (uint64_t)number);
    uint64_t next = 0;
    for (uint32_t i = 0; i < data->graph->top->narguments; i++) {
        const sf_tensor *to = &arguments[i];
        if (!data->wanted[i])
            continue;
        bool is_float = sf_is_float(to->type->dtype);
        for (int64_t k = 0; k < to->type->count; k++, next++) {
            if (is_float)
                sf_store_f64(to->type->dtype, to->data, k, sf_draw_normal(&draw, next, 0));
            else
                sf_store_i64(to->type->dtype, to->data, k,
                             (int64_t)(sf_draw_bits(&draw, next) % (uint64_t)self->below));
        }
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
