/* Within script/: modules as Lua sees them, and the primitives on them. */
#ifndef SF_SCRIPT_MODULE_H
#define SF_SCRIPT_MODULE_H

#include "script/host.h"

#define SF_SCHEDULE_KIND "sheaf.schedule"
#define SF_MODULE_KIND "sheaf.module"
#define SF_PRIMITIVE_KIND "sheaf.primitive"

void sf_script_open_modules(lua_State *L);

/* Pushes the module, or those, that the name means in another, "": in the step. */
int sf_script_push_module(lua_State *L, const char *above, const char *name);

/* Pushes a list of all modules that the pattern matches, with so many slashes in their names; -1: any number. */
int sf_script_push_modules(lua_State *L, const char *pattern, int slashes);

/* Applies `count` primitives, which become one for Lua, and pushes that. Where the script is, is filled in. */
int sf_script_apply(lua_State *L, sf_primitive *said, int count);

#endif
