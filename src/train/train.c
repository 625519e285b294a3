#include "train/train.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/file.h"
#include "base/guard.h"
#include "base/listen.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/output.h"
#include "base/work_queue.h"
#include "run/comm/rank_agreement.h"
#include "train/lookup_ids.h"
#include "train/timeline.h"

static sf_train_progress progress_of(const sf_training *run, double seconds)
{
    sf_train_progress progress = {
        .size = sizeof progress,
        .seconds = seconds,
        .computed = run->computed,
        .waited = run->waited,
        .counts_tokens = run->data.counts_tokens,
        .left = run->pace * (double)(run->options.steps - run->training_run.info.step),
        .memory = run->memory,
        .parameters = sf_count_parameters(run->training_run.rank_state.shards.graph),
        .threads = sf_engine_threads(run->training_run.rank_state.runner.engine),
        .ranks = sf_mesh_size(&run->training_run.rank_state.shards.mesh),
        .engine = run->options.engine,
        .data = run->data.about,
    };
    if (run->pace > 0) {
        progress.rate = (double)run->data.amount / run->pace;
        progress.flops = run->flops / run->pace;
    }
    return progress;
}

/* Sends an event to the listener, one rank in each process; once it wants to stop, that is
 * final. */
static void tell_listener(sf_training *run, sf_event_kind kind, double seconds, const char *text)
{
    sf_audience audience = {run->options.listener, run->options.context, run->options.interrupt};
    if (!sf_is_heard(&audience) || !sf_comm_leads(run->comm))
        return;
    sf_train_progress progress = progress_of(run, seconds);
    sf_event event = {.size = sizeof event,
                      .kind = kind,
                      .rank = run->training_run.rank_state.shards.rank,
                      .text = text,
                      .step = run->training_run.info.step,
                      .steps = run->options.steps,
                      .loss = run->report.loss,
                      .train = &progress};
    if (!sf_tell(&audience, &event))
        run->asked = true;
}

static sf_status log_start(sf_training *run)
{
    sf_log *log = &run->log;
    char hash[20];
    if (!sf_log_begin(log, "start"))
        return SF_OK;
    snprintf(hash, sizeof hash, "%016" PRIx64, run->training_run.info.graph);
    sf_log_int(log, "step", run->training_run.info.step);
    sf_log_int(log, "steps", run->options.steps);
    sf_log_text(log, "graph", hash);
    sf_log_int(log, "seed", (int64_t)run->training_run.info.seed);
    sf_log_text(log, "engine", run->options.engine);
    sf_log_int(log, "threads", sf_engine_threads(run->training_run.rank_state.runner.engine));
    sf_log_text(log, "data", run->data.about);
    sf_log_text(log, "resumed", run->training_run.resumed);
    sf_log_int(log, "time", (int64_t)time(NULL));
    return sf_log_end(log, run->diag);
}

static sf_status log_step(sf_training *run, double seconds)
{
    sf_log *log = &run->log;
    if (!sf_log_begin(log, "step"))
        return SF_OK;
    sf_log_int(log, "step", run->training_run.info.step);
    sf_log_double(log, "loss", run->report.loss);
    sf_log_double(log, "seconds", seconds);
    sf_log_double(log, "step_seconds", run->computed);
    sf_log_double(log, "data_seconds", run->waited);
    if (seconds > 0) {
        sf_log_double(log, run->data.counts_tokens ? "tokens_per_second" : "samples_per_second",
                      (double)run->data.amount / seconds);
        sf_log_double(log, "flops_per_second", run->flops / seconds);
    }
    sf_log_int(log, "memory", run->memory);
    return sf_log_end(log, run->diag);
}

static sf_status log_saved(sf_training *run, const char *path)
{
    if (!sf_log_begin(&run->log, "saved"))
        return SF_OK;
    sf_log_int(&run->log, "step", run->training_run.info.step);
    sf_log_text(&run->log, "path", path);
    return sf_log_end(&run->log, run->diag);
}

static sf_status log_end(sf_training *run)
{
    if (!sf_log_begin(&run->log, "end"))
        return SF_OK;
    sf_log_int(&run->log, "step", run->training_run.info.step);
    sf_log_bool(&run->log, "interrupted", run->report.interrupted);
    sf_log_double(&run->log, "seconds", run->report.seconds);
    return sf_log_end(&run->log, run->diag);
}

