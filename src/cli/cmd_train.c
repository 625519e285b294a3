/* sheaf train: runs a step repeatedly, and prints its progress. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cli_progress.h"

/* The signal that interrupted the run, or 0. */
static volatile sig_atomic_t interrupted;

/* Whether this process prints progress: of several, the one that receives the events. */
static volatile sig_atomic_t speaks;

/* Whether this process is one of several that mpirun started. */
static volatile sig_atomic_t launched;

/* The first one lets the step end and the checkpoint be written; the second ends the program at once,
 * which leaves the last checkpoint whole. */
static void on_signal(int number)
{
    static const char stopping[] = "\nstopping after this step; again to stop now\n";
    if (interrupted)
        _exit(128 + number);
    interrupted = number;
    /* A launcher that was interrupted waits for us to end, and may not read any more. */
    if (launched && number != SIGUSR1) {
        fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
        fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
    }
    if (speaks)
        (void)!write(STDERR_FILENO, stopping, sizeof stopping - 1);
}

static void catch_signals(void)
{
    const int signals[] = {SIGINT, SIGTERM, SIGUSR1}; /* mpirun passes the last one on */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}

struct display {
    bool terminal; /* one line that is written over */
    bool quiet;
    int64_t every; /* steps from line to line; 0: every one, on a terminal none */
    bool dirty;    /* the line that is written over holds something */
    bool json;     /* nothing, but one object at the end */
    sf_cli_progress last;
};

static const char *time_text(double seconds, char text[32])
{
    int64_t whole = seconds < 1e9 ? (int64_t)ceil(seconds) : 1000000000;
    if (whole < 3600)
        snprintf(text, 32, "%" PRId64 ":%02" PRId64, whole / 60, whole % 60);
    else
        snprintf(text, 32, "%" PRId64 ":%02" PRId64 ":%02" PRId64, whole / 3600, whole / 60 % 60,
                 whole % 60);
    return text;
}

/* Ends the line that is written over, so that a lasting one can follow. */
static void clear_line(struct display *display)
{
    if (display->dirty)
        fputs("\r\033[K", stdout);
    display->dirty = false;
}

static void print_step(struct display *display, const sf_event *at)
{
    const sf_train_progress *how = at->train;
    bool lasting = !display->terminal || (display->every > 0 && at->step % display->every == 0);
    char rate[32], flops[32], left[32];
    if (!display->terminal && display->every > 0 && at->step % display->every != 0 &&
        at->step != at->steps)
        return;
    clear_line(display);
    printf("step %" PRId64 "/%" PRId64 "  loss %.6g  %s%s/s  %s/s  %s  %s left", at->step,
           at->steps, at->loss, sf_cli_count(how->rate, rate),
           how->counts_tokens ? "tokens" : "samples", sf_cli_flops(how->flops, flops),
           sf_text_bytes((double)how->memory).at, time_text(how->left, left));
    if (lasting)
        putchar('\n');
    else
        display->dirty = true;
    fflush(stdout);
}

static void print_start(const sf_event *at)
{
    const sf_train_progress *how = at->train;
    char parameters[32], shown[SF_CLI_SHOWN];
    sf_cli_count((double)how->parameters, parameters);
    printf("%sparameters, engine %s, %d thread%s", parameters, how->engine, how->threads,
           how->threads == 1 ? "" : "s");
    if (how->ranks > 1)
        printf(" on each of %d ranks", how->ranks);
    putchar('\n');
    if (*how->data)
        printf("data: %s\n", sf_cli_shown(how->data, shown));
    if (at->text)
        printf("resumed from %s\n", sf_cli_shown(at->text, shown));
    fflush(stdout);
}

static void print_event(struct display *display, const sf_event *at)
{
    if (at->kind == SF_EVENT_START) {
        print_start(at);
    } else if (at->kind == SF_EVENT_STEP) {
        print_step(display, at);
    } else {
        char shown[SF_CLI_SHOWN];
        clear_line(display);
        printf("saved %s\n", sf_cli_shown(at->text, shown));
        fflush(stdout);
    }
}

static bool hear_event(void *context, const sf_event *at)
{
    struct display *display = context;
    speaks = speaks || at->rank == 0;
    if (at->rank == 0)
        sf_cli_keep_progress(&display->last, at->train);
    if (at->rank == 0 && !display->quiet && !display->json)
        print_event(display, at);
    return interrupted == 0;
}

struct ending {
    const struct display *display;
    const sf_train_report *report;
};

