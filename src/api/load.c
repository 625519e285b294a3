/* Loading: which reader a text is for, its sidecar, and the way through import. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "api/api_options.h"
#include "base/file.h"
#include "base/guard.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/output.h"
#include "front/import.h"
#include "ir/print_graph.h"
#include "plan/recompute_policy.h"
#include "sheaf/graph.h"

struct load {
    const char *path; /* NULL when the text was given */
    sf_str text;
    const char *name;
    sf_load_options options;
    sf_diag *diag;
    sf_graph *graph;
    sf_reading reading;
    sf_arena arena;
    sf_pool *pool;
    sf_module *module;
};

/* HLO text starts with "HloModule", after comments and blank lines; nothing else does. */
static bool is_hlo(sf_str text)
{
    const char *at = text.at, *end = text.at + text.length;
    for (;;) {
        while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
            at++;
        if (end - at < 2 || at[0] != '/' || at[1] != '/')
            break;
        while (at < end && *at != '\n')
            at++;
    }
    return sf_str_starts((sf_str){at, (size_t)(end - at)}, "HloModule");
}

/* NAME.json, NAME.json.gz or NAME.json.xz for NAME.stablehlo.mlir.gz and the like. */
static const char *sidecar_beside(struct load *load)
{
    static const char *const endings[] = {".gz", ".xz", ".mlir", ".hlo", ".stablehlo", ".txt"};
    sf_str stem = sf_str_of(load->path);
    if (strcmp(load->path, "-") == 0)
        return NULL;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t length = strlen(endings[i]);
        if (stem.length > length && memcmp(stem.at + stem.length - length, endings[i], length) == 0)
            stem.length -= length;
    }
    static const char *const sidecars[] = {".json", ".json.gz", ".json.xz"};
    char *path = sf_arena_alloc(&load->arena, stem.length + sizeof ".json.xz");
    memcpy(path, stem.at, stem.length);
    for (size_t i = 0; i < sizeof sidecars / sizeof *sidecars; i++) {
        strcpy(path + stem.length, sidecars[i]);
        if (access(path, R_OK) == 0)
            return path;
    }
    return NULL;
}

/* Whether a JSON that happens to lie beside the step is about something else: it is good JSON, but
 * has no "args". */
static bool is_unrelated(struct load *load, sf_str text, const char *file)
{
    const sf_json *json;
    return sf_json_parse(text, file, &load->arena, &json, NULL) == SF_OK &&
           !sf_json_get(json, "args");
}

static sf_status read_sidecar(struct load *load, sf_import_options *import)
{
    const char *given = load->options.sidecar, *path = given;
    load->reading.no_sidecar = given && strcmp(given, "none") == 0;
    if (load->reading.no_sidecar)
        return SF_OK;
    if (!given && load->path)
        path = sidecar_beside(load);
    if (!path)
        return SF_OK;
    sf_str text;
    SF_TRY(sf_file_read(path, &load->arena, 0, &text, load->diag));
    if (!given && is_unrelated(load, text, path))
        return SF_OK;
    if (given)
        load->reading.sidecar = sf_reference_of(given, text, &load->arena);
    import->sidecar = text.at;
    import->sidecar_file = path;
    return SF_OK;
}

static sf_status read_texts(struct load *load, sf_import_options *import)
{
    if (load->path)
        SF_TRY(sf_file_read(load->path, &load->arena, 0, &load->text, load->diag));
    return read_sidecar(load, import);
}

static const char *keep_string(struct load *load, const char *text)
{
    return text ? sf_arena_string(&load->graph->arena, text, strlen(text)) : NULL;
}

/* For plans, whose step will be read in the same way. */
static void keep_reading(struct load *load)
{
    sf_reading *reading = &load->graph->reading;
    *reading = load->reading;
    reading->unroll = load->options.unroll;
    reading->assume_trip_count = load->options.assume_trip_count;
    reading->state = keep_string(load, load->options.state);
    reading->sidecar.path = keep_string(load, load->reading.sidecar.path);
}

