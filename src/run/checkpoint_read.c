/* Finding and reading checkpoints. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "file/safetensors.h"
#include "run/checkpoint.h"
#include "run/name.h"

static bool inside(const char *directory, const char *name, char out[SF_PATH_SIZE])
{
    int length = snprintf(out, SF_PATH_SIZE, "%s/%s", directory, name);
    return length > 0 && length < SF_PATH_SIZE;
}

/* The index is written last, so a directory that has it has everything. */
bool sf_checkpoint_is(const char *path)
{
    char index[SF_PATH_SIZE];
    return inside(path, SF_CHECKPOINT_INDEX, index) && access(index, F_OK) == 0;
}

/* What `latest` names, when that is there; "" otherwise. */
static void follow_latest(const char *path, char out[SF_PATH_SIZE])
{
    char latest[SF_PATH_SIZE], name[64] = "";
    *out = 0;
    FILE *file = inside(path, SF_CHECKPOINT_LATEST, latest) ? fopen(latest, "re") : NULL;
    if (!file)
        return;
    if (!fgets(name, sizeof name, file))
        name[0] = 0;
    fclose(file);
    name[strcspn(name, "\r\n")] = 0;
    if (sf_checkpoint_number(name) < 0 || !inside(path, name, out) || !sf_checkpoint_is(out))
        *out = 0;
}

sf_status sf_checkpoint_find(const char *path, char out[SF_PATH_SIZE], sf_diag *diag)
{
    *out = 0;
    if (strlen(path) >= SF_PATH_SIZE - 300)
        return sf_fail(diag, SF_EIO, (sf_loc){path, 0, 0}, "cannot open: %s",
                       strerror(ENAMETOOLONG));
    if (sf_checkpoint_is(path)) {
        strcpy(out, path);
        return SF_OK;
    }
    follow_latest(path, out);
    if (*out)
        return SF_OK;
    DIR *directory = opendir(path);
    if (!directory && errno != ENOENT)
        return sf_fail(diag, SF_EIO, (sf_loc){path, 0, 0}, "cannot open: %s", strerror(errno));
    int64_t most = -1;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char candidate[SF_PATH_SIZE];
        int64_t number = sf_checkpoint_number(entry->d_name);
        if (number <= most || !inside(path, entry->d_name, candidate) ||
            !sf_checkpoint_is(candidate))
            continue;
        most = number;
        strcpy(out, candidate);
    }
    if (directory)
        closedir(directory);
    return SF_OK;
}

struct reading {
    const char *index_path; /* of checkpoint.json */
    sf_str text;
    const sf_json *index;
    sf_arena arena;
    sf_safetensors file;
    bool unclear; /* two names of the index have one key */
    sf_diag *diag;
};

static sf_status refuse(const struct reading *reading, const sf_json *at, const char *why)
{
    sf_loc loc = {reading->index_path, 0, 0};
    if (at)
        loc = sf_json_loc(at, reading->text, reading->index_path);
    return sf_fail(reading->diag, SF_EINPUT, loc, "%s", why);
}

static bool hex(const sf_json *value, uint64_t *out)
{
    sf_str text;
    char *end;
    if (!sf_json_string(value, &text) || text.length != 16)
        return false;
    *out = strtoull(text.at, &end, 16);
    return end == text.at + text.length;
}

static sf_status read_info(const struct reading *reading, sf_arena *arena, sf_checkpoint_info *info)
{
    const sf_json *index = reading->index;
    sf_str format, data;
    int64_t version;
    if (!sf_json_string(sf_json_get(index, "format"), &format) ||
        !sf_str_is(format, "sheaf checkpoint"))
        return refuse(reading, NULL, "this is not the index of a checkpoint");
    if (!sf_json_int(sf_json_get(index, "version"), &version) || version != SF_CHECKPOINT_VERSION)
        return refuse(reading, sf_json_get(index, "version"),
                      "this version of the format is not known");
    if (!sf_json_int(sf_json_get(index, "step"), &info->step) || info->step < 0 ||
        !hex(sf_json_get(index, "seed"), &info->seed) ||
        !hex(sf_json_get(index, "graph"), &info->graph) ||
        !sf_json_string(sf_json_get(index, "data"), &data))
        return refuse(reading, NULL, "step, seed, graph or data is missing or malformed");
    info->data = sf_arena_string(arena, data.at, data.length);
    return SF_OK;
}

