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
#include "ir/name.h"
#include "train/checkpoint_index.h"
#include "train/mapped_file.h"

static bool path_inside(const char *directory, const char *name, char out[SF_PATH_SIZE])
{
    int length = snprintf(out, SF_PATH_SIZE, "%s/%s", directory, name);
    return length > 0 && length < SF_PATH_SIZE;
}

/* The index is written last, so a directory that has it has everything. */
bool sf_checkpoint_is(const char *path)
{
    char index[SF_PATH_SIZE];
    return path_inside(path, SF_CHECKPOINT_INDEX, index) && access(index, F_OK) == 0;
}

/* The checkpoint that `latest` names, if it exists; "" otherwise. A directory without an index is
 * no leftover of a killed run: somebody removed the index. */
static sf_status follow_latest(const char *path, char out[SF_PATH_SIZE], sf_diag *diag)
{
    char latest[SF_PATH_SIZE], name[64] = "";
    *out = 0;
    FILE *file = path_inside(path, SF_CHECKPOINT_LATEST, latest) ? fopen(latest, "re") : NULL;
    if (!file)
        return SF_OK;
    if (!fgets(name, sizeof name, file))
        name[0] = 0;
    fclose(file);
    name[strcspn(name, "\r\n")] = 0;
    if (sf_checkpoint_number(name) < 0 || !path_inside(path, name, out)) {
        *out = 0;
        return SF_OK;
    }
    if (sf_checkpoint_is(out))
        return SF_OK;
    bool is_damaged = access(out, F_OK) == 0;
    sf_loc loc = {latest, 0, 0};
    if (is_damaged) {
        sf_fail(diag, SF_EINPUT, loc, "it names %s, which has no " SF_CHECKPOINT_INDEX, name);
        sf_hint(diag, "an older checkpoint is taken when its own path is given");
    }
    *out = 0;
    return is_damaged ? SF_EINPUT : SF_OK;
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
    SF_TRY(follow_latest(path, out, diag));
    if (*out)
        return SF_OK;
    DIR *directory = opendir(path);
    if (!directory && errno != ENOENT)
        return sf_fail(diag, sf_status_of_errno(), (sf_loc){path, 0, 0}, "cannot open: %s",
                       strerror(errno));
    int64_t most = -1;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char candidate[SF_PATH_SIZE];
        int64_t number = sf_checkpoint_number(entry->d_name);
        if (number <= most || !path_inside(path, entry->d_name, candidate) ||
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
    const char *path, *index_path; /* of the checkpoint, of checkpoint.json */
    sf_str text;
    const sf_json *index;
    const sf_state *state;
    sf_mesh mesh;       /* of the run that saved it */
    sf_layout *layouts; /* by argument, of that run */
    int64_t *filled;    /* by argument: elements of the shard that were found */
    const char **named; /* by argument: its name in the checkpoint */
    bool has_digests;   /* versions before 3 have none */
    bool unclear;       /* two names of the index have one key */
    sf_arena arena;
    sf_mappings *mappings;
    sf_diag *diag;
};

static sf_status refuse_index(const struct reading *reading, const sf_json *at, const char *why)
{
    sf_loc loc = {reading->index_path, 0, 0};
    if (at)
        loc = sf_json_loc(at, reading->text, reading->index_path);
    return sf_fail(reading->diag, SF_EINPUT, loc, "%s", why);
}

static bool read_hash_text(const sf_json *value, uint64_t *out)
{
    sf_str text;
    char *end;
    if (!sf_json_string(value, &text) || text.length != 16)
        return false;
    *out = strtoull(text.at, &end, 16);
    return end == text.at + text.length;
}

static sf_status check_digest(const struct reading *reading)
{
    uint64_t said, is;
    const sf_json *digest = sf_json_get(reading->index, SF_CHECKPOINT_DIGEST);
    if (!reading->has_digests ||
        (read_hash_text(digest, &said) && sf_checkpoint_digest(reading->text, &is) && said == is))
        return SF_OK;
    return refuse_index(reading, digest, "the index is not what was saved: it was changed since");
}

static sf_status read_info(struct reading *reading, sf_arena *arena, sf_checkpoint_info *info)
{
    const sf_json *index = reading->index;
    sf_str format, data;
    int64_t version, position;
    if (!sf_json_string(sf_json_get(index, "format"), &format) ||
        !sf_str_is(format, "sheaf checkpoint"))
        return refuse_index(reading, NULL, "this is not the index of a checkpoint");
    if (!sf_json_int(sf_json_get(index, "version"), &version) || version < 1 ||
        version > SF_CHECKPOINT_VERSION)
        return refuse_index(reading, sf_json_get(index, "version"),
                            "this version of the format is not known");
    reading->has_digests = version >= 3;
    SF_TRY(check_digest(reading));
    if (!sf_json_int(sf_json_get(index, "step"), &info->step) || info->step < 0 ||
        !read_hash_text(sf_json_get(index, "seed"), &info->seed) ||
        !read_hash_text(sf_json_get(index, "graph"), &info->graph) ||
        !sf_json_string(sf_json_get(index, "data"), &data))
        return refuse_index(reading, NULL, "step, seed, graph or data is missing or malformed");
    if (!sf_json_int(sf_json_get(index, "position"), &position) || position != info->step)
        return refuse_index(reading, sf_json_get(index, "position"),
                            "the position in the data is not that of the step");
    info->data = sf_arena_string(arena, data.at, data.length);
    return SF_OK;
}

static sf_status check_step_hash(const struct reading *reading, const sf_graph *graph,
                                 const sf_checkpoint_info *info)
{
    uint64_t ours = sf_graph_hash(graph);
    if (info->graph == ours)
        return SF_OK;
    sf_fail(reading->diag, SF_EINPUT, (sf_loc){reading->index_path, 0, 0},
            "the checkpoint is of another step: its graph has the hash %016" PRIx64
            ", this one %016" PRIx64,
            info->graph, ours);
    return sf_hint(reading->diag, "option init takes its weights into another step, by name");
}

static bool shape_fits(const sf_json *entry, const sf_type *type)
{
    sf_str dtype;
    const sf_json *shape = sf_json_get(entry, "shape");
    bool fits = sf_json_string(sf_json_get(entry, "dtype"), &dtype) &&
                sf_str_is(dtype, sf_dtype_get(type->dtype)->safetensors) &&
                sf_json_kind_of(shape) == SF_JSON_ARRAY &&
                sf_json_count(shape) == (size_t)type->rank;
    for (int i = 0; fits && i < type->rank; i++) {
        int64_t size;
        fits = sf_json_int(sf_json_item(shape, (size_t)i), &size) && size == type->dims[i];
    }
    return fits;
}

static sf_status read_saved_mesh(struct reading *reading)
{
    const sf_json *mesh = sf_json_get(reading->index, "mesh");
    return !mesh || sf_mesh_get_json(mesh, &reading->arena, NULL, &reading->mesh) == SF_OK
               ? SF_OK
               : refuse_index(reading, mesh, "the mesh is malformed");
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Whether two names of the index differ by their spelling alone. */
static bool has_duplicates(struct reading *reading, const sf_json *tensors)
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

/* The name of the argument in the checkpoint, by the entry of the index at its place; NULL when that is
 * another one's. */
static const char *name_in(struct reading *reading, const sf_json *entry, const char *name)
{
    sf_str own;
    if (!sf_json_string(sf_json_get(entry, "name"), &own))
        return NULL;
    if (sf_str_is(own, name))
        return name;
    const char *ours = sf_name_key(sf_str_of(name), &reading->arena);
    const char *theirs = sf_name_key(own, &reading->arena);
    return !reading->unclear && strcmp(ours, theirs) == 0
               ? sf_arena_string(&reading->arena, own.at, own.length)
               : NULL;
}

static sf_status fail_missing_key(const struct reading *reading, const char *name)
{
    sf_fail(reading->diag, SF_EINPUT, (sf_loc){reading->index_path, 0, 0},
            "the checkpoint has no tensor %s", name);
    if (reading->unclear)
        sf_hint(reading->diag, "two names in it differ by '/' and '_' alone, so names of "
                               "another text of the step cannot be matched");
    return SF_EINPUT;
}

/* The entries of the index are in the order of the arguments. */
static sf_status read_tensors(struct reading *reading)
{
    const sf_graph *graph = reading->state->shards->graph;
    const sf_json *tensors = sf_json_get(reading->index, "tensors");
    size_t at = 0;
    reading->unclear = has_duplicates(reading, tensors);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_type *type = sf_rank_shards_type(reading->state->shards, i);
        const char *name = reading->state->names[i];
        sf_str text;
        char wants[SF_TYPE_TEXT];
        if (!sf_argument_is_kept(&graph->arguments[i]))
            continue;
        const sf_json *entry = at < sf_json_count(tensors) ? sf_json_item(tensors, at++) : NULL;
        sf_loc loc = {reading->index_path, 0, 0};
        reading->named[i] = name_in(reading, entry, name);
        if (!reading->named[i])
            return fail_missing_key(reading, name);
        if (!shape_fits(entry, type))
            return sf_fail(reading->diag, SF_EINPUT, loc,
                           "%s has another shape or type in the checkpoint than in the step, %s",
                           name, sf_type_text(type, wants));
        if (sf_json_string(sf_json_get(entry, "layout"), &text))
            SF_TRY(sf_layout_parse(text, &reading->mesh, type->rank, type->dims, &reading->arena,
                                   reading->diag, &reading->layouts[i]));
    }
    return at == sf_json_count(tensors)
               ? SF_OK
               : refuse_index(reading, NULL,
                              "the checkpoint has tensors that the step does not have");
}

/* Copies the elements that the shard in the file and ours have in common; both lists of runs
 * ascend. Returns how many elements that were. */
static int64_t copy_common(sf_runs from, const char *source, sf_runs to, char *target, int bytes)
{
    int64_t copied = 0;
    bool more = sf_runs_next(&from) && sf_runs_next(&to);
    while (more) {
        int64_t first = from.global > to.global ? from.global : to.global;
        int64_t from_end = from.global + from.count, to_end = to.global + to.count;
        int64_t end = from_end < to_end ? from_end : to_end;
        if (first < end) {
            memcpy(target + (to.local + first - to.global) * bytes,
                   source + (from.local + first - from.global) * bytes,
                   (size_t)((end - first) * bytes));
            copied += end - first;
        }
        more = sf_runs_next(from_end < to_end ? &from : &to);
    }
    return copied;
}

/* One file of tensors: the state of all, or the shards of one rank. */
struct source {
    const char *path;
    sf_rank_shards shards;
    sf_safetensors file;
    const sf_json *hashes; /* by name; NULL: in the index */
    size_t taken;
};

static const sf_json *hash_of_text(const struct reading *reading, const struct source *source,
                                   const char *name, size_t at)
{
    if (source->hashes)
        return sf_json_get(source->hashes, name);
    return sf_json_get(sf_json_item(sf_json_get(reading->index, "tensors"), at), "hash");
}

static sf_status take_one_piece(struct reading *reading, struct source *source, uint32_t i,
                                size_t at)
{
    const sf_state *state = reading->state;
    const char *name = reading->named[i];
    const sf_type *type = sf_rank_shards_type(state->shards, i);
    const sf_tensor *stored = sf_safetensors_find(&source->file, name);
    sf_loc loc = {source->path, 0, 0};
    int64_t dims[SF_MAX_RANK];
    uint64_t hash;
    if (!stored)
        return sf_fail(reading->diag, SF_EINPUT, loc, "the checkpoint has no tensor %s", name);
    sf_layout_dims_at(&source->shards.layouts[i], &reading->mesh, source->shards.rank, type->rank,
                      type->dims, dims);
    bool fits = stored->type->dtype == type->dtype && stored->type->rank == type->rank;
    for (int d = 0; fits && d < type->rank; d++)
        fits = stored->type->dims[d] == dims[d];
    if (!fits)
        return sf_fail(reading->diag, SF_EINPUT, loc,
                       "%s has another shape or type than the index says", name);
    if (!read_hash_text(hash_of_text(reading, source, name, at), &hash) ||
        hash != sf_tensor_hash(stored))
        return sf_fail(reading->diag, SF_EINPUT, loc,
                       "%s is not what was saved: the file is corrupt", name);
    sf_tensor shard;
    SF_TRY(sf_holder_lend(&state->holder, i, true, reading->diag, &shard));
    source->taken++;
    reading->filled[i] += copy_common(sf_rank_shards_runs(&source->shards, i), stored->data,
                                      sf_rank_shards_runs(state->shards, i), shard.data,
                                      sf_dtype_get(type->dtype)->bytes);
    return sf_holder_give_back(&state->holder, i, reading->diag);
}

static sf_status take_all_pieces(struct reading *reading, struct source *source)
{
    const sf_graph *graph = reading->state->shards->graph;
    size_t at = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        if (!sf_argument_is_kept(&graph->arguments[i]))
            continue;
        if (sf_rank_shards_is_first(&source->shards, i))
            SF_TRY(take_one_piece(reading, source, i, at));
        at++;
    }
    return source->taken == source->file.count
               ? SF_OK
               : sf_fail(reading->diag, SF_EINPUT, (sf_loc){source->path, 0, 0},
                         "there are tensors in it that the step does not have");
}

