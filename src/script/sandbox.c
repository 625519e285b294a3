/* The libraries that a script has: none that accesses files, other programs, the clock or
 * randomness, so that a schedule is the same everywhere; and none that could run without being
 * counted: code that a coroutine closes after an error, and finalizers, run with hooks off. */
#include <lualib.h>
#include <stdio.h>

#include "script/script_state.h"

static void drop(lua_State *L, const char *library, const char *const *names)
{
    lua_getglobal(L, library);
    for (; *names; names++) {
        lua_pushnil(L);
        lua_setfield(L, -2, *names);
    }
    lua_pop(L, 1);
}

/* The output of a script is for people; standard output is for results. */
static int print_words(lua_State *L)
{
    int count = lua_gettop(L);
    for (int i = 1; i <= count; i++) {
        size_t length;
        const char *text = luaL_tolstring(L, i, &length);
        sf_script_charge(L, (double)length);
        if (i > 1)
            fputc('\t', stderr);
        for (size_t c = 0; c < length; c++)
            fputc((unsigned char)text[c] < ' ' && text[c] != '\n' && text[c] != '\t' ? '?'
                                                                                     : text[c],
                  stderr);
        lua_pop(L, 1);
    }
    fputc('\n', stderr);
    return 0;
}

/* Finalizers run uncounted, also when the script has ended. */
static int set_metatable(lua_State *L)
{
    if (lua_istable(L, 2)) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL)
            return luaL_error(L, "a schedule has no finalizers (__gc)");
        lua_pop(L, 1);
    }
    int count = lua_gettop(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, count, LUA_MULTRET);
    return lua_gettop(L);
}

/* An error that the hook raises calls the handler with hooks off: one of the script's own could run for ever. */
static int handle_error(lua_State *L)
{
    if (sf_script_of(L)->left <= 0)
        return 1;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

static int call_protected(lua_State *L)
{
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, handle_error, 1);
    lua_replace(L, 2);
    int count = lua_gettop(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, count, LUA_MULTRET);
    return lua_gettop(L);
}

/* Lists as long as they say: a metatable could say anything. */
static int use_list(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    if (lua_getmetatable(L, 1))
        return luaL_error(L, "this needs a table without a metatable");
    sf_script_charge(L, 32 * (double)lua_rawlen(L, 1));
    int count = lua_gettop(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, count, LUA_MULTRET);
    return lua_gettop(L);
}

static void wrap(lua_State *L, const char *name, lua_CFunction function)
{
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, name);
}

static void open_safe(lua_State *L)
{
    static const char *const base[] = {"collectgarbage", "dofile", "load",
                                       "loadfile",       "warn",   NULL};
    static const char *const math[] = {"random", "randomseed", NULL};
    static const char *const lists[] = {"move", NULL};
    luaL_requiref(L, LUA_GNAME, luaopen_base, 1);
    luaL_requiref(L, LUA_TABLIBNAME, luaopen_table, 1);
    luaL_requiref(L, LUA_STRLIBNAME, luaopen_string, 1);
    luaL_requiref(L, LUA_MATHLIBNAME, luaopen_math, 1);
    lua_settop(L, 0);
    drop(L, "_G", base);
    drop(L, "math", math);
    drop(L, "table", lists);
    sf_script_guard_strings(L);
    lua_getglobal(L, "table");
    wrap(L, "insert", use_list);
    wrap(L, "remove", use_list);
    wrap(L, "concat", use_list);
    wrap(L, "sort", use_list);
    wrap(L, "unpack", use_list);
    lua_settop(L, 0);
    lua_pushglobaltable(L);
    wrap(L, "setmetatable", set_metatable);
    wrap(L, "xpcall", call_protected);
    lua_settop(L, 0);
}

void sf_script_open_libraries(lua_State *L, bool unsafe)
{
    if (unsafe)
        luaL_openlibs(L);
    else
        open_safe(L);
    lua_register(L, "print", print_words);
}

void sf_script_push_kind(lua_State *L, const char *kind, const luaL_Reg *methods)
{
    luaL_newmetatable(L, kind);
    luaL_setfuncs(L, methods, 0);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
}
