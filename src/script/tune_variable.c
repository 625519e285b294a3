/* The table `tune`: variables whose values a tuner finds. */
#include "script/script_state.h"
#include "sheaf/tune.h"

/* tune.int("layers", 0, 24, 2) */
static int tune_int(lua_State *L)
{
    sf_script *script = sf_script_of(L);
    const char *name = luaL_checkstring(L, 1);
    int64_t low = luaL_checkinteger(L, 2), high = luaL_checkinteger(L, 3),
            step = luaL_optinteger(L, 4, 1), value;
    sf_script_charge(L, 1000);
    if (sf_settings_int(script->options.settings, name, low, high, step, &script->scratch,
                        &value) != SF_OK)
        return sf_script_throw(L);
    lua_pushinteger(L, value);
    return 1;
}

/* tune.choice("recipe", {"dp", "zero1"}): the item of the list, unchanged. */
static int tune_choice(lua_State *L)
{
    enum { MOST_CHOICES = 1000 };
    sf_script *script = sf_script_of(L);
    const char *name = luaL_checkstring(L, 1);
    int chosen;
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_Unsigned count = lua_rawlen(L, 2);
    luaL_argcheck(L, count >= 1 && count <= MOST_CHOICES, 2, "a list of 1 to 1000 values");
    sf_script_charge(L, 1000);
    const char **values = lua_newuserdatauv(L, count * sizeof *values, 0);
    luaL_checkstack(L, (int)count + 8, "too many values");
    for (lua_Unsigned i = 0; i < count; i++) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        values[i] =
            sf_script_push_text(L, -1, NULL); /* stays on the stack, and so the text lives */
        lua_remove(L, -2);
    }
    if (sf_settings_choice(script->options.settings, name, (int)count, values, &script->scratch,
                           &chosen) != SF_OK)
        return sf_script_throw(L);
    lua_rawgeti(L, 2, chosen + 1);
    return 1;
}

void sf_script_open_tune(lua_State *L)
{
    static const luaL_Reg functions[] = {{"int", tune_int}, {"choice", tune_choice}, {NULL, NULL}};
    luaL_newlib(L, functions);
    lua_setglobal(L, "tune");
}
