/* Statuses and messages. */
#ifndef SHEAF_STATUS_H
#define SHEAF_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sheaf/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sf_status {
    SF_OK = 0,
    SF_EINPUT = 1,       /* the input is malformed or contradicts itself */
    SF_EUNSUPPORTED = 2, /* well-formed, but something this build cannot do */
    SF_EMISMATCH = 3,    /* a check was made and did not hold */
    SF_EUSAGE = 4,       /* the call or the command line is wrong */
    SF_EIO = 5,          /* the system could not read or write */
    SF_ENOMEM = 6,       /* no memory, or past the limit that was set */
    SF_EPEER = 7,        /* another rank failed, or was waited for in vain */
} sf_status;

/* Messages of one or several calls. Every function that can fail takes one, or NULL; several errors in one input are
 * reported together. One thread uses it at a time. */
typedef struct sf_diag sf_diag;

SF_API sf_diag *sf_diag_new(void);
SF_API void sf_diag_free(sf_diag *diag);

/* The number of messages, also those past the first twenty, which are not kept. A call that succeeds may leave
 * warnings. */
SF_API int sf_diag_count(const sf_diag *diag);

/* Message `index` as "FILE:LINE:COLUMN: error: TEXT", or "warning:", with the hint on a second line if
 * there is one. The string belongs to `diag`. NULL past the last one that was kept. */
SF_API const char *sf_diag_text(sf_diag *diag, int index);

SF_API void sf_diag_clear(sf_diag *diag);

/* A message in parts. The strings belong to the diag, until it is cleared or freed. */
typedef enum sf_severity {
    SF_SEVERITY_ERROR = 0,
    SF_SEVERITY_WARNING = 1,
} sf_severity;

typedef struct sf_diag_entry {
    size_t size;    /* sizeof this struct, see api.h */
    sf_status code; /* SF_OK: a warning */
    sf_severity severity;
    const char *file; /* the file of the message; "" for none */
    int line, column; /* from 1 on; 0: not known */
    const char *text;
    const char *hint; /* a hint for the user; or "" */
} sf_diag_entry;

/* Fills *out with message `index`; false past the last one that was kept. */
SF_API bool sf_diag_get(const sf_diag *diag, int index, sf_diag_entry *out);

/* "bad input", "not supported", ... */
SF_API const char *sf_status_name(sf_status status);

#ifdef __cplusplus
}
#endif

#endif
