#include "script/script_state.h"

int sf_script_throw(lua_State *L)
{
    sf_script *script = sf_script_of(L);
    int count = script->scratch.count < SF_DIAG_KEPT ? script->scratch.count : SF_DIAG_KEPT;
    script->starved = script->scratch.newest == SF_ENOMEM;
    const sf_message *message = count > 0 ? &script->scratch.messages[count - 1] : NULL;
    luaL_where(L, 1);
    if (message && message->text)
        lua_pushfstring(L, "%s%s%s", message->text, message->hint ? "; " : "",
                        message->hint ? message->hint : "");
    else
        lua_pushliteral(L, "not enough memory");
    lua_concat(L, 2);
    sf_diag_clear(&script->scratch);
    return lua_error(L);
}

int sf_script_starve(lua_State *L)
{
    sf_script_of(L)->starved = true;
    return luaL_error(L, "not enough memory");
}

int sf_script_raise(lua_State *L, int result)
{
    if (result == LUA_ERRMEM)
        return luaL_error(L, "the schedule takes too much memory");
    return lua_error(L);
}
