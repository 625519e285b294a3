/* Spaces: plans said by ops, devices and tasks. */
#include <limits.h>
#include <string.h>

#include "script/script_module.h"

#define SPACE_KIND "sheaf.space"

enum { MOST_DEVICES = 4096 };

/* Ops: a text, a module, or nil, which is all. */
static const char *take_ops(lua_State *L, int at)
{
    if (lua_isnoneornil(L, at))
        return NULL;
    if (luaL_testudata(L, at, SF_MODULE_KIND))
        return sf_script_module_at(L, at);
    return luaL_checkstring(L, at);
}

static int take_small(lua_State *L, int at, lua_Integer otherwise)
{
    lua_Integer number = luaL_optinteger(L, at, otherwise);
    luaL_argcheck(L, number >= INT_MIN && number <= INT_MAX, at, "this number is too large");
    return (int)number;
}

/* trans("layer_?/mlp/up/dot_general", "j", 2 [, "time"]), trans(nil, "batch", 4, "time") */
static int trans(lua_State *L)
{
    luaL_checkudata(L, 1, SPACE_KIND);
    sf_primitive said = {.size = sizeof said,
                         .kind = SF_PRIMITIVE_TRANS,
                         .module = take_ops(L, 2),
                         .name = luaL_checkstring(L, 3),
                         .parts = take_small(L, 4, 1),
                         .mode = luaL_optstring(L, 5, "space")};
    return sf_script_apply(L, &said, 1);
}

/* assign("layer_0", 0), assign("layer_0", {0, 1} [, micro-batch]) */
static int assign(lua_State *L)
{
    luaL_checkudata(L, 1, SPACE_KIND);
    lua_settop(L, 4);
    lua_Unsigned count = lua_istable(L, 3) ? lua_rawlen(L, 3) : 1;
    luaL_argcheck(L, count >= 1 && count <= MOST_DEVICES, 3, "name some devices");
    int *devices = lua_newuserdatauv(L, count * sizeof *devices, 0);
    for (lua_Unsigned i = 0; i < count; i++) {
        if (lua_istable(L, 3))
            lua_rawgeti(L, 3, (lua_Integer)i + 1);
        else
            lua_pushvalue(L, 3);
        luaL_argcheck(L, lua_isinteger(L, -1), 3, "devices are numbers");
        devices[i] = take_small(L, lua_gettop(L), 0);
        lua_pop(L, 1);
    }
    sf_primitive said = {.size = sizeof said,
                         .kind = SF_PRIMITIVE_ASSIGN,
                         .module = take_ops(L, 2),
                         .microbatch = take_small(L, 4, SF_EVERY),
                         .devices = devices,
                         .ndevices = (int)count};
    return sf_script_apply(L, &said, 1);
}

/* {"layer_0", "backward", 3, 1}: ops, the pass, the micro-batch and the round; omitted ones mean
 * all. Texts stay on the stack. */
static sf_task take_task(lua_State *L, int at)
{
    static const char *const passes[] = {"forward", "backward", "weights", NULL};
    luaL_checktype(L, at, LUA_TTABLE);
    int first = lua_gettop(L) + 1;
    for (int i = 1; i <= 4; i++)
        lua_rawgeti(L, at, i);
    return (sf_task){.size = sizeof(sf_task),
                     .ops = take_ops(L, first),
                     .pass = (sf_pass)luaL_checkoption(L, first + 1, "forward", passes),
                     .microbatch = take_small(L, first + 2, SF_EVERY),
                     .round = take_small(L, first + 3, 0)};
}

/* order({"layer_0", "forward", 3}, {"layer_0", "backward", 0}) */
static int order(lua_State *L)
{
    luaL_checkudata(L, 1, SPACE_KIND);
    sf_task before = take_task(L, 2), after = take_task(L, 3);
    sf_primitive said = {
        .size = sizeof said, .kind = SF_PRIMITIVE_ORDER, .before = &before, .after = &after};
    return sf_script_apply(L, &said, 1);
}

/* sheaf.space([devices]) */
int sf_script_give_space(lua_State *L)
{
    lua_Integer devices = luaL_optinteger(L, 1, sf_script_of(L)->options.ranks);
    luaL_argcheck(L, devices >= 1, 1, "say how many devices there are, or run it with -n");
    sf_primitive said = {.size = sizeof said, .kind = SF_PRIMITIVE_SET, .name = "devices"};
    said.value = lua_pushfstring(L, "%I", (LUAI_UACINT)devices);
    sf_script_apply(L, &said, 1);
    lua_newuserdatauv(L, 0, 0);
    luaL_setmetatable(L, SPACE_KIND);
    return 1;
}

void sf_script_open_spaces(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"trans", trans}, {"assign", assign}, {"order", order}, {NULL, NULL}};
    sf_script_push_kind(L, SPACE_KIND, methods);
    lua_pop(L, 1);
}
