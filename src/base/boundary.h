/* Checks at the public interface (sheaf/api.h): structs that begin with their size, and pointers
 * that must not be NULL.
 *
 * A public function begins with SF_NEED, then takes the structs that it is given:
 *
 *     SF_CLEAR(out);
 *     SF_NEED(diag, path, out);
 *     SF_TRY(SF_TAKE(sf_load_options, options, &own, diag));
 *
 * A struct of the caller is as large as the caller's header has it. A new field goes to the end of its struct, past the
 * padding that was there. */
#ifndef SF_BASE_BOUNDARY_H
#define SF_BASE_BOUNDARY_H

#include "base/diag.h"

/* Copies a struct of the caller, or zeros for NULL, to `ours`. SF_EUSAGE for one without a size, and for one of a newer
 * header that sets fields unknown here. */
#define SF_TAKE(type, theirs, ours, diag) sf_struct_take(#type, theirs, ours, sizeof(type), diag)
sf_status sf_struct_take(const char *type, const void *theirs, void *ours, size_t size,
                         sf_diag *diag);

/* SF_EUSAGE for a struct, to be filled by us, that has no size. NULL is none. */
#define SF_CHECK_SIZE(type, theirs, diag) sf_struct_check(#type, theirs, diag)
sf_status sf_struct_check(const char *type, const void *theirs, sf_diag *diag);

/* Fills a struct of the caller from ours, as far as its size goes; fields of a newer header become zero. */
#define SF_GIVE(type, theirs, ours, diag) sf_struct_give(#type, theirs, ours, sizeof(type), diag)
sf_status sf_struct_give(const char *type, void *theirs, const void *ours, size_t size,
                         sf_diag *diag);

/* Returns SF_EUSAGE, with a message that names the function and the pointer, where one of the pointers is NULL. */
#define SF_NEED(diag, ...)                                                                         \
    do {                                                                                           \
        const void *const sf_needed[] = {__VA_ARGS__};                                             \
        size_t sf_missing = sf_first_null(sizeof sf_needed / sizeof *sf_needed, sf_needed);        \
        if (sf_missing < sizeof sf_needed / sizeof *sf_needed)                                     \
            return sf_fail_null(diag, __func__, #__VA_ARGS__, sf_missing);                         \
    } while (0)

/* The same in a function that returns no status: returns `value`. */
#define SF_NEED_OR(value, ...)                                                                     \
    do {                                                                                           \
        const void *const sf_needed[] = {__VA_ARGS__};                                             \
        size_t sf_count = sizeof sf_needed / sizeof *sf_needed;                                    \
        if (sf_first_null(sf_count, sf_needed) < sf_count)                                         \
            return value;                                                                          \
    } while (0)

/* Results are NULL until the function succeeds. */
#define SF_CLEAR(out)                                                                              \
    do {                                                                                           \
        if (out)                                                                                   \
            *(out) = NULL;                                                                         \
    } while (0)

/* The index of the first NULL, or `count`. */
size_t sf_first_null(size_t count, const void *const *pointers);

/* SF_EUSAGE about the name at `index` in "a, b, c". */
sf_status sf_fail_null(sf_diag *diag, const char *function, const char *names, size_t index);

/* SF_EUSAGE for an array of `count` texts that is NULL, has a NULL in it, or a negative count. */
sf_status sf_check_texts(const char *what, int count, const char *const *texts, sf_diag *diag);

#endif
