#include "script/script_sketch.h"

#include <string.h>

#include "api/primitive/primitives.h"

#define SKETCH_KIND "sheaf.sketch"
#define TRACED_KIND "sheaf.traced"
#define CURRENT "sheaf.sketch.current"

enum { MOST_OPERANDS = 32, MOST_ATTRS = 16, MOST_NUMBERS = 64 };

/* A sketch, freed with its userdata. */
typedef struct held {
    sf_sketch *sketch;
} held;

/* A traced tensor: a number in the sketch, which is its first user value. The second is its shape,
 * of an input. */
typedef struct traced {
    int number;
} traced;

static int free_sketch(lua_State *L)
{
    held *owned = luaL_checkudata(L, 1, SKETCH_KIND);
    sf_sketch_free(owned->sketch);
    owned->sketch = NULL;
    return 0;
}

static sf_sketch *current(lua_State *L)
{
    if (lua_getfield(L, LUA_REGISTRYINDEX, CURRENT) == LUA_TNIL)
        luaL_error(L, "ops are for functions that are traced: those that find and replace take");
    sf_sketch *sketch = ((held *)lua_touserdata(L, -1))->sketch;
    lua_pop(L, 1);
    return sketch;
}

static void push_traced(lua_State *L, int number)
{
    traced *value = lua_newuserdatauv(L, sizeof *value, 2);
    value->number = number;
    lua_getfield(L, LUA_REGISTRYINDEX, CURRENT);
    lua_setiuservalue(L, -2, 1);
    luaL_setmetatable(L, TRACED_KIND);
}

/* The number, in the current sketch, of the value at `at`: a traced tensor, or a number of
 * Lua's. */
static int take_operand(lua_State *L, int at)
{
    sf_script *script = sf_script_of(L);
    sf_sketch *sketch = current(L);
    int number;
    if (lua_type(L, at) == LUA_TNUMBER) {
        if (sf_sketch_number(sketch, lua_tonumber(L, at), &script->scratch, &number) != SF_OK)
            sf_script_throw(L);
        return number;
    }
    const traced *value = luaL_checkudata(L, at, TRACED_KIND);
    lua_getiuservalue(L, at, 1);
    bool ours = ((held *)lua_touserdata(L, -1))->sketch == sketch;
    lua_pop(L, 1);
    luaL_argcheck(L, ours, at, "this is of a function that was traced before");
    return value->number;
}

