#include "file/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/json.h"

enum { PREFIX = 8, SWAP_CHUNK = 4096 };
static const char metadata_name[] = "__metadata__";

typedef struct range {
    int64_t begin, end;
    size_t tensor;
} range;

typedef struct reader {
    sf_safetensors *out;
    const char *file;
    sf_str data;
    range *ranges; /* of the tensors, in their order */
    sf_diag *diag;
} reader;

static sf_loc place_in_file(const reader *in)
{
    return (sf_loc){in->file, 0, 0};
}

static bool big_endian(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 0;
}

/* From the order of the file to that of the machine, or back. */
static void swap_elements(char *to, const char *from, int64_t count, size_t width)
{
    for (int64_t i = 0; i < count; i++, to += width, from += width)
        for (size_t byte = 0; byte < width; byte++)
            to[byte] = from[width - 1 - byte];
}

/* A BOOL is the one type that fills a byte with less than its bits on purpose. */
static bool fills_bytes(sf_dtype dtype)
{
    return dtype == SF_PRED || sf_dtype_get(dtype)->bits % 8 == 0;
}

static sf_status read_tensor_dtype(const reader *in, sf_str name, const sf_json *entry,
                                   sf_dtype *out)
{
    sf_str text;
    if (!sf_json_string(sf_json_get(entry, "dtype"), &text))
        return sf_fail(in->diag, SF_EINPUT, place_in_file(in), "tensor '%.*s' has no dtype",
                       SF_STR_ARGS(name));
    if (!sf_dtype_find(SF_SPELL_SAFETENSORS, text, out))
        return sf_fail(in->diag, SF_EUNSUPPORTED, place_in_file(in),
                       "tensor '%.*s' has the unknown dtype '%.*s'", SF_STR_ARGS(name),
                       SF_STR_ARGS(text));
    if (!fills_bytes(*out))
        return sf_fail(in->diag, SF_EUNSUPPORTED, place_in_file(in),
                       "tensor '%.*s' is %.*s: elements narrower than a byte are not read",
                       SF_STR_ARGS(name), SF_STR_ARGS(text));
    return SF_OK;
}

static sf_status read_type(const reader *in, sf_str name, const sf_json *entry, const sf_type **out)
{
    sf_dtype dtype;
    SF_TRY(read_tensor_dtype(in, name, entry, &dtype));
    const sf_json *shape = sf_json_get(entry, "shape");
    if (sf_json_kind_of(shape) != SF_JSON_ARRAY)
        return sf_fail(in->diag, SF_EINPUT, place_in_file(in), "tensor '%.*s' has no shape",
                       SF_STR_ARGS(name));
    size_t rank = sf_json_count(shape);
    if (rank > SF_MAX_RANK)
        return sf_fail(in->diag, SF_EUNSUPPORTED, place_in_file(in),
                       "tensor '%.*s' has %zu dimensions, more than %d", SF_STR_ARGS(name), rank,
                       SF_MAX_RANK);
    int64_t dims[SF_MAX_RANK];
    for (size_t i = 0; i < rank; i++)
        if (!sf_json_int(sf_json_item(shape, i), &dims[i]) || dims[i] < 0)
            return sf_fail(in->diag, SF_EINPUT, place_in_file(in),
                           "dimension %zu of tensor '%.*s' is no size", i, SF_STR_ARGS(name));
    *out = sf_type_get(in->out->pool, dtype, (int)rank, dims);
    if (!*out)
        return sf_fail(in->diag, SF_EINPUT, place_in_file(in), "tensor '%.*s' is too large",
                       SF_STR_ARGS(name));
    return SF_OK;
}