/* The text of a string as a program prints it: "\\n" where lines end. */
static bool is_escaped(sf_str text)
{
    const char *line = text.length > 0 ? memchr(text.at, '\n', text.length - 1) : NULL;
    return !line && memmem(text.at, text.length, "\\n", 2);
}

static sf_status read_module(struct load *load, const char *file)
{
    sf_status status = is_hlo(load->text)
                           ? sf_hlo_read(load->text, file, load->module, load->diag)
                           : sf_stablehlo_read(load->text, file, load->module, load->diag);
    if (status == SF_OK || !is_escaped(load->text))
        return status;
    return sf_hint(load->diag, "the file has \\n where lines end: it is a string as Python's repr "
                               "writes it; write the string itself, as print(text) does");
}

static sf_status read_and_import(struct load *load)
{
    sf_import_options import = {
        .unroll = load->options.unroll ? load->options.unroll : SF_UNROLL_DEFAULT,
        .unroll_ops = load->options.unroll ? 0 : SF_UNROLL_OPS,
        .most_nodes =
            load->options.most_nodes > 0 ? load->options.most_nodes : SF_MOST_NODES_DEFAULT,
        .state = load->options.state,
        .strict = load->options.strict,
        .assume_trip_count = load->options.assume_trip_count,
    };
    SF_TRY(read_texts(load, &import));
    load->pool = sf_pool_new();
    load->module = sf_module_new(load->pool);
    const char *file = sf_pool_string(load->pool, sf_str_of(load->name));
    SF_TRY(read_module(load, file));
    SF_TRY(sf_import(load->module, &import, load->diag, &load->graph));
    load->graph->origin = sf_reference_of(load->path, load->text, &load->graph->arena);
    keep_reading(load);
    load->graph->hash = sf_graph_hash(load->graph);
    return SF_OK;
}

static sf_status load_guarded(void *context)
{
    struct load *load = context;
    sf_status status = read_and_import(load);
    sf_module_free(load->module);
    sf_pool_release(load->pool);
    sf_arena_free(&load->arena);
    return status;
}

static sf_status run_load(struct load *load, const sf_load_options *options, sf_graph **out)
{
    *out = NULL;
    SF_TRY(SF_TAKE(sf_load_options, options, &load->options, load->diag));
    SF_CHECK_OPTIONS(load->diag, {"assume_trip_count", (double)load->options.assume_trip_count},
                     {"most_nodes", (double)load->options.most_nodes});
    SF_TRY(sf_guarded(load_guarded, load, load->diag));
    *out = load->graph;
    return SF_OK;
}

sf_status sf_load(const char *path, const sf_load_options *options, sf_diag *diag, sf_graph **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, path, out);
    struct load load = {.path = path, .name = path, .diag = diag};
    if (strcmp(path, "-") == 0)
        load.name = "<stdin>";
    return run_load(&load, options, out);
}

sf_status sf_load_text(const char *text, size_t length, const char *name,
                       const sf_load_options *options, sf_diag *diag, sf_graph **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, text, name, out);
    struct load load = {.text = {text, length}, .name = name, .diag = diag};
    return run_load(&load, options, out);
}

struct save {
    const sf_graph *graph;
    const sf_output *output;
    sf_diag *diag;
};

static sf_status save(void *context)
{
    struct save *job = context;
    sf_buf text = {0};
    if (sf_text_has_recompute(job->graph)) {
        sf_recomputed_step recomputed_step = sf_recompute_as_text(job->graph);
        sf_print_stablehlo(recomputed_step.graph, &text);
        sf_recomputed_step_free(&recomputed_step);
    } else {
        sf_print_stablehlo(job->graph, &text);
    }
    sf_status status = sf_output_write(job->output, &text, job->diag);
    sf_buf_free(&text);
    return status;
}

sf_status sf_save_stablehlo(const sf_graph *graph, const sf_output *output, sf_diag *diag)
{
    SF_NEED(diag, graph);
    struct save job = {graph, output, diag};
    return sf_guarded(save, &job, diag);
}
