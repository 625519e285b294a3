/* Attributes that HLO packs in a way of its own: windows, dimension labels, slices and padding. */
#include "front/hlo/hlo_reader.h"

enum { MOST = 2 * SF_MAX_RANK };

static sf_pool *pool_of(const sf_hlo_frame *frame)
{
    return frame->reader->module->graph->pool;
}

/* Reads the numbers of a word such as 3x3, 0_1x0_1 or 1_0_2x-1_0. The groups are divided by x, the
 * numbers of a group by _. `width` is how many numbers a group has; a group may lack the last ones
 * from `needed` on, which are then 0. */
static sf_status read_groups(sf_hlo_frame *frame, int needed, int width, int64_t *out, int *count)
{
    sf_hlo_scan *scan = &frame->scan;
    sf_diag *diag = frame->reader->diag;
    *count = 0;
    sf_hlo_space(scan);
    for (;;) {
        if (*count == SF_MAX_RANK)
            return sf_fail(diag, SF_EINPUT, sf_hlo_here(scan), "more than %d dimensions",
                           SF_MAX_RANK);
        for (int i = 0; i < width; i++) {
            int64_t *number = &out[*count * width + i];
            *number = 0;
            if (i > 0 && *scan->at == '_')
                scan->at++;
            else if (i >= needed)
                continue;
            else if (i > 0)
                return sf_hlo_expected(scan, "'_'", diag);
            if (!sf_hlo_number(scan, number))
                return sf_hlo_expected(scan, "a number", diag);
        }
        ++*count;
        if (*scan->at != 'x')
            return SF_OK;
        scan->at++;
    }
}

/* The slots that a key of a window goes to: that of a convolution or that of reduce_window, whichever
 * the op has. */
static const struct field {
    const char *key;
    const char *slots[2];
    int width;
} fields[] = {
    {"size", {"window_dimensions", NULL}, 1},
    {"stride", {"window_strides", NULL}, 1},
    {"pad", {"padding", NULL}, 2},
    {"lhs_dilate", {"lhs_dilation", "base_dilations"}, 1},
    {"rhs_dilate", {"rhs_dilation", "window_dilations"}, 1},
    {"rhs_reversal", {"window_reversal", NULL}, 1},
};

static sf_status read_field(sf_hlo_frame *frame, sf_hlo_instruction *inst,
                            const struct field *field)
{
    int64_t numbers[MOST];
    int count;
    SF_TRY(read_groups(frame, field->width, field->width, numbers, &count));
    const sf_attr *attr = sf_attr_ints(pool_of(frame), count * field->width, numbers);
    bool is_set = false;
    for (int i = 0; i < 2 && field->slots[i]; i++)
        is_set = is_set || sf_hlo_set_attr(inst, field->slots[i], attr);
    /* The size of a convolution's window is that of its kernel. A dilation or reversal that the op
     * does not have must be trivial. */
    int64_t trivial = field->width == 2 || strcmp(field->key, "rhs_reversal") == 0 ? 0 : 1;
    for (int i = 0; !is_set && strcmp(field->key, "size") != 0 && i < count * field->width; i++)
        if (numbers[i] != trivial)
            return sf_fail(frame->reader->diag, SF_EUNSUPPORTED, inst->loc,
                           "a window with %s is not supported for %.*s", field->key,
                           SF_STR_ARGS(inst->op->name));
    return SF_OK;
}

/* {size=3x3 stride=2x2 pad=0_1x0_1 lhs_dilate=2x2 rhs_dilate=1x1 rhs_reversal=1x1} */
sf_status sf_hlo_read_window(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    sf_hlo_scan *scan = &frame->scan;
    sf_diag *diag = frame->reader->diag;
    SF_TRY(sf_hlo_expect(scan, '{', diag));
    while (!sf_hlo_accept(scan, '}')) {
        sf_hlo_scan before = *scan;
        sf_str key = sf_hlo_word(scan);
        const struct field *field = NULL;
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            if (sf_str_is(key, fields[i].key))
                field = &fields[i];
        if (!field)
            return sf_hlo_expected(&before,
                                   "size, stride, pad, lhs_dilate, rhs_dilate, "
                                   "rhs_reversal or '}'",
                                   diag);
        SF_TRY(sf_hlo_expect(scan, '=', diag));
        SF_TRY(read_field(frame, inst, field));
        sf_hlo_accept(scan, ',');
    }
    return SF_OK;
}

