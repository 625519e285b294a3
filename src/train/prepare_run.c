/* Preparation of a run: checks, engine, state, data, files. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/mem.h"
#include "front/lost_state.h"
#include "ir/name.h"
#include "op/flops.h"
#include "run/comm/rank_agreement.h"
#include "sheaf/version.h"
#include "train/init.h"
#include "train/train.h"

/* Far below the overflow of a number of rows. */
#define MOST_STEPS INT64_C(1000000000000)

static sf_status check_training_options(const sf_training *run)
{
    const sf_train_options *options = &run->options;
    if (options->steps > MOST_STEPS)
        return sf_fail(run->diag, SF_EUSAGE, SF_NOWHERE, "there are at most 10^12 steps");
    if (options->resume && !options->resume_from && !options->save)
        return sf_fail(run->diag, SF_EUSAGE, SF_NOWHERE,
                       "resuming needs a directory: that of option save, or one of option resume");
    return SF_OK;
}

static sf_status check_training_graph(sf_training *run)
{
    const sf_graph *graph = run->graph;
    bool any = false;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        any = any || graph->arguments[i].next != SF_NONE;
    if (any)
        return sf_refuse_loose(graph, run->diag);
    sf_fail(run->diag, SF_EINPUT, SF_NOWHERE,
            "no result of the step becomes an argument of the next one: there is nothing to train");
    return sf_hint(run->diag, "option state, ARGUMENT=RESULT,..., says which does");
}

/* The argument with this name: its own, a clean one, or the last parts of it. */
static uint32_t find_argument_named(const sf_training *run, sf_str text, sf_arena *scratch)
{
    const char *clean = sf_clean_name(text, scratch);
    uint32_t found = SF_NONE;
    for (uint32_t i = 0; i < run->graph->top->narguments; i++)
        if (sf_str_is(text, run->graph->arguments[i].name) ||
            strcmp(run->training_run.rank_state.names[i], clean) == 0)
            return i;
        else if (sf_name_ends(run->training_run.rank_state.names[i], clean) &&
                 !sf_argument_is_kept(&run->graph->arguments[i]))
            found = i;
    return found;
}

/* All elements of the shard, for all steps. */
static sf_status fill_prepared_argument(sf_training *run, uint32_t index, double value)
{
    sf_holder holder = sf_rank_state_holder(&run->training_run.rank_state);
    sf_tensor to;
    SF_TRY(sf_holder_lend(&holder, index, true, run->diag, &to));
    sf_dtype dtype = to.type->dtype;
    int64_t whole = (int64_t)fmax(-0x1p62, fmin(0x1p62, value));
    for (int64_t i = 0; i < to.type->count; i++) {
        if (sf_is_inexact(dtype))
            sf_store_f64(dtype, to.data, i, value);
        else
            sf_store_i64(dtype, to.data, i, whole);
    }
    bool is_kept = to.type->count == 0 || sf_is_inexact(dtype) ||
                   ((double)whole == value && sf_load_i64(dtype, to.data, 0) == whole);
    SF_TRY(sf_holder_give_back(&holder, index, run->diag));
    if (is_kept)
        return SF_OK;
    return sf_fail(run->diag, SF_EUSAGE, SF_NOWHERE, "%s is of type %s, which %g does not fit",
                   run->graph->arguments[index].name, sf_dtype_get(dtype)->name, value);
}

static sf_status set_one(sf_training *run, char *pair, sf_arena *scratch)
{
    char *equals = strrchr(pair, '=');
    double value;
    if (!equals)
        return sf_fail(run->diag, SF_EUSAGE, SF_NOWHERE, "'%s' is not NAME=NUMBER", pair);
    uint32_t index = find_argument_named(run, (sf_str){pair, (size_t)(equals - pair)}, scratch);
    *equals = 0;
    if (index == SF_NONE || sf_argument_is_kept(&run->graph->arguments[index]))
        return sf_fail(run->diag, SF_EUSAGE, SF_NOWHERE, "there is no argument '%s' to set", pair);
    if (!sf_init_number(sf_str_of(equals + 1), &value))
        return sf_fail(run->diag, SF_EUSAGE, SF_NOWHERE, "'%s' is no number for %s", equals + 1,
                       pair);
    run->wanted[index] = false;
    return fill_prepared_argument(run, index, value);
}

