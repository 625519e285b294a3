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

static int match_within(lua_State *L)
{
    size_t subject, length;
    luaL_checklstring(L, 1, &subject);
    const char *pattern = luaL_checklstring(L, 2, &length);
    if (!(lua_toboolean(L, lua_upvalueindex(2)) && lua_toboolean(L, 4))) /* not plain */
        sf_script_charge(L, most_steps(pattern, length, subject));
    else
        sf_script_charge(L, (double)subject * (double)(length + 1));
    return sf_script_call_own(L);
}

static int repeat_within(lua_State *L)
{
    size_t length, between = 0;
    luaL_checklstring(L, 1, &length);
    lua_Integer times = luaL_checkinteger(L, 2);
    luaL_optlstring(L, 3, "", &between);
    if (times > 0)
        sf_script_charge(L, (double)times * (1 + (double)(length + between) / 64));
    return sf_script_call_own(L);
}

/* The table of strings is at the top. */
void sf_script_guard_strings(lua_State *L)
{
    sf_script_wrap(L, "find", match_within, true);
    sf_script_wrap(L, "match", match_within, false);
    sf_script_wrap(L, "gmatch", match_within, false);
    sf_script_wrap(L, "gsub", match_within, false);
    sf_script_wrap(L, "rep", repeat_within, false);
}
