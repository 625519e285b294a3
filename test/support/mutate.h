/* Files as somebody may have edited them, or as a disk has returned them: what readers must refuse, or take for what it says.
 *
 * Each takes a good file and a seed and gives another. A JSON document is edited as a tree: members and items are dropped,
 * repeated, swapped, moved, renamed, nested; values become others of the document, or of another kind, or numbers at the edge of what
 * numbers can be; in strings and in texts, words become other words. */
#ifndef TEST_SUPPORT_MUTATE_H
#define TEST_SUPPORT_MUTATE_H

#include <stdbool.h>

#include "base/str.h"

/* False where the text is no JSON. */
bool test_mutate_json(sf_str text, uint64_t seed, sf_buf *out);

/* Lines and words of a text. */
void test_mutate_text(sf_str text, uint64_t seed, sf_buf *out);

/* Bytes: flipped, cut off, cut out, repeated. */
void test_mutate_bytes(sf_str bytes, uint64_t seed, sf_buf *out);

/* A safetensors file: its header, as JSON, or its bytes. */
void test_mutate_safetensors(sf_str bytes, uint64_t seed, sf_buf *out);

#endif