static sf_status read_range(const reader *in, sf_str name, const sf_json *entry,
                            const sf_type *type, range *out)
{
    const sf_json *offsets = sf_json_get(entry, "data_offsets");
    if (sf_json_kind_of(offsets) != SF_JSON_ARRAY || sf_json_count(offsets) != 2 ||
        !sf_json_int(sf_json_item(offsets, 0), &out->begin) ||
        !sf_json_int(sf_json_item(offsets, 1), &out->end) || out->begin < 0 ||
        out->end < out->begin)
        return sf_fail(in->diag, SF_EINPUT, place_in_file(in),
                       "tensor '%.*s' needs data_offsets [BEGIN, END]", SF_STR_ARGS(name));
    if ((uint64_t)out->end > in->data.length)
        return sf_fail(in->diag, SF_EINPUT, place_in_file(in),
                       "tensor '%.*s' ends at byte %" PRId64 " of %zu byte%s of data",
                       SF_STR_ARGS(name), out->end, in->data.length, sf_plural(in->data.length));
    char text[SF_TYPE_TEXT];
    if (out->end - out->begin != sf_type_bytes(type))
        return sf_fail(in->diag, SF_EINPUT, place_in_file(in),
                       "tensor '%.*s' is %s, which is %" PRId64 " byte%s, but has %" PRId64,
                       SF_STR_ARGS(name), sf_type_text(type, text), sf_type_bytes(type),
                       sf_plural((uint64_t)sf_type_bytes(type)), out->end - out->begin);
    return SF_OK;
}

/* The bytes of one number: an element, or a part of a complex one. */
static size_t width_of_numbers(const sf_tensor *tensor)
{
    return sf_dtype_get(sf_part_of(tensor->type->dtype))->bytes;
}

/* The elements in the file's memory, or a copy in the machine's byte order. */
static sf_status read_data(const reader *in, sf_str name, sf_tensor *tensor, int64_t begin)
{
    const char *from = in->data.at + begin;
    size_t width = width_of_numbers(tensor);
    tensor->data = (void *)(uintptr_t)from;
    if (width > 1 && big_endian()) {
        int64_t count = sf_type_bytes(tensor->type) / (int64_t)width;
        tensor->data = sf_arena_array(&in->out->arena, (size_t)count, width);
        swap_elements(tensor->data, from, count, width);
    }
    if (tensor->type->dtype == SF_PRED)
        for (int64_t i = 0; i < tensor->type->count; i++)
            if (from[i] != 0 && from[i] != 1)
                return sf_fail(in->diag, SF_EINPUT, place_in_file(in),
                               "element %" PRId64 " of tensor '%.*s' is %d, and a BOOL is 0 or 1",
                               i, SF_STR_ARGS(name), (unsigned char)from[i]);
    return SF_OK;
}

static sf_status read_tensor(reader *in, sf_str name, const sf_json *entry)
{
    if (sf_json_kind_of(entry) != SF_JSON_OBJECT)
        return sf_fail(in->diag, SF_EINPUT, place_in_file(in),
                       "the entry of tensor '%.*s' is %s, not an object", SF_STR_ARGS(name),
                       sf_json_kind_name(sf_json_kind_of(entry)));
    for (size_t i = 0; i < sf_json_count(entry); i++) {
        sf_str key = sf_json_key_at(entry, i);
        if (!sf_str_is(key, "dtype") && !sf_str_is(key, "shape") && !sf_str_is(key, "data_offsets"))
            return sf_fail(in->diag, SF_EINPUT, place_in_file(in),
                           "tensor '%.*s' has the unknown key '%.*s'", SF_STR_ARGS(name),
                           SF_STR_ARGS(key));
    }
    size_t index = in->out->count;
    sf_named_tensor *named = &in->out->tensors[index];
    range *at = &in->ranges[index];
    named->name = name;
    at->tensor = index;
    SF_TRY(read_type(in, name, entry, &named->tensor.type));
    SF_TRY(read_range(in, name, entry, named->tensor.type, at));
    SF_TRY(read_data(in, name, &named->tensor, at->begin));
    in->out->count++;
    return SF_OK;
}

