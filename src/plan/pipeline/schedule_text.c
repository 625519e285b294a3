#include "plan/pipeline/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"

static bool is_chain(const sf_pipe *pipe)
{
    bool chain = pipe->nedges + 1 == pipe->nstages;
    for (uint32_t e = 0; e < pipe->nedges && chain; e++)
        chain = pipe->edges[e].from == e && pipe->edges[e].to == e + 1;
    return chain;
}

void sf_schedule_write(const sf_schedule *schedule, sf_buf *out)
{
    const sf_pipe *pipe = &schedule->pipe;
    sf_buf_printf(out,
                  "# %" PRIu32 " stages, %" PRIu32 " micro-batches, %" PRIu32
                  " pipeline ranks: F forward, B backward%s, STAGE.MICROBATCH\n",
                  pipe->nstages, pipe->nmicrobatches, pipe->ngroups,
                  pipe->splits_weights ? " to inputs, W to weights" : "");
    for (uint32_t g = 0; g < pipe->ngroups; g++) {
        sf_buf_printf(out, "%" PRIu32 ":", g);
        for (uint32_t i = 0; i < schedule->ntasks[g]; i++) {
            char name[32];
            sf_stage_task_name(schedule->tasks[g][i], name);
            sf_buf_printf(out, " %s", name);
        }
        sf_buf_putc(out, '\n');
    }
    if (is_chain(pipe))
        return;
    sf_buf_puts(out, "edges:");
    for (uint32_t e = 0; e < pipe->nedges; e++)
        sf_buf_printf(out, " %" PRIu32 ">%" PRIu32, pipe->edges[e].from, pipe->edges[e].to);
    sf_buf_putc(out, '\n');
}

/* Reading: first all tokens with their places, then their meaning. */

typedef struct placed {
    sf_stage_task task;
    uint32_t line, column;
} placed;

typedef struct list {
    placed *tasks;
    size_t count, capacity;
    uint32_t line; /* 0: it was not there */
} list;

typedef struct reading {
    const char *at, *end, *line_start;
    uint32_t line;
    const char *file;
    sf_arena *arena;
    sf_diag *diag;
    list lists[SF_MOST_GROUPS];
    uint32_t ngroups;
    size_t ntasks;
    sf_stage_edge *edges;
    size_t nedges, edge_capacity;
    uint32_t edge_line; /* 0: there is none */
    uint32_t nstages, nmicrobatches;
} reading;

static sf_loc here(const reading *r, const char *at)
{
    return (sf_loc){r->file, r->line, (uint32_t)(at - r->line_start) + 1};
}

static void skip_blanks(reading *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
    if (r->at < r->end && *r->at == '#')
        while (r->at < r->end && *r->at != '\n')
            r->at++;
}

static bool at_line_end(const reading *r)
{
    return r->at == r->end || *r->at == '\n';
}

