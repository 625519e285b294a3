#include "base/boundary.h"

#include <string.h>

/* No struct of the interface will ever be as large, but for sf_plan_origin, which has two paths. */
enum { MOST_BYTES = 1 << 14 };

static bool is_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static size_t size_of(const void *theirs)
{
    size_t size;
    memcpy(&size, theirs, sizeof size);
    return size;
}

sf_status sf_struct_check(const char *type, const void *theirs, sf_diag *diag)
{
    if (!theirs)
        return SF_OK;
    size_t said = size_of(theirs);
    if (said == 0) {
        sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "%s has no size", type);
        return sf_hint(diag, "set its first field: {.size = sizeof(%s), ...}", type);
    }
    if (said < sizeof said || said > MOST_BYTES)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "%s has a size of %zu bytes, and cannot", type,
                       said);
    return SF_OK;
}

sf_status sf_struct_take(const char *type, const void *theirs, void *ours, size_t size,
                         sf_diag *diag)
{
    memset(ours, 0, size);
    memcpy(ours, &size, sizeof size);
    if (!theirs)
        return SF_OK;
    SF_TRY(sf_struct_check(type, theirs, diag));
    size_t said = size_of(theirs);
    if (said > size && !is_zero((const unsigned char *)theirs + size, said - size))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "%s sets fields that this version of the library does not have", type);
    memcpy(ours, theirs, said < size ? said : size);
    memcpy(ours, &size, sizeof size);
    return SF_OK;
}

sf_status sf_struct_give(const char *type, void *theirs, const void *ours, size_t size,
                         sf_diag *diag)
{
    if (!theirs)
        return SF_OK;
    SF_TRY(sf_struct_check(type, theirs, diag));
    size_t said = size_of(theirs);
    memset(theirs, 0, said);
    memcpy(theirs, ours, said < size ? said : size);
    memcpy(theirs, &said, sizeof said);
    return SF_OK;
}

size_t sf_first_null(size_t count, const void *const *pointers)
{
    size_t i = 0;
    while (i < count && pointers[i])
        i++;
    return i;
}

sf_status sf_fail_null(sf_diag *diag, const char *function, const char *names, size_t index)
{
    for (; index > 0; index--)
        names = strchr(names, ',') + 1;
    names += strspn(names, " ");
    return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "%s: '%.*s' is NULL", function,
                   (int)strcspn(names, ","), names);
}

sf_status sf_check_texts(const char *what, int count, const char *const *texts, sf_diag *diag)
{
    if (count < 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "there cannot be %d %s", count, what);
    for (int i = 0; i < count; i++)
        if (!texts || !texts[i])
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "%s %d of %d is NULL", what, i, count);
    return SF_OK;
}
