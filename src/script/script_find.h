/* Within script/: operations on ops, found in modules. */
#ifndef SF_SCRIPT_SCRIPT_FIND_H
#define SF_SCRIPT_SCRIPT_FIND_H

#include "script/script_state.h"

#define SF_SUBGRAPH_KIND "sheaf.subgraph"

void sf_script_open_subgraphs(lua_State *L);

/* Methods of modules: their first argument is the module. */
int sf_script_find(lua_State *L);
int sf_script_replace(lua_State *L);
int sf_script_fuse(lua_State *L);

/* The numbers of the subgraphs at `at`, one or a list, in memory of Lua's, which is pushed. */
const int *sf_script_take_subgraphs(lua_State *L, int at, int *count);

#endif
