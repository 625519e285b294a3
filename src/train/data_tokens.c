/* Batches from a file of tokens: rows of a batch are windows of the file.
 *
 *     tokens    t0 t1 t2 t3 t4 t5 t6 t7 t8 ...
 *     window 0  [  ids     ]                     of as many tokens as a row has
 *                  [ labels    ]                 the same, one token further
 *     window 1              [  ids     ] ...
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/name.h"
#include "train/data_kind.h"

enum use { USE_NONE, USE_IDS, USE_LABELS, USE_ONES, USE_POSITIONS, USE_ZEROS };

struct tokens {
    const unsigned char *bytes;
    int64_t count;  /* tokens */
    int width;      /* bytes of a token */
    int64_t row;    /* tokens in a row */
    enum use *uses; /* by argument */
};

static int64_t token_at(const struct tokens *tokens, int64_t index)
{
    const unsigned char *at = tokens->bytes + index * tokens->width;
    uint32_t token = 0;
    for (int i = 0; i < tokens->width; i++)
        token |= (uint32_t)at[i] << 8 * i;
    return token;
}

static int64_t value_at(const struct tokens *tokens, enum use use, int64_t start, int64_t column)
{
    switch (use) {
    case USE_IDS:
        return token_at(tokens, start + column);
    case USE_LABELS:
        return token_at(tokens, start + column + 1);
    case USE_ONES:
        return 1;
    case USE_POSITIONS:
        return column;
    case USE_NONE:
    case USE_ZEROS:
        break;
    }
    return 0;
}

/* False when the token is too large for the type. */
static bool store_token(const sf_tensor *to, int64_t index, int64_t value)
{
    if (sf_is_inexact(to->type->dtype))
        sf_store_f64(to->type->dtype, to->data, index, (double)value);
    else
        sf_store_i64(to->type->dtype, to->data, index, value);
    return sf_load_i64(to->type->dtype, to->data, index) == value;
}

static sf_status refuse_token(const sf_data *data, uint32_t argument, int64_t token, sf_diag *diag)
{
    const char *dtype = sf_dtype_get(sf_data_type(data, argument)->dtype)->name;
    return sf_fail(diag, SF_EINPUT, (sf_loc){data->options.source, 0, 0},
                   "token %" PRId64 " does not fit in %s, which the argument %s has", token, dtype,
                   data->names[argument]);
}

static sf_status fill_from_tokens(sf_data *data, int64_t number, const sf_tensor *arguments,
                                  sf_diag *diag)
{
    const struct tokens *tokens = data->self;
    for (int64_t row = 0; row < data->per_batch; row++) {
        int64_t window = sf_data_item(data, number * data->per_batch + row);
        for (uint32_t i = 0; i < data->graph->top->narguments; i++)
            for (int64_t k = 0; tokens->uses[i] != USE_NONE && k < tokens->row; k++) {
                int64_t value = value_at(tokens, tokens->uses[i], window * tokens->row, k);
                if (!store_token(&arguments[i], row * tokens->row + k, value))
                    return refuse_token(data, i, value, diag);
            }
    }
    return SF_OK;
}

static bool is_one_of_names(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(word, *list) == 0)
            return true;
    return false;
}

static enum use use_by_name(const char *name)
{
    static const char *const labels[] = {"labels",   "label",      "targets",     "target",
                                         "y",        "next",       "output",      "outputs",
                                         "next_ids", "target_ids", "next_tokens", NULL};
    const char *last = sf_name_last(name);
    if (is_one_of_names(last, labels))
        return USE_LABELS;
    if (strstr(last, "mask"))
        return USE_ONES;
    if (strstr(last, "position"))
        return USE_POSITIONS;
    if (strstr(last, "segment") || strstr(last, "token_type"))
        return USE_ZEROS;
    return USE_IDS;
}

static sf_status fail_shape(const sf_data *data, sf_diag *diag)
{
    sf_fail(diag, SF_EINPUT, (sf_loc){data->options.source, 0, 0},
            "the batches of this step cannot be cut from tokens: that takes one whole-number "
            "argument for the tokens, and at most one of the same shape for the labels");
    return sf_hint(diag, "other batches come as safetensors, by the names of the arguments");
}

