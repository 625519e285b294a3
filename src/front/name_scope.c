#include "front/name_scope.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Parts that denote control flow or JAX's tracing, not a module of the user. */
static bool is_plumbing(sf_str part)
{
    static const char *const words[] = {
        "while",
        "body",
        "cond",
        "closed_call",
        "core_call",
        "eval_jaxpr",
        "checkpoint",
        "remat",
        "pjit",
        "remat2",
        "custom_jvp_call",
        "custom_vjp_call",
        "scan",
        "main",
        "remat_opt",
        "rematted_computation",
        "custom_vjp_call_jaxpr",
        "shard_map",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (sf_str_is(part, words[i]))
            return true;
    return part.length == 0 || sf_str_starts(part, "branch_");
}

struct reader {
    sf_pool *pool;
    const sf_scope *scope;
    int nloops, loops_seen;
    const int64_t *iterations;
    bool is_body;  /* the part before was "while": this one may be its body */
    bool numbered; /* the next module name is numbered by the loop seen last */
    int depth;
};

static void enter_scope(struct reader *reader, sf_str name)
{
    char text[256];
    if (reader->numbered && name.length < 200) {
        int length = snprintf(text, sizeof text, "%.*s_%" PRId64, (int)name.length, name.at,
                              reader->iterations[reader->loops_seen - 1]);
        name = (sf_str){text, (size_t)length};
        reader->numbered = false;
    }
    reader->scope = sf_scope_child(reader->pool, reader->scope, name);
}

/* A name of its own, at the end of the path as well: an iteration whose op has no module. */
static void enter_loop(struct reader *reader)
{
    if (reader->numbered)
        enter_scope(reader, sf_str_of("iteration"));
}

static void read_scope_path(struct reader *reader, sf_str path, bool wrapped);

static void read_part(struct reader *reader, sf_str part, bool wrapped)
{
    const char *open = memchr(part.at, '(', part.length);
    if (open && part.at[part.length - 1] == ')') {
        sf_str how = {part.at, (size_t)(open - part.at)};
        sf_str what = {open + 1, part.length - how.length - 2};
        if (sf_str_is(how, "jit") || sf_str_is(how, "pjit"))
            return;
        if (reader->depth++ < 16)
            read_scope_path(reader, what, true);
        reader->depth--;
        return;
    }
    bool is_body = reader->is_body && sf_str_is(part, "body");
    reader->is_body = sf_str_is(part, "while");
    if (is_body && reader->loops_seen < reader->nloops) {
        enter_loop(reader);
        reader->loops_seen++;
        reader->numbered = true;
    }
    /* The outermost Flax module is named by its class, which is the name of the model. */
    if (is_plumbing(part) || (wrapped && isupper((unsigned char)part.at[0])))
        return;
    enter_scope(reader, part);
}

static void read_scope_path(struct reader *reader, sf_str path, bool wrapped)
{
    size_t start = 0;
    int parens = 0;
    for (size_t i = 0; i <= path.length; i++) {
        bool at_end = i == path.length;
        if (!at_end && path.at[i] == '(')
            parens++;
        if (!at_end && path.at[i] == ')')
            parens--;
        if (at_end || (path.at[i] == '/' && parens <= 0)) {
            if (i > start)
                read_part(reader, (sf_str){path.at + start, i - start}, wrapped);
            start = i + 1;
        }
    }
}

/* The path without its last part, the primitive. */
static sf_str without_primitive(const char *path)
{
    size_t length = strlen(path), end = 0;
    int parens = 0;
    for (size_t i = 0; i < length; i++) {
        parens += (path[i] == '(') - (path[i] == ')');
        if (path[i] == '/' && parens <= 0)
            end = i;
    }
    /* A call's path ends in the transformation it comes from, "…/attn/jit(softmax)" or "jvp(LM)". */
    return (sf_str){path, end == 0 && path[length ? length - 1 : 0] == ')' ? length : end};
}

const sf_scope *sf_scope_of_path(sf_pool *pool, const char *path, int nloops,
                                 const int64_t *iterations)
{
    struct reader reader = {
        .pool = pool,
        .scope = sf_scope_root(pool),
        .nloops = nloops,
        .iterations = iterations,
    };
    if (path)
        read_scope_path(&reader, without_primitive(path), false);
    enter_loop(&reader);
    return reader.scope;
}
