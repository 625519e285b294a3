/* The table `sheaf`, and the schedule: settings of the whole step. Modules are in
 * script_module.c. */
#include <string.h>

#include "api/primitive/primitives.h"
#include "base/machine.h"
#include "op/flops.h"
#include "plan/spec.h"
#include "script/script_module.h"

static void *check_schedule(lua_State *L)
{
    return luaL_checkudata(L, 1, SF_SCHEDULE_KIND);
}

/* A field of sf_plan_spec, whose name is the upvalue. Numbers and texts alike. */
static int set(lua_State *L)
{
    check_schedule(L);
    sf_primitive said = {.size = sizeof said,
                         .kind = SF_PRIMITIVE_SET,
                         .name = lua_tostring(L, lua_upvalueindex(1)),
                         .value = luaL_checkstring(L, 2)};
    return sf_script_apply(L, &said, 1);
}

/* {{"data", 2}, {"model", 4}} as "data=2,model=4". */
static void push_mesh(lua_State *L)
{
    luaL_Buffer text;
    lua_Unsigned count = lua_rawlen(L, 2);
    luaL_argcheck(L, count >= 1 && count <= 16, 2, "a mesh is {{\"data\", 2}, {\"model\", 4}}");
    luaL_buffinit(L, &text);
    for (lua_Unsigned i = 1; i <= count; i++) {
        lua_rawgeti(L, 2, (lua_Integer)i);
        bool is_pair = lua_istable(L, -1) && lua_rawgeti(L, -1, 1) == LUA_TSTRING &&
                       lua_rawgeti(L, -2, 2) == LUA_TNUMBER && lua_isinteger(L, -1);
        luaL_argcheck(L, is_pair, 2, "a mesh is {{\"data\", 2}, {\"model\", 4}}");
        lua_pushfstring(L, "%s%s=%I", i > 1 ? "," : "", lua_tostring(L, -2),
                        (LUAI_UACINT)lua_tointeger(L, -1));
        lua_replace(L, -4);
        lua_pop(L, 2);
        luaL_addvalue(&text);
    }
    luaL_pushresult(&text);
}

static int set_mesh(lua_State *L)
{
    check_schedule(L);
    if (lua_istable(L, 2)) {
        push_mesh(L);
        lua_replace(L, 2);
    }
    return set(L);
}

/* Requires syncs that sharding propagation would otherwise add. */
static int set_strict(lua_State *L)
{
    check_schedule(L);
    sf_primitive said = {
        .size = sizeof said, .kind = SF_PRIMITIVE_SET, .name = "strict", .value = "sync"};
    return sf_script_apply(L, &said, 1);
}

static int list_modules(lua_State *L)
{
    check_schedule(L);
    return sf_script_push_modules(L, luaL_optstring(L, 2, "*"), -1);
}

/* The modules at the top. */
static int list_top(lua_State *L)
{
    check_schedule(L);
    return sf_script_push_modules(L, luaL_optstring(L, 2, "*"), 0);
}

