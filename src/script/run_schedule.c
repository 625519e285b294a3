/* Runs a schedule. */
#include <lualib.h>
#include <string.h>

#include "api/api_options.h"
#include "base/file.h"
#include "base/guard.h"
#include "base/mem.h"
#include "script/script_sketch.h"

/* The innermost line of the script, where the message does not begin with one: that is kept as a part of it. */
static int note_error(lua_State *L)
{
    sf_script *script = sf_script_of(L);
    script->line = 0;
    sf_script_note_line(script, L);
    if (lua_type(L, 1) == LUA_TSTRING || lua_type(L, 1) == LUA_TNUMBER)
        return 1;
    lua_pushfstring(L, "an error that is no text, but a %s", luaL_typename(L, 1));
    return 1;
}

/* Cuts "FILE:LINE: " off a message, and takes the line from there. */
static const char *cut_place(sf_script *script, const char *text)
{
    char prefix[LUA_IDSIZE + 2];
    int line, end = 0;
    while (sscanf(text, SF_SCRIPT_PRELUDE ":%d: %n", &line, &end) == 1 && end > 0) { /* our lines */
        text += end;
        end = 0;
    }
    snprintf(prefix, sizeof prefix, "%s:", script->path);
    size_t length = strlen(prefix);
    if (strncmp(text, prefix, length) != 0 || sscanf(text + length, "%d: %n", &line, &end) != 1 ||
        end == 0)
        return text;
    script->line = line;
    snprintf(script->file, sizeof script->file, "%s", script->path);
    return text + length + end;
}

static sf_status tell(sf_script *script, int result, sf_diag *diag)
{
    const char *text = lua_tostring(script->lua, -1);
    if (result == LUA_ERRMEM)
        text = sf_script_is_late(script) ? "the schedule takes too long"
                                         : "the schedule takes too much memory";
    else if (text)
        text = cut_place(script, text);
    bool starved = script->starved && text && strstr(text, "memory");
    return sf_fail(diag, starved ? SF_ENOMEM : SF_EINPUT,
                   (sf_loc){.file = *script->file ? script->file : script->path,
                            .line = (uint32_t)script->line},
                   "%s", text ? text : "an error without words");
}

/* Within a protected call: all that can fail in Lua. */
static int open_state(lua_State *L)
{
    sf_script_open_libraries(L, sf_script_of(L)->options.unsafe);
    sf_script_open_sheaf(L);
    sf_script_open_tune(L);
    sf_script_open_sketches(L);
    return 0;
}

typedef struct chunk {
    sf_str text;
    bool shown; /* it may be an expression, whose values are printed */
} chunk;

static bool load_expression(lua_State *L, sf_str text, const char *name)
{
    lua_pushlstring(L, text.at, text.length);
    const char *whole = lua_pushfstring(L, "return %s", lua_tostring(L, -1));
    if (sf_script_load(L, sf_str_of(whole), name) == LUA_OK)
        return true;
    lua_pop(L, 3);
    return false;
}

static int run_chunk(lua_State *L)
{
    const chunk *job = lua_touserdata(L, 1);
    lua_settop(L, 0);
    const char *name = lua_pushfstring(L, "@%s", sf_script_of(L)->path);
    if (job->shown && load_expression(L, job->text, name)) {
        int before = lua_gettop(L);
        lua_call(L, 0, LUA_MULTRET);
        int count = lua_gettop(L) - before + 1;
        if (count > 0) {
            lua_getglobal(L, "print");
            lua_insert(L, before);
            lua_call(L, count, 0);
        }
        return 0;
    }
    if (sf_script_load(L, job->text, name) != LUA_OK)
        return lua_error(L);
    lua_call(L, 0, 0);
    return 0;
}

/* Calls a function of ours with one argument. */
static sf_status call(sf_script *script, lua_CFunction function, void *argument, sf_diag *diag)
{
    lua_State *L = script->lua;
    lua_settop(L, 0);
    lua_pushcfunction(L, note_error);
    lua_pushcfunction(L, function);
    lua_pushlightuserdata(L, argument);
    int result = lua_pcall(L, 1, 0, 1);
    sf_status status = result == LUA_OK ? SF_OK : tell(script, result, diag);
    if (result == LUA_OK && script->left <= 0) /* it caught the error, and ended */
        status =
            sf_fail(diag, SF_EINPUT, (sf_loc){.file = script->path}, "the schedule takes too long");
    lua_settop(L, 0);
    return status;
}

static sf_status open_script(const char *path, const sf_script_options *options,
                             sf_primitives *list, sf_diag *diag, sf_script *out)
{
    *out = (sf_script){.path = path, .list = list};
    SF_TRY(SF_TAKE(sf_script_options, options, &out->options, diag));
    SF_CHECK_OPTIONS(diag, {"instructions", (double)out->options.instructions},
                     {"memory", (double)out->options.memory}, {"ranks", out->options.ranks},
                     {"seconds", out->options.seconds});
    if (out->options.instructions == 0)
        out->options.instructions = 100000000;
    if (out->options.seconds == 0)
        out->options.seconds = 60;
    out->limit = out->options.memory > 0 ? (size_t)out->options.memory : (size_t)64 << 20;
    /* A replacement makes another step, and each is kept until it is undone. */
    out->library = sf_mem_live() + 8 * (out->limit + sf_mem_live());
    if (!sf_script_open(out))
        return sf_fail(diag, SF_ENOMEM, (sf_loc){.file = path}, "not enough memory");
    return call(out, open_state, NULL, diag);
}

static void close_script(sf_script *script)
{
    if (script->lua)
        lua_close(script->lua);
    sf_diag_clear(&script->scratch);
}

struct reading {
    const char *path;
    sf_arena arena;
    sf_str text;
    sf_diag *diag;
};

static sf_status read_script(void *context)
{
    struct reading *job = context;
    return sf_file_read(job->path, &job->arena, 0, &job->text, job->diag);
}

sf_status sf_script_run(const char *path, const sf_script_options *options, sf_primitives *list,
                        sf_diag *diag)
{
    SF_NEED(diag, path, list);
    struct reading file = {.path = path, .diag = diag};
    sf_script script;
    SF_TRY(sf_guarded(read_script, &file, diag));
    sf_status status = open_script(path, options, list, diag, &script);
    if (status == SF_OK)
        status = call(&script, run_chunk, &(chunk){.text = file.text}, diag);
    close_script(&script);
    sf_arena_free(&file.arena);
    return status;
}

struct sf_console {
    sf_script script;
};

sf_status sf_console_new(const char *name, const sf_script_options *options, sf_primitives *list,
                         sf_diag *diag, sf_console **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, name, list, out);
    *out = sf_alloc_kept(sizeof **out);
    if (!*out)
        return sf_fail(diag, SF_ENOMEM, (sf_loc){.file = name}, "not enough memory");
    sf_status status = open_script(name, options, list, diag, &(*out)->script);
    if (status == SF_OK)
        return SF_OK;
    sf_console_free(*out);
    return status;
}

sf_status sf_console_run(sf_console *console, const char *text, size_t length, sf_diag *diag)
{
    SF_NEED(diag, console, text);
    sf_script *script = &console->script;
    script->line = 0;
    sf_script_count(script);
    return call(script, run_chunk, &(chunk){.text = {text, length}, .shown = true}, diag);
}

void sf_console_free(sf_console *console)
{
    if (!console)
        return;
    close_script(&console->script);
    sf_free(console);
}
