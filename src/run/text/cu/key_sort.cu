
/* Steps of a sort of keys (run/text/key_sort.h): a block has a tile of the elements, a warp consecutive ones of it. */
enum { SORT_THREADS = 256, SORT_WARPS = SORT_THREADS / 32, SORT_EACH = 8, SORT_DIGITS = 256 };
enum { SORT_TILE = SORT_THREADS * SORT_EACH };

/* Element i of those that this thread has in the tile. */
DEVICE s64 sort_at(s64 tile, int i)
{
    return tile * SORT_TILE + THREAD / 32 * (32 * SORT_EACH) + i * 32 + THREAD % 32;
}

/* Counts the digits of each warp's elements in found, and sets for each element how many of the warp before it have its digit. */
DEVICE void sort_rank(const u64 *from, s64 count, s64 tile, int shift, int digits, u64 *elements, int *ranks,
                      int (*found)[SORT_DIGITS])
{
    int *own = found[THREAD / 32], lane = THREAD % 32;
    BARRIER();
    for (int d = THREAD; d < SORT_WARPS * SORT_DIGITS; d += SORT_THREADS) found[d / SORT_DIGITS][d % SORT_DIGITS] = 0;
    BARRIER();
    UNROLL for (int i = 0; i < SORT_EACH; i++)
    {
        s64 at = sort_at(tile, i);
        elements[i] = at < count ? from[at] : 0;
    }
    UNROLL for (int i = 0; i < SORT_EACH; i++)
    {
        int is_inside = sort_at(tile, i) < count;
        int digit = is_inside ? (int)(elements[i] >> shift) & (digits - 1) : -1;
        u32 same = LANES_WITH(digit), before = same & ((1u << lane) - 1);
        int others = is_inside ? own[digit] : 0;
        WARP_BARRIER();
        ranks[i] = others + count_bits64((u64)before);
        if (is_inside && before == 0) own[digit] = others + count_bits64((u64)same);
        WARP_BARRIER();
    }
    BARRIER();
}

/* The sum of x over the threads up to this one. */
DEVICE int sort_sum(int x, int *room)
{
    BARRIER();
    room[THREAD] = x;
    BARRIER();
    for (int apart = 1; apart < SORT_THREADS; apart *= 2) {
        int other = THREAD >= apart ? room[THREAD - apart] : 0;
        BARRIER();
        x += other;
        room[THREAD] = x;
        BARRIER();
    }
    return x;
}

/* By digit and tile, how many elements have it. */
DEVICE void sort_count(const u64 *from, s64 count, int shift, int digits, s32 *counts)
{
    SHARED int found[SORT_WARPS][SORT_DIGITS];
    s64 tiles = (count + SORT_TILE - 1) / SORT_TILE;
    for (s64 tile = BLOCK; tile < tiles; tile += BLOCKS) {
        u64 elements[SORT_EACH];
        int ranks[SORT_EACH];
        sort_rank(from, count, tile, shift, digits, elements, ranks, found);
        if (THREAD < digits) {
            int all = 0;
            for (int w = 0; w < SORT_WARPS; w++) all += found[w][THREAD];
            counts[THREAD * tiles + tile] = all;
        }
    }
}

/* Each count becomes the sum of those of earlier tiles; what all tiles have goes to totals. */
DEVICE void sort_add(s64 tiles, int digits, s32 *counts, s32 *totals)
{
    SHARED int room[SORT_THREADS];
    for (int digit = (int)BLOCK; digit < digits; digit += (int)BLOCKS) {
        s32 *row = counts + digit * tiles;
        int all = 0;
        for (s64 first = 0; first < tiles; first += SORT_THREADS) {
            s64 at = first + THREAD;
            int own = at < tiles ? row[at] : 0, sum = sort_sum(own, room);
            if (at < tiles) row[at] = all + sum - own;
            all += room[SORT_THREADS - 1];
        }
        if (THREAD == 0) totals[digit] = all;
    }
}

/* Puts the elements where all of lower digits, those of earlier tiles, of earlier warps and of the same warp leave off. */
DEVICE void sort_place(const u64 *from, s64 count, int shift, int digits, const s32 *counts, const s32 *totals, u64 *to)
{
    SHARED int found[SORT_WARPS][SORT_DIGITS];
    SHARED int room[SORT_THREADS];
    s64 tiles = (count + SORT_TILE - 1) / SORT_TILE;
    int own = THREAD < digits ? totals[THREAD] : 0, lower = sort_sum(own, room) - own;
    for (s64 tile = BLOCK; tile < tiles; tile += BLOCKS) {
        u64 elements[SORT_EACH];
        int ranks[SORT_EACH];
        sort_rank(from, count, tile, shift, digits, elements, ranks, found);
        if (THREAD < digits) {
            int next = lower + counts[THREAD * tiles + tile];
            for (int w = 0; w < SORT_WARPS; w++) {
                int had = found[w][THREAD];
                found[w][THREAD] = next;
                next += had;
            }
        }
        BARRIER();
        UNROLL for (int i = 0; i < SORT_EACH; i++)
        {
            int digit = (int)(elements[i] >> shift) & (digits - 1);
            if (sort_at(tile, i) < count) to[found[THREAD / 32][digit] + ranks[i]] = elements[i];
        }
    }
}