static sf_status print_train_json(void *context)
{
    const struct ending *ending = context;
    const sf_train_report *report = ending->report;
    sf_buf buf = {0};
    sf_json_writer json = {.buf = &buf, .indent = true};
    sf_json_begin_object(&json);
    sf_cli_put_progress(&json, &ending->display->last.at);
    sf_cli_put_speed(&json, ending->display->last.at.rate, ending->display->last.at.flops);
    sf_json_add_int(&json, "first", report->first);
    sf_json_add_int(&json, "step", report->step);
    sf_json_add_double(&json, "loss", report->loss);
    sf_json_add_double(&json, "seconds", report->seconds);
    sf_json_add_bool(&json, "interrupted", report->interrupted);
    sf_json_end_object(&json);
    puts(buf.text);
    sf_buf_free(&buf);
    return SF_OK;
}

static sf_status print_end(struct display *display, const sf_train_report *report, sf_diag *diag)
{
    struct ending ending = {display, report};
    char time[32];
    clear_line(display);
    if (display->quiet || !speaks)
        return SF_OK;
    if (display->json)
        return sf_guarded(print_train_json, &ending, diag);
    if (report->step == report->first)
        printf("nothing to do: the run has made %" PRId64 " steps\n", report->step);
    else
        printf("%s after %" PRId64 " step%s in %s, loss %.6g\n",
               report->interrupted ? "stopped" : "done", report->step, report->step == 1 ? "" : "s",
               time_text(report->seconds, time), report->loss);
    return SF_OK;
}

static sf_status train(const sf_cli_split *split, sf_train_options *options, sf_diag *diag)
{
    sf_graph *graph;
    sf_plan *plan;
    sf_train_report report = {.size = sizeof report};
    sf_status status = sf_cli_open(split, diag, &graph, &plan);
    options->plan = plan;
    options->limit = split->limit;
    launched = sf_ranks_started() > 0;
    speaks = !launched;
    catch_signals();
    if (status == SF_OK)
        status = sf_train(graph, options, diag, &report);
    if (status == SF_OK)
        status = print_end(options->context, &report, diag);
    else
        clear_line(options->context);
    sf_plan_free(plan);
    sf_graph_free(graph);
    return status;
}

static bool find_order(const char *text, sf_train_order *out)
{
    *out = !text                           ? SF_ORDER_DEFAULT
           : strcmp(text, "shuffled") == 0 ? SF_ORDER_SHUFFLED
                                           : SF_ORDER_SEQUENTIAL;
    return !text || *out == SF_ORDER_SHUFFLED || strcmp(text, "sequential") == 0;
}