static sf_status check_graph(const struct reading *reading, const sf_graph *graph,
                             const sf_checkpoint_info *info)
{
    uint64_t ours = sf_graph_hash(graph);
    if (info->graph == ours)
        return SF_OK;
    sf_fail(reading->diag, SF_EINPUT, (sf_loc){reading->index_path, 0, 0},
            "the checkpoint is of another step: its graph has the hash %016" PRIx64
            ", this one %016" PRIx64,
            info->graph, ours);
    return sf_hint(reading->diag,
                   "--init with the file %s takes its weights into another step, by name",
                   SF_CHECKPOINT_STATE);
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Whether two names of the index differ by their spelling alone. */
static bool has_twins(struct reading *reading, const sf_json *tensors)
{
    size_t count = sf_json_count(tensors);
    const char **keys = SF_ARRAY(&reading->arena, count, const char *);
    for (size_t i = 0; i < count; i++) {
        sf_str name = {"", 0};
        sf_json_string(sf_json_get(sf_json_item(tensors, i), "name"), &name);
        keys[i] = sf_name_key(name, &reading->arena);
    }
    bool twins = false;
    if (count > 0)
        qsort(keys, count, sizeof *keys, compare_texts);
    for (size_t i = 1; i < count; i++)
        twins = twins || strcmp(keys[i - 1], keys[i]) == 0;
    return twins;
}

/* The entry of the index for a tensor, and its name there. They are in the order of the arguments, so
 * the next one. */
static const sf_json *entry_of(struct reading *reading, const sf_json *tensors, size_t at,
                               const char *name, sf_str *own)
{
    const sf_json *entry = at < sf_json_count(tensors) ? sf_json_item(tensors, at) : NULL;
    if (!sf_json_string(sf_json_get(entry, "name"), own))
        return NULL;
    if (sf_str_is(*own, name))
        return entry;
    const char *ours = sf_name_key(sf_str_of(name), &reading->arena);
    const char *theirs = sf_name_key(*own, &reading->arena);
    return !reading->unclear && strcmp(ours, theirs) == 0 ? entry : NULL;
}

static bool index_fits(const sf_json *entry, const sf_type *type)
{
    sf_str dtype, file;
    const sf_json *shape = sf_json_get(entry, "shape");
    bool fits = sf_json_string(sf_json_get(entry, "dtype"), &dtype) &&
                sf_str_is(dtype, sf_dtype_get(type->dtype)->safetensors) &&
                sf_json_string(sf_json_get(entry, "file"), &file) &&
                sf_str_is(file, SF_CHECKPOINT_STATE) && sf_json_kind_of(shape) == SF_JSON_ARRAY &&
                sf_json_count(shape) == (size_t)type->rank;
    for (int i = 0; fits && i < type->rank; i++) {
        int64_t size;
        fits = sf_json_int(sf_json_item(shape, (size_t)i), &size) && size == type->dims[i];
    }
    return fits;
}

static sf_status load_one(struct reading *reading, const sf_json *tensors, size_t at,
                          const char *name, const sf_tensor *into)
{
    uint64_t hash;
    sf_str own;
    sf_loc loc = {reading->index_path, 0, 0};
    char wants[SF_TYPE_TEXT];
    const sf_json *entry = entry_of(reading, tensors, at, name, &own);
    const sf_tensor *stored = NULL;
    if (entry)
        stored = sf_safetensors_find(&reading->file,
                                     sf_arena_string(&reading->arena, own.at, own.length));
    if (!stored) {
        sf_fail(reading->diag, SF_EINPUT, loc, "the checkpoint has no tensor %s", name);
        if (reading->unclear)
            sf_hint(reading->diag, "two names in it differ by '/' and '_' alone, so names of "
                                   "another text of the step cannot be matched");
        return SF_EINPUT;
    }
    if (!index_fits(entry, into->type) || stored->type->dtype != into->type->dtype ||
        !sf_same_shape(stored->type, into->type))
        return sf_fail(reading->diag, SF_EINPUT, loc,
                       "%s has another shape or type in the checkpoint than in the step, %s", name,
                       sf_type_text(into->type, wants));
    memcpy(into->data, stored->data, (size_t)sf_type_bytes(into->type));
    if (!hex(sf_json_get(entry, "hash"), &hash) || hash != sf_tensor_hash(into))
        return sf_fail(reading->diag, SF_EINPUT, loc,
                       "%s is not what was saved: the file is corrupt", name);
    return SF_OK;
}

static sf_status load_tensors(struct reading *reading, const sf_graph *graph,
                              const char *const *names, const sf_tensor *arguments)
{
    const sf_json *tensors = sf_json_get(reading->index, "tensors");
    size_t at = 0;
    reading->unclear = has_twins(reading, tensors);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (sf_argument_is_kept(&graph->arguments[i]))
            SF_TRY(load_one(reading, tensors, at++, names[i], &arguments[i]));
    if (at != reading->file.count || at != sf_json_count(tensors))
        return refuse(reading, NULL, "the checkpoint has tensors that the step does not have");
    return SF_OK;
}

static sf_status load(struct reading *reading, const char *path, const sf_graph *graph,
                      const char *const *names, const sf_tensor *arguments, sf_mappings *mappings,
                      sf_arena *arena, sf_checkpoint_info *info)
{
    sf_str bytes;
    char index[SF_PATH_SIZE], state[SF_PATH_SIZE];
    if (!inside(path, SF_CHECKPOINT_INDEX, index) || !inside(path, SF_CHECKPOINT_STATE, state))
        return sf_fail(reading->diag, SF_EIO, (sf_loc){path, 0, 0}, "cannot open: %s",
                       strerror(ENAMETOOLONG));
    reading->index_path = sf_arena_string(&reading->arena, index, strlen(index));
    SF_TRY(sf_file_read(index, &reading->arena, 0, &reading->text, reading->diag));
    SF_TRY(sf_json_parse(reading->text, reading->index_path, &reading->arena, &reading->index,
                         reading->diag));
    SF_TRY(read_info(reading, arena, info));
    SF_TRY(check_graph(reading, graph, info));
    SF_TRY(sf_mappings_add(mappings, state, &bytes, reading->diag));
    SF_TRY(sf_safetensors_parse(bytes, state, reading->diag, &reading->file));
    return load_tensors(reading, graph, names, arguments);
}

sf_status sf_checkpoint_load(const char *path, const sf_graph *graph, const char *const *names,
                             const sf_tensor *arguments, sf_mappings *mappings, sf_arena *arena,
                             sf_checkpoint_info *info, sf_diag *diag)
{
    struct reading reading = {.diag = diag};
    sf_status status = load(&reading, path, graph, names, arguments, mappings, arena, info);
    sf_safetensors_close(&reading.file);
    sf_mappings_close(mappings);
    sf_arena_free(&reading.arena);
    return status;
}