static bool read_char(reading *r, char c)
{
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

/* A number below SF_MOST_TASKS. */
static bool read_number(reading *r, uint32_t *out)
{
    uint32_t value = 0;
    const char *start = r->at;
    for (; r->at < r->end && sf_is_digit(*r->at); r->at++) {
        value = value * 10 + (uint32_t)(*r->at - '0');
        if (value >= SF_MOST_TASKS)
            return false;
    }
    *out = value;
    return r->at > start;
}

static bool at_token_end(const reading *r)
{
    return at_line_end(r) || *r->at == ' ' || *r->at == '\t' || *r->at == '\r' || *r->at == '#';
}

/* The word that begins at a place, for a message. */
static sf_status bad_word(const reading *r, const char *start, const char *expected)
{
    reading word = *r;
    for (word.at = start; !at_token_end(&word);)
        word.at++;
    size_t length = (size_t)(word.at - start);
    char shown[128];
    sf_show_text((sf_str){start, length > 24 ? 24 : length}, shown, sizeof shown);
    return sf_fail(r->diag, SF_EINPUT, here(r, start), "expected %s, not \"%s%s\"", expected, shown,
                   length > 24 ? "..." : "");
}

static void note_stage(reading *r, uint32_t stage)
{
    r->nstages = stage >= r->nstages ? stage + 1 : r->nstages;
}

static sf_status read_task(reading *r, list *to)
{
    const char *start = r->at;
    const char *letter = strchr(SF_PASS_LETTERS, *r->at);
    placed it = {.line = r->line, .column = here(r, start).column};
    bool good = letter && *letter;
    r->at++;
    good = good && read_number(r, &it.task.stage) && read_char(r, '.') &&
           read_number(r, &it.task.microbatch) && at_token_end(r);
    if (!good)
        return bad_word(r, start, "a task such as F0.3 (F, B or W, a stage and a micro-batch)");
    it.task.pass = (sf_pass)(letter - SF_PASS_LETTERS);
    if (++r->ntasks > SF_MOST_TASKS)
        return sf_fail(r->diag, SF_EUNSUPPORTED, here(r, start), "there are more than %d tasks",
                       SF_MOST_TASKS);
    note_stage(r, it.task.stage);
    r->nmicrobatches =
        it.task.microbatch >= r->nmicrobatches ? it.task.microbatch + 1 : r->nmicrobatches;
    SF_PUSH(r->arena, to->tasks, to->count, to->capacity, it);
    return SF_OK;
}

static sf_status read_group(reading *r)
{
    const char *start = r->at;
    uint32_t group;
    if (!read_number(r, &group) || !read_char(r, ':'))
        return bad_word(r, start, "a pipeline rank, \"0:\", or \"edges:\"");
    if (group >= SF_MOST_GROUPS)
        return sf_fail(r->diag, SF_EUNSUPPORTED, here(r, start),
                       "pipeline ranks count from 0 to %d", SF_MOST_GROUPS - 1);
    list *it = &r->lists[group];
    if (it->line)
        return sf_fail(r->diag, SF_EINPUT, here(r, start),
                       "pipeline rank %" PRIu32 " has a list in line %" PRIu32 " already", group,
                       it->line);
    it->line = r->line;
    r->ngroups = group >= r->ngroups ? group + 1 : r->ngroups;
    for (skip_blanks(r); !at_line_end(r); skip_blanks(r))
        SF_TRY(read_task(r, it));
    return SF_OK;
}

static sf_status read_edges(reading *r)
{
    if (r->edge_line)
        return sf_fail(r->diag, SF_EINPUT, here(r, r->at),
                       "there are edges in line %" PRIu32 " already", r->edge_line);
    r->edge_line = r->line;
    r->at += strlen("edges:");
    for (skip_blanks(r); !at_line_end(r); skip_blanks(r)) {
        const char *start = r->at;
        sf_stage_edge edge;
        if (!read_number(r, &edge.from) || !read_char(r, '>') || !read_number(r, &edge.to) ||
            !at_token_end(r))
            return bad_word(r, start, "an edge such as 0>1, from one stage to another");
        if (r->nedges >= SF_MOST_TASKS)
            return sf_fail(r->diag, SF_EUNSUPPORTED, here(r, start), "there are more than %d edges",
                           SF_MOST_TASKS);
        SF_PUSH(r->arena, r->edges, r->nedges, r->edge_capacity, edge);
    }
    return SF_OK;
}

static sf_status read_lines(reading *r)
{
    for (;; r->at++, r->line++) {
        r->line_start = r->at;
        skip_blanks(r);
        if (!at_line_end(r)) {
            bool edges = sf_str_starts((sf_str){r->at, (size_t)(r->end - r->at)}, "edges:");
            SF_TRY(edges ? read_edges(r) : read_group(r));
        }
        if (r->at == r->end)
            return SF_OK;
    }
}

/* Hosts, and which passes there are, from the tasks. The check finds missing and repeated ones. */

static sf_status find_sizes(const reading *r, sf_pipe *pipe)
{
    if (r->ntasks == 0)
        return sf_fail(r->diag, SF_EINPUT, (sf_loc){r->file, 0, 0}, "there are no tasks");
    *pipe =
        (sf_pipe){.nstages = r->nstages, .nmicrobatches = r->nmicrobatches, .ngroups = r->ngroups};
    if ((uint64_t)r->nstages * r->nmicrobatches > r->ntasks)
        return sf_fail(r->diag, SF_EINPUT, (sf_loc){r->file, 0, 0},
                       "%" PRIu32 " stages in %" PRIu32
                       " micro-batches have at least one task each, and there are %zu",
                       r->nstages, r->nmicrobatches, r->ntasks);
    for (uint32_t g = 0; g < r->ngroups; g++)
        if (r->lists[g].count == 0)
            return sf_fail(r->diag, SF_EINPUT,
                           (sf_loc){r->file, r->lists[g].line, r->lists[g].line > 0},
                           "pipeline rank %" PRIu32 " has no tasks", g);
    return SF_OK;
}

static sf_status find_edges(const reading *r, sf_pipe *pipe)
{
    for (size_t e = 0; e < r->nedges; e++)
        if (r->edges[e].from >= r->nstages || r->edges[e].to >= r->nstages)
            return sf_fail(r->diag, SF_EINPUT, (sf_loc){r->file, r->edge_line, 1},
                           "the edge %" PRIu32 ">%" PRIu32 " is to or from a stage without tasks",
                           r->edges[e].from, r->edges[e].to);
    pipe->edges = r->edge_line ? r->edges : sf_pipe_chain(r->nstages, r->arena);
    pipe->nedges = r->edge_line ? (uint32_t)r->nedges : r->nstages - 1;
    return SF_OK;
}

static void find_hosts(const reading *r, sf_pipe *pipe)
{
    bool *has_backward = SF_ARRAY(r->arena, r->nstages, bool);
    uint64_t *hosts = SF_ARRAY(r->arena, (size_t)r->nstages * r->nmicrobatches, uint64_t);
    for (uint32_t g = 0; g < r->ngroups; g++)
        for (size_t i = 0; i < r->lists[g].count; i++) {
            sf_stage_task task = r->lists[g].tasks[i].task;
            hosts[(size_t)task.stage * r->nmicrobatches + task.microbatch] |= UINT64_C(1) << g;
            has_backward[task.stage] |= task.pass != SF_PASS_FORWARD;
            pipe->splits_weights |= task.pass == SF_PASS_WEIGHTS;
        }
    pipe->hosts = hosts;
    pipe->has_backward = has_backward;
}

static int by_task(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->task.stage != y->task.stage)
        return x->task.stage < y->task.stage ? -1 : 1;
    if (x->task.microbatch != y->task.microbatch)
        return x->task.microbatch < y->task.microbatch ? -1 : 1;
    if (x->task.pass != y->task.pass)
        return x->task.pass < y->task.pass ? -1 : 1;
    return x->column < y->column ? -1 : x->column > y->column;
}