static int list_primitives(lua_State *L)
{
    check_schedule(L);
    const sf_primitives *list = sf_script_of(L)->list;
    int count = sf_primitives_count(list);
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushstring(L, sf_primitives_text(list, i));
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static int undo_last(lua_State *L)
{
    check_schedule(L);
    int last = sf_primitives_last(sf_script_of(L)->list);
    if (last < 0)
        return luaL_error(L, "there is nothing to undo");
    sf_script_undo(L, last, last + 1);
    return 0;
}

/* A step is run, and with an error many times: not one that takes more than the machine has, or than a schedule may. */
static void check_effort(lua_State *L, double steps)
{
    static const double per_instruction = 1e5, per_node = 100; /* floating-point operations */
    const sf_graph *graph = sf_primitives_graph(sf_script_of(L)->list);
    double bytes = 0;
    for (size_t v = 0; v < graph->nvalues; v++)
        bytes += (double)sf_type_bytes(graph->values[v].type);
    if (!sf_script_of(L)->options.unsafe && bytes > (double)((int64_t)4 << 30))
        luaL_error(
            L,
            "the step is too large to be verified by a schedule: `sheaf verify --shrink` does it");
    sf_script_charge(L, 10000 + steps * (sf_step_flops(graph) / per_instruction +
                                         per_node * (double)graph->nnodes));
}

/* The reports of a verification are not for scripts: it passes, or it is an error. */
static int verify(lua_State *L)
{
    check_schedule(L);
    sf_script *script = sf_script_of(L);
    lua_Integer steps = luaL_optinteger(L, 2, 2);
    luaL_argcheck(L, steps >= 1 && steps <= 1000, 2, "so many steps are not verified");
    sf_verify_report *report;
    int culprit;
    check_effort(L, (double)steps);
    double start = sf_now();
    sf_status status = sf_primitives_verify(
        script->list, &(sf_plan_spec){.size = sizeof(sf_plan_spec), .ranks = script->options.ranks},
        &(sf_verify_options){.size = sizeof(sf_verify_options), .steps = (int)steps},
        &script->scratch, &report, &culprit);
    sf_verify_free(report);
    script->deadline += sf_now() - start;
    if (status != SF_OK)
        return sf_script_throw(L);
    sf_diag_clear(&script->scratch); /* of warnings */
    return 0;
}

/* A name that is no method is a module. */
static int index_schedule(lua_State *L)
{
    const char *key = luaL_checkstring(L, 2);
    sf_script_push_methods(L, SF_SCHEDULE_KIND);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, -2) != LUA_TNIL)
        return 1;
    return sf_script_push_module(L, "", key);
}

static int give_schedule(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, SF_SCHEDULE_KIND ".one");
    return 1;
}

/* replace("cross_entropy"): a kernel, of the step */
static int replace_kernel(lua_State *L)
{
    check_schedule(L);
    sf_primitive said = {.size = sizeof said,
                         .kind = SF_PRIMITIVE_REPLACE,
                         .module = "",
                         .kernel = luaL_checkstring(L, 2)};
    return sf_script_apply(L, &said, 1);
}

static const luaL_Reg schedule_methods[] = {
    {"strict", set_strict}, {"replace", replace_kernel},     {"modules", list_modules},
    {"children", list_top}, {"primitives", list_primitives}, {"undo", undo_last},
    {"verify", verify},     {"__index", index_schedule},     {NULL, NULL},
};

/* A method for each field of a plan specification. */
static void add_fields(lua_State *L)
{
    for (int f = 0; sf_spec_field(f); f++) {
        const char *name = sf_spec_field(f);
        lua_pushstring(L, name);
        lua_pushcclosure(L, strcmp(name, "mesh") == 0 ? set_mesh : set, 1);
        lua_setfield(L, -2, name);
    }
}

void sf_script_open_sheaf(lua_State *L)
{
    int ranks = sf_script_of(L)->options.ranks;
    sf_script_push_kind(L, SF_SCHEDULE_KIND, schedule_methods);
    sf_script_push_methods(L, SF_SCHEDULE_KIND);
    add_fields(L);
    lua_newuserdatauv(L, 0, 0);
    luaL_setmetatable(L, SF_SCHEDULE_KIND);
    lua_setfield(L, LUA_REGISTRYINDEX, SF_SCHEDULE_KIND ".one");
    sf_script_open_modules(L);
    sf_script_open_spaces(L);
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, give_schedule);
    lua_setfield(L, -2, "schedule");
    lua_pushcfunction(L, sf_script_give_space);
    lua_setfield(L, -2, "space");
    lua_pushcfunction(L, sf_script_define);
    lua_setfield(L, -2, "primitive");
    lua_pushcfunction(L, sf_script_load_plugin);
    lua_setfield(L, -2, "plugin");
    if (ranks > 0) {
        lua_pushinteger(L, ranks);
        lua_setfield(L, -2, "ranks");
    }
    lua_setglobal(L, "sheaf");
}
