#include "local/messages.h"

#include <inttypes.h>

#include "op/op.h"
#include "op/slots.h"

/* The next message of a group to, or from, another. */
static const sf_node *next_message(const sf_local *local, sf_opcode code, int64_t peer,
                                   uint32_t *at)
{
    const sf_block *top = local->graph->top;
    while (*at < top->nnodes) {
        const sf_node *node = sf_top_node(local->graph, (*at)++);
        if (sf_is(node, code) && node->attrs[SF_MESSAGE_PEER]->integer == peer)
            return node;
    }
    return NULL;
}

static const char *message_what(const sf_node *node)
{
    const sf_attr *what = node ? node->attrs[SF_COLLECTIVE_WHAT] : NULL;
    return what ? what->text : "nothing";
}

/* The tensor of the step that is on its way. */
static sf_value message_value(const sf_local *local, sf_value value)
{
    sf_value whole = local->pieces[value].whole;
    return whole == SF_NONE ? SF_NONE : sf_local_value_of_step(local, whole);
}

/* Ranks of a pipeline rank each send their shard to the one at their position. */
static bool same_shard(const sf_mesh *mesh, const sf_local_shard *sent,
                       const sf_local_shard *received)
{
    return sent->whole != SF_NONE && received->whole != SF_NONE &&
           sf_layout_same(mesh, &sent->layout, &received->layout);
}

static bool same_message(const sf_local *a, const sf_node *sent, const sf_local *b,
                         const sf_node *received)
{
    if (!sent || !received)
        return sent == received;
    const sf_type *x = sf_type_of(a->graph, sent->operands[0]);
    const sf_type *y = sf_type_of(b->graph, received->result);
    return x->dtype == y->dtype && x->count == y->count &&
           sent->attrs[SF_COLLECTIVE_NUMBER]->integer ==
               received->attrs[SF_COLLECTIVE_NUMBER]->integer &&
           sent->attrs[SF_COLLECTIVE_MICROBATCH]->integer ==
               received->attrs[SF_COLLECTIVE_MICROBATCH]->integer &&
           same_shard(&a->plan->mesh, &a->pieces[sent->operands[0]],
                      &b->pieces[received->result]) &&
           message_value(a, sent->operands[0]) == message_value(b, received->result);
}

static sf_status check_channel(int from, int to, sf_local *const *locals, sf_diag *diag)
{
    uint32_t sends = 0, receives = 0;
    for (int64_t number = 0;; number++) {
        const sf_node *sent = next_message(locals[from], SF_OP_SEND, to, &sends);
        const sf_node *received = next_message(locals[to], SF_OP_RECEIVE, from, &receives);
        if (!same_message(locals[from], sent, locals[to], received))
            return sf_fail(
                diag, SF_EMISMATCH, SF_NOWHERE,
                "message %" PRId64
                " from pipeline rank %d to pipeline rank %d: %s is sent, and %s received",
                number, from, to, message_what(sent), message_what(received));
        if (!sent)
            return SF_OK;
    }
}

sf_status sf_check_messages(int count, sf_local *const *locals, sf_diag *diag)
{
    for (int from = 0; from < count; from++)
        for (int to = 0; to < count; to++)
            if (from != to)
                SF_TRY(check_channel(from, to, locals, diag));
    return SF_OK;
}