/* The use of each wanted argument. Without names that determine it, the second of two has the
 * labels. */
static sf_status find_argument_uses(sf_data *data, struct tokens *tokens, sf_diag *diag)
{
    uint32_t count = data->graph->top->narguments, ids[2] = {SF_NONE, SF_NONE}, labels = SF_NONE;
    const sf_type *shape = NULL;
    int nids = 0, nlabels = 0;
    tokens->uses = SF_ARRAY(&data->arena, count, enum use);
    for (uint32_t i = 0; i < count; i++) {
        const sf_type *type = sf_data_type(data, i);
        if (!data->wanted[i])
            continue;
        tokens->uses[i] = use_by_name(data->names[i]);
        if (type->rank == 0 || (shape && !sf_same_shape(shape, type)))
            return fail_shape(data, diag);
        shape = type;
        if (tokens->uses[i] == USE_IDS && nids++ < 2)
            ids[nids - 1] = i;
        if (tokens->uses[i] == USE_LABELS && nlabels++ == 0)
            labels = i;
    }
    if (nlabels == 0 && nids == 2) {
        labels = ids[1];
        tokens->uses[labels] = USE_LABELS;
        nlabels = nids = 1;
    }
    if (nids != 1 || nlabels > 1 || shape->count == 0 ||
        sf_is_inexact(sf_data_type(data, ids[0])->dtype) ||
        (nlabels > 0 && sf_is_inexact(sf_data_type(data, labels)->dtype)))
        return fail_shape(data, diag);
    tokens->row = shape->dims[shape->rank - 1];
    data->per_batch = shape->count / tokens->row;
    data->amount = shape->count;
    data->counts_tokens = true;
    data->count = (tokens->count - nlabels) / tokens->row;
    return SF_OK;
}

static int width_of_tokens(const sf_data *data)
{
    static const struct {
        const char *name, *ending;
        int width;
    } types[] = {{"u8", ".u8", 1}, {"u8", ".txt", 1}, {"u16", ".u16", 2}, {"u32", ".u32", 4}};
    const char *type = data->options.tokens_type;
    const char *dot = strrchr(data->options.source, '.');
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (type ? strcmp(type, types[i].name) == 0 : dot && strcmp(dot, types[i].ending) == 0)
            return types[i].width;
    return type ? 0 : 2;
}

sf_status sf_data_open_tokens(sf_data *data, sf_diag *diag)
{
    static const sf_data_kind kind = {.batch = fill_from_tokens};
    struct tokens *tokens = SF_NEW(&data->arena, struct tokens);
    sf_loc loc = {data->options.source, 0, 0};
    sf_str bytes;
    tokens->width = width_of_tokens(data);
    if (tokens->width == 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "tokens are u8, u16 or u32, not '%s'",
                       data->options.tokens_type);
    SF_TRY(sf_mappings_add(&data->mappings, data->options.source, &bytes, diag));
    if (bytes.length % (size_t)tokens->width != 0)
        return sf_fail(diag, SF_EINPUT, loc, "%zu bytes are no whole number of %d-byte tokens",
                       bytes.length, tokens->width);
    tokens->bytes = (const unsigned char *)bytes.at;
    tokens->count = (int64_t)(bytes.length / (size_t)tokens->width);
    SF_TRY(find_argument_uses(data, tokens, diag));
    if (data->count < 1)
        return sf_fail(diag, SF_EINPUT, loc, "%" PRId64 " tokens are too few for a row of %" PRId64,
                       tokens->count, tokens->row);
    data->shuffled = data->options.order != SF_ORDER_SEQUENTIAL;
    char about[160];
    snprintf(about, sizeof about,
             "tokens, %" PRId64 " of u%d, hash %016" PRIx64 ", %" PRId64 " windows, %" PRId64
             " in a batch, %s",
             tokens->count, 8 * tokens->width, sf_data_fingerprint(bytes), data->count,
             data->per_batch, data->shuffled ? "shuffled" : "in order");
    data->about = sf_arena_string(&data->arena, about, strlen(about));
    data->self = tokens;
    data->kind = &kind;
    return SF_OK;
}
