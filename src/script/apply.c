/* Primitives as Lua sees them. */
#include "script/script_module.h"

const char *sf_script_module_at(lua_State *L, int at)
{
    luaL_checkudata(L, at, SF_MODULE_KIND);
    lua_getiuservalue(L, at, 1);
    const char *pattern = lua_tostring(L, -1);
    lua_pop(L, 1); /* the module holds it */
    return pattern;
}

void sf_script_find_place(lua_State *L, sf_primitive *said)
{
    sf_script *script = sf_script_of(L);
    script->line = 0;
    sf_script_note_line(script, L);
    said->file = script->line > 0 ? script->file : NULL;
    said->line = script->line;
}

/* Primitives that were applied together: how many, and the number of the first. */
typedef struct applied {
    int first, count;
} applied;

int sf_script_push_applied(lua_State *L, int first, int count)
{
    applied *all = lua_newuserdatauv(L, sizeof *all, 0);
    *all = (applied){first, count};
    luaL_setmetatable(L, SF_PRIMITIVE_KIND);
    return 1;
}

int sf_script_apply(lua_State *L, sf_primitive *said, int count)
{
    sf_script *script = sf_script_of(L);
    sf_script_push_applied(L, 0, 0);
    applied *all = lua_touserdata(L, -1);
    for (int i = 0; i < count; i++) {
        int number;
        sf_script_find_place(L, &said[i]);
        sf_script_charge(L, 1000);
        if (sf_primitives_add(script->list, &said[i], &script->scratch, &number) != SF_OK) {
            while (all->count > 0) /* all, or nothing */
                sf_primitives_undo(script->list, all->first + --all->count, NULL);
            return sf_script_throw(L);
        }
        all->first = all->count++ == 0 ? number : all->first;
    }
    return 1;
}

void sf_script_widen(lua_State *L, int at, int count)
{
    ((applied *)luaL_checkudata(L, at, SF_PRIMITIVE_KIND))->count = count;
}

static int undo(lua_State *L)
{
    sf_script *script = sf_script_of(L);
    applied *all = luaL_checkudata(L, 1, SF_PRIMITIVE_KIND);
    for (; all->count > 0; all->count--)
        if (sf_primitives_undo(script->list, all->first + all->count - 1, &script->scratch) !=
            SF_OK)
            return sf_script_throw(L);
    return 0;
}

/* How many were applied together. */
static int name_primitive(lua_State *L)
{
    const applied *all = luaL_checkudata(L, 1, SF_PRIMITIVE_KIND);
    lua_pushfstring(L, "%d primitive%s", all->count, all->count == 1 ? "" : "s");
    return 1;
}

static const luaL_Reg primitive_methods[] = {
    {"undo", undo}, {"__tostring", name_primitive}, {NULL, NULL}};

void sf_script_open_primitives(lua_State *L)
{
    sf_script_push_kind(L, SF_PRIMITIVE_KIND, primitive_methods);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}