int sf_cli_train(int argc, char **argv)
{
    sf_cli_split split = {0};
    sf_train_options train_options = {.size = sizeof train_options};
    /* Launchers give processes terminals of their own and write down all that goes there. */
    struct display display = {.terminal = isatty(STDOUT_FILENO) && sf_ranks_started() == 0};
    const char *resume = NULL, *order = NULL;
    sf_output profile = {.size = sizeof profile};
    int64_t steps = -1, threads = 0, keep = 2, seed = -1;
    const sf_cli_option options[] = {
        {SF_OPT_STEPS, &steps, "total number of steps, including those of a resumed run"},
        {SF_OPT_DATA, &train_options.data,
         "safetensors file with batches, a directory of such files, a file of tokens, or "
         "synthetic[:N]"},
        {SF_OPT_TOKENS_TYPE, &train_options.tokens_type,
         "u8, u16 or u32 (default: from the file name, else u16)"},
        {SF_OPT_ORDER, &order,
         "shuffled or sequential (default: tokens are shuffled, batches are not)"},
        {SF_OPT_INIT, &train_options.init,
         "rules such as normal:0.02,*bias=zeros, or a safetensors file or checkpoint with the "
         "weights"},
        {SF_OPT_SET, &train_options.set, "constant arguments: NAME=NUMBER,..."},
        {SF_OPT_SEED, &seed, "seed of weights, data order and keys (default 0)"},
        {SF_OPT_SAVE, &train_options.save, "write checkpoints to DIR"},
        {SF_OPT_SAVE_EVERY, &train_options.save_every,
         "steps between checkpoints (default 100); the last step is always saved"},
        {SF_OPT_KEEP, &keep, "number of checkpoints to keep (default 2; 0: all)"},
        {SF_OPT_RESUME, &resume,
         "continue from the latest checkpoint in DIR (default: the directory of --save), if there "
         "is one"},
        {SF_OPT_LOG, &train_options.log, "append one JSON line per step to FILE"},
        {SF_OPT_PROFILE, &profile.path,
         "write where the time of a step goes: a table, or the timeline of the last step if FILE "
         "ends in .json; - is standard output"},
        {SF_OPT_ENGINE, &train_options.engine, SF_CLI_ENGINE},
        {SF_OPT_THREADS, &threads,
         "threads, shared by ranks that are threads of one process (default: as many as the "
         "process may use)"},
        {SF_OPT_PLAN, &split.plan,
         "split the step by this plan, over threads or, under mpirun, processes"},
        {SF_OPT_PASSES, &split.passes, SF_CLI_PASSES},
        {SF_OPT_RANKS, &split.ranks,
         "number of ranks; must be that of the plan; with --schedule, the value of sheaf.ranks"},
        {SF_OPT_SCHEDULE, &split.script.path, SF_CLI_SCHEDULE},
        {SF_OPT_UNSAFE, &split.script.unsafe,
         "let the Lua program open files and run other programs"},
        {SF_OPT_WAIT, &split.limit,
         "seconds a rank waits for another rank before the run fails (default 300)"},
        {SF_OPT_MEMORY, &train_options.memory,
         "limit on memory for tensors of each rank, such as 512M (default: what the machine has)"},
        {SF_OPT_DEVICE_MEMORY, &train_options.device_memory, SF_CLI_DEVICE_MEMORY},
        {SF_OPT_HOST_LINK, &train_options.host_link, SF_CLI_HOST_LINK},
        {SF_OPT_PRECISION, &train_options.precision, SF_CLI_PRECISION},
        {SF_OPT_CHECK, &train_options.check,
         "check each program before it runs: memory, order, events"},
        {SF_OPT_IGNORE_NAN, &train_options.ignore_nan, "continue when the loss is NaN or infinite"},
        {SF_OPT_LOG_EVERY, &display.every, "print a line every N steps"},
        {SF_OPT_JSON, &display.json,
         "print no lines, but one JSON object at the end; --log has the steps"},
        {SF_OPT_QUIET, &display.quiet, "print only errors"},
    };
    const sf_cli_command command = {
        .name = "train",
        .synopsis = "[STEP] --steps N [--data PATH] [--init INIT] [--save DIR] [--resume] [...]",
        .about = "Trains: runs a step on batches of data, carries its state from step to step, and "
                 "writes checkpoints. The first interrupt ends the current step, saves and stops; "
                 "the second stops at once.",
        .operand = "STEP",
        .optional = true, /* a plan leads to its own */
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &split.load,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &split.step, &exit_code))
        return exit_code;
    if (!split.step && !split.plan)
        return sf_cli_misuse(command.name, "STEP is missing");
    if (steps < 0)
        return sf_cli_misuse("train", "--steps N is missing");
    if (threads > INT_MAX)
        return sf_cli_misuse("train", "--threads is too large");
    if (display.json && profile.path && strcmp(profile.path, "-") == 0)
        return sf_cli_misuse("train", "--json and --profile cannot both go to standard output");
    if (split.passes && !split.plan)
        return sf_cli_misuse("train", "--passes needs a --plan");
    split.memory = train_options.device_memory ? train_options.device_memory : train_options.memory;
    if (split.script.path && (split.plan || !sf_cli_is_script(split.script.path)))
        return sf_cli_misuse("train", "a --schedule is a file that ends in .lua, and no --plan");
    if (split.script.unsafe && !split.script.path)
        return sf_cli_misuse("train", "--unsafe is for a --schedule in Lua");
    if (split.ranks > 0 && !split.plan && !split.script.path)
        return sf_cli_misuse("train", "--ranks needs a --plan");
    if (!find_order(order, &train_options.order))
        return sf_cli_misuse("train", "--order is shuffled or sequential, not '%s'", order);
    if (resume && !*resume && !train_options.save)
        return sf_cli_misuse("train", "--resume needs --save DIR, or say --resume=DIR");
    train_options.steps = steps;
    train_options.threads = (int)threads;
    sf_cli_set_profile(&profile, &train_options);
    train_options.has_seed = seed >= 0;
    train_options.seed = seed >= 0 ? (uint64_t)seed : 0;
    train_options.keep = keep == 0 ? -1 : keep;
    train_options.resume = resume != NULL;
    train_options.resume_from = resume && *resume ? resume : NULL;
    train_options.listener = hear_event;
    train_options.context = &display;
    sf_diag *diag = sf_cli_diag();
    exit_code = sf_cli_finish(train(&split, &train_options, diag), diag);
    return exit_code == SF_EXIT_GOOD && interrupted ? 128 + interrupted : exit_code;
}
