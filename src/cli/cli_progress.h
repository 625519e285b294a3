/* JSON about the steps of a run: members of one object. */
#ifndef SF_CLI_CLI_PROGRESS_H
#define SF_CLI_CLI_PROGRESS_H

#include "base/json.h"
#include "sheaf/sheaf.h"

/* The last progress of a run, with words of its own: those of an event are the run's, and go with it. */
typedef struct sf_cli_progress {
    sf_train_progress at;
    char data[1024];
} sf_cli_progress;
void sf_cli_keep_progress(sf_cli_progress *kept, const sf_train_progress *how);

/* The members that do not change from step to step. */
void sf_cli_put_progress(sf_json_writer *json, const sf_train_progress *how);

/* Tokens or samples, and operations, in a second. */
void sf_cli_put_speed(sf_json_writer *json, double rate, double flops);

#endif
