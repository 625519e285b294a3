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
    struct head {
        size_t size;
        int version;
    } head = {0};
    *out = NULL;
    if (!symbol)
        return sf_fail(diag, SF_EUSAGE, at, "this is no %s: %s", kind->what, dlerror());
    memcpy(&get, &symbol, sizeof get);
    *out = get();
    if (*out)
        memcpy(&head, *out, sizeof head);
    if (head.version == kind->version && head.size < kind->size)
        return sf_fail(diag, SF_EUSAGE, at, "this %s has a size of %zu bytes, and needs %zu",
                       kind->what, head.size, kind->size);
    if (head.version != kind->version)
        return sf_fail(diag, SF_EUSAGE, at, "this %s is of version %d, and version %d is known",
                       kind->what, head.version, kind->version);
    return SF_OK;
}
