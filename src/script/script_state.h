/* Within script/: the state of a running schedule.
 *
 * A Lua error jumps over C frames, so functions that Lua calls own nothing: their memory is here,
 * and is freed by sf_script_run, outside of the protected call. Diagnostics become Lua errors in
 * sf_script_throw, and Lua errors diagnostics in run_schedule.c; nowhere else.
 *
 * Limits. Memory comes from an allocator of our own, and memory that the library allocates
 * meanwhile counts, too. Instructions are counted by a hook, which does not count C functions:
 * those that could take long are charged for their worst case first (sf_script_charge). The hook,
 * charges, the allocator and the reader of texts check the clock. The count is never reset: a
 * script that catches the error gets it once more at its next instruction.
 *
 * Callbacks. While a function of the script is called back or traced, the schedule is locked
 * (sf_primitives_hold): no primitive can be applied, undone or found, so that no callback changes
 * data that its caller walks. */
#ifndef SF_SCRIPT_SCRIPT_STATE_H
#define SF_SCRIPT_SCRIPT_STATE_H

#include <lauxlib.h>
#include <lua.h>

#include "base/diag.h"
#include "base/str.h"
#include "sheaf/script.h"

/* The name of the part of `op` that is written in Lua: its lines are not shown. */
#define SF_SCRIPT_PRELUDE "op"

typedef struct sf_script {
    lua_State *lua; /* NULL until it is there */
    sf_script_options options;
    const char *path;
    sf_primitives *list;
    sf_diag scratch; /* of calls on behalf of the script */
    size_t used, limit;
    int64_t left;    /* instructions */
    double deadline; /* of sf_now */
    size_t library;  /* bytes of the library's that there may be */
    unsigned allocations;
    int floor;    /* primitives with lesser numbers are not undone now */
    bool starved; /* the newest error that was raised is of memory of the library's */
    int line;     /* where memory ran out, or an error was raised; 0: not known */
    char file[256];
} sf_script;

static inline sf_script *sf_script_of(lua_State *L)
{
    return *(sf_script **)lua_getextraspace(L);
}

/* limits.c: a Lua state within the limits; NULL without memory. */
lua_State *sf_script_open(sf_script *script);
void sf_script_count(sf_script *script); /* restarts the counts of instructions and seconds */
void sf_script_charge(lua_State *L, double instructions);

bool sf_script_is_late(const sf_script *script);

/* Loads a text, as lua_load does, but within the limits. */
int sf_script_load(lua_State *L, sf_str text, const char *name);

/* Notes the line of the script that runs now. */
void sf_script_note_line(sf_script *script, lua_State *L);

/* sandbox.c: the libraries that a script has. */
void sf_script_open_libraries(lua_State *L, bool unsafe);

/* A kind of object, whose metatable scripts cannot reach; it is left on the stack. Names with __ are metamethods, others methods,
 * in a table of their own. */
void sf_script_push_kind(lua_State *L, const char *kind, const luaL_Reg *methods);
void sf_script_push_methods(lua_State *L, const char *kind);

/* Puts a function in the place of another in the table at the top. That one is its first upvalue, and the flag its second;
 * sf_script_call_own calls it with all arguments. */
void sf_script_wrap(lua_State *L, const char *name, lua_CFunction function, bool flag);
int sf_script_call_own(lua_State *L);

/* patterns.c: string.find and its like, charged for their worst case. */
void sf_script_guard_strings(lua_State *L);

/* values.c: functions whose results must not depend on addresses. The text of a value has none. */
void sf_script_open_values(lua_State *L);
const char *sf_script_push_text(lua_State *L, int at, size_t *length);

/* Pushes a list of the keys of the table at `at`, in the order of `pairs`, and returns their number. Nothing that a script can see
 * depends on lua_next. */
int sf_script_push_keys(lua_State *L, int at);

/* script_schedule.c: the table `sheaf`. */
void sf_script_open_sheaf(lua_State *L);

/* tune_variable.c: the table `tune`. */
void sf_script_open_tune(lua_State *L);

/* Raises the error of the last call in script->scratch. */
int sf_script_throw(lua_State *L);

/* Raises that the library has no memory, where a function of it has no other way to say so. */
int sf_script_starve(lua_State *L);

/* Raises the error that a protected call has caught. */
int sf_script_raise(lua_State *L, int result);

#endif
