/* Primitives that a schedule defines, sheaf.primitive{name = ..., check = ..., apply = ...}, or
 * loads, sheaf.plugin(path).
 *
 * They are methods of modules, like the built-in ones, and are made of them: the primitives that
 * they apply are checked, verified, tuned and kept in the plan one by one, after a note with their
 * name. All of them are applied, or none. */
#include <ctype.h>
#include <string.h>

#include "api/primitive/primitives.h"
#include "script/script_module.h"
#include "sheaf/plugin.h"

enum { NAME = 1, CHECK, APPLY }; /* upvalues of a method */

/* Calls a function of the definition with the arguments of the method, 1 to `count`; a status of Lua's, with the error on the
 * stack. */
static int call_given(lua_State *L, int upvalue, int count, int results)
{
    luaL_checkstack(L, count + 4, "too many arguments");
    lua_pushvalue(L, lua_upvalueindex(upvalue));
    for (int i = 1; i <= count; i++)
        lua_pushvalue(L, i);
    return lua_pcall(L, count, results, 0);
}

/* The condition: the function returns true, or false and the reason. */
static void check_given(lua_State *L, int count)
{
    const char *name = lua_tostring(L, lua_upvalueindex(NAME));
    if (lua_isnil(L, lua_upvalueindex(CHECK)))
        return;
    int result = call_given(L, CHECK, count, 2);
    if (result != LUA_OK)
        sf_script_raise(L, result);
    if (!lua_toboolean(L, -2))
        luaL_error(L, "%s: %s", name,
                   lua_isstring(L, -1) ? lua_tostring(L, -1) : "it does not apply here");
    lua_pop(L, 2);
}

/* Methods are at 2. A name that a schedule can write, and none of Lua's own. */
static void check_name(lua_State *L, const char *name)
{
    bool good = isalpha((unsigned char)*name) || *name == '_';
    for (const char *c = name; *c; c++)
        good = good && (isalnum((unsigned char)*c) || *c == '_');
    if (!good || strncmp(name, "__", 2) == 0 || strlen(name) > 100)
        luaL_error(L,
                   "\"%s\" is no name for a primitive: those have letters, digits and _, and do "
                   "not begin with a digit or __",
                   name);
    lua_pushstring(L, name);
    if (lua_rawget(L, 2) != LUA_TNIL)
        luaL_error(L, "there is a primitive \"%s\" already", name);
    lua_pop(L, 1);
}

static int apply_given(lua_State *L)
{
    sf_script *script = sf_script_of(L);
    int count = lua_gettop(L), first, floor = script->floor;
    sf_primitive note = {.size = sizeof note,
                         .kind = SF_PRIMITIVE_ANNOTATE,
                         .module = sf_script_module_at(L, 1),
                         .name = "primitive",
                         .value = lua_tostring(L, lua_upvalueindex(NAME))};
    check_given(L, count);
    first = sf_primitives_next(script->list);
    sf_script_apply(L, &note, 1);
    script->floor = first;
    int result = call_given(L, APPLY, count, 0);
    script->floor = floor;
    if (result != LUA_OK) {
        sf_primitives_undo_between(script->list, first, sf_primitives_next(script->list), NULL);
        return sf_script_raise(L, result);
    }
    return sf_script_push_applied(L, first);
}

/* One of a shared object: arguments are numbers and texts, of which no more are given than these. */
enum { MOST_VALUES = 16 };

static int apply_loaded(lua_State *L)
{
    sf_script *script = sf_script_of(L);
    const sf_user_primitive *user = lua_touserdata(L, lua_upvalueindex(1));
    const char *module = sf_script_module_at(L, 1);
    const char *texts[MOST_VALUES];
    double numbers[MOST_VALUES];
    sf_primitive place = {.size = sizeof place};
    int count = lua_gettop(L) - 1, first, added;
    luaL_argcheck(L, count <= MOST_VALUES, MOST_VALUES + 1, "too many arguments");
    for (int i = 0; i < count; i++) {
        bool number = lua_type(L, i + 2) == LUA_TNUMBER;
        texts[i] = number ? NULL : luaL_checkstring(L, i + 2);
        numbers[i] = number ? lua_tonumber(L, i + 2) : 0;
    }
    sf_script_find_place(L, &place);
    sf_script_charge(L, 100000);
    if (sf_primitives_apply(script->list, user, module, count, texts, numbers, place.file,
                            place.line, &script->scratch, &first, &added) != SF_OK)
        return sf_script_throw(L);
    return sf_script_push_applied(L, first);
}

/* sheaf.plugin("./bind.so") */
int sf_script_load_plugin(lua_State *L)
{
    sf_script *script = sf_script_of(L);
    const sf_user_primitive *user;
    const char *path = luaL_checkstring(L, 1);
    if (!script->options.unsafe)
        return luaL_error(L, "a schedule loads no files, unless it is run with --unsafe");
    if (sf_primitive_load(path, &script->scratch, &user) != SF_OK)
        return sf_script_throw(L);
    lua_settop(L, 1);
    sf_script_push_methods(L, SF_MODULE_KIND);
    check_name(L, user->name);
    lua_pushlightuserdata(L, (void *)(uintptr_t)user);
    lua_pushcclosure(L, apply_loaded, 1);
    lua_setfield(L, 2, user->name);
    return 0;
}

/* sheaf.primitive{name = "quantize", check = function(module, bits) ... end, apply = function(module, bits) ... end} */
int sf_script_define(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    sf_script_push_methods(L, SF_MODULE_KIND);
    luaL_argcheck(L, lua_getfield(L, 1, "name") == LUA_TSTRING, 1, "a primitive has a name");
    size_t length;
    const char *name = lua_tolstring(L, -1, &length);
    check_name(L, strlen(name) == length ? name : "");
    int check = lua_getfield(L, 1, "check");
    luaL_argcheck(L, check == LUA_TNIL || check == LUA_TFUNCTION, 1, "check is a function");
    luaL_argcheck(L, lua_getfield(L, 1, "apply") == LUA_TFUNCTION, 1, "apply is a function");
    lua_pushcclosure(L, apply_given, 3);
    lua_setfield(L, 2, name);
    return 0;
}
