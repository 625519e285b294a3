#include "script/script_module.h"

#include <limits.h>
#include <string.h>

#include "script/script_find.h"

/* A module is a pattern of paths, its one user value; nothing else. */
static const char *check_module(lua_State *L)
{
    luaL_checkudata(L, 1, SF_MODULE_KIND);
    lua_getiuservalue(L, 1, 1);
    return lua_tostring(L, -1);
}

static void push_pattern(lua_State *L, const char *pattern)
{
    lua_newuserdatauv(L, 0, 1);
    lua_pushstring(L, pattern);
    lua_setiuservalue(L, -2, 1);
    luaL_setmetatable(L, SF_MODULE_KIND);
}

/* How many modules the pattern matches; raises an error without memory. */
static int count_modules(lua_State *L, const char *pattern, int capacity, const char **out)
{
    sf_script_charge(L, 1000);
    int count = sf_primitives_modules(sf_script_of(L)->list, pattern, capacity, out);
    if (count < 0)
        sf_script_starve(L);
    return count;
}

/* A list of paths, in memory of Lua's. */
static const char **push_paths(lua_State *L, const char *pattern, int *count)
{
    *count = count_modules(L, pattern, 0, NULL);
    const char **paths = lua_newuserdatauv(L, (size_t)*count * sizeof *paths + 1, 0);
    *count = count_modules(L, pattern, *count, paths);
    return paths;
}

/* A single one is selected by its own path, so that modules below it are found whatever its dots
 * mean. */
int sf_script_push_module(lua_State *L, const char *above, const char *name)
{
    const char *path = lua_pushfstring(L, "%s%s%s", above, *above ? "/" : "", name);
    if (count_modules(L, path, 0, NULL) == 0) {
        sf_script *script = sf_script_of(L);
        sf_primitive said = {.size = sizeof said, .kind = SF_PRIMITIVE_DECOMPOSE, .module = path};
        /* its message has the valid names */
        sf_primitives_add(script->list, &said, &script->scratch, NULL);
        return sf_script_throw(L);
    }
    const char *one;
    push_pattern(L, count_modules(L, path, 1, &one) == 1 ? one : path);
    return 1;
}

static int count_slashes(const char *path)
{
    int count = 0;
    for (; *path; path++)
        count += *path == '/';
    return count;
}

int sf_script_push_modules(lua_State *L, const char *pattern, int slashes)
{
    int count;
    lua_Integer kept = 0;
    const char **paths = push_paths(L, pattern, &count);
    lua_newtable(L);
    for (int i = 0; i < count; i++) {
        if (slashes >= 0 && count_slashes(paths[i]) != slashes)
            continue;
        push_pattern(L, paths[i]);
        lua_rawseti(L, -2, ++kept);
    }
    return 1;
}

static int check_dim(lua_State *L, int at)
{
    lua_Integer dim = luaL_checkinteger(L, at);
    luaL_argcheck(L, dim > -1000 && dim < 1000, at, "no tensor has so many dimensions");
    return (int)dim;
}

enum { MOST_PARAMS = 64 };

/* shard("kernel", 1), shard({"kernel", "bias"}, 0, "model") */
static int shard(lua_State *L)
{
    sf_primitive said[MOST_PARAMS];
    lua_Unsigned count = 1;
    sf_primitive one = {.size = sizeof one,
                        .kind = SF_PRIMITIVE_SHARD,
                        .dim = check_dim(L, 3),
                        .axis = luaL_optstring(L, 4, NULL)};
    one.module = check_module(L);
    if (lua_istable(L, 2)) {
        count = lua_rawlen(L, 2);
        luaL_argcheck(L, count >= 1 && count <= MOST_PARAMS, 2, "name some parameters");
        luaL_checkstack(L, MOST_PARAMS + 8, NULL);
    }
    for (lua_Unsigned i = 0; i < count; i++) {
        if (lua_istable(L, 2))
            lua_rawgeti(L, 2, (lua_Integer)i + 1); /* stays on the stack, and so the text lives */
        else
            lua_pushvalue(L, 2);
        luaL_argcheck(L, lua_type(L, -1) == LUA_TSTRING, 2, "parameters go by their names");
        said[i] = one;
        said[i].param = lua_tostring(L, -1);
    }
    return sf_script_apply(L, said, (int)count);
}

/* sync("forward", "reduce_scatter", 1, "model") */
static int sync(lua_State *L)
{
    sf_primitive said = {.size = sizeof said,
                         .kind = SF_PRIMITIVE_SYNC,
                         .mode = luaL_optstring(L, 2, NULL),
                         .op = luaL_optstring(L, 3, NULL),
                         .axis = luaL_optstring(L, 5, NULL)};
    if (said.op && strcmp(said.op, "reduce_scatter") == 0)
        said.dim = check_dim(L, 4);
    said.module = check_module(L);
    return sf_script_apply(L, &said, 1);
}

