/* Limits of a script. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "base/mem.h"
#include "script/script_state.h"

enum {
    EVERY = 100,    /* instructions between two looks */
    LOOK_EVERY = 64 /* allocations, likewise */
};

/* The charge of an allocation that fails: Lua runs a full garbage collection before it gives up. */
static const int64_t FAILED = 1000000;

void sf_script_note_line(sf_script *script, lua_State *L)
{
    lua_Debug at;
    for (int level = 0; lua_getstack(L, level, &at); level++)
        if (lua_getinfo(L, "Sl", &at) && at.currentline > 0 &&
            strcmp(at.source, "=" SF_SCRIPT_PRELUDE) != 0) {
            script->line = at.currentline;
            snprintf(script->file, sizeof script->file, "%s",
                     *at.source == '@' ? at.source + 1 : at.short_src);
            return;
        }
}

bool sf_script_is_late(const sf_script *script)
{
    return script->lua && sf_now() > script->deadline;
}

static void *refuse(sf_script *script)
{
    script->left -= FAILED;
    if (script->lua) /* reading at this point allocates nothing */
        sf_script_note_line(script, script->lua);
    return NULL;
}

static void *allocate(void *context, void *old, size_t old_size, size_t size)
{
    sf_script *script = context;
    size_t before = old ? old_size : 0;
    if (size == 0) {
        free(old);
        script->used -= before;
        return NULL;
    }
    if (size > before && (size > 1 << 16 || ++script->allocations % LOOK_EVERY == 0) &&
        sf_script_is_late(script))
        return refuse(script);
    if (size > before && size - before > script->limit - script->used)
        return refuse(script);
    void *memory = realloc(old, size);
    if (!memory)
        return refuse(script);
    script->used = script->used - before + size;
    return memory;
}

static void spend(lua_State *L, double instructions)
{
    sf_script *script = sf_script_of(L);
    bool late = sf_script_is_late(script);
    if (late || instructions >= (double)script->left)
        script->left = 0;
    else
        script->left -= (int64_t)instructions;
    if (late)
        luaL_error(L, "the schedule takes too long: more than %d seconds",
                   (int)ceil(script->options.seconds));
    if (script->left <= 0)
        luaL_error(L, "the schedule takes too long: more than %I instructions",
                   (LUAI_UACINT)script->options.instructions);
}

/* Once all is spent it is called at every instruction, so that no error handler goes on. */
static void count(lua_State *L, lua_Debug *at)
{
    (void)at;
    sf_script *script = sf_script_of(L);
    if (script->left <= EVERY)
        lua_sethook(L, count, LUA_MASKCOUNT, 1);
    spend(L, script->left <= EVERY ? 1e18 : EVERY);
}

void sf_script_charge(lua_State *L, double instructions)
{
    sf_script *script = sf_script_of(L);
    if (sf_mem_live() > script->library) {
        script->left = 0;
        luaL_error(L, "the schedule takes too much memory: undo what is not needed, or apply less");
    }
    spend(L, instructions);
}

/* Only where no memory is left outside of any protected call, which does not happen; ends as the library's own. */
static int panic(lua_State *L)
{
    (void)L;
    return 0;
}

lua_State *sf_script_open(sf_script *script)
{
    lua_State *L = lua_newstate(allocate, script);
    if (!L)
        return NULL;
    *(sf_script **)lua_getextraspace(L) = script;
    lua_atpanic(L, panic);
    script->lua = L;
    sf_script_count(script);
    return L;
}

void sf_script_count(sf_script *script)
{
    script->left = script->options.instructions;
    script->deadline = sf_now() + script->options.seconds;
    lua_sethook(script->lua, count, LUA_MASKCOUNT, EVERY);
}

/* The hook does not run in Lua's compiler, which patches lists of jumps in a time that grows with
 * their square: it gets its text in blocks. */
typedef struct source {
    sf_str text;
    size_t at;
} source;

static const char *read_piece(lua_State *L, void *context, size_t *size)
{
    enum { PIECE = 256, PER_CHARACTER = 4 };
    source *from = context;
    size_t left = from->text.length - from->at;
    const char *piece = from->text.at + from->at;
    *size = left < PIECE ? left : PIECE;
    sf_script_charge(L, PER_CHARACTER * (double)*size);
    from->at += *size;
    return piece;
}

int sf_script_load(lua_State *L, sf_str text, const char *name)
{
    source from = {.text = text};
    return lua_load(L, read_piece, &from, name, "t");
}
