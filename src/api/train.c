/* Training, guarded. */
#include "run/train.h"
#include "api/guard.h"

static sf_status work(void *context)
{
    return sf_training_run(context);
}

sf_status sf_train(const sf_graph *graph, const sf_train_options *options, sf_diag *diag,
                   sf_train_report *report)
{
    sf_training training = {.graph = graph, .options = *options, .diag = diag};
    sf_status status = sf_guarded(work, &training, diag);
    sf_training_end(&training);
    if (report)
        *report = training.report;
    return status;
}
