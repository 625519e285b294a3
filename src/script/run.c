/* Runs a schedule. */
#include <lualib.h>
#include <string.h>

#include "api/options.h"
#include "base/file.h"
#include "base/guard.h"
#include "script/host.h"

int sf_script_throw(lua_State *L)
{
    sf_script *script = sf_script_of(L);
    int count = script->scratch.count < SF_DIAG_KEPT ? script->scratch.count : SF_DIAG_KEPT;
    const sf_message *message = count > 0 ? &script->scratch.messages[count - 1] : NULL;
    luaL_where(L, 1);
    if (message && message->text)
        lua_pushfstring(L, "%s%s%s", message->text, message->hint ? "; " : "",
                        message->hint ? message->hint : "");
    else
        lua_pushliteral(L, "not enough memory");
    lua_concat(L, 2);
    sf_diag_clear(&script->scratch);
    return lua_error(L);
}

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
        text = "the schedule takes too much memory";
    else if (text)
        text = cut_place(script, text);
    return sf_fail(diag, SF_EINPUT,
                   (sf_loc){.file = *script->file ? script->file : script->path,
                            .line = (uint32_t)script->line},
                   "%s", text ? text : "an error without words");
}

typedef struct chunk {
    sf_script *script;
    sf_str text;
} chunk;

/* Within a protected call: all that can fail in Lua. */
static int run_chunk(lua_State *L)
{
    const chunk *job = lua_touserdata(L, 1);
    lua_settop(L, 0);
    sf_script_open_libraries(L, job->script->options.unsafe);
    sf_script_open_sheaf(L);
    const char *name = lua_pushfstring(L, "@%s", job->script->path);
    if (luaL_loadbufferx(L, job->text.at, job->text.length, name, "t") != LUA_OK)
        return lua_error(L);
    lua_call(L, 0, 0);
    return 0;
}

static sf_status run_text(sf_script *script, sf_str text, sf_diag *diag)
{
    chunk job = {script, text};
    lua_State *L = sf_script_open(script);
    if (!L)
        return sf_fail(diag, SF_ENOMEM, (sf_loc){.file = script->path}, "not enough memory");
    lua_pushcfunction(L, note_error);
    lua_pushcfunction(L, run_chunk);
    lua_pushlightuserdata(L, &job);
    int result = lua_pcall(L, 1, 0, 1);
    sf_status status = result == LUA_OK ? SF_OK : tell(script, result, diag);
    if (result == LUA_OK && script->left <= 0) /* it caught the error, and ended */
        status =
            sf_fail(diag, SF_EINPUT, (sf_loc){.file = script->path}, "the schedule takes too long");
    lua_close(L);
    sf_diag_clear(&script->scratch);
    return status;
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
    sf_script script = {.path = path, .list = list};
    struct reading file = {.path = path, .diag = diag};
    SF_TRY(sf_options_take(options, &script.options, sizeof script.options, diag));
    SF_CHECK_OPTIONS(diag, {"instructions", (double)script.options.instructions},
                     {"memory", (double)script.options.memory}, {"ranks", script.options.ranks});
    if (script.options.instructions == 0)
        script.options.instructions = 100000000;
    script.left = script.options.instructions;
    script.limit = script.options.memory > 0 ? (size_t)script.options.memory : (size_t)64 << 20;
    SF_TRY(sf_guarded(read_script, &file, diag));
    sf_status status = run_text(&script, file.text, diag);
    sf_arena_free(&file.arena);
    return status;
}
