/* JSON about the steps of the commands run and train. */
#include "cli/cli_progress.h"

#include <stdio.h>

void sf_cli_keep_progress(sf_cli_progress *kept, const sf_train_progress *how)
{
    kept->at = *how;
    snprintf(kept->data, sizeof kept->data, "%s", how->data ? how->data : "");
    kept->at.data = kept->data;
}

void sf_cli_put_progress(sf_json_writer *json, const sf_train_progress *how)
{
    sf_json_add_string(json, "engine", how->engine);
    sf_json_add_int(json, "ranks", how->ranks);
    sf_json_add_int(json, "threads", how->threads);
    sf_json_add_string(json, "data", how->data);
    sf_json_add_int(json, "parameters", how->parameters);
    sf_json_add_int(json, "memory", how->memory);
    sf_json_add_string(json, "counts", how->counts_tokens ? "tokens" : "samples");
}

void sf_cli_put_speed(sf_json_writer *json, double rate, double flops)
{
    sf_json_add_double(json, "rate", rate);
    sf_json_add_double(json, "flops", flops);
}
