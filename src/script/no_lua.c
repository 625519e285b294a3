/* In a build without Lua. */
#include "base/boundary.h"
#include "base/diag.h"
#include "sheaf/script.h"

sf_status sf_script_run(const char *path, const sf_script_options *options, sf_primitives *list,
                        sf_diag *diag)
{
    SF_NEED(diag, path, list);
    (void)options;
    (void)list;
    return sf_fail(diag, SF_EUNSUPPORTED, (sf_loc){.file = path},
                   "this build has no Lua, and cannot run a schedule");
}

sf_status sf_console_new(const char *name, const sf_script_options *options, sf_primitives *list,
                         sf_diag *diag, sf_console **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, name, list, out);
    return sf_script_run(name, options, list, diag);
}

sf_status sf_console_run(sf_console *console, const char *text, size_t length, sf_diag *diag)
{
    SF_NEED(diag, console, text);
    (void)console;
    (void)text;
    (void)length;
    return sf_script_run("console", NULL, NULL, diag);
}

void sf_console_free(sf_console *console)
{
    (void)console;
}
