#include "base/file.h"
#include "sheaf/sheaf.h"

const char *sf_version(void)
{
    return SF_VERSION;
}

void sf_limit_input(int64_t bytes)
{
    sf_file_set_limit(bytes);
}
