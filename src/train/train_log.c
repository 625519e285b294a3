#include "train/train_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static sf_status fail_log(const sf_log *log, const char *what, sf_diag *diag)
{
    return sf_fail(diag, sf_status_of_errno(), (sf_loc){log->path, 0, 0}, "%s: %s", what,
                   strerror(errno));
}

/* A machine that lost power may have left half a line. */
static bool ends_within_line(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat info;
    char last = '\n';
    if (fd < 0)
        return false;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
        pread(fd, &last, 1, info.st_size - 1) != 1)
        last = '\n';
    close(fd);
    return last != '\n';
}

static sf_status write_line_bytes(sf_log *log, const char *text, size_t length, sf_diag *diag)
{
    if (!sf_write_fully(log->fd, text, length))
        return fail_log(log, "cannot write", diag);
    return SF_OK;
}

sf_status sf_log_open(const char *path, sf_diag *diag, sf_log *out)
{
    *out = (sf_log){.fd = -1, .path = path};
    bool torn = ends_within_line(path);
    out->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
    if (out->fd < 0)
        return fail_log(out, "cannot open", diag);
    out->open = true;
    return torn ? write_line_bytes(out, "\n", 1, diag) : SF_OK;
}

void sf_log_close(sf_log *log)
{
    if (log->open)
        close(log->fd);
    log->open = false;
}

bool sf_log_begin(sf_log *log, const char *event)
{
    if (!log->open)
        return false;
    log->line.length = 0;
    log->json = (sf_json_writer){.buf = &log->line};
    sf_json_begin_object(&log->json);
    sf_log_text(log, "event", event);
    return true;
}

void sf_log_int(sf_log *log, const char *key, int64_t value)
{
    sf_json_key(&log->json, key);
    sf_json_put_int(&log->json, value);
}

void sf_log_double(sf_log *log, const char *key, double value)
{
    sf_json_key(&log->json, key);
    sf_json_put_double(&log->json, value);
}

void sf_log_bool(sf_log *log, const char *key, bool value)
{
    sf_json_key(&log->json, key);
    sf_json_put_bool(&log->json, value);
}

void sf_log_text(sf_log *log, const char *key, const char *value)
{
    sf_json_key(&log->json, key);
    if (value)
        sf_json_put_string(&log->json, value);
    else
        sf_json_put_null(&log->json);
}

sf_status sf_log_end(sf_log *log, sf_diag *diag)
{
    sf_json_end_object(&log->json);
    sf_buf_putc(&log->line, '\n');
    return write_line_bytes(log, log->line.text, log->line.length, diag);
}
