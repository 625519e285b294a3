/* Lua's functions on strings, charged for their worst case before they run: the matcher backtracks
 * without the hook. A pattern with k repetitions takes at most about n^k steps from each of n
 * places. */
#include <math.h>
#include <string.h>

#include "script/script_state.h"

static double most_steps(const char *pattern, size_t length, size_t subject)
{
    double steps = (double)subject + 1;
    for (size_t i = 0; i < length; i++) {
        if (pattern[i] == '%' && i + 1 < length) {
            char class = pattern[++i];
            if (class == 'b' || class == 'f' || (class >= '0' && class <= '9'))
                steps *= (double)subject + 1;
        } else if (strchr("*+-", pattern[i]) && pattern[i]) {
            steps *= (double)subject + 1;
        } else if (pattern[i] == '?') {
            steps *= 2;
        }
    }
    return steps + (double)length;
}

/* Calls the library's own, which is the first upvalue, with all arguments. */
static int call_own(lua_State *L)
{
    int count = lua_gettop(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, count, LUA_MULTRET);
    return lua_gettop(L);
}

static int match_within(lua_State *L)
{
    size_t subject, length;
    luaL_checklstring(L, 1, &subject);
    const char *pattern = luaL_checklstring(L, 2, &length);
    if (!(lua_toboolean(L, lua_upvalueindex(2)) && lua_toboolean(L, 4))) /* not plain */
        sf_script_charge(L, most_steps(pattern, length, subject));
    else
        sf_script_charge(L, (double)subject * (double)(length + 1));
    return call_own(L);
}

static int repeat_within(lua_State *L)
{
    size_t length, between = 0;
    luaL_checklstring(L, 1, &length);
    lua_Integer times = luaL_checkinteger(L, 2);
    luaL_optlstring(L, 3, "", &between);
    if (times > 0)
        sf_script_charge(L, (double)times * (1 + (double)(length + between) / 64));
    return call_own(L);
}

static void replace(lua_State *L, const char *name, lua_CFunction function, bool can_be_plain)
{
    lua_getfield(L, -1, name);
    lua_pushboolean(L, can_be_plain);
    lua_pushcclosure(L, function, 2);
    lua_setfield(L, -2, name);
}

void sf_script_guard_strings(lua_State *L)
{
    static const char *const gone[] = {"dump", "pack", "packsize", "unpack"};
    lua_getglobal(L, "string");
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        lua_pushnil(L);
        lua_setfield(L, -2, gone[i]);
    }
    replace(L, "find", match_within, true);
    replace(L, "match", match_within, false);
    replace(L, "gmatch", match_within, false);
    replace(L, "gsub", match_within, false);
    replace(L, "rep", repeat_within, false);
    lua_pop(L, 1);
}
