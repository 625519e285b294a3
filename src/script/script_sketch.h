/* Within script/: functions of Lua that are traced, and become sketches (sheaf/sketch.h). */
#ifndef SF_SCRIPT_SCRIPT_SKETCH_H
#define SF_SCRIPT_SCRIPT_SKETCH_H

#include "script/script_state.h"

/* The table `op`, and functions that are known by name. */
void sf_script_open_sketches(lua_State *L);

/* Calls the function at `at` with traced inputs and pushes the sketch of its computation, which Lua
 * owns. As many inputs as there are types or, if `types` is NULL, as the function takes. */
sf_sketch *sf_script_trace(lua_State *L, int at, int ntypes, const sf_tensor_type *types);

#endif