static int apply_plain(lua_State *L, sf_primitive_kind kind)
{
    sf_primitive said = {.size = sizeof said, .kind = kind, .module = check_module(L)};
    return sf_script_apply(L, &said, 1);
}

/* The module, or subgraphs of it. */
static int checkpoint(lua_State *L)
{
    if (lua_isnoneornil(L, 2))
        return apply_plain(L, SF_PRIMITIVE_CHECKPOINT);
    sf_primitive said = {
        .size = sizeof said, .kind = SF_PRIMITIVE_CHECKPOINT, .module = sf_script_module_at(L, 1)};
    said.subgraphs = sf_script_take_subgraphs(L, 2, &said.nsubgraphs);
    return sf_script_apply(L, &said, 1);
}

/* trace{leaves = {"q", "k"}}; our graphs are flat, whatever `flatten` says. */
static int trace(lua_State *L)
{
    sf_primitive said = {
        .size = sizeof said, .kind = SF_PRIMITIVE_TRACE, .module = sf_script_module_at(L, 1)};
    if (lua_istable(L, 2) && lua_getfield(L, 2, "leaves") == LUA_TTABLE) {
        luaL_Buffer names;
        lua_Unsigned count = lua_rawlen(L, -1);
        int leaves = lua_gettop(L);
        luaL_buffinit(L, &names);
        for (lua_Unsigned i = 1; i <= count; i++) {
            if (lua_rawgeti(L, leaves, (lua_Integer)i) != LUA_TSTRING)
                return luaL_argerror(L, 2, "leaves go by their names");
            luaL_addvalue(&names);
            if (i < count)
                luaL_addchar(&names, ',');
        }
        luaL_pushresult(&names);
        said.name = count > 0 ? lua_tostring(L, -1) : NULL;
    }
    return sf_script_apply(L, &said, 1);
}

static int pipeline_split(lua_State *L)
{
    return apply_plain(L, SF_PRIMITIVE_PIPELINE_SPLIT);
}

static int decompose(lua_State *L)
{
    return apply_plain(L, SF_PRIMITIVE_DECOMPOSE);
}

static int fork_rng(lua_State *L)
{
    return apply_plain(L, SF_PRIMITIVE_FORK_RNG);
}

static int annotate(lua_State *L)
{
    sf_primitive said = {
        .size = sizeof said, .kind = SF_PRIMITIVE_ANNOTATE, .name = luaL_checkstring(L, 2)};
    luaL_argcheck(L, lua_isstring(L, 3) || lua_isboolean(L, 3), 3,
                  "a text, a number or a truth value is kept");
    said.value = sf_script_push_text(L, 3, NULL);
    said.module = check_module(L);
    return sf_script_apply(L, &said, 1);
}

/* Those one level below. */
static int list_children(lua_State *L)
{
    const char *name = luaL_optstring(L, 2, "*"), *module = check_module(L);
    const char *below = lua_pushfstring(L, "%s/%s", module, name);
    return sf_script_push_modules(L, below, count_slashes(module) + 1);
}

static int list_each(lua_State *L)
{
    return sf_script_push_modules(L, check_module(L), -1);
}

static int list_params(lua_State *L)
{
    const sf_primitives *list = sf_script_of(L)->list;
    const char *module = check_module(L);
    int count = sf_primitives_params(list, module, NULL, 0, NULL);
    const char **names =
        lua_newuserdatauv(L, (size_t)(count < 0 ? 0 : count) * sizeof *names + 1, 0);
    if (count < 0 || sf_primitives_params(list, module, NULL, count, names) != count)
        return sf_script_starve(L);
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushstring(L, names[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static int name_module(lua_State *L)
{
    check_module(L);
    return 1;
}

static int count_matches(lua_State *L)
{
    lua_pushinteger(L, count_modules(L, check_module(L), 0, NULL));
    return 1;
}

static int index_module(lua_State *L)
{
    const char *key = luaL_checkstring(L, 2);
    sf_script_push_methods(L, SF_MODULE_KIND);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, -2) != LUA_TNIL)
        return 1;
    return sf_script_push_module(L, check_module(L), key);
}

static const luaL_Reg module_methods[] = {
    {"shard", shard},
    {"sync", sync},
    {"checkpoint", checkpoint},
    {"trace", trace},
    {"find", sf_script_find},
    {"replace", sf_script_replace},
    {"fuse", sf_script_fuse},
    {"pipeline_split", pipeline_split},
    {"decompose", decompose},
    {"fork_rng", fork_rng},
    {"annotate", annotate},
    {"children", list_children},
    {"each", list_each},
    {"params", list_params},
    {"name", name_module},
    {"__tostring", name_module},
    {"__len", count_matches},
    {"__index", index_module},
    {NULL, NULL},
};

void sf_script_open_modules(lua_State *L)
{
    sf_script_open_subgraphs(L);
    sf_script_push_kind(L, SF_MODULE_KIND, module_methods);
    lua_pop(L, 1);
    sf_script_open_primitives(L);
}
