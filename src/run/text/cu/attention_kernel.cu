    /* The body of the kernels of attention, behind the numbers that run/text/kernel_attention.c writes. A block has
     * 16 rows each warp, and goes along the columns, some at a time; S = R1 C1^T are their scores.
     *
     *     FORWARD   rows are queries, columns keys:  O = softmax(S) C2
     *     QUERIES   likewise; R2 is the gradient of O:  dQ = dS C1  with  dS = P (R2 C2^T - delta) scale
     *     KEYS      rows are keys, columns queries, C2 is the gradient of O:  dK = dS C1, dV = P C2
     *
     * All tensors are [batch, place, head, depth]. Scores are kept in powers of 2, so `ends` is m + log2(sum 2^(S - m)). */
    enum {
        NTILES = STEP / 8,
        DTILES = DEPTH / 8,
        WIDTH = WIDE ? 8 : 16,
        KSTEPS = DEPTH / WIDTH,
        PSTEPS = STEP / WIDTH,
        PITCH = DEPTH + 8,
        PER = 16 / (int)sizeof(element),
        CHUNKS = DEPTH / PER
    };
    SHARED ALIGNED(16) element ones[2 * STEP * PITCH];
    SHARED ALIGNED(16) element twos[2 * STEP * PITCH];
    SHARED f32 column_ends[2 * STEP];
    SHARED f32 column_deltas[2 * STEP];
    const int warp = THREAD / 32, lane = THREAD % 32, g = lane / 4, t = lane % 4;
    int pair, turn;
    find_turn(BLOCK, PAIRS, NEAR, TILES, &pair, &turn);
    const int tile = KIND == KEYS || !CAUSAL ? turn : TILES - 1 - turn;
    const s64 batch = pair / HEADS, head = pair % HEADS;
    const int block_row = tile * BLOCK_ROWS, warp_row = block_row + warp * 16, row = warp_row + g;
    const s64 pitch = (s64)HEADS * DEPTH, row_base = (batch * ROWS * HEADS + head) * DEPTH,
              column_base = (batch * COLUMNS * HEADS + head) * DEPTH;
    const int first = KIND == KEYS && CAUSAL ? block_row / STEP * STEP : 0;
    const int end = KIND != KEYS && CAUSAL && block_row + BLOCK_ROWS < COLUMNS ? block_row + BLOCK_ROWS : COLUMNS;
    u32 a1[KSTEPS][4], a2[KSTEPS][4];
    UNROLL
    for (int k = 0; k < KSTEPS; k++) {
        load_left(a1[k], SOME(const element, rows1, row_base, (ROWS - 1) * pitch + DEPTH), row, ROWS, pitch, k * WIDTH, WIDE);
        if (KIND != FORWARD)
            load_left(a2[k], SOME(const element, rows2, row_base, (ROWS - 1) * pitch + DEPTH), row, ROWS, pitch, k * WIDTH, WIDE);
    }
    f32 most[2], sum[2], row_end[2], row_delta[2];
    UNROLL
    for (int i = 0; i < 2; i++) {
        int here = row + i * 8 < ROWS ? row + i * 8 : ROWS - 1;
        most[i] = -INF32;
        sum[i] = 0;
        row_end[i] = row_delta[i] = 0;
        if (KIND == QUERIES) {
            row_end[i] = AT(const f32, ends, (s64)pair * ROWS + here);
            row_delta[i] = dot_rows(SOME(const element, rows2, row_base + here * pitch, DEPTH),
                                    SOME(const element, results, row_base + here * pitch, DEPTH), DEPTH, WIDE);
            if (t == 0 && row + i * 8 < ROWS)
                AT(f32, deltas, (s64)pair * ROWS + here) = row_delta[i];
        }
    }
    f32 made1[DTILES][4], made2[DTILES][4];
    UNROLL
    for (int d = 0; d < DTILES; d++)
        UNROLL
        for (int i = 0; i < 4; i++)
            made1[d][i] = made2[d][i] = 0;
    int now = 1;
    for (int at = first - STEP; at < end; at += STEP) {
        await_copies();
        BARRIER();
        now ^= 1;
        if (at + STEP < end) {
            const int next = at + STEP, room = (now ^ 1) * STEP;
            for (int i = THREAD; i < STEP * CHUNKS; i += BLOCK_ROWS * 2) {
                int r = i / CHUNKS, c = i % CHUNKS * PER, valid = next + r < COLUMNS;
                s64 from = column_base + (s64)(valid ? next + r : 0) * pitch + c;
                copy_aside(ones + (room + r) * PITCH + c, SOME(const element, columns1, from, PER), valid);
                copy_aside(twos + (room + r) * PITCH + c, SOME(const element, columns2, from, PER), valid);
            }
            if (KIND == KEYS && THREAD < STEP) {
                int valid = next + THREAD < COLUMNS;
                s64 from = (s64)pair * COLUMNS + (valid ? next + THREAD : 0);
                column_ends[room + THREAD] = valid ? AT(const f32, ends, from) : 0;
                column_deltas[room + THREAD] = valid ? AT(const f32, deltas, from) : 0;
            }
        }
        /* A warp waits where all that it could see is hidden. */
        const int is_hidden = CAUSAL && (KIND == KEYS ? at + STEP <= warp_row : at > warp_row + 15);
        if (at < first || (GROUP_MAY_WAIT && is_hidden))
            continue;
        const element *one = ones + now * STEP * PITCH, *two = twos + now * STEP * PITCH;
        f32 s[NTILES][4], ds[NTILES][4];
        UNROLL
        for (int n = 0; n < NTILES; n++) {
            UNROLL
            for (int i = 0; i < 4; i++)
                s[n][i] = ds[n][i] = 0;
            UNROLL
            for (int k = 0; k < KSTEPS; k++) {
                int from = (n * 8 + g) * PITCH + k * WIDTH + 2 * t;
                multiply_fragments(s[n], a1[k], *(const u32 *)(one + from),
                                   *(const u32 *)(one + from + (WIDE ? 1 : 8)), WIDE);
                if (KIND != FORWARD)
                    multiply_fragments(ds[n], a2[k], *(const u32 *)(two + from),
                                       *(const u32 *)(two + from + (WIDE ? 1 : 8)), WIDE);
            }
        }
        const int is_edge = at + STEP > COLUMNS || (CAUSAL && KIND != KEYS && at + STEP - 1 > warp_row) ||
                            (CAUSAL && KIND == KEYS && at < warp_row + 15);
        UNROLL
        for (int n = 0; n < NTILES; n++)
            UNROLL
            for (int i = 0; i < 4; i++) {
                int column = at + n * 8 + 2 * t + i % 2, place = row + i / 2 * 8;
                int later = KIND == KEYS ? column < place : column > place;
                s[n][i] *= scale2;
                if (is_edge && (column >= COLUMNS || (CAUSAL && later)))
                    s[n][i] = -INF32;
            }
        if (KIND == FORWARD) {
            UNROLL
            for (int h = 0; h < 2; h++) {
                f32 top = most[h], part = 0;
                UNROLL
                for (int n = 0; n < NTILES; n++)
                    top = fmaxf(top, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
                top = fmaxf(top, SHUFFLE(top, 1));
                top = fmaxf(top, SHUFFLE(top, 2));
                f32 less = power_of_2(most[h] - top);
                most[h] = top;
                UNROLL
                for (int n = 0; n < NTILES; n++)
                    UNROLL
                    for (int i = 2 * h; i < 2 * h + 2; i++) {
                        s[n][i] = power_of_2(s[n][i] - top);
                        part += s[n][i];
                    }
                sum[h] = sum[h] * less + part;
                UNROLL
                for (int d = 0; d < DTILES; d++) {
                    made2[d][2 * h] *= less;
                    made2[d][2 * h + 1] *= less;
                }
            }
        } else {
            UNROLL
            for (int n = 0; n < NTILES; n++)
                UNROLL
                for (int i = 0; i < 4; i++) {
                    int column = now * STEP + n * 8 + 2 * t + i % 2;
                    f32 last = KIND == KEYS ? column_ends[column] : row_end[i / 2];
                    f32 delta = KIND == KEYS ? column_deltas[column] : row_delta[i / 2];
                    s[n][i] = power_of_2(s[n][i] - last);
                    ds[n][i] = s[n][i] * (ds[n][i] - delta) * scale;
                }
        }
        UNROLL
        for (int p = 0; p < PSTEPS; p++) {
            const int n = WIDE ? p : 2 * p, next = WIDE ? n : n + 1;
            u32 left1[4], left2[4];
            if (KIND != FORWARD)
                turn_left(left1, ds[n], ds[next], WIDE);
            if (KIND != QUERIES)
                turn_left(left2, s[n], s[next], WIDE);
            UNROLL
            for (int d = 0; d < DTILES; d += 2) {
                u32 right1[4], right2[4];
                if (WIDE) {
                    UNROLL
                    for (int i = 0; i < 4; i++) {
                        int from = (p * 8 + 2 * t + i % 2) * PITCH + (d + i / 2) * 8 + g;
                        right1[i] = *(const u32 *)(one + from);
                        right2[i] = *(const u32 *)(two + from);
                    }
                } else {
                    int from = (p * 16 + lane / 8 % 2 * 8 + lane % 8) * PITCH + (d + lane / 16) * 8;
                    if (KIND != FORWARD)
                        load_transposed(right1, one + from);
                    if (KIND != QUERIES)
                        load_transposed(right2, two + from);
                }
                UNROLL
                for (int i = 0; i < 2; i++) {
                    if (KIND != FORWARD)
                        multiply_fragments(made1[d + i], left1, right1[2 * i], right1[2 * i + 1], WIDE);
                    if (KIND != QUERIES)
                        multiply_fragments(made2[d + i], left2, right2[2 * i], right2[2 * i + 1], WIDE);
                }
            }
        }
    }
    UNROLL
    for (int h = 0; h < 2; h++) {
        const s64 here = row_base + (row + h * 8) * pitch + 2 * t;
        f32 part = 1;
        if (KIND == FORWARD) {
            sum[h] += SHUFFLE(sum[h], 1);
            sum[h] += SHUFFLE(sum[h], 2);
            part = 1 / sum[h];
        }
        if (row + h * 8 >= ROWS)
            continue;
        if (KIND == FORWARD && t == 0)
            AT(f32, ends, (s64)pair * ROWS + row + h * 8) = most[h] + log2f(sum[h]);
        UNROLL
        for (int d = 0; d < DTILES; d++) {
            if (KIND != FORWARD)
                store_pair(SOME(element, made_one, here + d * 8, 2), made1[d][2 * h], made1[d][2 * h + 1], WIDE);
            if (KIND != QUERIES)
                store_pair(SOME(element, made_two, here + d * 8, 2), made2[d][2 * h] * part, made2[d][2 * h + 1] * part, WIDE);
        }
    }
}
