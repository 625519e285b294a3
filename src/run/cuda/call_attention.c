/* Attention (op/attention.h) without its scores: text/attend.cu with the numbers of the op. */
#include <inttypes.h>
#include <string.h>

#include "op/attention.h"
#include "run/cuda/call.h"

enum { ROWS_EACH = 64, ATTEND_THREADS = 128 };

typedef enum pass { FORWARD, QUERIES, KEYS } pass;

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* `names` are those of the parameters, which have been added in that order. */
static void put_kernel(sf_calling *c, pass which, const char *const *names, int count)
{
    static const char *const all[] = {"rows1",  "rows2",   "columns1", "columns2", "ends",
                                      "deltas", "results", "made_one", "made_two"};
    const sf_type *rows = c->op->in[which == KEYS], *columns = c->op->in[which != KEYS];
    bool wide = rows->dtype == SF_F32, causal = sf_op_int(c->op, SF_ATTENTION_CAUSAL, 0);
    int64_t tiles = (rows->dims[1] + ROWS_EACH - 1) / ROWS_EACH,
            pairs = rows->dims[0] * rows->dims[2];
    uint32_t bits = (uint32_t)sf_op_int(c->op, SF_ATTENTION_SCALE, 0);
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    SF_PUT(
        c,
        "{\nenum { FORWARD, QUERIES, KEYS };\nenum { KIND = %d, WIDE = %d, CAUSAL = %d, STEP = %d, "
        "DEPTH = %" PRId64 ", HEADS = %" PRId64 ", PAIRS = %" PRId64 ", ROWS = %" PRId64
        ", COLUMNS = %" PRId64 ", TILES = %" PRId64 " };\n",
        (int)which, wide, causal, wide ? 32 : 64, rows->dims[3], rows->dims[2], pairs,
        rows->dims[1], columns->dims[1], tiles);
    SF_PUT(c, "typedef %s element;\n", wide ? "f32" : "u16");
    SF_PUT(c, "const f32 scale = float32(0x%" PRIx32 "u), scale2 = float32(0x%" PRIx32 "u);\n",
           bits, bits_of(scale * 1.44269504F));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int at = 0;
        while (at < count && strcmp(names[at], all[i]) != 0)
            at++;
        if (at < count)
            SF_PUT(c, "char *%s = p%d;\n", all[i], at);
        else
            SF_PUT(c, "char *%s = 0;\n", all[i]);
    }
    sf_buf_add(c->out, (const char *)sf_text_attend.bytes, sf_text_attend.size);
    c->w->module->has_attention = true;
    sf_write_launch(c->w, tiles * pairs, ATTEND_THREADS, false);
}

static void add_param(sf_calling *c, sf_param_kind kind, uint32_t index)
{
    sf_write_param(c->w, (sf_param){.kind = kind, .index = index});
}

bool sf_call_attention(sf_calling *c)
{
    static const char *const names[] = {"rows1", "columns1", "columns2", "made_two", "ends"};
    for (uint32_t i = 0; i < 3; i++)
        add_param(c, SF_PARAM_IN, i);
    add_param(c, SF_PARAM_OUT, 0);
    add_param(c, SF_PARAM_OUT, 1);
    put_kernel(c, FORWARD, names, 5);
    return true;
}

/* First the gradient of queries, with the sums that that of keys needs too. */
bool sf_call_attention_gradient(sf_calling *c)
{
    static const char *const queries[] = {"rows1",   "rows2", "columns1", "columns2",
                                          "results", "ends",  "deltas",   "made_one"};
    static const char *const keys[] = {"rows1", "rows2",  "columns1", "columns2",
                                       "ends",  "deltas", "made_one", "made_two"};
    enum { Q, K, V, OUT, ENDS, DOUT };
    sf_param deltas = {.kind = SF_PARAM_SCRATCH,
                       .value = sf_write_scratch(c->w, sf_type_bytes(c->op->in[ENDS]))};
    const uint32_t first[] = {Q, DOUT, K, V, OUT, ENDS}, second[] = {K, V, Q, DOUT, ENDS};
    for (int i = 0; i < 6; i++)
        add_param(c, SF_PARAM_IN, first[i]);
    sf_write_param(c->w, deltas);
    add_param(c, SF_PARAM_OUT, 0);
    put_kernel(c, QUERIES, queries, 8);
    for (int i = 0; i < 5; i++)
        add_param(c, SF_PARAM_IN, second[i]);
    sf_write_param(c->w, deltas);
    add_param(c, SF_PARAM_OUT, 1);
    add_param(c, SF_PARAM_OUT, 2);
    put_kernel(c, KEYS, keys, 8);
    return true;
}
