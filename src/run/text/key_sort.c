#include "run/text/key_sort.h"

#include <inttypes.h>

/* As in cu/key_sort.cu. */
enum { THREADS = 256, TILE = THREADS * 8, MOST_DIGIT_BITS = 8 };

/* What is in scratch memory: the elements before and after a digit, how many of a tile have it, and how many of all. */
typedef struct rooms {
    int64_t from, to, counts, totals, count, tiles;
} rooms;

static int add_scratch(sf_calling *c, int64_t at)
{
    return sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = at});
}

static void write_step(sf_calling *c, int64_t blocks)
{
    c->w->module->needs.key_sort = true;
    sf_write_launch(c->w, sf_blocks_for(blocks, 1), THREADS, true);
}

/* One digit: `bits` from `shift` on. */
static void write_digit(sf_calling *c, const rooms *r, int shift, int bits)
{
    int digits = 1 << bits;
    int from = add_scratch(c, r->from), counts = add_scratch(c, r->counts);
    SF_PUT(c,
           "{\nconst s64 count = %" PRId64 ", cells = %" PRId64
           ";\nsort_count(SOME(const u64, p%d, 0, count), count, %d, %d, "
           "SOME(s32, p%d, 0, cells));\n}\n",
           r->count, r->tiles * digits, from, shift, digits, counts);
    write_step(c, r->tiles);
    counts = add_scratch(c, r->counts);
    int totals = add_scratch(c, r->totals);
    SF_PUT(c,
           "{\nconst s64 tiles = %" PRId64
           ";\nsort_add(tiles, %d, SOME(s32, p%d, 0, tiles * %d), SOME(s32, p%d, 0, %d));\n}\n",
           r->tiles, digits, counts, digits, totals, digits);
    write_step(c, digits);
    from = add_scratch(c, r->from);
    counts = add_scratch(c, r->counts);
    totals = add_scratch(c, r->totals);
    int to = add_scratch(c, r->to);
    SF_PUT(c,
           "{\nconst s64 count = %" PRId64 ", cells = %" PRId64
           ";\nsort_place(SOME(const u64, p%d, 0, count), count, %d, %d, "
           "SOME(const s32, p%d, 0, cells), SOME(const s32, p%d, 0, %d), "
           "SOME(u64, p%d, 0, count));\n}\n",
           r->count, r->tiles * digits, from, shift, digits, counts, totals, digits, to);
    write_step(c, r->tiles);
}

int64_t sf_key_sort(sf_calling *c, int64_t count, int64_t keys, int64_t elements)
{
    int bits = 0;
    while (bits < SF_MOST_KEY_BITS && keys > (int64_t)1 << bits)
        bits++;
    int passes = (bits + MOST_DIGIT_BITS - 1) / MOST_DIGIT_BITS;
    int64_t tiles = (count + TILE - 1) / TILE;
    rooms r = {.from = elements,
               .to = sf_write_scratch(c->w, count * 8),
               .counts = sf_write_scratch(c->w, (tiles << MOST_DIGIT_BITS) * 4),
               .totals = sf_write_scratch(c->w, (1 << MOST_DIGIT_BITS) * 4),
               .count = count,
               .tiles = tiles};
    for (int p = 0, done = 0; p < passes; p++) {
        int own = (bits - done + passes - p - 1) / (passes - p);
        write_digit(c, &r, SF_KEY_SHIFT + done, own);
        done += own;
        int64_t was = r.from;
        r.from = r.to;
        r.to = was;
    }
    return r.from;
}