static sf_status save_state(sf_training *run)
{
    sf_train_run *training_run = &run->training_run;
    char path[SF_TRAIN_RUN_PATH];
    if (!training_run->checkpoints.open || training_run->saved == training_run->info.step)
        return SF_OK;
    SF_TRY(sf_training_note(run, sf_train_run_save(training_run, run->options.keep, run->diag)));
    tell_listener(run, SF_EVENT_SAVED, 0, sf_train_run_path(training_run, path));
    return log_saved(run, path);
}

static sf_status draw_inputs(sf_training *run, int64_t step, sf_diag *diag)
{
    sf_tensor *inputs = run->training_run.rank_state.inputs;
    SF_TRY(sf_data_batch(&run->data, step, inputs, diag));
    sf_fill_keys(run->graph, run->training_run.info.seed, step, inputs);
    return SF_OK;
}

/* Inputs that are drawn on a thread of their own, so that the time of a step is that of the step. */
typedef struct sf_filling {
    sf_training *run;
    sf_lanes *lanes;
    sf_lane_job job;
    int64_t step;
    sf_status status;
} sf_filling;

static sf_status draw_guarded(void *context)
{
    const sf_filling *f = context;
    return draw_inputs(f->run, f->step, NULL);
}

static void draw_beside(void *context)
{
    sf_filling *f = context;
    f->status = sf_guarded(draw_guarded, f, NULL);
}

/* Waits first: what is drawn goes to memory that others may be about to free. */
static void end_filling(void *memory)
{
    sf_filling *f = memory;
    sf_lanes_free(f->lanes);
    f->lanes = NULL;
}

static sf_filling *filling_of(sf_training *run)
{
    if (run->filling)
        return run->filling;
    sf_filling *f = sf_alloc(sizeof *f);
    f->run = run;
    f->lanes = sf_lanes_new();
    f->job = (sf_lane_job){.work = draw_beside, .context = f, .done = true};
    sf_mem_undo(f, end_filling);
    return run->filling = f;
}

/* Whether the last batch has an id that is no row of the table in which the step looks it up. The batch is drawn again. */
static bool find_lost_id(sf_training *run, sf_lookup_id *out)
{
    const sf_block *top = run->graph->top;
    sf_arena arena = {0};
    sf_tensor *batch = SF_ARRAY(&arena, top->narguments, sf_tensor);
    for (uint32_t i = 0; i < top->narguments; i++) {
        batch[i].type = sf_argument_type(run->graph, i);
        if (run->wanted[i])
            batch[i].data = sf_arena_alloc(&arena, (size_t)sf_type_bytes(batch[i].type));
    }
    if (run->filling && run->filling->lanes)
        sf_lanes_wait(run->filling->lanes, &run->filling->job);
    bool found = sf_data_batch(&run->data, run->training_run.info.step - 1, batch, NULL) == SF_OK &&
                 sf_find_lookup_id(run->graph, batch, out);
    sf_arena_free(&arena);
    return found;
}

/* A loss that is no number stays none: saving would only replace good checkpoints by bad ones. */
static sf_status check_loss(sf_training *run)
{
    sf_lookup_id lost;
    if (run->training_run.loss == SF_NONE || isfinite(run->report.loss) || run->options.ignore_nan)
        return SF_OK;
    sf_fail(run->diag, SF_EMISMATCH, SF_NOWHERE, "the loss of step %" PRId64 " is %s",
            run->training_run.info.step, isnan(run->report.loss) ? "not a number" : "infinite");
    if (find_lost_id(run, &lost))
        sf_hint(run->diag,
                "%s has the id %" PRId64 " in this batch, and the table in which the step looks "
                "it up has %" PRId64 " rows: ids are out of range",
                run->training_run.rank_state.names[lost.argument], lost.id, lost.rows);
    else
        sf_hint(run->diag, "a smaller learning rate or another option init may help; option "
                           "ignore_nan goes on regardless");
    return SF_EMISMATCH;
}

/* Begins with those of the next step, while this one goes on. What fails is tried again when its turn comes, and said then. */
static void fill_ahead(sf_training *run)
{
    sf_filling *f = filling_of(run);
    sf_diag *unheard = sf_diag_new();
    f->step = run->training_run.info.step + 1;
    f->status = SF_EUNSUPPORTED;
    if (f->lanes && f->step < run->options.steps &&
        sf_rank_state_lend_inputs(&run->training_run.rank_state, run->filled, unheard) == SF_OK)
        sf_lanes_start(f->lanes, 0, &f->job);
    sf_diag_free(unheard);
}

