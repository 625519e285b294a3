#include "local/messages.h"

#include <inttypes.h>

#include "local/check_local.h"
#include "op/op.h"
#include "op/slots.h"

/* The next message of a pipeline rank to, or from, another. */
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

/* Collectives of sets of pipeline ranks */

/* The next one after the other; of that set, unless it is 0. */
static const sf_node *next_shared(const sf_local *local, int64_t set, uint32_t *at)
{
    const sf_block *top = local->graph->top;
    while (*at < top->nnodes) {
        const sf_node *node = sf_top_node(local->graph, (*at)++);
        if (sf_is_between_groups(node) &&
            (set == 0 || node->attrs[SF_COLLECTIVE_GROUPS]->integer == set))
            return node;
    }
    return NULL;
}

static bool same_shared(const sf_local *a, const sf_node *x, const sf_local *b, const sf_node *y)
{
    if (!x || !y || !sf_same_collective(a, x, b, y))
        return x == y;
    for (uint32_t r = 0; r < x->nresults; r++)
        if (!same_shard(&a->plan->mesh, &a->pieces[x->result + r], &b->pieces[y->result + r]) ||
            message_value(a, x->result + r) != message_value(b, y->result + r))
            return false;
    return true;
}

static const char *name_of_shared(const sf_node *node)
{
    return node ? node->def->name : "none";
}

/* The pipeline ranks of the set come to its collectives in one order. */
static sf_status check_set(int64_t set, int count, sf_local *const *locals, sf_diag *diag)
{
    int first = __builtin_ctzll((uint64_t)set);
    for (int g = first + 1; g < count; g++) {
        uint32_t at = 0, other = 0;
        const sf_node *x = NULL, *y = NULL;
        for (int64_t number = 0; set >> g & 1 && (number == 0 || x); number++) {
            x = next_shared(locals[first], set, &at);
            y = next_shared(locals[g], set, &other);
            if (!same_shared(locals[first], x, locals[g], y))
                return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                               "collective %" PRId64
                               " of pipeline ranks that share a stage is %s of %s on pipeline rank "
                               "%d, but %s of %s on pipeline rank %d: they would wait for each "
                               "other",
                               number, name_of_shared(x), message_what(x), first, name_of_shared(y),
                               message_what(y), g);
        }
    }
    return SF_OK;
}

/* No loop has one: pipeline ranks come to their loops at different times, and not equally often. */
static sf_status check_loops(const sf_local *local, const sf_block *block, int group, sf_diag *diag)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = local->graph->nodes[block->nodes[i]];
        if (block != local->graph->top && sf_is_between_groups(node))
            return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                           "pipeline rank %d comes to %s of %s, which it shares with others, in a "
                           "loop",
                           group, node->def->name, message_what(node));
        for (uint32_t r = 0; r < node->nregions; r++)
            SF_TRY(check_loops(local, node->regions[r], group, diag));
    }
    return SF_OK;
}

/* The sets of the collectives of all pipeline ranks. */
typedef struct shared_sets {
    sf_arena arena;
    int64_t *at;
    size_t count, capacity;
} shared_sets;

static void note_set(shared_sets *sets, int64_t set)
{
    for (size_t i = 0; i < sets->count; i++)
        if (sets->at[i] == set)
            return;
    SF_PUSH(&sets->arena, sets->at, sets->count, sets->capacity, set);
}

static sf_status find_sets(int count, int group, const sf_local *local, shared_sets *sets,
                           sf_diag *diag)
{
    uint32_t at = 0;
    for (const sf_node *node; (node = next_shared(local, 0, &at));) {
        uint64_t set = (uint64_t)node->attrs[SF_COLLECTIVE_GROUPS]->integer;
        if (!(set >> group & 1) || (count < 64 && set >> count != 0))
            return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                           "pipeline rank %d comes to %s of %s, which other pipeline ranks share",
                           group, node->def->name, message_what(node));
        note_set(sets, (int64_t)set);
    }
    return SF_OK;
}

static sf_status check_sets(int count, sf_local *const *locals, sf_diag *diag)
{
    shared_sets sets = {0};
    sf_status status = SF_OK;
    for (int g = 0; g < count && status == SF_OK; g++) {
        status = check_loops(locals[g], locals[g]->graph->top, g, diag);
        if (status == SF_OK)
            status = find_sets(count, g, locals[g], &sets, diag);
    }
    for (size_t i = 0; i < sets.count && status == SF_OK; i++)
        status = check_set(sets.at[i], count, locals, diag);
    sf_arena_free(&sets.arena);
    return status;
}

sf_status sf_check_messages(int count, sf_local *const *locals, sf_diag *diag)
{
    for (int from = 0; from < count; from++)
        for (int to = 0; to < count; to++)
            if (from != to)
                SF_TRY(check_channel(from, to, locals, diag));
    return check_sets(count, locals, diag);
}