static sf_status read_header_metadata(reader *in, const sf_json *object)
{
    if (sf_json_kind_of(object) != SF_JSON_OBJECT)
        return sf_fail(in->diag, SF_EINPUT, place_in_file(in), "%s is %s, not an object",
                       metadata_name, sf_json_kind_name(sf_json_kind_of(object)));
    size_t count = sf_json_count(object);
    in->out->metadata = SF_ARRAY(&in->out->arena, count, sf_named_text);
    for (size_t i = 0; i < count; i++) {
        sf_named_text *text = &in->out->metadata[i];
        text->key = sf_json_key_at(object, i);
        if (!sf_json_string(sf_json_value_at(object, i), &text->value))
            return sf_fail(in->diag, SF_EINPUT, place_in_file(in),
                           "%s has a value that is no string: '%.*s'", metadata_name,
                           SF_STR_ARGS(text->key));
    }
    in->out->nmetadata = count;
    return SF_OK;
}

static int compare_ranges(const void *left, const void *right)
{
    const range *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

static sf_status check_tiling(reader *in)
{
    size_t count = in->out->count;
    if (count > 0)
        qsort(in->ranges, count, sizeof *in->ranges, compare_ranges);
    int64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        sf_str name = in->out->tensors[in->ranges[i].tensor].name;
        if (in->ranges[i].begin != end)
            return sf_fail(in->diag, SF_EINPUT, place_in_file(in),
                           "tensor '%.*s' begins at byte %" PRId64 ", %s at %" PRId64,
                           SF_STR_ARGS(name), in->ranges[i].begin,
                           in->ranges[i].begin > end ? "but the one before it ends"
                                                     : "inside of another that ends",
                           end);
        end = in->ranges[i].end;
    }
    if ((uint64_t)end != in->data.length)
        return sf_fail(in->diag, SF_EINPUT, place_in_file(in),
                       "the last tensor is followed by %zu byte%s of data",
                       in->data.length - (size_t)end, sf_plural(in->data.length - (size_t)end));
    return SF_OK;
}

