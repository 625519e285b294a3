#include "shard/uneven_partition.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"

enum { NOBODY = 255, MOST_HANDS = 64 };

const sf_row_partition *sf_row_partition_new(int64_t count, const uint8_t *to, sf_arena *arena)
{
    sf_row_partition *partition = SF_NEW(arena, sf_row_partition);
    *partition = (sf_row_partition){count, sf_arena_copy(arena, to, (size_t)count)};
    return partition;
}

bool sf_row_partition_equal(const sf_row_partition *a, const sf_row_partition *b)
{
    if (!a || !b)
        return a == b;
    return a->count == b->count && memcmp(a->to, b->to, (size_t)a->count) == 0;
}

uint64_t sf_row_partition_hash(const sf_row_partition *partition)
{
    return partition
               ? sf_hash_bytes((uint64_t)partition->count, partition->to, (size_t)partition->count)
               : 0;
}

uint64_t sf_row_partition_owners(const sf_row_partition *partition)
{
    uint64_t hands = 0;
    for (int64_t row = 0; row < partition->count; row++)
        hands |= UINT64_C(1) << partition->to[row];
    return hands;
}

int64_t sf_row_partition_rows(const sf_row_partition *partition, int coordinate)
{
    int64_t rows = 0;
    for (int64_t row = 0; row < partition->count; row++)
        rows += partition->to[row] == coordinate;
    return rows;
}

int64_t sf_row_partition_most(const sf_row_partition *partition)
{
    int64_t most = 0;
    for (int hand = 0; hand < MOST_HANDS; hand++) {
        int64_t rows = sf_row_partition_rows(partition, hand);
        most = rows > most ? rows : most;
    }
    return most;
}

int64_t sf_row_partition_next(const sf_row_partition *partition, int coordinate, int64_t row)
{
    while (row < partition->count && partition->to[row] != coordinate)
        row++;
    return row;
}

void sf_row_partition_print(const sf_row_partition *partition, sf_buf *out)
{
    const char *before = "";
    for (uint64_t rest = sf_row_partition_owners(partition); rest; rest &= rest - 1) {
        int hand = __builtin_ctzll(rest);
        sf_buf_printf(out, "%s%d", before, hand);
        before = ":";
        for (int64_t row = sf_row_partition_next(partition, hand, 0), end; row < partition->count;
             row = sf_row_partition_next(partition, hand, end)) {
            for (end = row + 1; end < partition->count && partition->to[end] == hand;)
                end++;
            sf_buf_printf(out, "%s%" PRId64, before, row);
            if (end > row + 1)
                sf_buf_printf(out, "-%" PRId64, end - 1);
            before = "+";
        }
        before = ",";
    }
}

static bool take_char(sf_str *text, char c)
{
    bool is = text->length > 0 && *text->at == c;
    if (is)
        *text = (sf_str){text->at + 1, text->length - 1};
    return is;
}

/* A number below the limit. */
static bool take_below(sf_str *text, int64_t limit, int64_t *out)
{
    size_t length = 0;
    int64_t value = 0;
    for (; length < text->length && text->at[length] >= '0' && text->at[length] <= '9'; length++) {
        value = value * 10 + (text->at[length] - '0');
        if (value >= limit)
            return false;
    }
    *text = (sf_str){text->at + length, text->length - length};
    *out = value;
    return length > 0;
}

static bool take_rows(sf_str *text, int64_t count, int64_t hand, uint8_t *to)
{
    int64_t row, last;
    if (!take_below(text, count, &row))
        return false;
    last = row;
    if (take_char(text, '-') && (!take_below(text, count, &last) || last < row))
        return false;
    for (; row <= last; row++) {
        if (to[row] != NOBODY)
            return false;
        to[row] = (uint8_t)hand;
    }
    return true;
}

static bool take_hands(sf_str *text, int64_t count, uint8_t *to)
{
    do {
        int64_t hand;
        if (!take_below(text, MOST_HANDS, &hand) || !take_char(text, ':'))
            return false;
        do {
            if (!take_rows(text, count, hand, to))
                return false;
        } while (take_char(text, '+'));
    } while (take_char(text, ','));
    return !memchr(to, NOBODY, (size_t)count);
}

const sf_row_partition *sf_row_partition_parse(sf_str *text, int64_t count, sf_arena *arena)
{
    sf_row_partition *partition = SF_NEW(arena, sf_row_partition);
    if (count < 1)
        return NULL;
    uint8_t *to = memset(sf_arena_alloc(arena, (size_t)count), NOBODY, (size_t)count);
    *partition = (sf_row_partition){count, to};
    return take_hands(text, count, to) ? partition : NULL;
}