/* Arguments that the user set are the same for all steps. */
static sf_status set_training_arguments(sf_training *run)
{
    char *text = sf_arena_string(&run->arena, run->options.set, strlen(run->options.set));
    while (text) {
        char *comma = strchr(text, ',');
        if (comma)
            *comma++ = 0;
        SF_TRY(set_one(run, text, &run->arena));
        text = comma;
    }
    return SF_OK;
}

/* Which arguments come from the data: all but state, keys, and those that the user set. */
static sf_status find_wanted(sf_training *run)
{
    const sf_graph *graph = run->graph;
    run->wanted = SF_ARRAY(&run->arena, graph->top->narguments, bool);
    run->filled = SF_ARRAY(&run->arena, graph->top->narguments, bool);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        bool kept = sf_argument_is_kept(&graph->arguments[i]);
        run->wanted[i] = !kept && graph->arguments[i].role != SF_ROLE_KEY;
        run->filled[i] =
            graph->arguments[i].role == SF_ROLE_KEY && graph->arguments[i].next == SF_NONE;
    }
    if (run->options.set)
        SF_TRY(set_training_arguments(run));
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        run->filled[i] = run->filled[i] || run->wanted[i];
    return SF_OK;
}

/* The checkpoint to go on from, "" when there is none. */
static sf_status find_checkpoint(const sf_training *run, char out[SF_PATH_SIZE])
{
    const sf_train_options *options = &run->options;
    *out = 0;
    if (options->resume_from)
        return sf_train_run_find(options->resume_from, out, run->diag);
    return options->resume ? sf_checkpoint_find(options->save, out, run->diag) : SF_OK;
}

static sf_status load_state(sf_training *run)
{
    const sf_train_options *options = &run->options;
    sf_train_run *training_run = &run->training_run;
    char found[SF_PATH_SIZE];
    SF_TRY(find_checkpoint(run, found));
    if (!*found)
        return sf_train_run_init(training_run, options->init, options->has_seed ? options->seed : 0,
                                 run->diag);
    SF_TRY(sf_train_run_load(training_run, found, run->diag));
    if (training_run->info.step > MOST_STEPS)
        return sf_fail(run->diag, SF_EINPUT, (sf_loc){training_run->resumed, 0, 0},
                       "too many steps");
    if (options->has_seed && options->seed != training_run->info.seed)
        return sf_fail(run->diag, SF_EUSAGE, (sf_loc){training_run->resumed, 0, 0},
                       "the run had the seed %" PRIu64
                       "; with another one it would not go on as if "
                       "never stopped",
                       training_run->info.seed);
    return SF_OK;
}

static sf_status open_data(sf_training *run)
{
    sf_data_options options = {
        .source = run->options.data,
        .tokens_type = run->options.tokens_type,
        .order = run->options.order,
        .seed = run->training_run.info.seed,
    };
    SF_TRY(sf_data_open(run->graph, (const char *const *)run->training_run.rank_state.names,
                        run->wanted, &options, run->diag, &run->data));
    if (run->training_run.resumed && strcmp(run->training_run.info.data, run->data.about) != 0) {
        sf_fail(run->diag, SF_EINPUT, (sf_loc){run->training_run.resumed, 0, 0},
                "the run had other data: \"%s\", not \"%s\"", run->training_run.info.data,
                run->data.about);
        return sf_hint(run->diag, "option init %s starts a new run from its weights",
                       run->training_run.resumed);
    }
    run->training_run.info.data = run->data.about;
    return SF_OK;
}

static sf_status open_log(sf_training *run)
{
    if (!run->options.log || !sf_training_is_first(run))
        return SF_OK;
    return sf_log_open(run->options.log, run->diag, &run->log);
}

