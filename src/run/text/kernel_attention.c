/* Attention (op/attention.h) without its scores: cu/attend.cu and, for GPUs with groups of warps, cu/attend_groups.cu, with the
 * numbers of the op. */
#include <inttypes.h>
#include <string.h>

#include "op/attention.h"
#include "run/text/kernel_check.h"
#include "run/text/library_kernel.h"

typedef enum pass { FORWARD, QUERIES, KEYS } pass;

/* How a pass is cut: rows of a block, two threads each, and blocks that share a multiprocessor. The more rows, the less often
 * columns are read; the fewer registers a thread has, the more blocks, of which one computes while others wait. */
typedef struct cut {
    int rows, together;
} cut;

static cut cut_of(pass which, bool wide, int64_t depth)
{
    if (which == FORWARD)
        return (cut){.rows = 128, .together = depth <= 64 ? 2 : 1};
    if (which == QUERIES)
        return (cut){.rows = 128, .together = wide || depth > 64 ? 1 : 2};
    return wide ? (cut){.rows = 128, .together = 1}
                : (cut){.rows = 64, .together = depth <= 64 ? 3 : 1};
}

/* The shared memory of cu/attend_groups.cu: tiles of 64 rows of 128 bytes. Columns are there twice,
 * the current and the next ones, with two floats each, and wide ones transposed as well. */
static int shared_bytes(pass which, bool wide, int rows, int64_t depth)
{
    enum { TILE = 64 * 128, FLOATS = 2 * 2 * 64 * 4 };
    int matrix = (int)(depth * (wide ? 4 : 2) + 127) / 128 * TILE;
    int transposed = wide ? (int)(depth + 63) / 64 * 2 * TILE : 0;
    int factors = which != FORWARD ? 2 : wide ? 1 : 0;
    return 2 * (2 * matrix + (which == KEYS ? 2 : 1) * transposed) + rows / 64 * factors * matrix +
           FLOATS;
}

/* How many pairs of batch and head go together: their common operands stay within a part of the
 * cache of a GPU. */
static int near_pairs(const sf_type *columns, int64_t pairs)
{
    enum { CACHED = 16 << 20, TENSORS = 4 };
    int64_t bytes = sf_type_bytes(columns) / pairs * TENSORS,
            near = CACHED / (bytes > 0 ? bytes : 1);
    return (int)(near < 1 ? 1 : near > pairs ? pairs : near);
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* A parameter, under the name that the text has for it. */
typedef struct named {
    const char *name;
    sf_param param;
} named;

static named in_of(const char *name, uint32_t index)
{
    return (named){name, {.kind = SF_PARAM_IN, .index = index}};
}

static named out_of(const char *name, uint32_t index)
{
    return (named){name, {.kind = SF_PARAM_OUT, .index = index}};
}

static named scratch_of(sf_calling *c, const char *name, int64_t bytes)
{
    return (named){name, {.kind = SF_PARAM_SCRATCH, .value = sf_write_scratch(c->w, bytes)}};
}

/* Pointers by their names; those that this pass has none for are NULL. */
static void put_pointers(sf_calling *c, const named *params, int count)
{
    static const char *const all[] = {"rows1",   "rows2",    "columns1", "columns2",
                                      "ends",    "deltas",   "results",  "turned1",
                                      "turned2", "made_one", "made_two"};
    for (int i = 0; i < count; i++)
        sf_write_param(c->w, params[i].param);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int at = 0;
        while (at < count && strcmp(params[at].name, all[i]) != 0)
            at++;
        if (at < count)
            SF_PUT(c, "char *%s = p%d;\n", all[i], at);
        else
            SF_PUT(c, "char *%s = 0;\n", all[i]);
        if (c->w->module->needs.checks)
            sf_put_bounds_of(c->out, all[i], at < count ? at : -1);
    }
}

static void put_file(sf_calling *c, const char *before, const sf_text_file *file)
{
    sf_buf_puts(c->out, before);
    sf_buf_add(c->out, (const char *)file->bytes, file->size);
}

