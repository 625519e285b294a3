/* Messages between ranks that run different parts of a step. They are ops of the steps of pipeline
 * ranks (local/time/pipeline_step.h), not of StableHLO.
 *
 *     send      x, ...  to the rank that differs from this one in its place along `axes` alone, and
 *               has the place `peer`
 *     receive   the operands of that rank's send
 *
 * Messages of a rank to another arrive in the order in which they were sent; `number` counts
 * them, and keeps any two from being merged. A receive implies that the receiver's own first
 * `arrived` messages to that rank have arrived, so their operands can be freed. A message that
 * is split over ranks is sent in shards: each rank of the one stage sends to that in the same
 * place of the other. */
#include "op/slots.h"
#include "op/util.h"

static const sf_attrdef message_attrs[SF_MESSAGE_SLOTS] = {
    [SF_COLLECTIVE_AXES] = {.name = "axes", .kind = SF_ATTR_INT, .required = true},
    [SF_COLLECTIVE_SIZE] = {.name = "size", .kind = SF_ATTR_INT, .required = true},
    [SF_COLLECTIVE_NUMBER] = {.name = "number", .kind = SF_ATTR_INT, .required = true},
    [SF_COLLECTIVE_WHAT] = {.name = "what", .kind = SF_ATTR_TEXT, .derived = true, .note = true},
    [SF_COLLECTIVE_GROUPS] = {.name = "groups", .kind = SF_ATTR_INT},
    [SF_COLLECTIVE_MICROBATCH] = {.name = "microbatch", .kind = SF_ATTR_INT},
    [SF_MESSAGE_PEER] = {.name = "peer", .kind = SF_ATTR_INT, .required = true},
    [SF_MESSAGE_ARRIVED] = {.name = "arrived", .kind = SF_ATTR_INT},
};

static sf_status check_peer(const sf_op *op, sf_diag *diag)
{
    int64_t size = sf_op_int(op, SF_COLLECTIVE_SIZE, 1), peer = sf_op_int(op, SF_MESSAGE_PEER, 0);
    if (size < 1 || sf_op_int(op, SF_COLLECTIVE_AXES, 0) < 0)
        return SF_OP_FAIL(op, diag, "a group of %" PRId64 " ranks", size);
    if (peer < 0 || peer >= size)
        return SF_OP_FAIL(op, diag, "place %" PRId64 " in a group of %" PRId64, peer, size);
    return SF_OK;
}

static sf_status infer_send(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    (void)out;
    return check_peer(op, diag);
}

static sf_status infer_receive(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    for (int i = 0; i < op->nresults; i++) {
        if (!op->out || !op->out[i])
            return SF_OP_FAIL(op, diag, "what is received has no type");
        out[i] = op->out[i];
    }
    return check_peer(op, diag);
}

/* Every dimension of the operand by itself. */
static void factors_message(const sf_op *op, sf_factoring *out)
{
    const sf_type *type = op->noperands > 0 ? op->in[0] : op->out[0];
    for (int d = 0; d < type->rank; d++)
        sf_factor_walk(out, 0, d, sf_factor_add(out, type->dims[d], SF_MAP, SF_MONOID_NONE));
}

/* On one device nobody sends, and nothing is there to be received. */
static sf_status eval_message(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    (void)in;
    (void)out;
    if (sf_op_int(op, SF_COLLECTIVE_SIZE, 1) == 1)
        return SF_OK;
    sf_fail(eval->diag, SF_EUNSUPPORTED, op->loc, "sheaf.%s: runs on several ranks only",
            op->def->name);
    return SF_EUNSUPPORTED;
}

const sf_opdef sf_op_send = {
    .name = "send",
    .dialect = "sheaf",
    .doc = "Sends the operand to a rank of another pipeline stage.",
    .id = SF_OP_SEND,
    .form = SF_FORM_GENERIC,
    .min_operands = 1,
    .max_operands = 1,
    .nresults = 0,
    .effect = SF_COLLECTIVE_SIZE + 1,
    .attrs = message_attrs,
    .nattrs = SF_MESSAGE_SLOTS,
    .infer = infer_send,
    .factors = factors_message,
    .eval = eval_message,
    .sample = {.arguments = "%a: tensor<3x4xf32>",
               .use = "\"sheaf.send\"(%a) <{axes = 1 : i64, size = 2 : i64, number = 0 : i64, peer "
                      "= 1 : i64}> : "
                      "(tensor<3x4xf32>) -> ()",
               .results = "%a",
               .types = "tensor<3x4xf32>"},
};

const sf_opdef sf_op_receive = {
    .name = "receive",
    .dialect = "sheaf",
    .doc = "The tensor that a rank of another pipeline stage sends.",
    .id = SF_OP_RECEIVE,
    .form = SF_FORM_GENERIC,
    .min_operands = 0,
    .max_operands = 0,
    .nresults = 1,
    .declared = true,
    .attrs = message_attrs,
    .nattrs = SF_MESSAGE_SLOTS,
    .infer = infer_receive,
    .factors = factors_message,
    .eval = eval_message,
    .sample = {.arguments = "",
               .use = "%r = \"sheaf.receive\"() <{axes = 1 : i64, size = 2 : i64, number = 0 : "
                      "i64, peer = 0 : "
                      "i64, arrived = 0 : i64}> : () -> tensor<3x4xf32>",
               .results = "%r",
               .types = "tensor<3x4xf32>"},
};
