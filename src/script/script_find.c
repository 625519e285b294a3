#include "script/script_find.h"

#include <string.h>

#include "api/primitive/primitives.h"
#include "base/regex.h"
#include "script/script_module.h"
#include "script/script_sketch.h"

static int check_subgraph(lua_State *L, int at)
{
    return *(int *)luaL_checkudata(L, at, SF_SUBGRAPH_KIND);
}

static void push_subgraphs(lua_State *L, int first, int count)
{
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        int *number = lua_newuserdatauv(L, sizeof *number, 0);
        *number = first + i;
        luaL_setmetatable(L, SF_SUBGRAPH_KIND);
        lua_rawseti(L, -2, i + 1);
    }
}

const int *sf_script_take_subgraphs(lua_State *L, int at, int *count)
{
    *count = lua_istable(L, at) ? (int)lua_rawlen(L, at) : 1;
    luaL_argcheck(L, *count >= 1 && *count <= 100000, at, "there is no subgraph in the list");
    int *numbers = lua_newuserdatauv(L, (size_t)*count * sizeof *numbers, 0);
    for (int i = 0; i < *count; i++) {
        if (lua_istable(L, at))
            lua_rawgeti(L, at, i + 1);
        else
            lua_pushvalue(L, at);
        numbers[i] = check_subgraph(L, lua_gettop(L));
        lua_pop(L, 1);
    }
    return numbers;
}

/* Selecting ops: by a pattern of their names, or by a function of Lua's. That one runs protected:
 * an error must not jump over its C caller, and is raised after that. */
typedef struct choosing {
    lua_State *L;
    const sf_regex *names; /* or NULL */
    double left;           /* instructions for that */
    int where;             /* the index of the function */
    int failed;            /* a status of Lua's, with the error on the stack; or LUA_OK */
} choosing;

static bool name_matches(choosing *job, const sf_op_view *op)
{
    char text[1024];
    enum { PER_INSTRUCTION = 4 };
    int length = snprintf(text, sizeof text, "%s/%s", op->scope, op->op);
    job->left -= (double)length * job->names->count / PER_INSTRUCTION;
    return job->left > 0 && sf_regex_finds(job->names, text);
}

static int push_view(lua_State *L)
{
    const sf_op_view *op = lua_touserdata(L, 2);
    lua_settop(L, 1);
    lua_createtable(L, 0, 3);
    lua_pushstring(L, op->op);
    lua_setfield(L, -2, "op");
    lua_pushstring(L, op->scope);
    lua_setfield(L, -2, "scope");
    lua_createtable(L, op->type->rank, 0);
    for (int d = 0; d < op->type->rank; d++) {
        lua_pushinteger(L, op->type->dims[d]);
        lua_rawseti(L, -2, d + 1);
    }
    lua_setfield(L, -2, "shape");
    lua_call(L, 1, 1);
    return 1;
}

static bool choose(void *context, const sf_op_view *op)
{
    choosing *job = context;
    lua_State *L = job->L;
    if (job->names)
        return name_matches(job, op);
    if (job->failed)
        return false;
    lua_pushcfunction(L, push_view);
    lua_pushvalue(L, job->where);
    lua_pushlightuserdata(L, (void *)(uintptr_t)op);
    job->failed = lua_pcall(L, 2, 1, 0);
    bool taken = !job->failed && lua_toboolean(L, -1);
    if (!job->failed)
        lua_pop(L, 1);
    return taken;
}

static int find_chosen(lua_State *L, choosing *job)
{
    sf_script *script = sf_script_of(L);
    int first, count;
    sf_status status = sf_primitives_find_where(script->list, sf_script_module_at(L, 1), choose,
                                                job, &script->scratch, &first, &count);
    if (job->failed)
        return sf_script_raise(L, job->failed);
    if (status != SF_OK)
        return sf_script_throw(L);
    push_subgraphs(L, first, count);
    return 1;
}

/* A regular expression, somewhere in "SCOPE/OP". */
static int find_named(lua_State *L)
{
    sf_regex names;
    sf_script *script = sf_script_of(L);
    const char *pattern = luaL_checkstring(L, 2), *wrong = sf_regex_read(pattern, &names);
    if (wrong)
        return luaL_error(L, "\"%s\" is no regular expression: %s",
                          strlen(pattern) < SF_REGEX_CHARACTERS ? pattern : "...", wrong);
    choosing job = {.L = L, .names = &names, .left = (double)script->left};
    find_chosen(L, &job);
    sf_script_charge(L, (double)script->left - job.left);
    return 1;
}