static int64_t *push_numbers(lua_State *L, int at, int *count)
{
    lua_Unsigned length = lua_rawlen(L, at);
    if (length > MOST_NUMBERS)
        luaL_error(L, "a list of more than %d numbers", MOST_NUMBERS);
    int64_t *numbers = lua_newuserdatauv(L, length * sizeof *numbers + 1, 0);
    for (lua_Unsigned i = 0; i < length; i++) {
        lua_rawgeti(L, at, (lua_Integer)i + 1);
        if (!lua_isinteger(L, -1))
            luaL_error(L, "attributes are numbers, lists of whole numbers, or texts");
        numbers[i] = lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    *count = (int)length;
    return numbers;
}

/* The attributes of an op, from a table. */
typedef struct told {
    int nattrs, rank;
    sf_sketch_attr attrs[MOST_ATTRS];
    const sf_sketch_attr *each[MOST_ATTRS];
    const int64_t *dims;
    const char *dtype;
} told;

/* The value of one attribute, at the top of the stack; lists stay on it, so that they live. */
static void take_attr(lua_State *L, const char *name, sf_sketch_attr *out)
{
    *out = (sf_sketch_attr){.size = sizeof(sf_sketch_attr), .name = name, .count = -1};
    if (lua_isinteger(L, -1)) {
        out->integer = lua_tointeger(L, -1);
    } else if (lua_type(L, -1) == LUA_TSTRING) {
        out->count = -2;
        out->text = lua_tostring(L, -1);
    } else {
        luaL_checktype(L, -1, LUA_TTABLE);
        out->ints = push_numbers(L, lua_gettop(L), &out->count);
    }
}

static void take_told(lua_State *L, int at, told *out)
{
    luaL_checkstack(L, 4 * MOST_ATTRS, NULL);
    int count = sf_script_push_keys(L, at), keys = lua_gettop(L);
    for (int i = 1; i <= count; i++) { /* values stay on the stack */
        if (lua_rawgeti(L, keys, i) != LUA_TSTRING)
            luaL_error(L, "attributes go by their names");
        const char *name = lua_tostring(L, -1);
        lua_getfield(L, at, name);
        if (strcmp(name, "shape") == 0) {
            luaL_checktype(L, -1, LUA_TTABLE);
            out->dims = push_numbers(L, lua_gettop(L), &out->rank);
        } else if (strcmp(name, "dtype") == 0) {
            out->dtype = luaL_checkstring(L, -1);
        } else if (out->nattrs == MOST_ATTRS) {
            luaL_error(L, "more than %d attributes", MOST_ATTRS);
        } else {
            take_attr(L, name, &out->attrs[out->nattrs]);
            out->each[out->nattrs] = &out->attrs[out->nattrs];
            out->nattrs++;
        }
    }
}

/* op.slice(x, {start_indices = {0}, limit_indices = {4}}) */
static int call_op(lua_State *L)
{
    sf_script *script = sf_script_of(L);
    const char *name = lua_tostring(L, lua_upvalueindex(1));
    int count = lua_gettop(L), noperands = 0, operands[MOST_OPERANDS], number;
    told with = {.rank = -1};
    sf_sketch *sketch = current(L);
    sf_script_charge(L, 1000);
    bool has_table = count > 0 && lua_istable(L, count);
    luaL_argcheck(L, count - has_table <= MOST_OPERANDS, MOST_OPERANDS, "too many operands");
    for (int i = 1; i <= count - has_table; i++)
        operands[noperands++] = take_operand(L, i);
    if (has_table)
        take_told(L, count, &with);
    if (sf_sketch_op(sketch, name, noperands, operands, with.nattrs, with.each, with.rank,
                     with.dims, with.dtype, &script->scratch, &number) != SF_OK)
        return sf_script_throw(L);
    push_traced(L, number);
    return 1;
}

static int index_ops(lua_State *L)
{
    luaL_checkstring(L, 2);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, call_op, 1);
    return 1;
}

static int apply(lua_State *L, const char *name, int count)
{
    lua_settop(L, count);
    lua_pushstring(L, name);
    lua_pushcclosure(L, call_op, 1);
    lua_insert(L, 1);
    lua_call(L, count, 1);
    return 1;
}

static int add(lua_State *L)
{
    return apply(L, "add", 2);
}

static int subtract(lua_State *L)
{
    return apply(L, "subtract", 2);
}

static int multiply(lua_State *L)
{
    return apply(L, "multiply", 2);
}

static int divide(lua_State *L)
{
    return apply(L, "divide", 2);
}

static int raise(lua_State *L)
{
    return apply(L, "power", 2);
}

static int negate(lua_State *L)
{
    return apply(L, "negate", 1);
}

/* x.shape, of an input of a replacement. */
static int index_traced(lua_State *L)
{
    luaL_checkudata(L, 1, TRACED_KIND);
    const char *key = luaL_checkstring(L, 2);
    if (strcmp(key, "shape") != 0)
        return luaL_error(L, "a tensor has a shape, and no \"%s\"", key);
    if (lua_getiuservalue(L, 1, 2) == LUA_TNIL)
        return luaL_error(L, "shapes are known of the inputs of a replacement, not of \"%s\"",
                          "a pattern, or of what is computed");
    return 1;
}

static const luaL_Reg traced_methods[] = {
    {"__add", add},   {"__sub", subtract}, {"__mul", multiply},       {"__div", divide},
    {"__pow", raise}, {"__unm", negate},   {"__index", index_traced}, {NULL, NULL},
};

/* Functions written with ops alone, as frameworks lower them. */
static const char prelude[] =
    "local op = ...\n"
    "function op.dot(a, b, how) return op.dot_general(a, b, how or {}) end\n"
    "function op.exp(x) return op.exponential(x) end\n"
    "function op.sigmoid(x) return op.logistic(x) end\n"
    "function op.relu(x) return op.maximum(x, 0) end\n"
    "function op.sum(x, dims) return op.reduce(x, 0, {dimensions = dims, body = 1}) end\n"
    "function op.max(x, dims) return op.reduce(x, -math.huge, {dimensions = dims, body = 4}) end\n"
    "function op.gelu(x)\n"
    "    local cube = x * (x * x)\n"
    "    return x * ((op.tanh((x + cube * 0.044715) * 0.7978845608028654) + 1) * 0.5)\n"
    "end\n"
    "function op.silu(x) return x * op.logistic(x) end\n"
    "gelu, relu, silu, tanh, exp, log, sqrt, rsqrt, dot = op.gelu, op.relu, op.silu, op.tanh, "
    "op.exp, op.log, "
    "op.sqrt, op.rsqrt, op.dot\n";

