/* Diagnostics: the status says the kind, the diagnostic says where and why.
 *
 *     if (lhs->k != rhs->k)
 *         return sf_fail(diag, SF_EINPUT, loc, "dot contracts %" PRId64 " with %" PRId64, ...);
 *     SF_TRY(infer_types(graph, diag));
 */
#ifndef SF_BASE_DIAG_H
#define SF_BASE_DIAG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "sheaf/status.h"

/* A place in the user's input. `file` is borrowed and outlives the diagnostic's use; line and column
 * count from 1, 0 where unknown. */
typedef struct sf_loc {
    const char *file;
    uint32_t line, column;
} sf_loc;

#define SF_NOWHERE ((sf_loc){0})

typedef struct sf_message {
    sf_status status; /* SF_OK: a warning */
    sf_loc loc;
    char *text;  /* NULL when there was no memory for it */
    char *hint;  /* the remedy, or NULL */
    char *whole; /* all of it, as sf_diag_text returned it last, or NULL */
    bool heard;  /* it repeats a message of another rank */
} sf_message;

/* Messages past this many are counted, not kept. */
enum { SF_DIAG_KEPT = 20 };

/* Collects errors. Owns its texts, and copies file names; they are kept memory, so they outlive the
 * guard of the call that failed. A zeroed sf_diag is empty. */
struct sf_diag {
    sf_message messages[SF_DIAG_KEPT];
    int count;
    sf_status newest; /* of the newest message, kept or not */
};

/* Records a message and returns `status`. `diag` may be NULL: then only the status remains. Never
 * jumps, so it may be called while an outside handle is held. */
sf_status sf_fail(sf_diag *diag, sf_status status, sf_loc loc, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Of a system call that failed: SF_ENOMEM where errno says that memory ran out, else SF_EIO. */
sf_status sf_status_of_errno(void);

/* Records a message for the user although nothing failed. */
void sf_warn(sf_diag *diag, sf_loc loc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds advice to the newest message; returns its status, SF_EINPUT if there is no message. Without a diag, that of the
 * newest failure of this thread without one. */
sf_status sf_hint(sf_diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What went wrong first, in words for the messages of other ranks: no place, no hint. Never NULL. */
const char *sf_diag_reason(const sf_diag *diag, sf_status status);

/* Says of the newest message that another rank has said it first; returns its status. */
sf_status sf_heard(sf_diag *diag);

#define SF_TRY(expression)                                                                         \
    do {                                                                                           \
        sf_status sf_try_status = (expression);                                                    \
        if (sf_try_status != SF_OK)                                                                \
            return sf_try_status;                                                                  \
    } while (0)

/* For our own bugs, never for input. */
#define SF_ASSERT(condition)                                                                       \
    ((condition) ? (void)0 : sf_assert_failed(#condition, __FILE__, __LINE__))
_Noreturn void sf_assert_failed(const char *condition, const char *file, int line);

#endif
