/* Training, guarded; of a split step, by all ranks. */
#include "train/train.h"

#include <math.h>

#include "api/api_options.h"
#include "api/run_ranks.h"
#include "base/guard.h"

struct job {
    const sf_graph *graph;
    sf_train_options options;
    sf_train_report report; /* of the rank that leads */
    atomic_bool settled;
};

static sf_status train_guarded(void *context)
{
    return sf_training_run(context);
}

static sf_status train_rank(void *context, sf_comm *comm, sf_diag *diag)
{
    struct job *job = context;
    sf_training training = {
        .graph = job->graph, .options = job->options, .diag = diag, .comm = comm};
    training.report.loss = (double)NAN;
    sf_status status =
        sf_threads_open(sf_rank_threads(job->options.threads, comm), diag, &training.pool);
    if (status == SF_OK)
        status = sf_guarded(train_guarded, &training, diag);
    if (training.settled)
        atomic_store(&job->settled, true);
    sf_training_end(&training);
    sf_threads_free(training.pool);
    if (sf_comm_leads(comm))
        job->report = training.report;
    return status;
}

static sf_status train(struct job *job, sf_diag *diag)
{
    const sf_train_options *options = &job->options;
    if (!options->plan)
        return train_rank(job, NULL, diag);
    job->options.memory = sf_rank_memory(options->memory, sf_plan_ranks(options->plan));
    sf_world world = {.ranks = sf_plan_ranks(options->plan),
                      .limit = options->limit,
                      .work = train_rank,
                      .context = job,
                      .settled = &job->settled};
    return sf_world_run(&world, diag);
}

sf_status sf_train(const sf_graph *graph, const sf_train_options *options, sf_diag *diag,
                   sf_train_report *report)
{
    struct job job = {.graph = graph, .report.loss = (double)NAN};
    SF_NEED(diag, graph);
    SF_TRY(SF_CHECK_SIZE(sf_train_report, report, diag));
    SF_TRY(SF_TAKE(sf_train_options, options, &job.options, diag));
    options = &job.options;
    SF_CHECK_OPTIONS(diag, {"steps", (double)options->steps}, {"threads", options->threads},
                     {"memory", (double)options->memory}, {"limit", options->limit},
                     {"save_every", (double)options->save_every},
                     {"device_memory", (double)options->device_memory},
                     {"host_link", (double)options->host_link});
    SF_TRY(SF_CHECK_SIZE(sf_output, options->profile, diag));
    SF_TRY(SF_CHECK_SIZE(sf_output, options->trace, diag));
    sf_status status = train(&job, diag);
    sf_status given = SF_GIVE(sf_train_report, report, &job.report, diag);
    return status == SF_OK ? given : status;
}
