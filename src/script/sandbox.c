/* The libraries that a script has: none that accesses files, other programs, the clock or
 * randomness, so that a schedule is the same everywhere; and none that could run without being
 * counted. So it has no metatables of its own: finalizers run with hooks off, weak tables make the
 * collector slow, and a table that calls itself fills the stack between two instructions. It has no
 * coroutines, which close their values with hooks off. */
#include <lualib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "script/script_state.h"

/* The output of a script is for people; standard output is for results. */
static int print_words(lua_State *L)
{
    int count = lua_gettop(L);
    sf_script_charge(L, 1000);
    for (int i = 1; i <= count; i++) {
        size_t length;
        const char *text = sf_script_push_text(L, i, &length);
        sf_script_charge(L, 10 * (double)length);
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
    return sf_script_call_own(L);
}

/* Charged for the size of its operands: arguments, texts, and lists. The hook does not count
 * these. */
static int call_charged(lua_State *L)
{
    int count = lua_gettop(L);
    double size = count;
    for (int i = 1; i <= count; i++)
        if (lua_type(L, i) == LUA_TSTRING || lua_type(L, i) == LUA_TTABLE)
            size += (double)lua_rawlen(L, i) / (lua_type(L, i) == LUA_TSTRING ? 16 : 1);
    sf_script_charge(L, size);
    return sf_script_call_own(L);
}

/* insert(list, at, value), remove(list, at): later items move. At the end, none does. */
static int shift_charged(lua_State *L)
{
    bool inserts = lua_toboolean(L, lua_upvalueindex(2));
    luaL_checktype(L, 1, LUA_TTABLE);
    sf_script_charge(L, lua_gettop(L) > (inserts ? 2 : 1) ? (double)lua_rawlen(L, 1) : 10);
    return sf_script_call_own(L);
}

/* unpack(list, first, last) */
static int unpack_charged(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_Integer last = luaL_optinteger(L, 3, (lua_Integer)lua_rawlen(L, 1));
    sf_script_charge(L, fmax(0, (double)last - (double)luaL_optinteger(L, 2, 1)));
    return sf_script_call_own(L);
}

static int refuse_metatable(lua_State *L)
{
    return luaL_error(L, "a schedule has no metatables, unless it is run with --unsafe");
}

int sf_script_call_own(lua_State *L)
{
    int count = lua_gettop(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, count, LUA_MULTRET);
    return lua_gettop(L);
}

void sf_script_wrap(lua_State *L, const char *name, lua_CFunction function, bool flag)
{
    lua_getfield(L, -1, name);
    lua_pushboolean(L, flag);
    lua_pushcclosure(L, function, 2);
    lua_setfield(L, -2, name);
}

/* Leaves a library, the table at the top, with these and nothing else. */
static void keep(lua_State *L, const char *const *names)
{
    for (lua_pushnil(L); lua_next(L, -2) != 0;) {
        bool kept = false;
        lua_pop(L, 1);
        for (int i = 0; names[i]; i++)
            kept = kept || strcmp(names[i], lua_tostring(L, -1)) == 0;
        if (kept)
            continue;
        lua_pushvalue(L, -1);
        lua_pushnil(L);
        lua_rawset(L, -4); /* what is there may be cleared on the way */
    }
}

static void charge(lua_State *L, const char *const *names)
{
    for (; *names; names++)
        sf_script_wrap(L, *names, call_charged, false);
}

static void open_safe(lua_State *L)
{
    static const char *const base[] = {"_G",     "_VERSION", "assert", "error",  "ipairs",
                                       "pcall",  "rawequal", "rawget", "rawlen", "rawset",
                                       "select", "tonumber", "type",   "xpcall", NULL};
    static const char *const lists[] = {"concat", "insert", "pack", "remove", "unpack", NULL};
    static const char *const strings[] = {"byte",    "char", "find",  "format", "gmatch",
                                          "gsub",    "len",  "lower", "match",  "rep",
                                          "reverse", "sub",  "upper", NULL};
    static const char *const math[] = {
        "abs",  "acos", "asin", "atan", "ceil",       "cos",  "deg",        "exp",  "floor",
        "fmod", "huge", "log",  "max",  "maxinteger", "min",  "mininteger", "modf", "pi",
        "rad",  "sin",  "sqrt", "tan",  "tointeger",  "type", "ult",        NULL};
    static const char *const charged_base[] = {"select", "tonumber", NULL};
    static const char *const charged_lists[] = {"concat", "pack", NULL};
    static const char *const charged_strings[] = {"byte",    "char", "format", "len", "lower",
                                                  "reverse", "sub",  "upper",  NULL};
    static const char *const charged_math[] = {"max", "min", NULL};
    luaL_requiref(L, LUA_GNAME, luaopen_base, 1);
    keep(L, base);
    charge(L, charged_base);
    sf_script_wrap(L, "xpcall", call_protected, false);
    lua_pushcfunction(L, refuse_metatable);
    lua_setfield(L, -2, "setmetatable");
    lua_pushcfunction(L, refuse_metatable);
    lua_setfield(L, -2, "getmetatable");
    luaL_requiref(L, LUA_TABLIBNAME, luaopen_table, 1);
    keep(L, lists);
    charge(L, charged_lists);
    sf_script_wrap(L, "insert", shift_charged, true);
    sf_script_wrap(L, "remove", shift_charged, false);
    sf_script_wrap(L, "unpack", unpack_charged, false);
    luaL_requiref(L, LUA_STRLIBNAME, luaopen_string, 1);
    keep(L, strings);
    charge(L, charged_strings);
    sf_script_guard_strings(L);
    luaL_requiref(L, LUA_MATHLIBNAME, luaopen_math, 1);
    keep(L, math);
    charge(L, charged_math);
    lua_settop(L, 0);
    sf_script_open_values(L);
}

void sf_script_open_libraries(lua_State *L, bool unsafe)
{
    if (unsafe)
        luaL_openlibs(L);
    else
        open_safe(L);
    lua_register(L, "print", print_words);
}

/* Methods are in a table of their own, in the metatable: what users add to them is no metamethod. */
void sf_script_push_kind(lua_State *L, const char *kind, const luaL_Reg *methods)
{
    luaL_newmetatable(L, kind);
    lua_newtable(L);
    for (; methods->name; methods++) {
        bool meta = methods->name[0] == '_' && methods->name[1] == '_';
        lua_pushcfunction(L, methods->func);
        lua_setfield(L, meta ? -3 : -2, methods->name);
    }
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, 1);
    if (lua_getfield(L, -2, "__index") == LUA_TNIL) {
        lua_pushvalue(L, -2);
        lua_setfield(L, -4, "__index");
    }
    lua_pop(L, 2);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
}

void sf_script_push_methods(lua_State *L, const char *kind)
{
    luaL_getmetatable(L, kind);
    lua_rawgeti(L, -1, 1);
    lua_remove(L, -2);
}
