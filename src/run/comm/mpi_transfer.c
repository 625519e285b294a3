/* One transfer over MPI, as sf_schedule says. */
#if SF_HAVE_MPI

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "run/comm/comm_mpi.h"

enum { KEEP_BYTES = 1 << 20 }; /* copied for ourselves before other flows are polled */

/* Seconds in which nothing of a flow goes before others may overtake it: so no order of flows can make ranks wait for each
 * other, and one that another rank is slow with holds nobody up. */
#define HOLD_LIMIT 50e-3

static int rank_at(const sf_flow *flow, int place)
{
    return flow->base.group->ranks[place];
}

/* Slots ---------------------------------------------------------------------------------------- */

static sf_slots *take_slots(sf_mpi_engine *engine, int64_t bytes)
{
    for (sf_slots **at = &engine->slots; *at; at = &(*at)->next)
        if ((*at)->bytes >= bytes) {
            sf_slots *found = *at;
            *at = found->next;
            return found;
        }
    int64_t padded = (bytes + 63) / 64 * 64;
    sf_slots *slots = sf_alloc_kept(sizeof *slots);
    char *memory = slots ? sf_alloc_kept((size_t)padded * 2 * SF_RING_QUEUE) : NULL;
    if (!memory) {
        sf_free(slots);
        sf_engine_fail(engine, SF_ENOMEM, "no memory for messages");
        return NULL;
    }
    *slots = (sf_slots){.bytes = padded, .memory = memory};
    return slots;
}

static char *receive_slot(const sf_flow *flow, int64_t receive)
{
    return flow->slots->memory + receive % SF_RING_QUEUE * flow->slots->bytes;
}

static char *pack_of(const sf_flow *flow, int64_t send)
{
    return flow->slots->memory + (SF_RING_QUEUE + send % SF_RING_QUEUE) * flow->slots->bytes;
}

/* Announcements ------------------------------------------------------------------------------ */

static void announce_flow(sf_mpi_engine *engine, sf_flow *flow, int place)
{
    const sf_request *base = &flow->base;
    int peer = rank_at(flow, place);
    int64_t payload = flow->schedule.inlined ? sf_schedule_inline_bytes(&flow->schedule) : 0;
    sf_letter *letter = sf_engine_new_letter(engine, SF_LETTER_ANNOUNCE, peer, payload);
    if (!letter)
        return;
    int tag = ++engine->next_tag[peer];
    if (tag >= engine->tag_limit)
        engine->next_tag[peer] = 0;
    flow->tags_out[place] = tag;
    letter->head.tag = tag;
    letter->head.place = base->group->place;
    letter->head.key = base->group->key;
    letter->head.sequence = base->sequence;
    letter->head.signature = sf_comm_signature(base);
    if (base->transfer.what)
        snprintf(letter->head.what, sizeof letter->head.what, "%s", base->transfer.what);
    if (flow->schedule.inlined)
        sf_schedule_inline_pack(&flow->schedule, place, letter->payload);
    sf_engine_post(engine, letter);
}

bool sf_flow_begin(sf_mpi_engine *engine, sf_flow *flow)
{
    sf_schedule_init(&flow->base, &flow->schedule);
    flow->keep = sf_schedule_kept(&flow->schedule);
    flow->ready = sf_now();
    size_t members = (size_t)flow->base.group->count;
    char *memory = sf_alloc_kept(members * (3 * sizeof(void *) + 2 * sizeof(int)));
    if (!memory) {
        sf_engine_fail(engine, SF_ENOMEM, "no memory for a transfer");
        return false;
    }
    flow->letters = (sf_letter **)(void *)memory;
    flow->payloads = (const char **)(flow->letters + members);
    flow->scratch = (const void **)(flow->payloads + members);
    flow->tags_in = (int *)(void *)(flow->scratch + members);
    flow->tags_out = flow->tags_in + members;
    for (int i = 0; i < SF_RING_QUEUE; i++)
        flow->sends[i] = flow->receives[i] = MPI_REQUEST_NULL;
    if (flow->schedule.sends > 0)
        flow->next_send = sf_schedule_send(&flow->schedule, 0);
    if (flow->schedule.receives > 0)
        flow->next_receive = sf_schedule_receive(&flow->schedule, 0);
    /* Each begins with the place after its own, so that not all write to one at a time. */
    for (int i = 1; i < (int)members; i++) {
        int place = (int)((size_t)(flow->base.group->place + i) % members);
        if (sf_schedule_sends_to(&flow->schedule, place))
            announce_flow(engine, flow, place);
    }
    return true;
}

