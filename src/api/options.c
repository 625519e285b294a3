#include "api/options.h"

#include <string.h>

static bool is_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

sf_status sf_options_take(const void *theirs, void *ours, size_t size, sf_diag *diag)
{
    size_t said = 0;
    memset(ours, 0, size);
    if (theirs)
        memcpy(&said, theirs, sizeof said);
    size_t known = said == 0 ? size : said;
    if (known < sizeof said)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "options of %zu bytes have no room for a size",
                       known);
    if (known > size && !is_zero((const unsigned char *)theirs + size, known - size))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "the options say what this version of the library does not know");
    if (theirs)
        memcpy(ours, theirs, known < size ? known : size);
    memcpy(ours, &size, sizeof size);
    return SF_OK;
}
