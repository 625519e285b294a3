/* In a build without Lua. */
#include "base/diag.h"
#include "sheaf/script.h"

sf_status sf_script_run(const char *path, const sf_script_options *options, sf_primitives *list,
                        sf_diag *diag)
{
    (void)options;
    (void)list;
    return sf_fail(diag, SF_EUNSUPPORTED, (sf_loc){.file = path},
                   "this build has no Lua, and cannot run a schedule");
}