void sf_flow_end(sf_mpi_engine *engine, sf_flow *flow)
{
    if (flow->letters)
        for (int p = 0; p < flow->base.group->count; p++)
            sf_free(flow->letters[p]);
    sf_free(flow->letters);
    flow->letters = NULL;
    if (flow->slots) {
        flow->slots->next = engine->slots;
        engine->slots = flow->slots;
        flow->slots = NULL;
    }
}

/* Takes the letter over. */
void sf_flow_hear(sf_mpi_engine *engine, sf_flow *flow, sf_letter *letter)
{
    sf_signature here = sf_comm_signature(&flow->base);
    int place = letter->head.place;
    bool known =
        place >= 0 && place < flow->base.group->count && rank_at(flow, place) == letter->peer;
    if (memcmp(&here, &letter->head.signature, sizeof here) != 0) {
        char text[SF_MPI_REASON];
        sf_comm_differ(&flow->base, letter->peer, &letter->head.signature, letter->head.what, text,
                       sizeof text);
        sf_engine_fail(engine, SF_EPEER, "%s", text);
    } else if (!known || !sf_schedule_hears_from(&flow->schedule, place) || flow->tags_in[place]) {
        char text[SF_COMM_TEXT];
        sf_comm_describe_request(&flow->base, text);
        sf_engine_fail(engine, SF_EPEER, "ranks %d and %d disagree on who sends to whom in %s",
                       engine->rank, letter->peer, text);
    } else {
        flow->tags_in[place] = letter->head.tag;
        if (flow->schedule.inlined) {
            flow->letters[place] = letter;
            return;
        }
    }
    sf_free(letter);
}

/* Messages ------------------------------------------------------------------------------------- */

/* The elements of a move, one run after another: copies them to or from `packed`. */
static void copy_runs(const sf_flow *flow, const sf_hop *move, char *packed, bool pack)
{
    for (int64_t at = 0, run; at < move->count; at += run) {
        char *memory = sf_schedule_memory(&flow->schedule, move->side, move->segment,
                                          move->first + at, move->count - at, &run);
        size_t size = (size_t)(run * flow->base.bytes);
        memcpy(pack ? packed : memory, pack ? memory : packed, size);
        packed += size;
    }
}

/* The address of the hop's elements if they are contiguous, or NULL. */
static char *whole_run(const sf_flow *flow, const sf_hop *move)
{
    int64_t run;
    if (move->side == SF_SIDE_SLOT)
        return NULL;
    char *memory = sf_schedule_memory(&flow->schedule, move->side, move->segment, move->first,
                                      move->count, &run);
    return run == move->count ? memory : NULL;
}

static bool need_slots(sf_mpi_engine *engine, sf_flow *flow)
{
    if (!flow->slots)
        flow->slots = take_slots(engine, flow->schedule.chunk_bytes);
    return flow->slots != NULL;
}

static bool is_full(const sf_flow *flow)
{
    return flow->sent - flow->send_done == SF_RING_QUEUE;
}

/* Whether the next message, which has all that it needs, may go now. If it may not, later flows wait for it, unless the other
 * end does not take any. */
static bool may_send(sf_mpi_engine *engine, sf_flow *flow, int peer, int64_t bytes)
{
    bool *taken = &engine->taken[engine->hosts[peer] != engine->hosts[engine->rank]];
    if (*taken)
        return false;
    if (!is_full(flow) && sf_line_lets(engine, flow, peer, bytes))
        return true;
    *taken = flow->due > 0 || (flow->send_done > 0 && sf_now() - flow->went < HOLD_LIMIT);
    return false;
}