static int compare_text(sf_str a, sf_str b)
{
    size_t shorter = a.length < b.length ? a.length : b.length;
    int order = shorter ? memcmp(a.at, b.at, shorter) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static int compare_names(const void *left, const void *right)
{
    const sf_named_tensor *const *a = left, *const *b = right;
    return compare_text((*a)->name, (*b)->name);
}

static const sf_named_tensor **sort_by_name(sf_arena *arena, const sf_named_tensor *tensors,
                                            size_t count)
{
    const sf_named_tensor **sorted = SF_ARRAY(arena, count, const sf_named_tensor *);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &tensors[i];
    if (count > 0)
        qsort(sorted, count, sizeof *sorted, compare_names);
    return sorted;
}

static sf_status split_header(reader *in, sf_str bytes, sf_str *header)
{
    if (bytes.length < PREFIX)
        return sf_fail(in->diag, SF_EINPUT, place_in_file(in),
                       "a safetensors file has more than %zu byte%s", bytes.length,
                       sf_plural(bytes.length));
    uint64_t length = 0;
    for (int i = PREFIX; i-- > 0;)
        length = length << 8 | (unsigned char)bytes.at[i];
    if (length > SF_SAFETENSORS_MOST_HEADER || length > bytes.length - PREFIX) {
        sf_fail(in->diag, SF_EINPUT, place_in_file(in),
                "the header is said to be %" PRIu64 " byte%s long, in a file of %zu", length,
                sf_plural(length), bytes.length);
        return sf_hint(in->diag, "is this a safetensors file, and all of it?");
    }
    *header = (sf_str){bytes.at + PREFIX, (size_t)length};
    in->data = (sf_str){header->at + length, bytes.length - PREFIX - (size_t)length};
    if (length == 0 || header->at[0] != '{')
        return sf_fail(in->diag, SF_EINPUT, place_in_file(in), "the header is no JSON object");
    return SF_OK;
}

static sf_status parse_header(reader *in, sf_str bytes)
{
    sf_safetensors *out = in->out;
    sf_str text;
    const sf_json *header;
    SF_TRY(split_header(in, bytes, &text));
    SF_TRY(sf_json_parse(text, in->file, &out->arena, &header, in->diag));
    size_t members = sf_json_count(header);
    out->tensors = SF_ARRAY(&out->arena, members, sf_named_tensor);
    in->ranges = SF_ARRAY(&out->arena, members, range);
    for (size_t i = 0; i < members; i++) {
        sf_str name = sf_json_key_at(header, i);
        if (sf_str_is(name, metadata_name))
            SF_TRY(read_header_metadata(in, sf_json_value_at(header, i)));
        else
            SF_TRY(read_tensor(in, name, sf_json_value_at(header, i)));
    }
    SF_TRY(check_tiling(in));
    out->by_name = sort_by_name(&out->arena, out->tensors, out->count);
    return SF_OK;
}

sf_status sf_safetensors_parse(sf_str bytes, const char *file, sf_diag *diag, sf_safetensors *out)
{
    *out = (sf_safetensors){.pool = sf_pool_new()};
    reader in = {.out = out, .file = file, .diag = diag};
    sf_status status = parse_header(&in, bytes);
    if (status != SF_OK)
        sf_safetensors_close(out);
    return status;
}

sf_status sf_safetensors_read(const char *path, sf_diag *diag, sf_safetensors *out)
{
    sf_arena arena = {0};
    sf_str bytes;
    *out = (sf_safetensors){0};
    SF_TRY(sf_file_read(path, &arena, SF_FILE_MEMORY, &bytes, diag));
    *out = (sf_safetensors){.arena = arena, .pool = sf_pool_new()};
    reader in = {.out = out, .file = path, .diag = diag};
    sf_status status = parse_header(&in, bytes);
    if (status != SF_OK)
        sf_safetensors_close(out);
    return status;
}

void sf_safetensors_close(sf_safetensors *file)
{
    if (file->pool)
        sf_pool_release(file->pool);
    sf_arena_free(&file->arena);
    *file = (sf_safetensors){0};
}

const sf_tensor *sf_safetensors_find(const sf_safetensors *file, const char *name)
{
    sf_named_tensor key = {.name = sf_str_of(name)};
    const sf_named_tensor *at = &key;
    if (file->count == 0)
        return NULL;
    const sf_named_tensor **found =
        bsearch(&at, file->by_name, file->count, sizeof *file->by_name, compare_names);
    return found ? &(*found)->tensor : NULL;
}

static sf_status check_names(const char *path, size_t count, const sf_named_tensor *tensors,
                             sf_diag *diag)
{
    sf_loc loc = {path, 0, 0};
    sf_arena arena = {0};
    const sf_named_tensor **sorted = sort_by_name(&arena, tensors, count);
    sf_status status = SF_OK;
    for (size_t i = 0; i < count && status == SF_OK; i++) {
        sf_str name = sorted[i]->name;
        sf_dtype dtype = sorted[i]->tensor.type->dtype;
        if (sf_str_is(name, metadata_name))
            status = sf_fail(diag, SF_EUSAGE, loc, "no tensor may be called %s", metadata_name);
        else if (i > 0 && sf_str_equal(name, sorted[i - 1]->name))
            status =
                sf_fail(diag, SF_EUSAGE, loc, "two tensors are called '%.*s'", SF_STR_ARGS(name));
        else if (!fills_bytes(dtype))
            status = sf_fail(diag, SF_EUNSUPPORTED, loc,
                             "tensor '%.*s' is %s: elements narrower than a byte are not written",
                             SF_STR_ARGS(name), sf_dtype_get(dtype)->name);
    }
    sf_arena_free(&arena);
    return status;
}

static sf_status make_header(const char *path, size_t count, const sf_named_tensor *tensors,
                             sf_buf *header, sf_diag *diag)
{
    sf_loc loc = {path, 0, 0};
    int64_t offset = 0;
    sf_json_writer json = {.buf = header};
    sf_json_begin_object(&json);
    for (size_t i = 0; i < count; i++) {
        const sf_type *type = tensors[i].tensor.type;
        sf_json_key_str(&json, tensors[i].name);
        sf_json_begin_object(&json);
        sf_json_add_string(&json, "dtype", sf_dtype_get(type->dtype)->safetensors);
        sf_json_key(&json, "shape");
        sf_json_begin_row(&json);
        for (int dim = 0; dim < type->rank; dim++)
            sf_json_put_int(&json, type->dims[dim]);
        sf_json_end_array(&json);
        sf_json_key(&json, "data_offsets");
        sf_json_begin_row(&json);
        sf_json_put_int(&json, offset);
        if (!sf_add(offset, sf_type_bytes(type), &offset))
            return sf_fail(diag, SF_EUNSUPPORTED, loc, "the tensors are too large for one file");
        sf_json_put_int(&json, offset);
        sf_json_end_array(&json);
        sf_json_end_object(&json);
    }
    sf_json_end_object(&json);
    while (header->length % 8 != 0)
        sf_buf_putc(header, ' ');
    if (header->length > SF_SAFETENSORS_MOST_HEADER)
        return sf_fail(diag, SF_EUNSUPPORTED, loc, "too many tensors for one file");
    return SF_OK;
}

static void write_data(sf_file_writer *writer, const sf_tensor *tensor, sf_diag *diag)
{
    size_t width = width_of_numbers(tensor);
    if (width == 1 || !big_endian()) {
        sf_file_writer_write(writer, tensor->data, (size_t)sf_type_bytes(tensor->type), diag);
        return;
    }
    char swapped[SWAP_CHUNK];
    const char *from = tensor->data;
    int64_t total = sf_type_bytes(tensor->type) / (int64_t)width;
    for (int64_t done = 0; done < total;) {
        int64_t count = SWAP_CHUNK / (int64_t)width;
        if (count > total - done)
            count = total - done;
        swap_elements(swapped, from + (size_t)done * width, count, width);
        sf_file_writer_write(writer, swapped, (size_t)count * width, diag);
        done += count;
    }
}

static sf_status write_lent(sf_file_writer *writer, const sf_named_tensor *tensor, size_t index,
                            const sf_tensor_source *source, sf_diag *diag)
{
    sf_tensor lent = tensor->tensor;
    if (source)
        SF_TRY(source->lend(source->context, index, diag, &lent.data));
    write_data(writer, &lent, diag);
    return source ? source->give_back(source->context, index, diag) : SF_OK;
}

/* Allocates nothing, because the writer holds a file. */
static sf_status write_tensors(const char *path, const sf_buf *header, size_t count,
                               const sf_named_tensor *tensors, const sf_tensor_source *source,
                               sf_diag *diag)
{
    unsigned char prefix[PREFIX];
    for (int i = 0; i < PREFIX; i++)
        prefix[i] = (unsigned char)((uint64_t)header->length >> 8 * i);
    sf_file_writer writer;
    SF_TRY(sf_file_writer_open(&writer, path, diag));
    sf_file_writer_write(&writer, prefix, sizeof prefix, diag);
    sf_file_writer_write(&writer, header->text, header->length, diag);
    for (size_t i = 0; i < count; i++) {
        sf_status status = write_lent(&writer, &tensors[i], i, source, diag);
        if (status != SF_OK) {
            sf_file_writer_abort(&writer);
            return status;
        }
    }
    return sf_file_writer_commit(&writer, diag);
}

sf_status sf_safetensors_write(const char *path, size_t count, const sf_named_tensor *tensors,
                               sf_diag *diag)
{
    return sf_safetensors_write_from(path, count, tensors, NULL, diag);
}

sf_status sf_safetensors_write_from(const char *path, size_t count, const sf_named_tensor *tensors,
                                    const sf_tensor_source *source, sf_diag *diag)
{
    SF_TRY(check_names(path, count, tensors, diag));
    sf_buf header = {0};
    sf_status status = make_header(path, count, tensors, &header, diag);
    if (status == SF_OK)
        status = write_tensors(path, &header, count, tensors, source, diag);
    sf_buf_free(&header);
    return status;
}
