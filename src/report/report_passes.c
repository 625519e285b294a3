#include "report/report_passes.h"

#include <math.h>

#include "api/api_options.h"
#include "base/guard.h"
#include "base/json.h"
#include "base/output.h"
#include "base/units.h"
#include "report/table.h"
#include "sheaf/pass.h"

/* What there is */

static void list_text(const sf_show_options *options, sf_buf *out)
{
    sf_style style = {.width = options->width, .colour = options->colour};
    sf_heading(out, style,
               "passes, in the order in which they run: --passes NAME[:OPTION=VALUE]...,NAME...");
    for (int i = 0; sf_pass_at(i); i++) {
        const sf_program_pass *pass = sf_pass_at(i);
        sf_buf_printf(out, "  %s%s%s\n    %s\n", pass->name,
                      *pass->needs ? ", after a pass that provides " : "", pass->needs,
                      pass->about);
        for (int o = 0; o < SF_PASS_OPTIONS && pass->options[o].name; o++) {
            const sf_pass_option *option = &pass->options[o];
            sf_buf_printf(out, "    %s=%s  %s", option->name, option->is_size ? "SIZE" : "NUMBER",
                          option->about);
            if (!isnan(option->usual) && option->is_size)
                sf_buf_printf(out, " (default %s)", sf_text_bytes(option->usual).at);
            else if (!isnan(option->usual))
                sf_buf_printf(out, " (default %g)", option->usual);
            sf_buf_putc(out, '\n');
        }
    }
}

static void list_json(sf_buf *out)
{
    sf_json_writer json = {.buf = out, .indent = true};
    sf_json_begin_array(&json);
    for (int i = 0; sf_pass_at(i); i++) {
        const sf_program_pass *pass = sf_pass_at(i);
        sf_json_begin_object(&json);
        sf_json_add_string(&json, "name", pass->name);
        sf_json_add_string(&json, "about", pass->about);
        sf_json_add_string(&json, "needs", pass->needs);
        sf_json_add_string(&json, "provides", pass->provides);
        sf_json_key(&json, "options");
        sf_json_begin_array(&json);
        for (int o = 0; o < SF_PASS_OPTIONS && pass->options[o].name; o++)
            sf_json_put_string(&json, pass->options[o].name);
        sf_json_end_array(&json);
        sf_json_end_object(&json);
    }
    sf_json_end_array(&json);
    sf_buf_putc(out, '\n');
}

struct job {
    sf_show_options options;
    const sf_output *output;
    sf_diag *diag;
};

static sf_status write_list(void *context)
{
    struct job *job = context;
    sf_buf out = {0};
    if (job->options.json)
        list_json(&out);
    else
        list_text(&job->options, &out);
    sf_status status = sf_output_report(job->output, &out, job->diag);
    sf_buf_free(&out);
    return status;
}

sf_status sf_passes_show(const sf_show_options *options, const sf_output *output, sf_diag *diag)
{
    struct job job = {.output = output, .diag = diag};
    SF_TRY(SF_TAKE(sf_show_options, options, &job.options, diag));
    return sf_guarded(write_list, &job, diag);
}

/* What they did */

void sf_outcomes_print(const sf_rank_run *run, sf_style style, sf_arena *arena, sf_buf *out)
{
    static const sf_column columns[] = {
        {"pass", false, SF_STAYS},       {"step", true, SF_STAYS},
        {"exposed", true, SF_STAYS},     {"memory", true, SF_STAYS},
        {"collectives", true, SF_STAYS}, {"traffic", true, SF_STAYS},
        {"what it did", false, SF_STAYS}};
    if (run->noutcomes == 0)
        return;
    sf_heading(out, style, "passes");
    sf_table table = sf_table_new(arena, 7, columns);
    for (int i = 0; i < run->noutcomes; i++) {
        const sf_pass_outcome *o = &run->outcomes[i];
        sf_table_add(&table, "%s", o->name);
        sf_table_add(&table, "%s", sf_text_seconds(o->seconds).at);
        sf_table_add(&table, "%s", sf_text_seconds(o->exposed).at);
        sf_table_add(&table, "%s", sf_text_bytes((double)o->bytes).at);
        sf_table_add(&table, "%d", o->ncollectives);
        sf_table_add(&table, "%s", sf_text_bytes(o->traffic).at);
        sf_table_add(&table, "%s", o->note);
    }
    sf_table_print(&table, style, out);
}

void sf_outcomes_put(const sf_rank_run *run, sf_json_writer *json)
{
    if (run->noutcomes == 0)
        return;
    sf_json_key(json, "passes");
    sf_json_begin_array(json);
    for (int i = 0; i < run->noutcomes; i++) {
        const sf_pass_outcome *o = &run->outcomes[i];
        sf_json_begin_object(json);
        sf_json_add_string(json, "name", o->name);
        sf_json_add_double(json, "seconds", o->seconds);
        sf_json_add_double(json, "exposed", o->exposed);
        sf_json_add_int(json, "memory", o->bytes);
        sf_json_add_int(json, "collectives", o->ncollectives);
        sf_json_add_double(json, "traffic", o->traffic);
        sf_json_add_bool(json, "kept", o->kept);
        if (o->could_hide > 0) {
            sf_json_add_double(json, "hides", o->hides);
            sf_json_add_double(json, "could_hide", o->could_hide);
        }
        sf_json_add_string(json, "note", o->note);
        sf_json_key(json, "curve");
        sf_json_begin_array(json);
        for (uint32_t p = 0; p < o->npoints; p++)
            sf_json_put_int(json, o->memory[p]);
        sf_json_end_array(json);
        sf_json_end_object(json);
    }
    sf_json_end_array(json);
}
