    /* The body of the kernels of attention where groups of 4 warps multiply (cu/attention.cu): what attention_kernel.cu does, with 64 rows a
     * group. Columns come in tiles of 64, the next ones beside the compute; what a row keeps for itself is in registers, and its
     * factors are tiles, too, or in registers (`HELD`). Sums over columns need them side by side: of narrow elements the tensor cores
     * turn tiles by themselves, of wide ones they are given turned (attention_transpose.cu) as `turned1` and `turned2`. */
    enum {
        GROUPS = BLOCK_ROWS / 64,
        SIZE = (int)sizeof(element),
        TILE = 64 * 128,
        MATRIX = (DEPTH * SIZE + 127) / 128 * TILE, /* 64 rows */
        KSTEPS = DEPTH * SIZE / 32,
        PSTEPS = 64 * SIZE / 32,
        SLABS = (DEPTH + 63) / 64, /* of results, 64 columns each */
        TURNED = WIDE ? SLABS * 2 * TILE : 0,
        STAGE = 2 * MATRIX + ((KIND != FORWARD) + (KIND != QUERIES)) * TURNED,
        HELD = KIND == FORWARD && !WIDE,
        CHUNKS = DEPTH * SIZE / 16,
        PER = 16 / SIZE,
        AT_ONCE = BLOCK_ROWS * 2 /* threads of a block */
    };
