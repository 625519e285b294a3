    /* [batch, place, head, depth] becomes [batch, head, depth, place] for groups of warps, rounded, with zeros up to a multiple of 64
     * places. Of 8 places, those of even number come first: turn_left has sums of 8 columns in that order. A block has 64 places,
     * and a thread moves 16 bytes at a time. */
    enum { LINES = (PLACES + 63) / 64 };
    SHARED u32 lines[64][DEPTH + 1];
    const s64 pair = BLOCK / LINES, batch = pair / HEADS, head = pair % HEADS;
    const int first = (int)(BLOCK % LINES) * 64;
    UNROLL_SOME
    for (int i = THREAD; i < 16 * DEPTH; i += THREADS) {
        int r = i / (DEPTH / 4), c = i % (DEPTH / 4) * 4, valid = first + r < PLACES;
        const s64 row = batch * PLACES + (valid ? first + r : 0);
        const words4 x = AT(const words4, from, ((row * HEADS + head) * DEPTH + c) / 4);
        for (int j = 0; j < 4; j++)
            lines[r][c + j] = valid ? round_tf32(float32(x.words[j])) : 0;
    }
    BARRIER();
    for (int i = THREAD; i < 16 * DEPTH; i += THREADS) {
        int c = i / 16, at = i % 16 * 4, r = at / 8 * 8 + at % 8 / 4;
        words4 x;
        for (int j = 0; j < 4; j++)
            x.words[j] = lines[r + 2 * j][c];
        AT(words4, to, ((pair * DEPTH + c) * (LINES * 64) + first + at) / 4) = x;
    }
}
