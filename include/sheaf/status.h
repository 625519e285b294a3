/* How the library says that something went wrong. */
#ifndef SHEAF_STATUS_H
#define SHEAF_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sf_status {
    SF_OK = 0,
    SF_EINPUT,       /* the input is malformed or contradicts itself */
    SF_EUNSUPPORTED, /* well-formed, but something this build cannot do */
    SF_EWRONG,       /* a check was made and did not hold */
    SF_EUSAGE,       /* the call or the command line is wrong */
    SF_EIO,          /* the system could not read or write */
    SF_ENOMEM,       /* no memory, or past the limit that was set */
    SF_EPEER,        /* another rank failed, or was waited for in vain */
} sf_status;

/* Messages of one or several calls. Every function that can fail takes one; several errors in one
 * input are reported in one go. */
typedef struct sf_diag sf_diag;

sf_diag *sf_diag_new(void);
void sf_diag_free(sf_diag *diag);

/* The number of messages, also those past the first twenty, which are not kept. */
int sf_diag_count(const sf_diag *diag);

/* Message `index` as "FILE:LINE:COLUMN: error: TEXT", with the hint on a second line if there is
 * one. The string belongs to `diag`. NULL past the last one that was kept. */
const char *sf_diag_text(sf_diag *diag, int index);

void sf_diag_clear(sf_diag *diag);

/* "bad input", "not supported", ... */
const char *sf_status_name(sf_status status);

#ifdef __cplusplus
}
#endif

#endif