static void put_kernel(sf_calling *c, pass which, const named *params, int count)
{
    const sf_type *rows = c->op->in[which == KEYS], *columns = c->op->in[which != KEYS];
    bool wide = rows->dtype == SF_F32, causal = sf_op_int(c->op, SF_ATTENTION_CAUSAL, 0);
    cut each = cut_of(which, wide, rows->dims[3]);
    int64_t tiles = (rows->dims[1] + each.rows - 1) / each.rows,
            pairs = rows->dims[0] * rows->dims[2];
    uint32_t bits = (uint32_t)sf_op_int(c->op, SF_ATTENTION_SCALE, 0);
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    SF_PUT(
        c,
        "{\nenum { FORWARD, QUERIES, KEYS };\nenum { KIND = %d, WIDE = %d, CAUSAL = %d, STEP = %d, "
        "BLOCK_ROWS = %d, NEAR = %d, DEPTH = %" PRId64 ", HEADS = %" PRId64 ", PAIRS = %" PRId64
        ", ROWS = %" PRId64 ", COLUMNS = %" PRId64 ", TILES = %" PRId64 " };\n",
        (int)which, wide, causal, wide || rows->dims[3] > 64 ? 32 : 64, each.rows,
        near_pairs(columns, pairs), rows->dims[3], rows->dims[2], pairs, rows->dims[1],
        columns->dims[1], tiles);
    SF_PUT(c, "typedef %s element;\n", wide ? "f32" : "u16");
    SF_PUT(c, "const f32 scale = float32(0x%" PRIx32 "u), scale2 = float32(0x%" PRIx32 "u);\n",
           bits, bits_of(scale * 1.44269504F));
    put_pointers(c, params, count);
    put_file(c, "#if HAS_GROUPS\n", &sf_text_attend_groups);
    put_file(c, "#else\n", &sf_text_attend);
    sf_buf_puts(c->out, "#endif\n");
    c->w->shared = shared_bytes(which, wide, each.rows, rows->dims[3]);
    c->w->together = each.together;
    c->w->module->needs.attention = true;
    sf_write_launch(c->w, tiles * pairs, each.rows * 2, false);
}

/* Operand `index` transposed, as cu/attend_turn.cu has it. */
static named turn(sf_calling *c, const char *name, uint32_t index)
{
    enum { TURN_THREADS = 256 };
    const sf_type *type = c->op->in[index];
    int64_t lines = (type->dims[1] + 63) / 64, pairs = type->dims[0] * type->dims[2];
    named transposed = scratch_of(c, name, pairs * type->dims[3] * lines * 64 * 4);
    sf_write_param(c->w, (sf_param){.kind = SF_PARAM_IN, .index = index});
    sf_write_param(c->w, transposed.param);
    SF_PUT(c,
           "{\nenum { DEPTH = %" PRId64 ", HEADS = %" PRId64 ", PLACES = %" PRId64
           " };\nchar *from = p0, *to = p1;\n",
           type->dims[3], type->dims[2], type->dims[1]);
    if (c->w->module->needs.checks) {
        sf_put_bounds_of(c->out, "from", 0);
        sf_put_bounds_of(c->out, "to", 1);
    }
    put_file(c, "#if HAS_GROUPS\n", &sf_text_attend_turn);
    sf_buf_puts(c->out, "#else\n}\n#endif\n");
    c->w->module->needs.attention = true;
    sf_write_launch(c->w, lines * pairs, TURN_THREADS, false);
    return transposed;
}

static bool is_wide(const sf_calling *c)
{
    return c->op->in[0]->dtype == SF_F32;
}

bool sf_call_attention(sf_calling *c)
{
    enum { Q, K, V, OUT = 0, ENDS };
    named params[6] = {in_of("rows1", Q), in_of("columns1", K), in_of("columns2", V),
                       out_of("made_two", OUT), out_of("ends", ENDS)};
    if (is_wide(c))
        params[5] = turn(c, "turned2", V);
    put_kernel(c, FORWARD, params, is_wide(c) ? 6 : 5);
    return true;
}

/* First the gradient of queries, with the sums that that of keys needs too. */
bool sf_call_attention_gradient(sf_calling *c)
{
    enum { Q, K, V, OUT, ENDS, DOUT };
    named deltas = scratch_of(c, "deltas", sf_type_bytes(c->op->in[ENDS]));
    named queries[9] = {
        in_of("rows1", Q),     in_of("rows2", DOUT), in_of("columns1", K),  in_of("columns2", V),
        in_of("results", OUT), in_of("ends", ENDS),  out_of("made_one", 0), deltas};
    named keys[10] = {
        in_of("rows1", K),   in_of("rows2", V),     in_of("columns1", Q),  in_of("columns2", DOUT),
        in_of("ends", ENDS), out_of("made_one", 1), out_of("made_two", 2), deltas};
    if (is_wide(c)) {
        queries[8] = turn(c, "turned1", K);
        keys[8] = turn(c, "turned1", Q);
        keys[9] = turn(c, "turned2", DOUT);
    }
    put_kernel(c, QUERIES, queries, is_wide(c) ? 9 : 8);
    put_kernel(c, KEYS, keys, is_wide(c) ? 10 : 8);
    return true;
}
