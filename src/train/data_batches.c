/* Batches from safetensors: a file, or a directory of files in the order of their names. A file holds
 *
 *     batch.0.NAME, batch.1.NAME, ...      numbered batches, or
 *     NAME                                 one tensor for an argument; if it has more rows than the
 *                                          argument, a batch for every so many of them
 *
 * where NAME is, in clean form, the name of the argument or the last parts of it.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/safetensors.h"
#include "file/stored.h"
#include "ir/name.h"
#include "train/data_kind.h"

struct batch_file {
    const char *path;
    sf_safetensors file;
    bool numbered;
    int64_t first, count; /* batches */
    sf_str *columns;      /* by argument: NAME */
};

struct batches {
    size_t nfiles, capacity;
    struct batch_file *files;
    uint64_t fingerprint; /* of the first file */
};

static const char prefix[] = "batch.0.";

/* Longer names of columns are not looked at. */
enum { MOST_COLUMN = 256, MOST_NAME = MOST_COLUMN + 64 };

/* Whether the tensor is one batch for the argument or has the rows of several; how many. */
static int64_t batches_in(const sf_type *stored, const sf_type *type, bool rows)
{
    if (!sf_stored_converts(stored->dtype, type->dtype))
        return 0;
    if (sf_stored_shape_fits(stored, type))
        return 1;
    if (!rows || type->rank == 0 || stored->rank != type->rank || type->dims[0] == 0)
        return 0;
    for (int i = 1; i < type->rank; i++)
        if (stored->dims[i] != type->dims[i])
            return 0;
    return stored->dims[0] / type->dims[0];
}

/* The tensor for an argument: the one with the longest name that the argument's ends with, else the
 * only one of its type, else the only one that can be converted to it. */
static bool find_column(sf_data *data, const struct batch_file *file, uint32_t argument,
                        sf_str *out)
{
    const sf_type *type = sf_data_type(data, argument);
    size_t longest = 0, fitting = 0, akin = 0;
    sf_str only = {0}, near = {0};
    for (size_t i = 0; i < file->file.count; i++) {
        const sf_named_tensor *named = &file->file.tensors[i];
        sf_str name = named->name;
        if (file->numbered && !sf_str_starts(name, prefix))
            continue;
        if (file->numbered)
            name = (sf_str){name.at + strlen(prefix), name.length - strlen(prefix)};
        if (name.length > MOST_COLUMN)
            continue;
        const char *clean = sf_clean_name(name, &data->arena);
        if (strlen(clean) > longest && sf_name_ends(data->names[argument], clean)) {
            longest = strlen(clean);
            *out = name;
        }
        if (batches_in(named->tensor.type, type, !file->numbered) == 0)
            continue;
        sf_dtype dtype = named->tensor.type->dtype;
        if (dtype == type->dtype && fitting++ == 0)
            only = name;
        if (sf_stored_is_akin(dtype, type->dtype) && akin++ == 0)
            near = name;
    }
    if (longest == 0 && fitting == 1)
        *out = only;
    else if (longest == 0 && akin == 1)
        *out = near;
    return longest > 0 || fitting == 1 || akin == 1;
}

static const sf_tensor *find_tensor(const struct batch_file *file, uint32_t argument,
                                    int64_t number, char text[MOST_NAME])
{
    sf_str column = file->columns[argument];
    if (file->numbered)
        snprintf(text, MOST_NAME, "batch.%" PRId64 ".%.*s", number, (int)column.length, column.at);
    else
        snprintf(text, MOST_NAME, "%.*s", (int)column.length, column.at);
    return sf_safetensors_find(&file->file, text);
}

/* How many batches the file has for one argument. */
static sf_status count_column(const sf_data *data, const struct batch_file *file, uint32_t argument,
                              sf_diag *diag, int64_t *count)
{
    char name[MOST_NAME];
    const sf_type *type = sf_data_type(data, argument);
    const sf_tensor *tensor = find_tensor(file, argument, 0, name);
    *count = tensor ? batches_in(tensor->type, type, !file->numbered) : 0;
    sf_stored stored = {.tensor = tensor, .name = name, .path = file->path};
    if (*count == 0 && tensor)
        return sf_stored_refuse(&stored, type, diag);
    if (file->numbered)
        while (find_tensor(file, argument, *count, name))
            ++*count;
    else if (type->rank == 0)
        *count = INT64_MAX; /* the same number for all batches of the file */
    return SF_OK;
}

