/* Primitives as Lua sees them. */
#include "api/primitive/primitives.h"
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

/* Primitives that were applied together: those that there still are with numbers from `first` on, below `end`. */
typedef struct applied {
    int first, end;
} applied;

int sf_script_push_applied(lua_State *L, int first)
{
    applied *all = lua_newuserdatauv(L, sizeof *all, 0);
    *all = (applied){first, sf_primitives_next(sf_script_of(L)->list)};
    luaL_setmetatable(L, SF_PRIMITIVE_KIND);
    return 1;
}

int sf_script_apply(lua_State *L, sf_primitive *said, int count)
{
    sf_script *script = sf_script_of(L);
    int first = sf_primitives_next(script->list);
    sf_script_push_applied(L, first);
    applied *all = lua_touserdata(L, -1);
    for (int i = 0; i < count; i++) {
        sf_script_find_place(L, &said[i]);
        sf_script_charge(L, 1000);
        if (sf_primitives_add(script->list, &said[i], &script->scratch, NULL) != SF_OK) {
            sf_primitives_undo_between(script->list, first, sf_primitives_next(script->list),
                                       NULL); /* all, or nothing */
            return sf_script_throw(L);
        }
        all->end = sf_primitives_next(script->list);
    }
    return 1;
}

void sf_script_undo(lua_State *L, int first, int end)
{
    sf_script *script = sf_script_of(L);
    sf_script_charge(L, 1000 + 100 * (double)sf_primitives_count(script->list));
    if (first < script->floor)
        luaL_error(L, "a primitive undoes what it has applied, and nothing from before");
    if (sf_primitives_undo_between(script->list, first, end, &script->scratch) != SF_OK)
        sf_script_throw(L);
}

static int undo(lua_State *L)
{
    const applied *all = luaL_checkudata(L, 1, SF_PRIMITIVE_KIND);
    if (sf_primitives_between(sf_script_of(L)->list, all->first, all->end) > 0)
        sf_script_undo(L, all->first, all->end);
    return 0;
}

/* How many were applied together. */
static int name_primitive(lua_State *L)
{
    const applied *all = luaL_checkudata(L, 1, SF_PRIMITIVE_KIND);
    int count = sf_primitives_between(sf_script_of(L)->list, all->first, all->end);
    lua_pushfstring(L, "%d primitive%s", count, count == 1 ? "" : "s");
    return 1;
}

static const luaL_Reg primitive_methods[] = {
    {"undo", undo}, {"__tostring", name_primitive}, {NULL, NULL}};

void sf_script_open_primitives(lua_State *L)
{
    sf_script_push_kind(L, SF_PRIMITIVE_KIND, primitive_methods);
    lua_pop(L, 1);
}
