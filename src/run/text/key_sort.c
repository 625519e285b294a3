#include "run/text/key_sort.h"

#include <inttypes.h>

/* Elements that a thread goes through, one after the other; and bits of a digit. */
enum { CHUNK = 64, SUMMED = 256, MOST_DIGIT_BITS = 6 };

static int add_scratch(sf_calling *c, int64_t at)
{
    return sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = at});
}

/* Declares where the part of thread `at` begins and ends. */
static void put_part(sf_calling *c, int64_t size, int64_t count)
{
    SF_PUT(c, "s64 begin = (s64)at * %" PRId64 ", end = begin + %" PRId64 ";\n", size, size);
    SF_PUT(c, "end = end < %" PRId64 "ll ? end : %" PRId64 "ll;\n", count, count);
}

/* Each of `count` numbers becomes the sum of those before it. */
static void write_sums(sf_calling *c, int64_t numbers, int64_t count)
{
    int64_t parts = (count + SUMMED - 1) / SUMMED, sums = 0;
    if (parts > 1) {
        sums = sf_write_scratch(c->w, parts * 4);
        int from = add_scratch(c, numbers), to = add_scratch(c, sums);
        sf_call_begin(c, parts);
        put_part(c, SUMMED, count);
        SF_PUT(c, "s32 sum = 0;\n");
        SF_PUT(c, "UNROLL_SOME for (s64 i = begin; i < end; i++) sum += AT(const s32, p%d, i);\n",
               from);
        SF_PUT(c, "AT(s32, p%d, at) = sum;\n", to);
        sf_call_end(c, parts);
        write_sums(c, sums, parts);
    }
    int at = add_scratch(c, numbers), before = parts > 1 ? add_scratch(c, sums) : -1;
    sf_call_begin(c, parts);
    put_part(c, SUMMED, count);
    if (parts > 1)
        SF_PUT(c, "s32 sum = AT(const s32, p%d, at);\n", before);
    else
        SF_PUT(c, "s32 sum = 0;\n");
    SF_PUT(c, "UNROLL_SOME for (s64 i = begin; i < end; i++) {\n");
    SF_PUT(c, "s32 was = AT(s32, p%d, i);\nAT(s32, p%d, i) = sum;\nsum += was;\n}\n", at, at);
    sf_call_end(c, parts);
}

/* One digit: `bits` from `shift` on. Counts are by digit, then by chunk. */
static void write_digit(sf_calling *c, int64_t count, int shift, int bits, int64_t counts,
                        int64_t from, int64_t to)
{
    int64_t chunks = (count + CHUNK - 1) / CHUNK;
    int digits = 1 << bits;
    int elements = add_scratch(c, from), numbers = add_scratch(c, counts);
    sf_call_begin(c, chunks);
    put_part(c, CHUNK, count);
    SF_PUT(c, "s32 found[%d];\nfor (int d = 0; d < %d; d++) found[d] = 0;\n", digits, digits);
    SF_PUT(c,
           "UNROLL_SOME for (s64 i = begin; i < end; i++) found[AT(const u64, p%d, i) >> %d & "
           "%d]++;\n",
           elements, shift, digits - 1);
    SF_PUT(c, "for (int d = 0; d < %d; d++) AT(s32, p%d, (s64)d * %" PRId64 " + at) = found[d];\n",
           digits, numbers, chunks);
    sf_call_end(c, chunks);
    write_sums(c, counts, digits * chunks);
    elements = add_scratch(c, from);
    numbers = add_scratch(c, counts);
    int sorted = add_scratch(c, to);
    sf_call_begin(c, chunks);
    put_part(c, CHUNK, count);
    SF_PUT(c, "s32 next[%d];\n", digits);
    SF_PUT(c,
           "for (int d = 0; d < %d; d++) next[d] = AT(const s32, p%d, (s64)d * %" PRId64
           " + at);\n",
           digits, numbers, chunks);
    SF_PUT(c, "UNROLL_SOME for (s64 i = begin; i < end; i++) {\n");
    SF_PUT(c, "u64 it = AT(const u64, p%d, i);\n", elements);
    SF_PUT(c, "s32 to = next[it >> %d & %d]++;\nAT(u64, p%d, to) = it;\n}\n", shift, digits - 1,
           sorted);
    sf_call_end(c, chunks);
}

int64_t sf_key_sort(sf_calling *c, int64_t count, int64_t keys, int64_t elements)
{
    int bits = 0;
    while (bits < SF_MOST_KEY_BITS && keys > (int64_t)1 << bits)
        bits++;
    int passes = (bits + MOST_DIGIT_BITS - 1) / MOST_DIGIT_BITS;
    int64_t chunks = (count + CHUNK - 1) / CHUNK, other = sf_write_scratch(c->w, count * 8),
            counts = sf_write_scratch(c->w, (chunks << MOST_DIGIT_BITS) * 4);
    for (int p = 0, done = 0; p < passes; p++) {
        int own = (bits - done + passes - p - 1) / (passes - p);
        write_digit(c, count, SF_KEY_SHIFT + done, own, counts, elements, other);
        done += own;
        int64_t was = elements;
        elements = other;
        other = was;
    }
    return elements;
}
