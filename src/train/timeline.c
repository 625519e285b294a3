/* Ranks may have different programs, and only a rank itself has its instructions: so each writes
 * its events, and the first one combines them. */
#include "train/timeline.h"

#include <string.h>

#include "base/output.h"
#include "run/comm/rank_agreement.h"
#include "sim/instruction_work.h"
#include "sim/timeline_trace.h"

static const sf_timing *with_bytes(const sf_program *p, const sf_timing *timed, sf_arena *scratch)
{
    sf_timing *insts = sf_arena_copy(scratch, timed, p->ninsts * sizeof *insts);
    for (size_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        insts[i].bytes = inst->kind == SF_INST_COMM   ? sf_exchange_bytes(inst)
                         : inst->kind == SF_INST_COPY ? sf_copy_bytes(inst)
                                                      : 0;
    }
    return insts;
}

/* Bodies of the step's instructions, and their instructions; `within` is the instruction of the
 * step. */
static void write_bodies(const sf_runner *runner, const sf_program *p, uint32_t within, int rank,
                         sf_arena *scratch, sf_json_writer *json)
{
    for (uint32_t i = 0; i < p->ninsts; i++)
        for (uint32_t b = 0; b < sf_body_count(&p->insts[i]); b++) {
            const sf_program *body = p->insts[i].nest->bodies[b];
            const sf_timing *timed = sf_engine_timeline(runner->engine, body);
            uint32_t at = within == SF_NONE ? i : within;
            if (!timed)
                continue;
            sf_trace_put_body(runner->program, at, body, with_bytes(body, timed, scratch), rank,
                              json);
            write_bodies(runner, body, at, rank, scratch, json);
        }
}

/* The events of this rank, as items of a list that goes on. */
static void write_events(const sf_runner *runner, const sf_timing *timed, int rank,
                         sf_arena *scratch, sf_json_writer *json)
{
    const sf_program *p = runner->program;
    sf_trace_put(p, with_bytes(p, timed, scratch), rank, json);
    write_bodies(runner, p, SF_NONE, rank, scratch, json);
}

/* Adds the texts of the other ranks on the first one. One after the other: no rank holds more than one at a time. */
static sf_status collect_texts(sf_comm *comm, size_t from, sf_buf *text, sf_arena *scratch,
                               sf_diag *diag)
{
    int size = sf_comm_size(comm), self = sf_comm_rank(comm);
    uint64_t *lengths = SF_ARRAY(scratch, size, uint64_t), most = 0;
    SF_TRY(sf_agree_list(comm, text->length - from, "how long their timelines are", diag, lengths));
    for (int r = 1; r < size; r++)
        most = lengths[r] > most ? lengths[r] : most;
    char *room = sf_arena_alloc(scratch, (size_t)most + 1);
    for (int r = 1; r < size; r++) {
        if (r == self)
            memcpy(room, text->text + from, text->length - from);
        SF_TRY(sf_agree_text(comm, r, room, (size_t)lengths[r], "when instructions ran", diag));
        if (self == 0)
            sf_buf_add(text, room, (size_t)lengths[r]);
    }
    return SF_OK;
}

static sf_status write_timeline(const sf_runner *runner, const sf_timing *timed, sf_comm *comm,
                                const sf_output *output, sf_buf *text, sf_arena *scratch,
                                sf_diag *diag)
{
    int rank = comm ? sf_comm_rank(comm) : 0;
    sf_json_writer json = {.buf = text, .indent = true};
    sf_trace_begin(&json, "the last step of a run", &runner->program->mesh);
    json.any = rank > 0; /* events of other ranks come before those of this rank */
    size_t from = text->length;
    write_events(runner, timed, rank, scratch, &json);
    if (comm)
        SF_TRY(collect_texts(comm, from, text, scratch, diag));
    if (rank > 0)
        return SF_OK;
    sf_trace_end(&json);
    sf_buf_putc(text, '\n');
    return sf_output_write(output, text, diag);
}

sf_status sf_timeline_write(const sf_runner *runner, sf_comm *comm, const sf_output *output,
                            sf_diag *diag)
{
    const sf_timing *timed =
        runner->program ? sf_engine_timeline(runner->engine, runner->program) : NULL;
    sf_arena scratch = {0};
    sf_buf text = {0};
    if (!timed)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "there is no timeline: no step was run, or engine oracle ran it");
    sf_status status = write_timeline(runner, timed, comm, output, &text, &scratch, diag);
    sf_buf_free(&text);
    sf_arena_free(&scratch);
    return status;
}
