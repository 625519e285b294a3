/* Within script/: the state of a running schedule.
 *
 * A Lua error jumps over C frames, so functions that Lua calls own nothing: their memory is here,
 * and is freed by sf_script_run, outside of the protected call. Diagnostics become Lua errors in
 * sf_script_throw, and Lua errors diagnostics in run_schedule.c; nowhere else.
 *
 * Limits. Memory comes from an allocator of our own. Instructions are counted by a hook, which does
 * not count C functions: those that could take long are charged for their worst case first
 * (sf_script_charge). The count is never reset: a script that catches the error gets it once more
 * at its next instruction. */
#ifndef SF_SCRIPT_SCRIPT_STATE_H
#define SF_SCRIPT_SCRIPT_STATE_H

#include <lauxlib.h>
#include <lua.h>

#include "base/diag.h"
#include "sheaf/script.h"

typedef struct sf_script {
    lua_State *lua; /* NULL until it is there */
    sf_script_options options;
    const char *path;
    sf_primitives *list;
    sf_diag scratch; /* of calls on behalf of the script */
    size_t used, limit;
    int64_t left; /* instructions */
    int line;     /* where memory ran out, or an error was raised; 0: not known */
    char file[256];
} sf_script;

static inline sf_script *sf_script_of(lua_State *L)
{
    return *(sf_script **)lua_getextraspace(L);
}

/* limits.c: a Lua state within the limits; NULL without memory. */
lua_State *sf_script_open(sf_script *script);
void sf_script_count(sf_script *script); /* restarts the count of instructions */
void sf_script_charge(lua_State *L, double instructions);

/* Notes the line of the script that runs now. */
void sf_script_note_line(sf_script *script, lua_State *L);

/* sandbox.c: the libraries that a script has. */
void sf_script_open_libraries(lua_State *L, bool unsafe);

/* A kind of object, whose table scripts cannot reach; it is left on the stack. */
void sf_script_push_kind(lua_State *L, const char *kind, const luaL_Reg *methods);

/* patterns.c: string.find and its like, charged for their worst case. */
void sf_script_guard_strings(lua_State *L);

/* script_schedule.c: the table `sheaf`. */
void sf_script_open_sheaf(lua_State *L);

/* tune_variable.c: the table `tune`. */
void sf_script_open_tune(lua_State *L);

/* Raises the error of the last call in script->scratch. */
int sf_script_throw(lua_State *L);

#endif