static int find_traced(lua_State *L)
{
    sf_script *script = sf_script_of(L);
    int first, count;
    const sf_sketch *pattern = sf_script_trace(L, 2, 0, NULL);
    if (sf_primitives_find(script->list, sf_script_module_at(L, 1), pattern, &script->scratch,
                           &first, &count) != SF_OK)
        return sf_script_throw(L);
    push_subgraphs(L, first, count);
    return 1;
}

/* find("tanh$"), find(function(x, b) return gelu(x + b) end), find{where = function(op) return op.op == "tanh" end} */
int sf_script_find(lua_State *L)
{
    sf_script_module_at(L, 1);
    lua_settop(L, 2);
    sf_script_charge(L, 100000);
    if (lua_isfunction(L, 2))
        return find_traced(L);
    if (lua_type(L, 2) == LUA_TSTRING)
        return find_named(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    if (lua_getfield(L, 2, "where") != LUA_TFUNCTION)
        return luaL_argerror(L, 2, "a function, a regular expression, or {where = function}");
    choosing job = {.L = L, .where = lua_gettop(L)};
    return find_chosen(L, &job);
}

enum { MOST_INPUTS = 64 };

/* Types of the inputs of a subgraph and, with `backward`, of those of its results that are floats; returns how many. */
static int list_types(lua_State *L, int subgraph, bool backward, sf_tensor_type *types)
{
    const sf_primitives *list = sf_script_of(L)->list;
    sf_subgraph_view view = {.size = sizeof view};
    sf_primitives_subgraph(list, subgraph, &view);
    int count = view.inputs;
    if (view.inputs + view.results > MOST_INPUTS)
        luaL_error(L, "a subgraph has more than %d inputs and results", MOST_INPUTS);
    for (int k = 0; k < view.inputs + view.results; k++)
        types[k].size = sizeof *types;
    for (int k = 0; k < view.inputs; k++)
        if (!sf_primitives_subgraph_input(list, subgraph, k, &types[k]))
            luaL_error(L, "the subgraph was found before the step was changed: find it again");
    for (int k = 0; backward && k < view.results; k++)
        if (sf_primitives_subgraph_result(list, subgraph, k, &types[count]) &&
            (strncmp(types[count].dtype, "f", 1) == 0 || strncmp(types[count].dtype, "bf", 2) == 0))
            count++;
    return count;
}

/* The sketches of a replacement, one for each subgraph; they stay on the stack, and so live. */
static const sf_sketch **push_sketches(lua_State *L, int at, bool backward, const int *subgraphs,
                                       int count)
{
    const sf_sketch **sketches = lua_newuserdatauv(L, (size_t)count * sizeof *sketches, 0);
    lua_createtable(L, count, 0);
    int kept = lua_gettop(L);
    for (int i = 0; i < count; i++) {
        sf_tensor_type types[MOST_INPUTS];
        int ninputs = list_types(L, subgraphs[i], backward, types);
        sketches[i] = sf_script_trace(L, at, ninputs, types);
        lua_rawseti(L, kept, i + 1);
    }
    return sketches;
}

/* One subgraph for each module that is meant, in memory of Lua's. */
static const int *take_modules(lua_State *L, const char *module, int *count)
{
    sf_script *script = sf_script_of(L);
    int first;
    sf_script_charge(L, 100000);
    if (sf_primitives_find_modules(script->list, module, &script->scratch, &first, count) != SF_OK)
        sf_script_throw(L);
    int *numbers = lua_newuserdatauv(L, (size_t)*count * sizeof *numbers, 0);
    for (int i = 0; i < *count; i++)
        numbers[i] = first + i;
    return numbers;
}

/* Options are a table, or none, with these keys alone. */
static void check_options(lua_State *L, int at, const char *const *known)
{
    if (lua_isnil(L, at))
        return;
    luaL_checktype(L, at, LUA_TTABLE);
    int count = sf_script_push_keys(L, at), keys = lua_gettop(L);
    for (int i = 1; i <= count; i++) {
        bool is_text = lua_rawgeti(L, keys, i) == LUA_TSTRING, found = false;
        for (int k = 0; known[k] && is_text; k++)
            found = found || strcmp(known[k], lua_tostring(L, -1)) == 0;
        if (!found)
            luaL_error(L, "there is no option \"%s\"",
                       is_text ? lua_tostring(L, -1) : "of that kind");
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* A text among the options, or NULL; it stays on the stack. */
static const char *option_text(lua_State *L, int at, const char *name)
{
    if (lua_isnil(L, at) || lua_getfield(L, at, name) == LUA_TNIL)
        return NULL;
    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, "%s is a text", name);
    return lua_tostring(L, -1);
}

/* A file of StableHLO that a replacement is read from. */
static const char *take_file(lua_State *L, int at)
{
    if (!sf_script_of(L)->options.unsafe)
        luaL_error(L, "a schedule reads no files, unless it is run with --unsafe");
    return lua_tostring(L, at);
}

/* {backward = function(x, w, dy) ... end}, or a file */
static void take_backward(lua_State *L, sf_primitive *said)
{
    if (!lua_istable(L, 4) || lua_getfield(L, 4, "backward") == LUA_TNIL)
        return;
    int at = lua_gettop(L);
    if (lua_type(L, at) == LUA_TSTRING) {
        said->backward = take_file(L, at);
        return;
    }
    luaL_argcheck(L, lua_isfunction(L, at), 4, "backward is a function, or a file");
    said->backwards = push_sketches(L, at, true, said->subgraphs, said->nsubgraphs);
}

/* replace(function(x, b) ... end, subgraphs [, {name = "fused"}]), replace("fragment.mlir", subgraphs); without subgraphs, or nil: the
 * module itself, and {backward = ...} its gradients; replace("attention"), a word that is no file: the kernel of that name */
int sf_script_replace(lua_State *L)
{
    const char *module = sf_script_module_at(L, 1);
    lua_settop(L, 4);
    check_options(L, 4, (const char *const[]){"name", "backward", NULL});
    sf_primitive said = {.size = sizeof said, .kind = SF_PRIMITIVE_REPLACE, .module = module};
    said.name = option_text(L, 4, "name");
    if (lua_type(L, 2) == LUA_TSTRING && lua_isnil(L, 3) && !strpbrk(lua_tostring(L, 2), "./")) {
        said.kernel = lua_tostring(L, 2);
        return sf_script_apply(L, &said, 1);
    }
    said.subgraphs = lua_isnil(L, 3) ? take_modules(L, module, &said.nsubgraphs)
                                     : sf_script_take_subgraphs(L, 3, &said.nsubgraphs);
    if (lua_type(L, 2) == LUA_TSTRING) {
        said.fragment = take_file(L, 2);
    } else {
        luaL_checktype(L, 2, LUA_TFUNCTION);
        said.sketches = push_sketches(L, 2, false, said.subgraphs, said.nsubgraphs);
    }
    take_backward(L, &said);
    return sf_script_apply(L, &said, 1);
}

/* fuse(subgraphs [, {compiler = "cc"}]) */
int sf_script_fuse(lua_State *L)
{
    const char *module = sf_script_module_at(L, 1);
    lua_settop(L, 3);
    check_options(L, 3, (const char *const[]){"compiler", NULL});
    sf_primitive said = {.size = sizeof said, .kind = SF_PRIMITIVE_FUSE, .module = module};
    said.value = option_text(L, 3, "compiler");
    said.subgraphs = sf_script_take_subgraphs(L, 2, &said.nsubgraphs);
    return sf_script_apply(L, &said, 1);
}

static int count_ops(lua_State *L)
{
    sf_subgraph_view view = {.size = sizeof view};
    sf_primitives_subgraph(sf_script_of(L)->list, check_subgraph(L, 1), &view);
    lua_pushinteger(L, view.ops);
    return 1;
}

static int list_ops(lua_State *L)
{
    const sf_primitives *list = sf_script_of(L)->list;
    int number = check_subgraph(L, 1);
    sf_op_view op = {.size = sizeof op};
    lua_newtable(L);
    for (int i = 0; sf_primitives_subgraph_op(list, number, i, &op); i++) {
        lua_pushfstring(L, "%s/%s", op.scope, op.op);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

void sf_script_open_subgraphs(lua_State *L)
{
    static const luaL_Reg methods[] = {{"ops", list_ops}, {"__len", count_ops}, {NULL, NULL}};
    sf_script_push_kind(L, SF_SUBGRAPH_KIND, methods);
    lua_pop(L, 1);
}