static sf_status find_columns(sf_data *data, struct batch_file *file, sf_diag *diag)
{
    uint32_t narguments = data->graph->top->narguments;
    file->columns = SF_ARRAY(&data->arena, narguments, sf_str);
    file->count = INT64_MAX;
    for (size_t i = 0; i < file->file.count; i++)
        file->numbered = file->numbered || sf_str_starts(file->file.tensors[i].name, prefix);
    sf_status status = SF_OK;
    for (uint32_t i = 0; i < narguments; i++) {
        int64_t count;
        if (!data->wanted[i])
            continue;
        if (!find_column(data, file, i, &file->columns[i])) {
            status = sf_fail(diag, SF_EINPUT, (sf_loc){file->path, 0, 0},
                             "there is no %s%s for the argument %s", file->numbered ? prefix : "",
                             sf_name_last(data->names[i]), data->names[i]);
            continue;
        }
        SF_TRY(count_column(data, file, i, diag, &count));
        file->count = count < file->count ? count : file->count;
    }
    if (file->count == INT64_MAX)
        file->count = 1;
    return status;
}

/* Batches for an argument that does not come from the data, because it is taken for a weight: one warning. */
static void warn_of_unused(const sf_data *data, const struct batch_file *file, sf_diag *diag)
{
    char second[MOST_NAME];
    sf_arena arena = {0};
    for (size_t t = 0; file->numbered && t < file->file.count; t++) {
        sf_str name = file->file.tensors[t].name;
        if (!sf_str_starts(name, prefix) || name.length - strlen(prefix) > MOST_COLUMN)
            continue;
        name = (sf_str){name.at + strlen(prefix), name.length - strlen(prefix)};
        snprintf(second, sizeof second, "batch.1.%.*s", (int)name.length, name.at);
        const char *clean = sf_clean_name(name, &arena);
        for (uint32_t i = 0; i < data->graph->top->narguments; i++) {
            const sf_argument *argument = &data->graph->arguments[i];
            if (data->wanted[i] || !sf_argument_is_kept(argument) ||
                strcmp(data->names[i], clean) != 0 || !sf_safetensors_find(&file->file, second))
                continue;
            sf_warn(diag, (sf_loc){file->path, 0, 0},
                    "the batches %s%.*s, %s, ... are not used: the argument %s is %s by %s", prefix,
                    (int)name.length, name.at, second, argument->name, sf_role_name(argument->role),
                    sf_source_name(argument->role_from));
            sf_hint(diag, "if it is fed to each step, say so: the sidecar has \"role\": \"batch\"");
            sf_arena_free(&arena);
            return;
        }
    }
    sf_arena_free(&arena);
}

