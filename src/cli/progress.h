/* What commands that make steps say of them for machines: members of one object. */
#ifndef SF_CLI_PROGRESS_H
#define SF_CLI_PROGRESS_H

#include "base/json.h"
#include "sheaf/sheaf.h"

/* What does not change from step to step. */
void sf_cli_put_progress(sf_json_writer *json, const sf_train_progress *how);

/* Tokens or samples, and operations, in a second. */
void sf_cli_put_speed(sf_json_writer *json, double rate, double flops);

#endif
