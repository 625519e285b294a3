/* Functions of the sandbox that replace those of Lua that show addresses, or the order of a hash
 * table, which depends on addresses and on the clock: tostring, string.format, pairs, next and
 * table.sort. They walk copies: no callback changes them. */
#include <math.h>
#include <string.h>

#include "script/script_state.h"

const char *sf_script_push_text(lua_State *L, int at, size_t *length)
{
    int type = lua_type(L, at);
    at = lua_absindex(L, at);
    if (type == LUA_TTABLE || type == LUA_TFUNCTION || type == LUA_TTHREAD ||
        type == LUA_TLIGHTUSERDATA) {
        lua_pushstring(L, lua_typename(L, type));
    } else if (type == LUA_TUSERDATA) { /* of ours, all */
        if (!luaL_callmeta(L, at, "__tostring"))
            luaL_getmetafield(L, at, "__name");
    } else {
        lua_Number number = type == LUA_TNUMBER ? lua_tonumber(L, at) : 0;
        if (number != number) /* its sign differs between processors */
            lua_pushliteral(L, "nan");
        else
            luaL_tolstring(L, at, NULL);
    }
    return lua_tolstring(L, -1, length);
}

static int to_text(lua_State *L)
{
    luaL_checkany(L, 1);
    sf_script_push_text(L, 1, NULL);
    return 1;
}

/* Arguments of %s become texts; the library's own function formats all others. */
static int format(lua_State *L)
{
    int at = 1;
    for (const char *c = luaL_checkstring(L, 1); *c; c++) {
        if (*c != '%' || *++c == '%')
            continue;
        c += strspn(c, "-+ #0123456789.");
        if (*c == 'p')
            return luaL_error(L, "a schedule sees no addresses: %%p is not for it");
        at++;
        if (*c == 's' && at <= lua_gettop(L)) {
            sf_script_push_text(L, at, NULL);
            lua_replace(L, at);
        }
        if (!*c)
            break;
    }
    return sf_script_call_own(L);
}

/* Sorting ------------------------------------------------------------------------------------------ */

/* Sorts `count` numbers by merging, in the order that `less` gives of them; whatever that says, all are kept. */
static void merge_sort(int *order, int *spare, int count, bool (*less)(void *, int, int),
                       void *context)
{
    for (int width = 1; width < count; width *= 2) {
        for (int first = 0; first < count; first += 2 * width) {
            int middle = count - first > width ? first + width : count;
            int end = count - middle > width ? middle + width : count;
            int a = first, b = middle;
            for (int k = first; k < end; k++)
                spare[k] = a < middle && (b == end || !less(context, order[b], order[a]))
                               ? order[a++]
                               : order[b++];
        }
        memcpy(order, spare, (size_t)count * sizeof *order);
    }
}

/* Memory of Lua's for the numbers of `count` things, from 1 on, and as many to spare; it stays on the stack. */
static int *push_order(lua_State *L, int count)
{
    int *order = lua_newuserdatauv(L, 2 * ((size_t)count + 1) * sizeof *order, 0);
    for (int i = 0; i < count; i++)
        order[i] = i + 1;
    sf_script_charge(L, count * (4 + log2(count + 1)));
    return order;
}

/* The list is at 1, its comparison at 2 or nil, and a copy of the list at 3. */
static bool is_less(void *context, int a, int b)
{
    lua_State *L = context;
    bool asks = !lua_isnil(L, 2);
    if (asks)
        lua_pushvalue(L, 2);
    lua_rawgeti(L, 3, a);
    lua_rawgeti(L, 3, b);
    if (asks)
        lua_call(L, 2, 1);
    bool less = asks ? lua_toboolean(L, -1) : lua_compare(L, -2, -1, LUA_OPLT);
    lua_pop(L, asks ? 1 : 2);
    return less;
}

static int sort(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    if (!lua_isnil(L, 2))
        luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_Unsigned length = lua_rawlen(L, 1);
    luaL_argcheck(L, length < 1 << 24, 1, "too many elements");
    int count = (int)length;
    lua_createtable(L, count, 0);
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(L, 1, i);
        lua_rawseti(L, 3, i);
    }
    int *order = push_order(L, count);
    merge_sort(order, order + count, count, is_less, L);
    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, 3, order[i]);
        lua_rawseti(L, 1, i + 1);
    }
    return 0;
}

/* Walking tables ------------------------------------------------------------------------------------- */

