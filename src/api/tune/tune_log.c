/* The log of a tuner: its settings are not tried once more. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "api/tune/tuning.h"
#include "base/file.h"
#include "base/json.h"

/* The key of trials: those of another step, program or machine do not apply here. */
static const char *describe_run(sf_tuning *tuning)
{
    const sf_tune_options *options = &tuning->options;
    sf_buf text = {0};
    sf_buf_printf(&text,
                  "step %016" PRIx64 ", program %016" PRIx64 ", by %s on %s, %d ranks, %" PRId64
                  " bytes",
                  sf_graph_hash(tuning->graph), options->program,
                  options->by_processor ? "cpu"
                  : options->by_run     ? "run"
                                        : "sim",
                  options->cluster_name ? options->cluster_name : "a cluster", options->ranks,
                  options->memory);
    const char *kept = sf_arena_string(&tuning->arena, text.text, text.length);
    sf_buf_free(&text);
    return kept;
}

static bool read_flag(const sf_json *line, const char *key)
{
    bool value = false;
    sf_json_bool(sf_json_get(line, key), &value);
    return value;
}

static void take_trial(sf_tuning *tuning, const sf_json *line)
{
    sf_str setting, why;
    sf_trial trial = {.size = sizeof trial, .seconds = (double)INFINITY, .logged = true};
    if (!sf_json_string(sf_json_get(line, "setting"), &setting))
        return;
    sf_json_number(sf_json_get(line, "seconds"), &trial.seconds);
    sf_json_int(sf_json_get(line, "memory"), &trial.memory);
    if (trial.seconds < 0 || trial.memory < 0)
        return; /* no run took that: the setting is tried again */
    sf_json_int(sf_json_get(line, "room"), &tuning->report->room);
    trial.pruned = read_flag(line, "pruned");
    if (sf_json_string(sf_json_get(line, "why"), &why))
        trial.why = sf_arena_string(&tuning->arena, why.at, why.length);
    for (size_t p = 0; p < tuning->points.count; p++)
        if (sf_str_is(setting, tuning->at[p].text)) {
            trial.setting = tuning->at[p].text;
            tuning->simulated[p] = trial;
        }
}

static sf_status take_line(sf_tuning *tuning, sf_str text, const char *run)
{
    const sf_json *line;
    sf_str event, other;
    if (sf_json_parse(text, tuning->options.log, &tuning->arena, &line, NULL) != SF_OK ||
        !sf_json_string(sf_json_get(line, "event"), &event))
        return SF_OK; /* a run that was killed may leave half a line */
    if (sf_str_is(event, "tune") && sf_json_string(sf_json_get(line, "run"), &other) &&
        !sf_str_is(other, run)) {
        sf_fail(tuning->diag, SF_EUSAGE, (sf_loc){.file = tuning->options.log},
                "this log is of another run: %.*s; this one is of %s", SF_STR_ARGS(other), run);
        return sf_hint(tuning->diag, "name another file, or remove this one");
    }
    if (sf_str_is(event, "trial"))
        take_trial(tuning, line);
    return SF_OK;
}

static sf_status read_log(sf_tuning *tuning, const char *run)
{
    sf_str text;
    SF_TRY(sf_file_read(tuning->options.log, &tuning->arena, 0, &text, tuning->diag));
    while (text.length > 0) {
        const char *end = memchr(text.at, '\n', text.length);
        size_t length = end ? (size_t)(end - text.at) : text.length;
        SF_TRY(take_line(tuning, (sf_str){text.at, length}, run));
        length += end ? 1 : 0;
        text = (sf_str){text.at + length, text.length - length};
    }
    return SF_OK;
}

sf_status sf_tuning_open_log(sf_tuning *tuning)
{
    const char *path = tuning->options.log;
    if (!path)
        return SF_OK;
    const char *run = describe_run(tuning);
    bool is_there = sf_file_is_same(path, path);
    if (is_there)
        SF_TRY(read_log(tuning, run));
    SF_TRY(sf_log_open(path, tuning->diag, &tuning->log));
    if (is_there)
        return SF_OK;
    sf_log_begin(&tuning->log, "tune");
    sf_log_text(&tuning->log, "run", run);
    sf_log_int(&tuning->log, "settings", tuning->report->points);
    return sf_log_end(&tuning->log, tuning->diag);
}

sf_status sf_tuning_write_log(sf_tuning *tuning, const sf_trial *trial)
{
    if (trial->logged || !sf_log_begin(&tuning->log, "trial"))
        return SF_OK;
    sf_log_text(&tuning->log, "setting", trial->setting);
    sf_log_double(&tuning->log, "seconds", trial->seconds);
    sf_log_int(&tuning->log, "memory", trial->memory);
    sf_log_int(&tuning->log, "room", tuning->report->room);
    sf_log_bool(&tuning->log, "pruned", trial->pruned);
    sf_log_text(&tuning->log, "why", trial->why);
    SF_TRY(sf_log_end(&tuning->log, tuning->diag));
    fsync(tuning->log.fd); /* where the file cannot be synced, it is written all the same */
    return SF_OK;
}