/* The inputs of the step that comes, on the device. */
static sf_status get_inputs(sf_training *run)
{
    sf_rank_state *state = &run->training_run.rank_state;
    sf_filling *f = run->filling;
    if (f && f->lanes) {
        sf_lanes_wait(f->lanes, &f->job);
        run->is_filled = f->status == SF_OK && f->step == run->training_run.info.step;
    }
    if (!run->is_filled) {
        SF_TRY(sf_rank_state_lend_inputs(state, run->filled, run->diag));
        SF_TRY(draw_inputs(run, run->training_run.info.step, run->diag));
    }
    run->is_filled = false;
    return sf_rank_state_hand_in(state, run->diag);
}

static sf_status make_step(sf_training *run, double *seconds)
{
    double began = sf_now();
    sf_train_run *training_run = &run->training_run;
    bool goes_on;
    SF_TRY(get_inputs(run));
    double filled = sf_now();
    run->waited = filled - began;
    SF_TRY(sf_train_run_start(training_run, run->diag, &goes_on));
    if (goes_on)
        fill_ahead(run);
    SF_TRY(sf_train_run_finish(training_run, run->diag));
    run->computed = sf_now() - filled;
    run->report.step = training_run->info.step;
    run->report.loss = training_run->last;
    *seconds = sf_now() - began;
    run->pace = run->pace > 0 ? 0.9 * run->pace + 0.1 * *seconds : *seconds;
    return SF_OK;
}

/* Reports the step. *stop: whether it is the last. */
static sf_status end_step(sf_training *run, double seconds, bool *stop)
{
    sf_status status = log_step(run, seconds);
    tell_listener(run, SF_EVENT_STEP, seconds, NULL);
    if (status == SF_OK)
        status = check_loss(run);
    *stop = run->asked;
    return sf_training_note(run,
                            sf_agree_any(run->comm, status, "whether to stop", run->diag, stop));
}

static sf_status loop(sf_training *run)
{
    int64_t every = run->options.save_every ? run->options.save_every : 100;
    bool stop = false;
    while (run->training_run.info.step < run->options.steps && !stop) {
        double seconds;
        SF_TRY(make_step(run, &seconds));
        SF_TRY(end_step(run, seconds, &stop));
        if (stop || run->training_run.info.step == run->options.steps ||
            run->training_run.info.step % every == 0)
            SF_TRY(save_state(run));
    }
    run->report.interrupted = stop && run->training_run.info.step < run->options.steps;
    return SF_OK;
}

/* Where the time of the first rank went. */
static sf_status write_profile(sf_training *run)
{
    if (!run->options.profile || !sf_training_is_first(run))
        return SF_OK;
    sf_buf text = {0};
    sf_engine_profile(run->training_run.rank_state.runner.engine, &text);
    sf_status status = sf_output_write(run->options.profile, &text, run->diag);
    sf_buf_free(&text);
    return status;
}

static sf_status train(sf_training *run)
{
    double began = sf_now();
    SF_TRY(sf_training_prepare(run));
    run->report.first = run->report.step = run->training_run.info.step;
    SF_TRY(log_start(run));
    tell_listener(run, SF_EVENT_START, 0, run->training_run.resumed);
    SF_TRY(loop(run));
    run->report.seconds = sf_now() - began;
    SF_TRY(write_profile(run));
    if (run->options.trace)
        SF_TRY(sf_timeline_write(&run->training_run.rank_state.runner, run->comm,
                                 run->options.trace, run->diag));
    return log_end(run);
}

sf_status sf_training_run(sf_training *run)
{
    sf_status status = train(run);
    if (run->filling)
        end_filling(run->filling);
    sf_free(run->filling);
    sf_data_close(&run->data);
    sf_train_run_close(&run->training_run);
    sf_buf_free(&run->log.line);
    sf_arena_free(&run->arena);
    return status;
}

void sf_training_end(sf_training *run)
{
    sf_log_close(&run->log);
    sf_train_run_end(&run->training_run);
    sf_mappings_close(&run->data.mappings);
}
