/* The log of a run: a file to which a line of JSON is appended per event. A line is written in one go,
 * so a run that is killed leaves whole lines. */
#ifndef SF_TRAIN_TRAIN_LOG_H
#define SF_TRAIN_TRAIN_LOG_H

#include "base/diag.h"
#include "base/json.h"

/* An outside handle; a zeroed one is closed, and takes nothing. */
typedef struct sf_log {
    bool open;
    int fd;
    const char *path; /* borrowed */
    sf_buf line;
    sf_json_writer json;
} sf_log;

sf_status sf_log_open(const char *path, sf_diag *diag, sf_log *out);

/* Closes the file; its memory belongs to the guard of the run. */
void sf_log_close(sf_log *log);

/* Begins a line with "event", adds the known members, and writes it. False: the log is closed. */
bool sf_log_begin(sf_log *log, const char *event);
void sf_log_int(sf_log *log, const char *key, int64_t value);
void sf_log_double(sf_log *log, const char *key, double value);
void sf_log_bool(sf_log *log, const char *key, bool value);
void sf_log_text(sf_log *log, const char *key, const char *value); /* NULL: null */
sf_status sf_log_end(sf_log *log, sf_diag *diag);

#endif