static bool post_send(sf_mpi_engine *engine, sf_flow *flow)
{
    const sf_hop *move = &flow->next_send;
    if (flow->sent == flow->schedule.sends || move->receives > flow->receive_done ||
        (move->count == 0 && is_full(flow)))
        return false;
    if (move->count > 0) {
        int peer = rank_at(flow, move->peer);
        if (!may_send(engine, flow, peer, move->count * flow->base.bytes))
            return false;
        char *memory = whole_run(flow, move);
        if (!memory && !need_slots(engine, flow))
            return false;
        if (move->side == SF_SIDE_SLOT) {
            memory = receive_slot(flow, move->slot);
        } else if (!memory) {
            memory = pack_of(flow, flow->sent);
            copy_runs(flow, move, memory, true);
        }
        int code = MPI_Isend(memory, (int)(move->count * flow->base.bytes), MPI_BYTE, peer,
                             flow->tags_out[move->peer], engine->world,
                             &flow->sends[flow->sent % SF_RING_QUEUE]);
        if (!sf_engine_check(engine, code, "sending to", peer))
            return false;
        flow->went = sf_now();
    }
    if (++flow->sent < flow->schedule.sends)
        flow->next_send = sf_schedule_send(&flow->schedule, flow->sent);
    return true;
}

static bool post_receive(sf_mpi_engine *engine, sf_flow *flow)
{
    const sf_hop *move = &flow->next_receive;
    if (flow->received == flow->schedule.receives ||
        flow->received - flow->receive_done == SF_RING_QUEUE || move->sends > flow->send_done ||
        flow->tags_in[move->peer] == 0)
        return false;
    if (move->count > 0) {
        char *memory = move->combine ? NULL : whole_run(flow, move);
        if (!memory) {
            if (!need_slots(engine, flow))
                return false;
            memory = receive_slot(flow, flow->received);
        }
        int peer = rank_at(flow, move->peer);
        int code = MPI_Irecv(memory, (int)(move->count * flow->base.bytes), MPI_BYTE, peer,
                             flow->tags_in[move->peer], engine->world,
                             &flow->receives[flow->received % SF_RING_QUEUE]);
        if (!sf_engine_check(engine, code, "receiving from", peer))
            return false;
    }
    if (++flow->received < flow->schedule.receives)
        flow->next_receive = sf_schedule_receive(&flow->schedule, flow->received);
    return true;
}

/* Received elements are combined with our own, or copied to their place. */
static void use_receive(const sf_flow *flow, const sf_hop *move, char *slot)
{
    if (!move->combine) {
        if (move->count > 0 && !whole_run(flow, move))
            copy_runs(flow, move, slot, false);
        return;
    }
    for (int64_t at = 0, run; at < move->count; at += run) {
        const char *own = sf_schedule_memory(&flow->schedule, SF_SIDE_IN, move->segment,
                                             move->first + at, move->count - at, &run);
        char *to = slot;
        if (move->side == SF_SIDE_OUT)
            to = sf_schedule_memory(&flow->schedule, SF_SIDE_OUT, move->segment, move->first + at,
                                    run, &run);
        sf_combine_run(&flow->base.combine, to, slot, own, run);
        slot += run * flow->base.bytes;
    }
}

static bool test_receive(sf_mpi_engine *engine, sf_flow *flow)
{
    if (flow->receive_done == flow->received)
        return false;
    int flag = 0;
    int code =
        MPI_Test(&flow->receives[flow->receive_done % SF_RING_QUEUE], &flag, MPI_STATUS_IGNORE);
    sf_hop move = sf_schedule_receive(&flow->schedule, flow->receive_done);
    if (!sf_engine_check(engine, code, "receiving from", rank_at(flow, move.peer)) || !flag)
        return false;
    use_receive(flow, &move, flow->slots ? receive_slot(flow, flow->receive_done) : NULL);
    flow->receive_done++;
    if (flow->next_send.receives == flow->receive_done)
        flow->ready = sf_now();
    return true;
}

