#include "support/json_tree.h"

#include <string.h>

static bool equal_items(const sf_json *a, const sf_json *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!test_json_equal(&a->items[i], &b->items[i]))
            return false;
    return true;
}

bool test_json_equal(const sf_json *a, const sf_json *b)
{
    if (a->kind != b->kind || a->exact != b->exact)
        return false;
    switch ((sf_json_kind)a->kind) {
    case SF_JSON_NULL:
        return true;
    case SF_JSON_BOOL:
        return a->truth == b->truth;
    case SF_JSON_NUMBER:
        return a->exact ? a->integer == b->integer
                        : memcmp(&a->number, &b->number, sizeof a->number) == 0;
    case SF_JSON_STRING:
        return sf_str_equal((sf_str){a->string, a->length}, (sf_str){b->string, b->length});
    case SF_JSON_ARRAY:
        return a->length == b->length && equal_items(a, b, a->length);
    case SF_JSON_OBJECT:
        return a->length == b->length && equal_items(a, b, 2 * (size_t)a->length);
    }
    return false;
}

static void put_items(sf_json_writer *writer, const sf_json *array)
{
    sf_json_begin_array(writer);
    for (size_t i = 0; i < array->length; i++)
        test_json_put(writer, &array->items[i]);
    sf_json_end_array(writer);
}

static void put_members(sf_json_writer *writer, const sf_json *object)
{
    sf_json_begin_object(writer);
    for (size_t i = 0; i < object->length; i++) {
        sf_json_key_str(writer, sf_json_key_at(object, i));
        test_json_put(writer, sf_json_value_at(object, i));
    }
    sf_json_end_object(writer);
}

void test_json_put(sf_json_writer *writer, const sf_json *value)
{
    switch ((sf_json_kind)value->kind) {
    case SF_JSON_NULL:
        sf_json_put_null(writer);
        break;
    case SF_JSON_BOOL:
        sf_json_put_bool(writer, value->truth);
        break;
    case SF_JSON_NUMBER:
        if (value->exact)
            sf_json_put_int(writer, value->integer);
        else
            sf_json_put_double(writer, value->number);
        break;
    case SF_JSON_STRING:
        sf_json_put_str(writer, (sf_str){value->string, value->length});
        break;
    case SF_JSON_ARRAY:
        put_items(writer, value);
        break;
    case SF_JSON_OBJECT:
        put_members(writer, value);
        break;
    }
}