static sf_status open_training_run(sf_training *run)
{
    sf_rank_state_options options = {.graph = run->graph,
                                     .plan = run->options.plan,
                                     .comm = run->comm,
                                     .engine = run->options.engine,
                                     .pool = run->pool,
                                     .memory = run->options.memory,
                                     .device_memory = run->options.device_memory,
                                     .host_link = {.bandwidth = (double)run->options.host_link},
                                     .check = run->options.check};
    SF_TRY(sf_precision_find(run->options.precision, run->diag, &options.precision));
    SF_TRY(sf_train_run_open(&options, run->diag, &run->training_run));
    run->options.engine = run->training_run.rank_state.options.engine;
    return SF_OK;
}

/* All that a rank can do by itself. */
static sf_status get_training_ready(sf_training *run)
{
    SF_TRY(check_training_options(run));
    SF_TRY(check_training_graph(run));
    run->flops = sf_step_flops(run->graph);
    SF_TRY(open_training_run(run));
    SF_TRY(find_wanted(run));
    SF_TRY(load_state(run));
    return open_data(run);
}

static uint64_t hash_plan(const sf_training *run)
{
    sf_buf text = {0};
    if (run->options.plan)
        sf_plan_write(run->options.plan, run->graph, NULL, &text);
    uint64_t hash = sf_hash_bytes(0, text.text, text.length);
    sf_buf_free(&text);
    return hash;
}

/* In `text`, which is returned. */
enum { NUMBER_TEXT = 24 };

static const char *number_text(int64_t number, char text[NUMBER_TEXT])
{
    snprintf(text, NUMBER_TEXT, "%" PRId64, number);
    return text;
}

static const char *hash_text(uint64_t hash, char text[NUMBER_TEXT])
{
    snprintf(text, NUMBER_TEXT, "%016" PRIx64, hash);
    return text;
}

/* Ranks on several hosts may see other files under the same names, and have other processors. */
static sf_status check_same(sf_training *run)
{
    const sf_train_options *options = &run->options;
    const sf_checkpoint_info *info = &run->training_run.info;
    char arithmetic[SF_ARITHMETIC], texts[7][NUMBER_TEXT];
    const sf_agree_thing things[] = {
        {"version of Sheaf", SF_VERSION},
        {"step", hash_text(info->graph, texts[0])},
        {"plan", hash_text(hash_plan(run), texts[1])},
        {"step to go on from", number_text(info->step, texts[2])},
        {"data", info->data},
        {"seed", number_text((int64_t)info->seed, texts[3])},
        {"number of steps", number_text(options->steps, texts[4])},
        {"start of the weights (option init)", options->init},
        {"values of arguments (option set)", options->set},
        {"engine", options->engine ? options->engine : "cpu"},
        {"vector set (SHEAF_VEC) and library", sf_engine_arithmetic(options->engine, arithmetic)},
        {"save directory (option save)", options->save},
        {"steps between checkpoints (option save_every)",
         number_text(options->save_every, texts[5])},
        {"number of checkpoints (option keep)", number_text(options->keep, texts[6])},
        {"will to go on without a loss (option ignore_nan)", options->ignore_nan ? "it" : NULL},
    };
    return sf_agree_things(run->comm, things, sizeof things / sizeof *things, run->diag);
}

sf_status sf_training_prepare(sf_training *run)
{
    SF_TRY(sf_training_settle(run, get_training_ready(run), "getting ready"));
    SF_TRY(sf_training_settle(run, check_same(run), "what to do"));
    run->memory = sf_engine_memory(run->training_run.rank_state.runner.engine);
    SF_TRY(sf_training_note(run,
                            sf_agree_most(run->comm, "memory of ranks", run->diag, &run->memory)));
    SF_TRY(sf_training_settle(run, open_log(run), "opening files"));
    if (!run->options.save)
        return SF_OK;
    return sf_training_note(run,
                            sf_train_run_enter(&run->training_run, run->options.save, run->diag));
}