static sf_status open_checkpoint(struct reading *reading, int rank, int ranks,
                                 struct source *source)
{
    char name[SF_SHARDS_NAME] = SF_CHECKPOINT_STATE, path[SF_PATH_SIZE];
    sf_str bytes;
    if (ranks > 1)
        sf_checkpoint_shards_name(rank, ranks, ".safetensors", name);
    if (!path_inside(reading->path, name, path))
        return sf_fail(reading->diag, SF_EIO, (sf_loc){reading->path, 0, 0}, "cannot open: %s",
                       strerror(ENAMETOOLONG));
    source->path = sf_arena_string(&reading->arena, path, strlen(path));
    SF_TRY(sf_mappings_add(reading->mappings, source->path, &bytes, reading->diag));
    SF_TRY(sf_safetensors_parse(bytes, source->path, reading->diag, &source->file));
    if (ranks == 1)
        return SF_OK;
    sf_checkpoint_shards_name(rank, ranks, ".json", name);
    path_inside(reading->path, name, path);
    SF_TRY(sf_file_read(path, &reading->arena, 0, &bytes, reading->diag));
    const sf_json *digests = sf_json_get(reading->index, "pieces");
    uint64_t digest;
    if (reading->has_digests && ((size_t)rank >= sf_json_count(digests) ||
                                 !read_hash_text(sf_json_item(digests, (size_t)rank), &digest) ||
                                 digest != sf_text_hash(bytes)))
        return sf_fail(reading->diag, SF_EINPUT, (sf_loc){path, 0, 0},
                       "it does not belong to this checkpoint: it was changed, or is another's");
    return sf_json_parse(bytes, sf_arena_string(&reading->arena, path, strlen(path)),
                         &reading->arena, &source->hashes, reading->diag);
}