/* Where columns 16 p to 16 p + 15 (wide: 8) stand in what is summed over, for columns 64 d on of the result. */
#define SUMMED(d, p) (WIDE ? ((d) * 2 + (p) / 4) * TILE + (p) % 4 * 32 : (d) * TILE + (p) * 16 * 128)
    DYNAMIC_SHARED(shared);
    u8 *factors = shared, *columns = factors + (HELD ? 0 : (1 + (KIND != FORWARD)) * GROUPS * MATRIX);
    f32 *column_ends = (f32 *)(columns + 2 * STAGE), *column_deltas = column_ends + 128;
    const int group = THREAD / 128, warp = THREAD / 32, lane = THREAD % 32, g = lane / 4, t = lane % 4;
    int pair, turn;
    find_turn(BLOCK, PAIRS, NEAR, TILES, &pair, &turn);
    const int tile = KIND == KEYS || !CAUSAL ? turn : TILES - 1 - turn;
    const s64 batch = pair / HEADS, head = pair % HEADS;
    const int block_row = tile * BLOCK_ROWS, group_row = block_row + group * 64, row = block_row + warp * 16 + g;
    const s64 pitch = (s64)HEADS * DEPTH, row_base = (batch * ROWS * HEADS + head) * DEPTH,
              column_base = (batch * COLUMNS * HEADS + head) * DEPTH;
    const int first = KIND == KEYS && CAUSAL ? block_row : 0;
    const int end = KIND != KEYS && CAUSAL && block_row + BLOCK_ROWS < COLUMNS ? block_row + BLOCK_ROWS : COLUMNS;
    if (!HELD) {
        UNROLL
        for (int j = 0; j < BLOCK_ROWS * CHUNKS / AT_ONCE; j++) {
            int i = THREAD + j * AT_ONCE, r = i / CHUNKS, c = i % CHUNKS, valid = block_row + r < ROWS;
            s64 from = row_base + (s64)(valid ? block_row + r : 0) * pitch + c * PER;
            u8 *to = factors + r / 64 * MATRIX + place_in_tile(r % 64, c);
            copy_aside(to, SOME(const element, rows1, from, PER), valid);
            if (KIND != FORWARD)
                copy_aside(to + GROUPS * MATRIX, SOME(const element, rows2, from, PER), valid);
        }
    }
    const u8 *factor1 = factors + group * MATRIX, *factor2 = factor1 + GROUPS * MATRIX;
    u32 held[KSTEPS][4];
    f32 most[2], sum[2], row_end[2], row_delta[2];
    f32 made1[SLABS][32], made2[SLABS][32];
    UNROLL
    for (int d = 0; d < SLABS; d++)
        UNROLL
        for (int i = 0; i < 32; i++)
            made1[d][i] = made2[d][i] = 0;
    int now = 1;
    for (int at = first - 64; at < end; at += 64) {
        await_copies();
        show_copies();
        BARRIER();
        now ^= 1;
        if (at + 64 < end) {
            const int next = at + 64, room = now ^ 1;
            UNROLL
            for (int j = 0; j < (64 * CHUNKS + AT_ONCE - 1) / AT_ONCE; j++) {
                int i = THREAD + j * AT_ONCE, r = i / CHUNKS, c = i % CHUNKS, valid = next + r < COLUMNS;
                if (64 * CHUNKS % AT_ONCE != 0 && i >= 64 * CHUNKS)
                    break;
                s64 from = column_base + (s64)(valid ? next + r : 0) * pitch + c * PER;
                u8 *to = columns + room * STAGE + place_in_tile(r, c);
                copy_aside(to, SOME(const element, columns1, from, PER), valid);
                if (KIND != FORWARD || !WIDE) /* there, only the turned one is read */
                    copy_aside(to + MATRIX, SOME(const element, columns2, from, PER), valid);
            }
            UNROLL
            for (int j = 0; j < (DEPTH * 16 + AT_ONCE - 1) / AT_ONCE && WIDE; j++) {
                int i = THREAD + j * AT_ONCE, r = i / 16, c = i % 16;
                if (DEPTH * 16 % AT_ONCE != 0 && i >= DEPTH * 16)
                    break;
                s64 from = ((s64)pair * DEPTH + r) * ((COLUMNS + 63) / 64 * 64) + next + c * 4;
                u8 *to = columns + room * STAGE + 2 * MATRIX + r / 64 * 2 * TILE + place_in_tile(r % 64, c);
                if (KIND != FORWARD)
                    copy_aside(to, SOME(const element, turned1, from, PER), 1);
                if (KIND != QUERIES)
                    copy_aside(to + (KIND == KEYS ? TURNED : 0), SOME(const element, turned2, from, PER), 1);
            }
            if (KIND == KEYS && THREAD < 64) {
                int valid = next + THREAD < COLUMNS;
                s64 from = (s64)pair * COLUMNS + (valid ? next + THREAD : 0);
                column_ends[room * 64 + THREAD] = valid ? AT(const f32, ends, from) : 0;
                column_deltas[room * 64 + THREAD] = valid ? AT(const f32, deltas, from) : 0;
            }
        }
        if (at < first) { /* while the first ones come */
            UNROLL
            for (int k = 0; k < KSTEPS && HELD; k++)
                load_left(held[k], SOME(const element, rows1, row_base, (ROWS - 1) * pitch + DEPTH), row, ROWS, pitch, k * 16, WIDE);
            UNROLL
            for (int i = 0; i < 2; i++) {
                int here = row + i * 8 < ROWS ? row + i * 8 : ROWS - 1;
                most[i] = -INF32;
                sum[i] = row_end[i] = row_delta[i] = 0;
                if (KIND != QUERIES)
                    continue;
                row_end[i] = AT(const f32, ends, (s64)pair * ROWS + here);
                row_delta[i] = dot_rows(SOME(const element, rows2, row_base + here * pitch, DEPTH),
                                    SOME(const element, results, row_base + here * pitch, DEPTH), DEPTH, WIDE);
                if (t == 0 && row + i * 8 < ROWS)
                    AT(f32, deltas, (s64)pair * ROWS + here) = row_delta[i];
            }
            continue;
        }
        /* A group waits where all that it could see is hidden. */
        const int is_hidden = CAUSAL && (KIND == KEYS ? at + 63 < group_row : at > group_row + 63);
        if (GROUP_MAY_WAIT && is_hidden)
            continue;
        const u8 *one = columns + now * STAGE, *two = one + MATRIX;
        const u8 *right1 = WIDE ? two + MATRIX : one;
        const u8 *right2 = WIDE ? two + MATRIX + (KIND == KEYS ? TURNED : 0) : two;
        f32 s[32], ds[32];
        begin_products();
        UNROLL
        for (int k = 0; k < KSTEPS; k++) {
            const int from = k / 4 * TILE + k % 4 * 32;
            if (HELD)
                multiply_held(s, held[k], one + from, 0, k > 0, WIDE);
            else
                multiply_tiles(s, factor1 + from, one + from, k > 0, WIDE);
        }
        end_products();
        if (KIND != FORWARD) {
            begin_products();
            UNROLL
            for (int k = 0; k < KSTEPS; k++) {
                const int from = k / 4 * TILE + k % 4 * 32;
                multiply_tiles(ds, factor2 + from, two + from, k > 0, WIDE);
            }
            end_products();
        }
        await_products(KIND != FORWARD);
        touch_sums(s);
        const int is_edge = at + 64 > COLUMNS || (CAUSAL && KIND != KEYS && at + 63 > group_row) ||
                            (CAUSAL && KIND == KEYS && at < group_row + 63);
        if (is_edge) {
            UNROLL
            for (int i = 0; i < 32; i++) {
                int column = at + i / 4 * 8 + 2 * t + i % 2, place = row + i % 4 / 2 * 8;
                int later = KIND == KEYS ? column < place : column > place;
                if (column >= COLUMNS || (CAUSAL && later))
                    s[i] = -INF32;
            }
        }
        if (KIND == FORWARD) {
            UNROLL
            for (int h = 0; h < 2; h++) {
                f32 top = most[h], part = 0;
                UNROLL
                for (int n = 2 * h; n < 32; n += 4)
                    top = fmaxf(top, fmaxf(s[n], s[n + 1]));
                top = fmaxf(top, SHUFFLE(top, 1));
                top = fmaxf(top, SHUFFLE(top, 2));
                const f32 low = -top * scale2, less = power_of_2(fmaf(most[h], scale2, low));
                most[h] = top;
                UNROLL
                for (int n = 2 * h; n < 32; n += 4) {
                    s[n] = power_of_2(fmaf(s[n], scale2, low));
                    s[n + 1] = power_of_2(fmaf(s[n + 1], scale2, low));
                    part += s[n] + s[n + 1];
                }
                sum[h] = fmaf(sum[h], less, part);
                UNROLL
                for (int d = 0; d < SLABS; d++)
                    UNROLL
                    for (int n = 2 * h; n < 32; n += 4) {
                        made2[d][n] *= less;
                        made2[d][n + 1] *= less;
                    }
            }
        } else {
            UNROLL
            for (int i = 0; i < 32; i++) {
                f32 last = KIND == KEYS ? column_ends[now * 64 + i / 4 * 8 + 2 * t + i % 2] : row_end[i % 4 / 2];
                s[i] = power_of_2(fmaf(s[i], scale2, -last));
            }
        }
        u32 left1[PSTEPS][4], left2[PSTEPS][4];
        if (KIND != FORWARD) {
            await_products(0);
            touch_sums(ds);
            UNROLL
            for (int i = 0; i < 32; i++) {
                f32 delta = KIND == KEYS ? column_deltas[now * 64 + i / 4 * 8 + 2 * t + i % 2] : row_delta[i % 4 / 2];
                ds[i] = s[i] * (ds[i] - delta);
            }
        }
        UNROLL
        for (int p = 0; p < PSTEPS; p++) {
            const int n = p * (WIDE ? 4 : 8), next = n + (WIDE ? 0 : 4);
            if (KIND != FORWARD)
                turn_left(left1[p], ds + n, ds + next, WIDE);
            if (KIND != QUERIES)
                turn_left(left2[p], s + n, s + next, WIDE);
        }
        UNROLL
        for (int d = 0; d < SLABS; d++) {
            touch_sums(made1[d]);
            touch_sums(made2[d]);
        }
        begin_products();
        UNROLL
        for (int p = 0; p < PSTEPS; p++)
            UNROLL
            for (int d = 0; d < SLABS; d++) {
                if (KIND != FORWARD)
                    multiply_held(made1[d], left1[p], right1 + SUMMED(d, p), !WIDE, 1, WIDE);
                if (KIND != QUERIES)
                    multiply_held(made2[d], left2[p], right2 + SUMMED(d, p), !WIDE, 1, WIDE);
            }
        end_products();
        await_products(0);
        UNROLL
        for (int d = 0; d < SLABS; d++) {
            touch_sums(made1[d]);
            touch_sums(made2[d]);
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
            AT(f32, ends, (s64)pair * ROWS + row + h * 8) = most[h] * scale2 + log2f(sum[h]);
        UNROLL
        for (int c = 0; c < DEPTH / 8; c++) {
            const f32 *one = made1[c / 8] + c % 8 * 4 + 2 * h, *two = made2[c / 8] + c % 8 * 4 + 2 * h;
            if (KIND != FORWARD)
                store_pair(SOME(element, made_one, here + c * 8, 2), one[0] * scale, one[1] * scale, WIDE);
            if (KIND != QUERIES)
                store_pair(SOME(element, made_two, here + c * 8, 2), two[0] * part, two[1] * part, WIDE);
        }
    }
}
#undef SUMMED