void sf_script_open_sketches(lua_State *L)
{
    static const luaL_Reg sketch_methods[] = {{"__gc", free_sketch}, {NULL, NULL}};
    sf_script_push_kind(L, SKETCH_KIND, sketch_methods);
    sf_script_push_kind(L, TRACED_KIND, traced_methods);
    lua_pop(L, 2);
    if (luaL_loadbufferx(L, prelude, sizeof prelude - 1, "=" SF_SCRIPT_PRELUDE, "t") != LUA_OK)
        lua_error(L);
    lua_newtable(L);
    lua_newtable(L);
    lua_pushcfunction(L, index_ops);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_setglobal(L, "op");
    lua_call(L, 1, 0);
}

static void push_shape(lua_State *L, const sf_tensor_type *type)
{
    lua_createtable(L, type->rank, 0);
    for (int d = 0; d < type->rank; d++) {
        lua_pushinteger(L, type->dims[d]);
        lua_rawseti(L, -2, d + 1);
    }
}

static int count_parameters(lua_State *L, int at)
{
    lua_Debug about;
    lua_pushvalue(L, at);
    lua_getinfo(L, ">u", &about);
    if (about.isvararg || about.nparams == 0)
        luaL_error(L, "a pattern is a function of tensors that it names");
    return about.nparams;
}

/* The function runs with a sketch of its own to write to. */
static int run_traced(lua_State *L, int at, int ninputs, const sf_tensor_type *types)
{
    sf_script *script = sf_script_of(L);
    sf_sketch *sketch = current(L);
    int before = lua_gettop(L), results[MOST_OPERANDS], number;
    luaL_checkstack(L, ninputs + MOST_OPERANDS, "too many inputs");
    lua_pushvalue(L, at);
    for (int i = 0; i < ninputs; i++) {
        if (sf_sketch_input(sketch, &script->scratch, &number) != SF_OK)
            return sf_script_throw(L);
        push_traced(L, number);
        if (types) {
            push_shape(L, &types[i]);
            lua_setiuservalue(L, -2, 2);
        }
    }
    lua_call(L, ninputs, LUA_MULTRET);
    int count = lua_gettop(L) - before;
    if (count < 1 || count > MOST_OPERANDS)
        return luaL_error(L, "a function that is traced returns what it computes");
    for (int i = 0; i < count; i++)
        results[i] = take_operand(L, before + 1 + i);
    if (sf_sketch_return(sketch, count, results, &script->scratch) != SF_OK)
        return sf_script_throw(L);
    lua_settop(L, before);
    return 0;
}

typedef struct tracing {
    int ninputs;
    const sf_tensor_type *types;
} tracing;

static int trace_protected(lua_State *L)
{
    const tracing *job = lua_touserdata(L, 2);
    lua_settop(L, 1);
    return run_traced(L, 1, job->ninputs, job->types);
}

sf_sketch *sf_script_trace(lua_State *L, int at, int ntypes, const sf_tensor_type *types)
{
    sf_script *script = sf_script_of(L);
    tracing job = {types ? ntypes : count_parameters(L, at), types};
    sf_script_charge(L, 1000);
    held *owned = lua_newuserdatauv(L, sizeof *owned, 0);
    owned->sketch = NULL;
    luaL_setmetatable(L, SKETCH_KIND);
    if (sf_check_held(script->list, SF_NOWHERE, &script->scratch) != SF_OK ||
        sf_sketch_new(&script->scratch, &owned->sketch) != SF_OK)
        sf_script_throw(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, CURRENT);
    lua_pushcfunction(L, trace_protected);
    lua_pushvalue(L, at);
    lua_pushlightuserdata(L, &job);
    sf_primitives_hold(script->list);
    int result = lua_pcall(L, 2, 0, 0);
    sf_primitives_release(script->list);
    lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, CURRENT);
    if (result != LUA_OK)
        sf_script_raise(L, result);
    return owned->sketch;
}
