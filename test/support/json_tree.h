/* JSON values as trees: compared, and written again. */
#ifndef TEST_SUPPORT_JSON_TREE_H
#define TEST_SUPPORT_JSON_TREE_H

#include "base/json.h"

/* The same value: exact numbers by integer, others by the bits of the double, members in order. */
bool test_json_equal(const sf_json *a, const sf_json *b);

void test_json_put(sf_json_writer *writer, const sf_json *value);

#endif