/* A key of a table: numbers come before texts, and those before false and true. */
typedef struct key {
    enum { NUMBER, TEXT, TRUTH } kind;
    bool whole;
    lua_Integer integer; /* or 0 and 1, of TRUTH */
    lua_Number number;
    const char *text;
    size_t length;
} key;

static void take_key(lua_State *L, int at, key *out)
{
    int type = lua_type(L, at);
    *out = (key){.kind = NUMBER};
    if (type == LUA_TNUMBER) {
        out->whole = lua_isinteger(L, at);
        out->integer = out->whole ? lua_tointeger(L, at) : 0;
        out->number = lua_tonumber(L, at);
    } else if (type == LUA_TSTRING) {
        out->kind = TEXT;
        out->text = lua_tolstring(L, at, &out->length);
    } else if (type == LUA_TBOOLEAN) {
        out->kind = TRUTH;
        out->integer = lua_toboolean(L, at);
    } else { /* which of several kinds comes first depends on addresses */
        luaL_error(L, "a key that is no number, text or truth value: a schedule walks tables whose "
                      "keys have an order");
    }
}

static bool key_is_less(const key *a, const key *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind;
    if (a->kind == TRUTH || (a->kind == NUMBER && a->whole && b->whole))
        return a->integer < b->integer;
    if (a->kind == NUMBER)
        return a->number < b->number || (a->number == b->number && a->whole && !b->whole);
    int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    return order != 0 ? order < 0 : a->length < b->length;
}

static bool is_before(void *context, int a, int b)
{
    const key *keys = context;
    return key_is_less(&keys[a - 1], &keys[b - 1]);
}

/* next(table [, key]): the least key that is greater. */
static int next_key(lua_State *L)
{
    key least, now, after;
    bool found = false;
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    bool begins = lua_isnil(L, 2);
    if (!begins)
        take_key(L, 2, &after);
    lua_pushnil(L); /* at 3: the least so far */
    double size = 1;
    for (lua_pushnil(L); lua_next(L, 1) != 0; size++) {
        lua_pop(L, 1);
        take_key(L, 4, &now);
        if ((begins || key_is_less(&after, &now)) && (!found || key_is_less(&now, &least))) {
            found = true;
            least = now;
            lua_pushvalue(L, 4);
            lua_replace(L, 3);
        }
    }
    sf_script_charge(L, size);
    if (!found)
        return 1;
    lua_pushvalue(L, 3);
    lua_rawget(L, 1);
    return 2;
}

/* Upvalues: the table, a list of its keys, and how many are done. */
static int walk_on(lua_State *L)
{
    lua_Integer at = lua_tointeger(L, lua_upvalueindex(3));
    lua_settop(L, 0);
    sf_script_charge(L, 1);
    while (lua_rawgeti(L, lua_upvalueindex(2), ++at) != LUA_TNIL) {
        lua_pushvalue(L, 1);
        if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
            break;
        lua_settop(L, 0); /* it was taken out since */
    }
    lua_pushinteger(L, at);
    lua_replace(L, lua_upvalueindex(3));
    return lua_gettop(L);
}

int sf_script_push_keys(lua_State *L, int at)
{
    int count = 0;
    lua_newtable(L); /* the keys as they come */
    int found = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, at) != 0;) {
        lua_pop(L, 1);
        luaL_argcheck(L, count < 1 << 24, at, "too many keys");
        lua_pushvalue(L, -1);
        lua_rawseti(L, found, ++count);
    }
    key *keys = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *keys, 0);
    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, found, i + 1);
        take_key(L, -1, &keys[i]);
        lua_pop(L, 1);
    }
    int *order = push_order(L, count);
    merge_sort(order, order + count, count, is_before, keys);
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, found, order[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_replace(L, found);
    lua_settop(L, found);
    return count;
}

static int pairs(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_pushvalue(L, 1);
    sf_script_push_keys(L, 1);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, walk_on, 3);
    lua_pushvalue(L, 1);
    return 2;
}

void sf_script_open_values(lua_State *L)
{
    lua_register(L, "tostring", to_text);
    lua_register(L, "next", next_key);
    lua_register(L, "pairs", pairs);
    lua_getglobal(L, "table");
    lua_pushcfunction(L, sort);
    lua_setfield(L, -2, "sort");
    lua_getglobal(L, "string");
    sf_script_wrap(L, "format", format, false);
    lua_pop(L, 2);
}
