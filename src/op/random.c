/* rng_bit_generator: random bits that depend on the state and on the position alone (base/rng.h). */
#include "base/rng.h"

#include "op/slots.h"
#include "op/util.h"

enum { NATTRS = SF_RNG_BIT_GENERATOR_ALGORITHM + 1 };

static const sf_attrdef attrs[NATTRS] = {
    [SF_RNG_BIT_GENERATOR_ALGORITHM] = {.name = "rng_algorithm",
                                        .key = "algorithm",
                                        .hlo = "algorithm",
                                        .kind = SF_ATTR_TEXT,
                                        .prefix = "#stablehlo<rng_algorithm ",
                                        .required = true},
};

enum { MAX_STATE = 3 };

/* The draws of the op from this state. SF_EINPUT when the types are not those of the algorithm. */
static sf_status prepare_generator(const sf_op *op, const uint64_t *state, const sf_type *output,
                                   sf_diag *diag, sf_rng *rng)
{
    const char *name = sf_op_text(op, SF_RNG_BIT_GENERATOR_ALGORITHM);
    sf_rng_algorithm algorithm;
    if (strcmp(name, "THREE_FRY") == 0)
        algorithm = SF_RNG_THREEFRY;
    else if (strcmp(name, "PHILOX") == 0 || strcmp(name, "DEFAULT") == 0)
        algorithm = SF_RNG_PHILOX;
    else
        return SF_OP_FAIL(op, diag, "algorithm %s is not known", name);
    return sf_rng_init(rng, algorithm, state, (int)op->in[0]->dims[0],
                       sf_dtype_get(output->dtype)->bytes, output->dims, output->rank, op->loc,
                       diag);
}

static sf_status infer_random(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    static const uint64_t no_state[MAX_STATE];
    const sf_type *state = op->in[0];
    if (state->rank != 1 || state->dtype != SF_U64 || state->dims[0] < 2 ||
        state->dims[0] > MAX_STATE)
        return SF_OP_FAIL(op, diag, "the state is no tensor of 2 or 3 ui64");
    if (!op->out)
        return SF_OP_FAIL(op, diag, "the type of the output must be declared");
    const sf_dtype_info *info = sf_dtype_get(op->out[1]->dtype);
    if ((info->class != SF_SIGNED && info->class != SF_UNSIGNED) || info->bits < 8)
        return SF_OP_FAIL(op, diag, "cannot draw %s, only integers of 8 to 64 bits", info->name);
    sf_rng rng;
    SF_TRY(prepare_generator(op, no_state, op->out[1], diag, &rng));
    out[0] = state;
    out[1] = op->out[1];
    return SF_OK;
}

static void factors_random(const sf_op *op, sf_factoring *out)
{
    sf_factor_whole(out, 0, 0, op->in[0]->dims[0]);
    sf_factor_whole(out, 1, 0, op->in[0]->dims[0]);
    for (int d = 0; d < op->out[1]->rank; d++)
        sf_factor_walk(out, 2, d, sf_factor_add(out, op->out[1]->dims[d], SF_MAP, SF_MONOID_NONE));
}

/* About twenty rounds of add, rotate and xor for two words of 32 bits: some 20 operations a word. */
static double flops_random(const sf_op *op)
{
    double words = op->out[1]->dtype == SF_U64 || op->out[1]->dtype == SF_S64 ? 2 : 1;
    return 20 * words * (double)op->out[1]->count;
}

/* Draws a shard, run by run of neighbours in its last dimension. */
static void draw_piece(const sf_rng *rng, const sf_type *whole, sf_tensor *piece)
{
    const sf_type *type = piece->type;
    int last = type->rank - 1;
    if (!piece->spans || last < 0) {
        sf_rng_bits(rng, 0, type->count, piece->data);
        return;
    }
    int64_t row = type->dims[last], run = piece->spans[last].length, index[SF_MAX_RANK] = {0};
    size_t width = sf_dtype_get(type->dtype)->bytes;
    for (int64_t at = 0; at < type->count; at += row) {
        int64_t flat = 0;
        for (int d = 0; d < last; d++)
            flat = flat * whole->dims[d] + sf_span_global(piece->spans[d], index[d]);
        for (int64_t i = 0; i < row; i += run)
            sf_rng_bits(rng, flat * whole->dims[last] + sf_span_global(piece->spans[last], i), run,
                        (char *)piece->data + (size_t)(at + i) * width);
        sf_next_index(last, type->dims, index);
    }
}

static sf_status eval_random(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    uint64_t state[MAX_STATE];
    int words = (int)op->in[0]->dims[0];
    sf_rng rng;
    for (int i = 0; i < words; i++)
        state[i] = (uint64_t)sf_get_i64(&in[0], i);
    SF_TRY(prepare_generator(op, state, op->out[1], eval->diag, &rng));
    draw_piece(&rng, op->out[1], &out[1]);
    sf_rng_next_state(&rng, state);
    for (int i = 0; i < words; i++)
        sf_store_i64(SF_U64, out[0].data, i, (int64_t)state[i]);
    return SF_OK;
}

const sf_opdef sf_op_rng_bit_generator = {
    .name = "rng_bit_generator",
    .dialect = "stablehlo",
    .hlo = "rng-bit-generator",
    .doc = "The new state of a counter-based generator, and its random bits.",
    .id = SF_OP_RNG_BIT_GENERATOR,
    .form = SF_FORM_OPERANDS,
    .min_operands = 1,
    .max_operands = 1,
    .nresults = 2,
    .attrs = attrs,
    .nattrs = NATTRS,
    .infer = infer_random,
    .factors = factors_random,
    .flops = flops_random,
    .eval = eval_random,
    .positional = true,
    .cost = SF_COST_RANDOM,
    .sample =
        {.arguments = "%a: tensor<2xui64>",
         .use =
             "%r:2 = stablehlo.rng_bit_generator %a, algorithm = THREE_FRY : (tensor<2xui64>) -> "
             "(tensor<2xui64>, tensor<3x4xui32>)",
         .results = "%r#0, %r#1",
         .types = "tensor<2xui64>, tensor<3x4xui32>"},
};
