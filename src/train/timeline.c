#include "train/timeline.h"

#include "base/output.h"
#include "run/comm/agree.h"
#include "sim/effort.h"
#include "sim/trace.h"

/* Numbers of an instruction, as ranks tell each other. */
enum { START, END, EXPOSED, BYTES, FIELDS };

/* The most instructions that a rank has. */
static sf_status find_most(sf_comm *comm, int size, size_t own, sf_arena *scratch, sf_diag *diag,
                           size_t *out)
{
    uint64_t *all = SF_ARRAY(scratch, size, uint64_t);
    SF_TRY(sf_agree_list(comm, own, "how long their programs are", diag, all));
    *out = own;
    for (int i = 0; i < size; i++)
        *out = all[i] > *out ? (size_t)all[i] : *out;
    return SF_OK;
}

static void pack_timings(const sf_program *p, const sf_timing *insts, double *out)
{
    for (size_t i = 0; i < p->ninsts; i++) {
        double *fields = out + i * FIELDS;
        fields[START] = insts[i].start;
        fields[END] = insts[i].end;
        fields[EXPOSED] = insts[i].exposed;
        const sf_inst *inst = &p->insts[i];
        fields[BYTES] = inst->kind == SF_INST_COMM   ? sf_exchange_bytes(inst)
                        : inst->kind == SF_INST_COPY ? sf_copy_bytes(inst)
                                                     : 0;
    }
}

static void put_rank(const sf_program *p, const double *packed, int rank, sf_timing *insts,
                     sf_json_writer *json)
{
    for (size_t i = 0; i < p->ninsts; i++) {
        const double *fields = packed + i * FIELDS;
        insts[i] = (sf_timing){fields[START], fields[END], fields[EXPOSED], fields[BYTES]};
    }
    sf_trace_put(p, insts, rank, json);
}

static sf_status write_all(const sf_program *p, const double *all, size_t each, int size,
                           const sf_output *output, sf_arena *scratch, sf_diag *diag)
{
    sf_buf text = {0};
    sf_json_writer json = {.buf = &text, .indent = true};
    sf_timing *insts = SF_ARRAY(scratch, p->ninsts, sf_timing);
    sf_trace_begin(&json, "the last step of a run");
    for (int rank = 0; rank < size; rank++)
        put_rank(p, all + (size_t)rank * each, rank, insts, &json);
    sf_trace_end(&json);
    sf_buf_putc(&text, '\n');
    sf_status status = sf_output_write(output, &text, diag);
    sf_buf_free(&text);
    return status;
}

static sf_status write_timeline(const sf_runner *runner, const sf_timing *insts, sf_comm *comm,
                                const sf_output *output, sf_arena *scratch, sf_diag *diag)
{
    const sf_program *p = runner->program;
    int size = comm ? sf_comm_size(comm) : 1;
    size_t most;
    SF_TRY(find_most(comm, size, p->ninsts, scratch, diag, &most));
    size_t each = most * FIELDS;
    double *mine = SF_ARRAY(scratch, each, double);
    double *all = SF_ARRAY(scratch, each * (size_t)size, double);
    pack_timings(p, insts, mine);
    SF_TRY(sf_agree_gather(comm, mine, each, "when instructions ran", diag, all));
    if (comm && sf_comm_rank(comm) != 0)
        return SF_OK;
    return write_all(p, all, each, size, output, scratch, diag);
}

sf_status sf_timeline_write(const sf_runner *runner, sf_comm *comm, const sf_output *output,
                            sf_diag *diag)
{
    const sf_timing *insts = sf_engine_timeline(runner->engine);
    sf_arena scratch = {0};
    if (!runner->program || !insts)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "there is no timeline: no step was run, or engine oracle ran it");
    sf_status status = write_timeline(runner, insts, comm, output, &scratch, diag);
    sf_arena_free(&scratch);
    return status;
}
