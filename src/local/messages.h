/* Messages between pipeline ranks: each send has its receive, and pipeline ranks that share a stage come to
 * the same collectives in the same order. */
#ifndef SF_LOCAL_MESSAGES_H
#define SF_LOCAL_MESSAGES_H

#include "local/local.h"

/* One rank of each pipeline rank, in their order; the others of a group send and receive as it does. SF_EMISMATCH names the message
 * that has no other end, or another tensor there, or the collective on which they disagree. */
sf_status sf_check_messages(int count, sf_local *const *locals, sf_diag *diag);

#endif
