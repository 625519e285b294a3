/* Ranks that decide together. Each call waits until all ranks have made it; a NULL comm is a run of one
 * rank, which agrees with itself. SF_EPEER: a rank was lost on the way. `what` is for messages. */
#ifndef SF_RUN_COMM_RANK_AGREEMENT_H
#define SF_RUN_COMM_RANK_AGREEMENT_H

#include "run/comm/comm.h"

/* SF_OK when all have SF_OK. Else all get the status of the first rank that failed; it alone keeps
 * its messages, so that an error on all ranks is reported once. */
sf_status sf_agree(sf_comm *comm, sf_status mine, const char *what, sf_diag *diag);

/* The same; *all becomes whether every rank has come that far, which is not so where one is lost, or cannot say more. */
sf_status sf_agree_all(sf_comm *comm, sf_status mine, const char *what, sf_diag *diag, bool *all);

/* The same; *flag becomes whether any rank had it true, and false where one failed; it stays where not all have come. */
sf_status sf_agree_any(sf_comm *comm, sf_status mine, const char *what, sf_diag *diag, bool *flag);

/* *other: the first of the values that not all ranks have the same of, or `count`. */
sf_status sf_agree_same(sf_comm *comm, const uint64_t *mine, int count, const char *what,
                        sf_diag *diag, int *other);

/* list[r], one for each rank, becomes `mine` of rank r. */
sf_status sf_agree_list(sf_comm *comm, uint64_t mine, const char *what, sf_diag *diag,
                        uint64_t *list);

/* all[r * bytes ...], room for each rank, becomes `mine` of rank r. */
sf_status sf_agree_rows(sf_comm *comm, const void *mine, size_t bytes, const char *what,
                        sf_diag *diag, void *all);

/* all[r * count ...], likewise. */
sf_status sf_agree_gather(sf_comm *comm, const double *mine, size_t count, const char *what,
                          sf_diag *diag, double *all);

/* `text`, of a length that all know, becomes that of rank `from`. */
sf_status sf_agree_text(sf_comm *comm, int from, char *text, size_t length, const char *what,
                        sf_diag *diag);

/* A value, as text, that must be the same on all ranks; bytes past SF_AGREE_TEXT are compared, too,
 * but not printed. */
typedef struct sf_agree_thing {
    const char *what; /* "save directory" */
    const char *text; /* or NULL: none */
} sf_agree_thing;
enum { SF_AGREE_TEXT = 128 };

/* SF_EINPUT, on all ranks, if two of them differ: the message names them, and their values. */
sf_status sf_agree_things(sf_comm *comm, const sf_agree_thing *things, int count, sf_diag *diag);

/* *value becomes the largest of all ranks. */
sf_status sf_agree_most(sf_comm *comm, const char *what, sf_diag *diag, int64_t *value);

/* *value becomes that of the first rank. */
sf_status sf_agree_first(sf_comm *comm, const char *what, sf_diag *diag, int64_t *value);

#endif
