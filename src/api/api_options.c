#include "api/api_options.h"

#include <string.h>

/* No struct of options will ever be as large. */
enum { MOST_BYTES = 1 << 14 };

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
    if (known < sizeof said || known > MOST_BYTES)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "there are no options of %zu bytes", known);
    if (known > size && !is_zero((const unsigned char *)theirs + size, known - size))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "the options say what this version of the library does not know");
    if (theirs)
        memcpy(ours, theirs, known < size ? known : size);
    memcpy(ours, &size, sizeof size);
    return SF_OK;
}

sf_status sf_options_check(int count, const sf_option_number *numbers, sf_diag *diag)
{
    for (int i = 0; i < count; i++)
        if (!(numbers[i].value >= 0))
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "option %s is %g, and is never negative",
                           numbers[i].name, numbers[i].value);
    return SF_OK;
}
