#include "api/api_options.h"

sf_status sf_options_check(int count, const sf_option_number *numbers, sf_diag *diag)
{
    for (int i = 0; i < count; i++)
        if (!(numbers[i].value >= 0))
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "option %s is %g, and is never negative",
                           numbers[i].name, numbers[i].value);
    return SF_OK;
}
