#include "sheaf/sheaf.h"

const char *sf_version(void)
{
    return SF_VERSION;
}