static sf_status add_file(sf_data *data, const char *path, sf_diag *diag)
{
    struct batches *self = data->self;
    sf_str bytes;
    if (self->nfiles == self->capacity)
        self->files = sf_arena_grow(&data->arena, self->files, self->nfiles, &self->capacity,
                                    sizeof *self->files);
    struct batch_file *file = &self->files[self->nfiles];
    *file = (struct batch_file){.path = path, .first = data->count};
    SF_TRY(sf_mappings_add(&data->mappings, path, &bytes, diag));
    SF_TRY(sf_safetensors_parse(bytes, path, diag, &file->file));
    bool is_first = self->nfiles++ == 0;
    if (is_first)
        self->fingerprint = sf_data_fingerprint(bytes);
    SF_TRY(find_columns(data, file, diag));
    if (is_first)
        warn_of_unused(data, file, diag);
    data->count += file->count;
    return SF_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of the files, in the arena. A directory is an outside handle, so nothing in here jumps. */
static sf_status list_files(sf_data *data, sf_diag *diag, const char ***out, size_t *count)
{
    static const char ending[] = ".safetensors";
    const char *source = data->options.source;
    sf_loc loc = {source, 0, 0};
    DIR *directory = opendir(source);
    const char **names = NULL;
    size_t capacity = 0;
    *count = 0;
    if (!directory)
        return sf_fail(diag, sf_status_of_errno(), loc, "cannot open: %s", strerror(errno));
    for (struct dirent *entry; (entry = readdir(directory));) {
        size_t length = strlen(entry->d_name), whole = strlen(source) + length + 2;
        if (entry->d_name[0] == '.' || length <= strlen(ending) ||
            strcmp(entry->d_name + length - strlen(ending), ending) != 0)
            continue;
        if (*count == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            const char **more = sf_arena_alloc_try(&data->arena, capacity * sizeof *more);
            if (more && *count)
                memcpy(more, names, *count * sizeof *more);
            names = more;
        }
        char *path = names ? sf_arena_alloc_try(&data->arena, whole) : NULL;
        if (!path) {
            closedir(directory);
            return sf_fail(diag, SF_ENOMEM, loc, "no memory left to list it");
        }
        snprintf(path, whole, "%s/%s", source, entry->d_name);
        names[(*count)++] = path;
    }
    closedir(directory);
    if (*count > 0)
        qsort(names, *count, sizeof *names, by_name);
    *out = names;
    return SF_OK;
}

static const struct batch_file *file_of(const struct batches *self, int64_t item)
{
    size_t low = 0, high = self->nfiles;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (self->files[middle].first <= item)
            low = middle;
        else
            high = middle;
    }
    return &self->files[low];
}

static sf_status fill_from_batches(sf_data *data, int64_t number, const sf_tensor *arguments,
                                   sf_diag *diag)
{
    const struct batches *self = data->self;
    int64_t item = sf_data_item(data, number);
    const struct batch_file *file = file_of(self, item);
    int64_t local = item - file->first;
    for (uint32_t i = 0; i < data->graph->top->narguments; i++) {
        char name[MOST_NAME];
        const sf_tensor *to = &arguments[i];
        if (!data->wanted[i])
            continue;
        const sf_tensor *from = find_tensor(file, i, local, name);
        sf_stored stored = {.tensor = from ? from : to, .name = name, .path = file->path};
        if (!from || batches_in(from->type, to->type, !file->numbered) == 0)
            return sf_stored_refuse(&stored, to->type, diag);
        bool is_all = file->numbered || to->type->rank == 0;
        int64_t first = is_all ? 0 : local * to->type->count;
        SF_TRY(sf_stored_take(&stored, first, to->type->count, to->type->dtype, to->data, 0, diag));
    }
    return SF_OK;
}

static void close_files(sf_data *data)
{
    struct batches *self = data->self;
    for (size_t i = 0; i < self->nfiles; i++)
        sf_safetensors_close(&self->files[i].file);
}

sf_status sf_data_open_batches(sf_data *data, bool is_directory, sf_diag *diag)
{
    static const sf_data_kind kind = {.batch = fill_from_batches, .close = close_files};
    struct batches *self = SF_NEW(&data->arena, struct batches);
    const char **paths = &data->options.source;
    size_t count = 1;
    data->self = self;
    data->kind = &kind;
    if (is_directory)
        SF_TRY(list_files(data, diag, &paths, &count));
    for (size_t i = 0; i < count; i++)
        SF_TRY(add_file(data, paths[i], diag));
    if (data->count == 0)
        return sf_fail(diag, SF_EINPUT, (sf_loc){data->options.source, 0, 0},
                       "there is no batch for the step");
    data->shuffled = data->options.order == SF_ORDER_SHUFFLED;
    char about[120];
    snprintf(about, sizeof about, "batches, %" PRId64 ", hash %016" PRIx64 ", %s", data->count,
             self->fingerprint, data->shuffled ? "shuffled" : "in order");
    data->about = sf_arena_string(&data->arena, about, strlen(about));
    return SF_OK;
}
