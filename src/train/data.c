#include "train/data.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "train/data_kind.h"

/* How many samples or tokens a batch has, where the kind of data does not know better: whole-number
 * arguments of two dimensions hold tokens. */
static void count_amount(sf_data *data)
{
    for (uint32_t i = 0; i < data->graph->top->narguments; i++) {
        const sf_type *type = sf_data_type(data, i);
        if (!data->wanted[i] || type->rank == 0)
            continue;
        if (!sf_is_inexact(type->dtype) && type->rank == 2 && !data->counts_tokens) {
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

static sf_status open_data_source(sf_data *data, sf_diag *diag)
{
    const char *source = data->options.source;
    struct stat info;
    if (!source) {
        sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the step takes batches, and there is no data");
        sf_hint(diag, "option data names a file, or is synthetic for random numbers");
        return SF_EUSAGE;
    }
    if (strcmp(source, "synthetic") == 0 || strncmp(source, "synthetic:", 10) == 0)
        return sf_data_open_synthetic(data, diag);
    if (stat(source, &info) != 0)
        return sf_fail(diag, sf_status_of_errno(), (sf_loc){source, 0, 0}, "cannot open: %s",
                       strerror(errno));
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
    SF_TRY(open_data_source(out, diag));
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
