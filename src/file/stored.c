#include "file/stored.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { CHUNK = 256 };

bool sf_stored_shape_fits(const sf_type *stored, const sf_type *type)
{
    return sf_same_shape(stored, type) || (type->rank == 0 && stored->count == 1);
}

static bool is_number(sf_dtype dtype)
{
    sf_class class = sf_dtype_get(dtype)->class;
    return class == SF_BOOLEAN || class == SF_SIGNED || class == SF_UNSIGNED || class == SF_FLOAT;
}

bool sf_stored_converts(sf_dtype stored, sf_dtype dtype)
{
    return stored == dtype || (is_number(stored) && is_number(dtype));
}

bool sf_stored_is_akin(sf_dtype stored, sf_dtype dtype)
{
    return sf_stored_converts(stored, dtype) && sf_is_float(stored) == sf_is_float(dtype);
}

sf_status sf_stored_refuse(const sf_stored *stored, const sf_type *type, sf_diag *diag)
{
    char has[SF_TYPE_TEXT], wants[SF_TYPE_TEXT];
    return sf_fail(diag, SF_EINPUT, (sf_loc){stored->path, 0, 0},
                   "%s is %s, but the step has %s there", stored->name,
                   sf_type_text(stored->tensor->type, has), sf_type_text(type, wants));
}

static void number_text(sf_dtype dtype, const void *data, int64_t index, char *text, size_t size)
{
    if (sf_is_float(dtype))
        snprintf(text, size, "%.*g", dtype == SF_F64 ? 17 : 9, sf_load_f64(dtype, data, index));
    else if (sf_is_unsigned(dtype))
        snprintf(text, size, "%" PRIu64, (uint64_t)sf_load_i64(dtype, data, index));
    else
        snprintf(text, size, "%" PRId64, sf_load_i64(dtype, data, index));
}

static sf_status refuse_element(const sf_stored *stored, int64_t index, sf_dtype dtype,
                                sf_diag *diag)
{
    sf_dtype from = stored->tensor->type->dtype;
    const char *has = sf_dtype_get(from)->name, *wants = sf_dtype_get(dtype)->name;
    char text[40];
    number_text(from, stored->tensor->data, index, text, sizeof text);
    sf_fail(diag, SF_EINPUT, (sf_loc){stored->path, 0, 0},
            "element %" PRId64
            " of %s is %s, which as %s would be another number: the file has %s, "
            "the step %s",
            index, stored->name, text, wants, has, wants);
    return sf_hint(diag, "save %s as %s, or export the step with %s there", stored->name, wants,
                   has);
}

/* The first of the elements that is another number as `dtype`, or `count`. Integers: 64 bits of either sign travel
 * as the same bits. */
static int64_t convert_integers(const sf_stored *stored, int64_t first, int64_t count,
                                sf_dtype dtype, void *to, int64_t at)
{
    sf_dtype from = stored->tensor->type->dtype;
    int64_t values[CHUNK], back[CHUNK];
    bool same_sign = (from == SF_U64) == (dtype == SF_U64);
    sf_load_i64s(from, stored->tensor->data, first, count, values);
    sf_store_i64s(dtype, to, at, count, values);
    sf_load_i64s(dtype, to, at, count, back);
    for (int64_t i = 0; i < count; i++)
        if (values[i] != back[i] || (values[i] < 0 && !same_sign))
            return i;
    return count;
}

/* Outside of this range, what a double says of an integer of the type may be its end. */
static bool is_in_range(sf_dtype dtype, double value)
{
    if (sf_is_float(dtype))
        return true;
    double end = dtype == SF_U64 ? 0x1p64 : 0x1p63, first = dtype == SF_U64 ? 0 : -end;
    return value >= first && value < end;
}

static bool is_kept(double value, double back, bool rounds)
{
    if (isnan(value))
        return isnan(back);
    return rounds && isfinite(value) ? isfinite(back) : value == back;
}

/* The same by way of doubles: a float is on one side at least. */
static int64_t convert_floats(const sf_stored *stored, int64_t first, int64_t count, sf_dtype dtype,
                              void *to, int64_t at)
{
    sf_dtype from = stored->tensor->type->dtype;
    bool is_whole = !sf_is_float(from), rounds = stored->rounds && !is_whole && sf_is_float(dtype);
    double values[CHUNK], back[CHUNK];
    int64_t whole[CHUNK] = {0};
    sf_load_f64s(from, stored->tensor->data, first, count, values);
    if (is_whole)
        sf_load_i64s(from, stored->tensor->data, first, count, whole);
    sf_store_f64s(dtype, to, at, count, values);
    sf_load_f64s(dtype, to, at, count, back);
    for (int64_t i = 0; i < count; i++) {
        if (!is_in_range(from, values[i]) || !is_in_range(dtype, values[i]) ||
            !is_kept(values[i], back[i], rounds))
            return i;
        int64_t same = !is_whole        ? 0
                       : from == SF_U64 ? (int64_t)(uint64_t)values[i]
                                        : (int64_t)values[i];
        if (same != whole[i])
            return i;
    }
    return count;
}

sf_status sf_stored_take(const sf_stored *stored, int64_t first, int64_t count, sf_dtype dtype,
                         void *to, int64_t at, sf_diag *diag)
{
    sf_dtype from = stored->tensor->type->dtype;
    size_t bytes = sf_dtype_get(dtype)->bytes;
    if (from == dtype) {
        if (count > 0)
            memcpy((char *)to + (size_t)at * bytes,
                   (const char *)stored->tensor->data + (size_t)first * bytes,
                   (size_t)count * bytes);
        return SF_OK;
    }
    bool has_float = sf_is_float(from) || sf_is_float(dtype);
    for (int64_t done = 0; done < count; done += CHUNK) {
        int64_t length = count - done < CHUNK ? count - done : CHUNK;
        int64_t kept = (has_float ? convert_floats : convert_integers)(stored, first + done, length,
                                                                       dtype, to, at + done);
        if (kept < length)
            return refuse_element(stored, first + done + kept, dtype, diag);
    }
    return SF_OK;
}

sf_status sf_stored_view(const sf_stored *stored, const sf_type *type, sf_arena *arena,
                         sf_diag *diag, sf_tensor *out)
{
    if (!sf_stored_shape_fits(stored->tensor->type, type) ||
        !sf_stored_converts(stored->tensor->type->dtype, type->dtype))
        return sf_stored_refuse(stored, type, diag);
    *out = (sf_tensor){.type = type, .data = stored->tensor->data};
    if (stored->tensor->type->dtype == type->dtype)
        return SF_OK;
    out->data = sf_arena_array(arena, (size_t)type->count, sf_dtype_get(type->dtype)->bytes);
    return sf_stored_take(stored, 0, type->count, type->dtype, out->data, 0, diag);
}
