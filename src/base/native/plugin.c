#include "base/native/plugin.h"

#include <dlfcn.h>
#include <string.h>

sf_status sf_plugin_open(const char *path, const sf_plugin_kind *kind, sf_diag *diag,
                         const void **out)
{
    sf_loc at = {.file = path};
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle ? dlsym(handle, kind->symbol) : NULL;
    const void *(*get)(void);
    int version = 0;
    *out = NULL;
    if (!symbol)
        return sf_fail(diag, SF_EUSAGE, at, "this is no %s: %s", kind->what, dlerror());
    memcpy(&get, &symbol, sizeof get);
    *out = get();
    if (*out)
        memcpy(&version, *out, sizeof version);
    if (version != kind->version)
        return sf_fail(diag, SF_EUSAGE, at, "this %s is of version %d, and version %d is known",
                       kind->what, version, kind->version);
    return SF_OK;
}
