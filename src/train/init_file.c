/* Initialisation from a safetensors file whose names may be somebody else's. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "file/safetensors.h"
#include "file/stored.h"
#include "ir/name.h"
#include "train/init.h"

struct source {
    const char *path;
    sf_safetensors file;
    const char **clean; /* by tensor of the file */
    bool by_number;     /* in.I is argument I */
    sf_arena arena;
};

/* The part after the first: "layer_0/attn/q/kernel" of "params/layer_0/attn/q/kernel". */
static const char *name_inside(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash ? slash + 1 : name;
}

/* The only tensor whose clean name and the argument's end with one another; NULL when there is none,
 * or there are several. */
static const sf_tensor *find_by_ending(const struct source *source, const char *name)
{
    const sf_tensor *found = NULL;
    for (size_t i = 0; i < source->file.count; i++) {
        const char *clean = source->clean[i];
        if (!sf_name_ends(name, clean) && !sf_name_ends(clean, name_inside(name)))
            continue;
        if (found)
            return NULL;
        found = &source->file.tensors[i].tensor;
    }
    return found;
}

/* Endings are for parameters: the state of a parameter bears its name too. */
static const sf_tensor *find_source(const struct source *source, const sf_argument *argument,
                                    const char *name, uint32_t index)
{
    char number[24];
    snprintf(number, sizeof number, "in.%u", index);
    const sf_tensor *found = sf_safetensors_find(&source->file, name);
    if (!found)
        found = sf_safetensors_find(&source->file, argument->name);
    if (!found && source->by_number)
        found = sf_safetensors_find(&source->file, number);
    for (size_t i = 0; !found && i < source->file.count; i++)
        if (strcmp(source->clean[i], name) == 0)
            found = &source->file.tensors[i].tensor;
    if (!found && argument->role == SF_ROLE_PARAM)
        found = find_by_ending(source, name);
    return found;
}

/* Cuts the shard out of the tensor of the file. */
static sf_status copy_stored_tensor(const sf_stored *from, const sf_type *type, sf_runs runs,
                                    const sf_tensor *to, sf_diag *diag)
{
    if (!sf_stored_shape_fits(from->tensor->type, type) ||
        !sf_stored_converts(from->tensor->type->dtype, type->dtype))
        return sf_stored_refuse(from, type, diag);
    while (sf_runs_next(&runs))
        SF_TRY(
            sf_stored_take(from, runs.global, runs.count, type->dtype, to->data, runs.local, diag));
    return SF_OK;
}

/* Whoever saved the inputs may have known some that the step, as lowered, no longer takes: then the
 * numbers say nothing. */
static bool has_input(const struct source *source, uint32_t index)
{
    char number[24];
    snprintf(number, sizeof number, "in.%u", index);
    return sf_safetensors_find(&source->file, number) != NULL;
}

static sf_status take_one_argument(const sf_rank_shards *shards, uint32_t index, const char *name,
                                   const struct source *source, const sf_tensor *found,
                                   const sf_holder *holder, sf_diag *diag)
{
    sf_tensor shard;
    SF_TRY(sf_holder_lend(holder, index, true, diag, &shard));
    sf_stored stored = {.tensor = found, .name = name, .path = source->path, .rounds = true};
    sf_status status = copy_stored_tensor(&stored, sf_rank_shards_type(shards, index),
                                          sf_rank_shards_runs(shards, index), &shard, diag);
    sf_status returned = sf_holder_give_back(holder, index, diag);
    return status == SF_OK ? returned : status;
}

static sf_status take_all_arguments(const sf_rank_shards *shards, const char *const *names,
                                    const struct source *source, const sf_holder *holder,
                                    sf_diag *diag)
{
    const sf_graph *graph = shards->graph;
    sf_status status = SF_OK;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_argument *argument = &graph->arguments[i];
        if (!sf_argument_is_kept(argument))
            continue;
        const sf_tensor *found = find_source(source, argument, names[i], i);
        sf_status copied = SF_OK;
        if (found)
            copied = take_one_argument(shards, i, names[i], source, found, holder, diag);
        else if (argument->role == SF_ROLE_PARAM)
            copied = sf_fail(diag, SF_EINPUT, (sf_loc){source->path, 0, 0},
                             "there is no tensor for the parameter %s", names[i]);
        if (copied != SF_OK)
            status = copied;
    }
    return status;
}

sf_status sf_init_file(const sf_rank_shards *shards, const char *const *names, const char *path,
                       uint64_t seed, sf_threads *threads, const sf_holder *holder, sf_diag *diag)
{
    const sf_init_rules none = {0};
    struct source source = {.path = path};
    SF_TRY(sf_safetensors_read(path, diag, &source.file));
    sf_status status = sf_init_random(shards, names, &none, seed, threads, holder, diag);
    source.clean = SF_ARRAY(&source.arena, source.file.count, const char *);
    for (size_t i = 0; i < source.file.count; i++)
        source.clean[i] = sf_clean_name(source.file.tensors[i].name, &source.arena);
    source.by_number = !has_input(&source, shards->graph->top->narguments);
    if (status == SF_OK)
        status = take_all_arguments(shards, names, &source, holder, diag);
    sf_arena_free(&source.arena);
    sf_safetensors_close(&source.file);
    return status;
}
