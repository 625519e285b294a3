/* Within script/: modules as Lua sees them, and the primitives on them. */
#ifndef SF_SCRIPT_SCRIPT_MODULE_H
#define SF_SCRIPT_SCRIPT_MODULE_H

#include "script/script_state.h"

#define SF_SCHEDULE_KIND "sheaf.schedule"
#define SF_MODULE_KIND "sheaf.module"
#define SF_PRIMITIVE_KIND "sheaf.primitive"

void sf_script_open_modules(lua_State *L);

/* Pushes the module, or those, that the name means in another, "": in the step. */
int sf_script_push_module(lua_State *L, const char *above, const char *name);

/* Pushes a list of all modules that the pattern matches, with so many slashes in their names; -1: any number. */
int sf_script_push_modules(lua_State *L, const char *pattern, int slashes);

/* The pattern of the module at `at`; its text lives as long as that. */
const char *sf_script_module_at(lua_State *L, int at);

/* script_space.c: sheaf.space, and its objects. */
void sf_script_open_spaces(lua_State *L);
int sf_script_give_space(lua_State *L);

/* extend.c: sheaf.primitive. */
int sf_script_define(lua_State *L);
int sf_script_load_plugin(lua_State *L); /* sheaf.plugin */

/* apply.c: applied primitives. */
void sf_script_open_primitives(lua_State *L);

/* Where the script is. */
void sf_script_find_place(lua_State *L, sf_primitive *said);

/* Pushes the applied primitives, from this number on. */
int sf_script_push_applied(lua_State *L, int first);

/* Undoes these, or raises an error. */
void sf_script_undo(lua_State *L, int first, int end);

/* Applies `count` primitives, which become one for Lua, and pushes that. Where the script is, is filled in. */
int sf_script_apply(lua_State *L, sf_primitive *said, int count);

#endif