static sf_status load_tensors(struct reading *reading)
{
    const sf_state *state = reading->state;
    int ranks = sf_mesh_size(&reading->mesh);
    for (int rank = 0; rank < ranks; rank++) {
        struct source source = {
            .shards = {state->shards->graph, reading->mesh, rank, reading->layouts}};
        sf_status status = open_checkpoint(reading, rank, ranks, &source);
        if (status == SF_OK)
            status = take_all_pieces(reading, &source);
        sf_safetensors_close(&source.file);
        SF_TRY(status);
    }
    const sf_graph *graph = state->shards->graph;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (sf_argument_is_kept(&graph->arguments[i]) &&
            reading->filled[i] != sf_holder_type(&state->holder, i)->count)
            return sf_fail(reading->diag, SF_EINPUT, (sf_loc){reading->index_path, 0, 0},
                           "the shards of %s do not cover the tensor", state->names[i]);
    return SF_OK;
}

static sf_status load_checkpoint(struct reading *reading, sf_arena *arena, sf_checkpoint_info *info)
{
    const sf_graph *graph = reading->state->shards->graph;
    char index[SF_PATH_SIZE];
    if (!path_inside(reading->path, SF_CHECKPOINT_INDEX, index))
        return sf_fail(reading->diag, SF_EIO, (sf_loc){reading->path, 0, 0}, "cannot open: %s",
                       strerror(ENAMETOOLONG));
    reading->index_path = sf_arena_string(&reading->arena, index, strlen(index));
    reading->layouts = SF_ARRAY(&reading->arena, graph->top->narguments, sf_layout);
    reading->named = SF_ARRAY(&reading->arena, graph->top->narguments, const char *);
    reading->filled = SF_ARRAY(&reading->arena, graph->top->narguments, int64_t);
    SF_TRY(sf_file_read(index, &reading->arena, 0, &reading->text, reading->diag));
    SF_TRY(sf_json_parse(reading->text, reading->index_path, &reading->arena, &reading->index,
                         reading->diag));
    SF_TRY(read_info(reading, arena, info));
    SF_TRY(check_step_hash(reading, graph, info));
    SF_TRY(read_saved_mesh(reading));
    SF_TRY(read_tensors(reading));
    return load_tensors(reading);
}

sf_status sf_checkpoint_load(const char *path, const sf_state *state, sf_mappings *mappings,
                             sf_arena *arena, sf_checkpoint_info *info, sf_diag *diag)
{
    struct reading reading = {.path = path, .state = state, .mappings = mappings, .diag = diag};
    sf_status status = load_checkpoint(&reading, arena, info);
    sf_mappings_close(mappings);
    sf_arena_free(&reading.arena);
    return status;
}