/* One of the three words of dim_labels. `letters` names the two dimensions that are not spatial. */
static sf_status read_labels(sf_hlo_frame *frame, sf_hlo_instruction *inst, const char *letters,
                             const char *const slots[3])
{
    sf_hlo_scan *scan = &frame->scan;
    sf_diag *diag = frame->reader->diag;
    int64_t named[2] = {-1, -1}, spatial[SF_MAX_RANK];
    bool has[SF_MAX_RANK] = {false};
    int rank = 0, nspatial = 0;
    for (; sf_hlo_is_word[(unsigned char)*scan->at] && *scan->at != '_' && *scan->at != '-';
         scan->at++, rank++) {
        char c = *scan->at;
        int digit = c - '0';
        if (rank == SF_MAX_RANK)
            return sf_hlo_expected(scan, "fewer dimension labels", diag);
        if ((c == letters[0] || c == letters[1]) && named[c == letters[1]] < 0) {
            named[c == letters[1]] = rank;
        } else if (digit >= 0 && digit <= 9 && !has[digit]) {
            has[digit] = true;
            spatial[digit] = rank;
            nspatial++;
        } else {
            return sf_hlo_expected(scan, "dimension labels such as b01f_01io->b01f", diag);
        }
    }
    for (int i = 0; i < nspatial; i++)
        if (!has[i])
            return sf_hlo_expected(scan, "labels for all spatial dimensions", diag);
    if (named[0] < 0 || named[1] < 0)
        return sf_hlo_expected(scan, "dimension labels such as b01f_01io->b01f", diag);
    for (int i = 0; i < 2; i++)
        sf_hlo_set_attr(inst, slots[i], sf_attr_int(pool_of(frame), named[i]));
    sf_hlo_set_attr(inst, slots[2], sf_attr_ints(pool_of(frame), nspatial, spatial));
    return SF_OK;
}

/* b01f_01io->b01f: of the operand, the kernel and the result */
sf_status sf_hlo_read_dim_labels(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    static const char *const input[] = {"input_batch_dimension", "input_feature_dimension",
                                        "input_spatial_dimensions"};
    static const char *const kernel[] = {"kernel_input_feature_dimension",
                                         "kernel_output_feature_dimension",
                                         "kernel_spatial_dimensions"};
    static const char *const output[] = {"output_batch_dimension", "output_feature_dimension",
                                         "output_spatial_dimensions"};
    sf_hlo_scan *scan = &frame->scan;
    sf_hlo_space(scan);
    SF_TRY(read_labels(frame, inst, "bf", input));
    SF_TRY(sf_hlo_expect(scan, '_', frame->reader->diag));
    SF_TRY(read_labels(frame, inst, "io", kernel));
    SF_TRY(sf_hlo_expect(scan, '-', frame->reader->diag));
    SF_TRY(sf_hlo_expect(scan, '>', frame->reader->diag));
    return read_labels(frame, inst, "bf", output);
}

/* {[0:4:2], [0:8]} */
sf_status sf_hlo_read_slice(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    sf_hlo_scan *scan = &frame->scan;
    sf_diag *diag = frame->reader->diag;
    int64_t starts[SF_MAX_RANK], limits[SF_MAX_RANK], strides[SF_MAX_RANK];
    int count = 0;
    SF_TRY(sf_hlo_expect(scan, '{', diag));
    while (sf_hlo_peek(scan) == '[') {
        if (count == SF_MAX_RANK)
            return sf_hlo_expected(scan, "fewer dimensions", diag);
        scan->at++;
        strides[count] = 1;
        if (!sf_hlo_number(scan, &starts[count]))
            return sf_hlo_expected(scan, "where the slice starts", diag);
        SF_TRY(sf_hlo_expect(scan, ':', diag));
        if (!sf_hlo_number(scan, &limits[count]))
            return sf_hlo_expected(scan, "where the slice ends", diag);
        if (sf_hlo_accept(scan, ':') && !sf_hlo_number(scan, &strides[count]))
            return sf_hlo_expected(scan, "the stride of the slice", diag);
        SF_TRY(sf_hlo_expect(scan, ']', diag));
        count++;
        if (!sf_hlo_accept(scan, ','))
            break;
    }
    sf_hlo_set_attr(inst, "start_indices", sf_attr_ints(pool_of(frame), count, starts));
    sf_hlo_set_attr(inst, "limit_indices", sf_attr_ints(pool_of(frame), count, limits));
    sf_hlo_set_attr(inst, "strides", sf_attr_ints(pool_of(frame), count, strides));
    return sf_hlo_expect(scan, '}', diag);
}

/* 0_1_2x0_0: low, high and perhaps interior padding of each dimension; nothing for a scalar */
sf_status sf_hlo_read_padding(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    static const char *const slots[] = {"edge_padding_low", "edge_padding_high",
                                        "interior_padding"};
    int64_t numbers[3 * SF_MAX_RANK], list[SF_MAX_RANK];
    int count = 0;
    char c = *frame->scan.at;
    if (c == '-' || (c >= '0' && c <= '9'))
        SF_TRY(read_groups(frame, 2, 3, numbers, &count));
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < count; i++)
            list[i] = numbers[3 * i + k];
        sf_hlo_set_attr(inst, slots[k], sf_attr_ints(pool_of(frame), count, list));
    }
    return SF_OK;
}
