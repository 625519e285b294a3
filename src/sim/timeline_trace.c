#include "sim/timeline_trace.h"

#include <math.h>

#include "sim/instruction_work.h"

/* Numbers of tracks: that of a stream is its own. */
static const char *stream_name(const sf_program *p, size_t stream, char text[SF_AXES_TEXT + 16])
{
    char axes[SF_AXES_TEXT];
    const sf_stream *s = &p->streams[stream];
    if (s->kind == SF_STREAM_COMPUTE)
        return "compute";
    if (s->kind == SF_STREAM_COPY)
        return s->to == SF_SPACE_HOST ? "copies to the host" : "copies from the host";
    snprintf(text, SF_AXES_TEXT + 16, "along %s", sf_axes_text(&p->mesh, s->axes, axes));
    return text;
}

static void begin_event(sf_json_writer *json, const char *name, const char *kind, int rank)
{
    sf_json_begin_object(json);
    sf_json_add_string(json, "name", name);
    sf_json_add_string(json, "ph", kind);
    sf_json_add_int(json, "pid", rank);
}

static void begin_arguments(sf_json_writer *json)
{
    sf_json_key(json, "args");
    sf_json_begin_object(json);
}

static void end_event(sf_json_writer *json)
{
    sf_json_end_object(json);
    sf_json_end_object(json);
}

static void name_tracks(const sf_program *p, int rank, sf_json_writer *json)
{
    char text[SF_AXES_TEXT + 16];
    snprintf(text, sizeof text, "rank %d", rank);
    begin_event(json, "process_name", "M", rank);
    begin_arguments(json);
    sf_json_add_string(json, "name", text);
    end_event(json);
    for (size_t s = 0; s < p->nstreams; s++) {
        begin_event(json, "thread_name", "M", rank);
        sf_json_add_int(json, "tid", (int64_t)s);
        begin_arguments(json);
        sf_json_add_string(json, "name", stream_name(p, s, text));
        end_event(json);
    }
}

static void put_time(sf_json_writer *json, const char *key, double seconds)
{
    sf_json_add_double(json, key, round(1e9 * seconds) / 1e3); /* to a nanosecond */
}

/* The kind of an instruction, so that equal ones take its time (sim/measured_times.h). */
static void put_kind(const sf_program *p, const sf_inst *inst, sf_json_writer *json)
{
    char axes[SF_AXES_TEXT];
    if (inst->kind == SF_INST_COMM)
        sf_json_add_string(json, "axes", sf_axes_text(&p->mesh, inst->exchange->axes, axes));
    else if (inst->kind != SF_INST_COPY && sf_body_count(inst) == 0)
        sf_json_add_hex(json, "key", sf_inst_key(inst));
}

static void put_inst(const sf_program *p, uint32_t index, const sf_timing *t, int rank,
                     uint32_t track, uint32_t within, sf_json_writer *json)
{
    const sf_inst *inst = &p->insts[index];
    bool sends = sf_goes_beside(inst);
    const char *name = inst->kind == SF_INST_COMM ? sf_exchange_name(inst->exchange)
                       : *inst->origin.op         ? inst->origin.op
                                                  : sf_inst_kind_name(inst->kind);
    begin_event(json, name, "X", rank);
    sf_json_add_string(json, "cat", sf_inst_kind_name(inst->kind));
    sf_json_add_int(json, "tid", track);
    put_time(json, "ts", t->start);
    put_time(json, "dur", t->end - t->start);
    begin_arguments(json);
    sf_json_add_int(json, "instruction", index);
    if (within != SF_NONE)
        sf_json_add_int(json, "within", within);
    sf_json_add_string(json, "scope", inst->origin.scope);
    sf_json_add_string(json, "phase", sf_phase_name(inst->origin.phase));
    if (sends) {
        sf_json_add_double(json, "bytes", t->bytes);
        put_time(json, "exposed_us", t->exposed);
    }
    if (t->mean > 0)
        put_time(json, "mean_us", t->mean);
    put_kind(p, inst, json);
    end_event(json);
}

/* The memory in use in a space, where that changes. */
static void put_memory(const sf_program *p, sf_space_kind space, const sf_timing *insts, int rank,
                       sf_json_writer *json)
{
    sf_arena scratch = {0};
    bool on_host = space == SF_SPACE_HOST;
    int64_t *live, last = -1;
    int64_t always = on_host ? p->host_state_bytes : p->state_bytes + p->constant_bytes;
    uint32_t peak;
    sf_live_bytes_in(p, space, &scratch, &live, &peak);
    for (uint32_t i = 0; i < p->ninsts; i++) {
        if (p->insts[i].stream != 0 || live[i] == last)
            continue;
        last = live[i];
        begin_event(json, on_host ? "memory of the host" : "memory", "C", rank);
        put_time(json, "ts", insts[i].start);
        begin_arguments(json);
        sf_json_add_int(json, "bytes", always + last);
        end_event(json);
    }
    sf_arena_free(&scratch);
}

void sf_trace_begin(sf_json_writer *json, const char *about, const sf_mesh *mesh)
{
    sf_buf axes = {0};
    sf_json_begin_object(json);
    sf_json_add_string(json, "displayTimeUnit", "ms");
    sf_json_key(json, "otherData");
    sf_json_begin_object(json);
    sf_json_add_string(json, "about", about);
    sf_mesh_print(mesh, &axes);
    sf_json_add_string(json, "mesh", axes.text ? axes.text : "");
    sf_buf_free(&axes);
    sf_json_end_object(json);
    sf_json_key(json, "traceEvents");
    sf_json_begin_array(json);
}

void sf_trace_end(sf_json_writer *json)
{
    sf_json_end_array(json);
    sf_json_end_object(json);
}

void sf_trace_put(const sf_program *program, const sf_timing *insts, int rank, sf_json_writer *json)
{
    name_tracks(program, rank, json);
    for (uint32_t i = 0; i < program->ninsts; i++)
        put_inst(program, i, &insts[i], rank, program->insts[i].stream, SF_NONE, json);
    put_memory(program, SF_SPACE_DEVICE, insts, rank, json);
    if (sf_program_host_bytes(program) > 0)
        put_memory(program, SF_SPACE_HOST, insts, rank, json);
}

/* The track of the step that a stream of a body goes on: bodies have streams of their own. */
static uint32_t track_of(const sf_program *program, const sf_stream *of)
{
    for (uint32_t s = 0; s < program->nstreams; s++) {
        const sf_stream *at = &program->streams[s];
        if (at->kind == of->kind && at->axes == of->axes && at->to == of->to)
            return s;
    }
    return (uint32_t)program->nstreams;
}

void sf_trace_put_body(const sf_program *program, uint32_t within, const sf_program *body,
                       const sf_timing *insts, int rank, sf_json_writer *json)
{
    for (uint32_t i = 0; i < body->ninsts; i++)
        put_inst(body, i, &insts[i], rank, track_of(program, &body->streams[body->insts[i].stream]),
                 within, json);
}
