    /* [batch, place, head, depth] becomes [batch, head, depth, place] for groups of warps, rounded, with zeros up to a multiple of 64
     * places. Of 8 places, those of even number come first: turn_left has sums of 8 columns in that order. A block has 64 places. */
    enum { LINES = (PLACES + 63) / 64 };
    SHARED f32 lines[64][DEPTH + 1];
    const s64 pair = BLOCK / LINES, batch = pair / HEADS, head = pair % HEADS;
    const int first = (int)(BLOCK % LINES) * 64;
    for (int i = THREAD; i < 64 * DEPTH; i += THREADS) {
        int r = i / DEPTH, c = i % DEPTH;
        lines[r][c] = first + r < PLACES
                          ? ((const f32 *)from)[((batch * PLACES + first + r) * HEADS + head) * DEPTH + c]
                          : 0;
    }
    BARRIER();
    for (int i = THREAD; i < 64 * DEPTH; i += THREADS) {
        int c = i / 64, at = i % 64, r = at / 8 * 8 + at % 4 * 2 + at % 8 / 4;
        ((u32 *)to)[(pair * DEPTH + c) * (LINES * 64) + first + at] = round_tf32(lines[r][c]);
    }
}