static bool test_send(sf_mpi_engine *engine, sf_flow *flow)
{
    if (flow->send_done == flow->sent)
        return false;
    int flag = 0;
    int code = MPI_Test(&flow->sends[flow->send_done % SF_RING_QUEUE], &flag, MPI_STATUS_IGNORE);
    int place = flow->next_send.peer;
    if (!sf_engine_check(engine, code, "sending to", rank_at(flow, place)) || !flag)
        return false;
    flow->send_done++;
    flow->went = sf_now();
    return true;
}

static bool copy_kept(sf_flow *flow)
{
    int64_t rest = flow->keep - flow->kept, most = KEEP_BYTES / flow->base.bytes;
    int place = flow->base.group->place;
    if (rest == 0)
        return false;
    rest = rest < most ? rest : most;
    for (int64_t run; rest > 0; rest -= run, flow->kept += run) {
        const sf_schedule *s = &flow->schedule;
        const char *in = sf_schedule_memory(s, SF_SIDE_IN, place, flow->kept, rest, &run);
        char *out = sf_schedule_memory(s, SF_SIDE_OUT, place, flow->kept, run, &run);
        if (in != out)
            memcpy(out, in, (size_t)(run * flow->base.bytes));
    }
    return true;
}

/* The place that the flow waits for now: first the one whose message it needs. */
static int place_waited_for(const sf_flow *flow)
{
    const sf_schedule *schedule = &flow->schedule;
    for (int p = 0; schedule->inlined && p < flow->base.group->count; p++)
        if (sf_schedule_hears_from(schedule, p) && flow->tags_in[p] == 0)
            return p;
    if (flow->receive_done < schedule->receives)
        return sf_schedule_receive(schedule, flow->receive_done).peer;
    if (flow->send_done < schedule->sends)
        return sf_schedule_send(schedule, flow->send_done).peer;
    return flow->base.group->place;
}

static void check_presence(sf_mpi_engine *engine, const sf_flow *flow, int place)
{
    char text[SF_COMM_TEXT];
    int rank = rank_at(flow, place);
    if (place == flow->base.group->place || engine->gone[rank] < engine->epoch ||
        flow->tags_in[place] != 0 || !sf_schedule_hears_from(&flow->schedule, place))
        return;
    sf_comm_describe_request(&flow->base, text);
    sf_engine_fail(engine, SF_EPEER, "rank %d has left, and is waited for in %s", rank, text);
}

bool sf_flow_is_over(const sf_flow *flow)
{
    const sf_schedule *schedule = &flow->schedule;
    if (flow->kept < flow->keep)
        return false;
    if (schedule->inlined)
        return place_waited_for(flow) == flow->base.group->place;
    return flow->send_done == schedule->sends && flow->receive_done == schedule->receives;
}

static void finish_inlined(sf_flow *flow)
{
    for (int p = 0; p < flow->base.group->count; p++)
        flow->payloads[p] = flow->letters[p] ? flow->letters[p]->payload : NULL;
    sf_schedule_inline_finish(&flow->schedule, flow->payloads, flow->scratch);
}

bool sf_flow_advance(sf_mpi_engine *engine, sf_flow *flow)
{
    bool moved = copy_kept(flow);
    while (test_receive(engine, flow))
        moved = true;
    while (test_send(engine, flow))
        moved = true;
    while (post_receive(engine, flow))
        moved = true;
    while (post_send(engine, flow))
        moved = true;
    int place = place_waited_for(flow);
    atomic_store_explicit(&flow->waits_for, rank_at(flow, place), memory_order_relaxed);
    check_presence(engine, flow, place);
    if (flow->schedule.inlined && sf_flow_is_over(flow))
        finish_inlined(flow);
    return moved;
}

#endif
