#include "report/report_show.h"

#include "api/api_options.h"
#include "base/guard.h"
#include "base/output.h"
#include "front/lost_state.h"
#include "run/runner.h"

struct job {
    const sf_graph *graph; /* NULL: the table of ops */
    bool program;
    sf_show_options options;
    const sf_output *output;
    sf_diag *diag;
};

static sf_status write_page(void *context)
{
    struct job *job = context;
    sf_buf out = {0};
    if (job->program) {
        sf_lower_options options = {.target = sf_engine_target(NULL)};
        sf_program *program = sf_lower_as_text(job->graph, &options);
        sf_program_print(program, &out);
        sf_program_free(program);
    } else if (job->graph) {
        sf_summary summary;
        sf_summarize(job->graph, job->options.file, &summary);
        if (job->options.json)
            sf_summary_json(&summary, &out);
        else
            sf_summary_text(&summary, &job->options, &out);
        sf_summary_free(&summary);
    } else {
        sf_ops_text(&out);
    }
    sf_status status = sf_output_report(job->output, &out, job->diag);
    sf_buf_free(&out);
    return status;
}

sf_status sf_show(const sf_graph *graph, const sf_show_options *options, const sf_output *output,
                  sf_diag *diag)
{
    SF_NEED(diag, graph);
    struct job job = {.graph = graph, .output = output, .diag = diag};
    SF_TRY(SF_TAKE(sf_show_options, options, &job.options, diag));
    sf_warn_loose(graph, diag);
    return sf_guarded(write_page, &job, diag);
}

sf_status sf_show_program(const sf_graph *graph, const sf_output *output, sf_diag *diag)
{
    SF_NEED(diag, graph);
    struct job job = {.graph = graph, .program = true, .output = output, .diag = diag};
    return sf_guarded(write_page, &job, diag);
}

sf_status sf_show_ops(const sf_output *output, sf_diag *diag)
{
    struct job job = {.output = output, .diag = diag};
    return sf_guarded(write_page, &job, diag);
}
