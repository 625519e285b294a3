/* Training, guarded. */
#include "run/train.h"

#include <math.h>

#include "api/guard.h"

static sf_status work(void *context)
{
    return sf_training_run(context);
}

sf_status sf_train(const sf_graph *graph, const sf_train_options *options, sf_diag *diag,
                   sf_train_report *report)
{
    sf_training training = {.graph = graph, .options = *options, .diag = diag};
    training.report.loss = (double)NAN;
    sf_status status = sf_open_threads(options->threads, diag, &training.pool);
    if (status == SF_OK) {
        status = sf_guarded(work, &training, diag);
        sf_training_end(&training);
        sf_threads_free(training.pool);
    }
    if (report)
        *report = training.report;
    return status;
}
