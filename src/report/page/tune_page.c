#include "report/page/tune_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/boundary.h"
#include "base/guard.h"
#include "base/json.h"
#include "base/output.h"
#include "report/page/page_html.h"

static int by_value(const void *a, const void *b)
{
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    double difference = strtod(left, NULL) - strtod(right, NULL);
    return difference < 0 ? -1 : difference > 0 ? 1 : strcmp(left, right);
}

static int place_of(const char *const *values, int count, const char *value)
{
    int at = 0;
    while (at < count && (!value || strcmp(values[at], value) != 0))
        at++;
    return at;
}

int sf_tune_values(const sf_tune_report *report, int variable, int most, const char **out)
{
    int count = 0;
    for (int i = 0; i < report->ntrials; i++) {
        const char *value = report->trials[i]->values[variable];
        if (!value || place_of(out, count, value) < count)
            continue;
        if (count == most)
            return 0;
        out[count++] = value;
    }
    qsort(out, (size_t)count, sizeof *out, by_value);
    return count;
}

/* A foreign text, as it can be shown; or null. */
static void add_shown(sf_json_writer *json, const char *key, const char *text)
{
    sf_buf shown = {0};
    if (text)
        sf_buf_show(&shown, sf_str_of(text));
    sf_json_add_string(json, key, text ? shown.text ? shown.text : "" : NULL);
    sf_buf_free(&shown);
}

static void put_trial(sf_json_writer *json, const sf_tune_report *report, const sf_trial *trial)
{
    sf_json_begin_object(json);
    for (int v = 0; v < report->nvariables; v++)
        add_shown(json, report->variables[v], trial->values[v]);
    sf_json_add_double(json, "seconds", trial->seconds);
    sf_json_add_int(json, "memory", trial->memory);
    sf_json_add_bool(json, "pruned", trial->pruned);
    sf_json_add_bool(json, "logged", trial->logged);
    add_shown(json, "why", trial->why);
    sf_json_end_object(json);
}

void sf_tune_json(const sf_tune_report *report, const char *title, bool indent, sf_buf *out)
{
    const sf_trial *best = report->best >= 0 ? report->trials[report->best] : NULL;
    sf_json_writer json = {.buf = out, .indent = indent};
    sf_json_begin_object(&json);
    add_shown(&json, "title", title);
    sf_json_add_int(&json, "settings", report->points);
    sf_json_add_int(&json, "room", report->room);
    add_shown(&json, "best", best ? best->setting : NULL);
    sf_json_add_double(&json, "seconds", best ? best->seconds : (double)NAN);
    sf_json_key(&json, "variables");
    sf_json_begin_row(&json);
    for (int v = 0; v < report->nvariables; v++)
        sf_json_put_string(&json, report->variables[v]);
    sf_json_end_array(&json);
    sf_json_key(&json, "trials");
    sf_json_begin_array(&json);
    for (int i = 0; i < report->ntrials; i++)
        put_trial(&json, report, report->trials[i]);
    sf_json_end_array(&json);
    sf_json_end_object(&json);
}

struct writing {
    const sf_tune_report *report;
    const char *title;
    const sf_output *output;
    sf_diag *diag;
};

static sf_status write_page(void *context)
{
    const struct writing *job = context;
    sf_buf json = {0}, out = {0};
    sf_tune_json(job->report, job->title, false, &json);
    sf_page_put(&sf_tune_page_head, &json, &sf_tune_page_tail, &out);
    sf_status status = sf_output_write(job->output, &out, job->diag);
    sf_buf_free(&json);
    sf_buf_free(&out);
    return status;
}

sf_status sf_tune_page(const sf_tune_report *report, const char *title, const sf_output *output,
                       sf_diag *diag)
{
    SF_NEED(diag, report, title);
    struct writing job = {report, title, output, diag};
    return sf_guarded(write_page, &job, diag);
}