/* A repeated task in a list is reported here, where its place is known. */
static sf_status find_twice(const reading *r, const list *it)
{
    placed *sorted = sf_arena_copy(r->arena, it->tasks, it->count * sizeof *sorted);
    qsort(sorted, it->count, sizeof *sorted, by_task);
    for (size_t i = 1; i < it->count; i++) {
        sf_stage_task a = sorted[i - 1].task, b = sorted[i].task;
        if (a.stage != b.stage || a.microbatch != b.microbatch || a.pass != b.pass)
            continue;
        char name[32];
        sf_stage_task_name(b, name);
        return sf_fail(r->diag, SF_EINPUT, (sf_loc){r->file, sorted[i].line, sorted[i].column},
                       "%s is at column %" PRIu32 " of this list already", name,
                       sorted[i - 1].column);
    }
    return SF_OK;
}

static void copy_lists(const reading *r, sf_schedule *out)
{
    out->ntasks = SF_ARRAY(r->arena, r->ngroups, uint32_t);
    out->tasks = SF_ARRAY(r->arena, r->ngroups, sf_stage_task *);
    for (uint32_t g = 0; g < r->ngroups; g++) {
        out->ntasks[g] = (uint32_t)r->lists[g].count;
        out->tasks[g] = SF_ARRAY(r->arena, r->lists[g].count, sf_stage_task);
        for (size_t i = 0; i < r->lists[g].count; i++)
            out->tasks[g][i] = r->lists[g].tasks[i].task;
    }
}

sf_status sf_schedule_read(sf_str text, const char *file, sf_arena *arena, sf_schedule *out,
                           sf_diag *diag)
{
    reading *r = SF_NEW(arena, reading);
    *r = (reading){.at = text.at,
                   .end = text.at + text.length,
                   .line_start = text.at,
                   .line = 1,
                   .file = file,
                   .arena = arena,
                   .diag = diag};
    SF_TRY(read_lines(r));
    SF_TRY(find_sizes(r, &out->pipe));
    SF_TRY(find_edges(r, &out->pipe));
    for (uint32_t g = 0; g < r->ngroups; g++)
        SF_TRY(find_twice(r, &r->lists[g]));
    find_hosts(r, &out->pipe);
    copy_lists(r, out);
    return sf_schedule_check(out, diag);
}
