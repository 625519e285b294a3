#include "train/training_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "run/comm/rank_agreement.h"
#include "train/init.h"

static uint32_t find_loss(const sf_graph *graph)
{
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        if (graph->results[i].is_loss && sf_result_type(graph, i)->count == 1)
            return i;
    return SF_NONE;
}

sf_status sf_train_run_open(const sf_rank_state_options *options, sf_diag *diag, sf_train_run *out)
{
    out->loss = find_loss(options->graph);
    out->last = (double)NAN;
    out->saved = -1;
    out->info = (sf_checkpoint_info){.graph = sf_graph_hash(options->graph), .data = ""};
    return sf_rank_state_open(options, diag, &out->rank_state);
}

void sf_train_run_close(sf_train_run *training_run)
{
    sf_rank_state_close(&training_run->rank_state);
    sf_free(training_run->resumed);
    sf_free(training_run->data);
    training_run->resumed = training_run->data = NULL;
}

void sf_train_run_end(sf_train_run *training_run)
{
    sf_checkpoints_close(&training_run->checkpoints);
    sf_mappings_close(&training_run->mappings);
}

sf_status sf_train_run_find(const char *path, char out[SF_PATH_SIZE], sf_diag *diag)
{
    SF_TRY(sf_checkpoint_find(path, out, diag));
    if (*out)
        return SF_OK;
    return sf_fail(diag, SF_EINPUT, (sf_loc){path, 0, 0}, "there is no checkpoint in it");
}

/* Weights from a checkpoint, which must be of this step where it is one of several ranks. */
static sf_status init_from_checkpoint(sf_train_run *training_run, const char *path, sf_diag *diag)
{
    char found[SF_PATH_SIZE], whole[SF_PATH_SIZE + sizeof SF_CHECKPOINT_STATE + 1];
    sf_holder holder = sf_rank_state_holder(&training_run->rank_state);
    sf_state state = sf_rank_state_values(&training_run->rank_state);
    sf_arena scratch = {0};
    sf_checkpoint_info info;
    struct stat about;
    SF_TRY(sf_train_run_find(path, found, diag));
    snprintf(whole, sizeof whole, "%s/%s", found, SF_CHECKPOINT_STATE);
    if (stat(whole, &about) == 0)
        return sf_init_file(&training_run->rank_state.shards, training_run->rank_state.names, whole,
                            training_run->info.seed, training_run->rank_state.options.pool, &holder,
                            diag);
    sf_status status =
        sf_checkpoint_load(found, &state, &training_run->mappings, &scratch, &info, diag);
    sf_arena_free(&scratch);
    return status;
}

static sf_status init_by_rules(sf_train_run *training_run, const char *rules, sf_diag *diag)
{
    sf_holder holder = sf_rank_state_holder(&training_run->rank_state);
    sf_arena scratch = {0};
    sf_init_rules parsed;
    sf_status status = sf_init_parse(rules, &scratch, diag, &parsed);
    if (status == SF_OK)
        status = sf_init_random(&training_run->rank_state.shards, training_run->rank_state.names,
                                &parsed, training_run->info.seed,
                                training_run->rank_state.options.pool, &holder, diag);
    sf_arena_free(&scratch);
    return status;
}

sf_status sf_train_run_init(sf_train_run *training_run, const char *init, uint64_t seed,
                            sf_diag *diag)
{
    sf_holder holder = sf_rank_state_holder(&training_run->rank_state);
    struct stat about;
    training_run->info.seed = seed;
    if (!init || sf_init_is_rules(init) || stat(init, &about) != 0)
        return init_by_rules(training_run, init, diag);
    if (S_ISDIR(about.st_mode))
        return init_from_checkpoint(training_run, init, diag);
    return sf_init_file(&training_run->rank_state.shards, training_run->rank_state.names, init,
                        seed, training_run->rank_state.options.pool, &holder, diag);
}

sf_status sf_train_run_start(sf_train_run *training_run, sf_diag *diag, bool *goes_on)
{
    SF_TRY(sf_rank_state_hand_in(&training_run->rank_state, diag));
    return sf_rank_state_start(&training_run->rank_state, diag, goes_on);
}

sf_status sf_train_run_finish(sf_train_run *training_run, sf_diag *diag)
{
    SF_TRY(sf_rank_state_finish(&training_run->rank_state, diag));
    training_run->info.step++;
    if (training_run->loss == SF_NONE)
        return SF_OK;
    return sf_rank_state_number(&training_run->rank_state, training_run->loss, diag,
                                &training_run->last);
}

sf_status sf_train_run_step(sf_train_run *training_run, sf_diag *diag)
{
    bool goes_on;
    SF_TRY(sf_train_run_start(training_run, diag, &goes_on));
    return sf_train_run_finish(training_run, diag);
}

static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(sf_alloc(size), text, size);
}

/* Allocations that may jump come first: until then the training run is unchanged. */
static void take_info(sf_train_run *training_run, const char *checkpoint,
                      const sf_checkpoint_info *info)
{
    char *resumed = copy_text(checkpoint), *data = copy_text(info->data);
    sf_free(training_run->resumed);
    sf_free(training_run->data);
    training_run->resumed = resumed;
    training_run->data = data;
    training_run->info = *info;
    training_run->info.data = data;
    training_run->saved = info->step;
}

sf_status sf_train_run_load(sf_train_run *training_run, const char *checkpoint, sf_diag *diag)
{
    sf_state state = sf_rank_state_values(&training_run->rank_state);
    sf_arena scratch = {0};
    sf_checkpoint_info info;
    sf_status status =
        sf_checkpoint_load(checkpoint, &state, &training_run->mappings, &scratch, &info, diag);
    if (status == SF_OK)
        take_info(training_run, checkpoint, &info);
    sf_arena_free(&scratch);
    return status;
}

/* Whether the checkpoint lies in the directory that we save to. */
static bool is_inside(const char *checkpoint, const char *directory)
{
    char parent[SF_PATH_SIZE + 8];
    struct stat a, b;
    snprintf(parent, sizeof parent, "%s/..", checkpoint);
    return stat(parent, &a) == 0 && stat(directory, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static sf_status open_directory(sf_train_run *training_run, const char *directory, sf_diag *diag)
{
    char found[SF_PATH_SIZE];
    if (training_run->rank_state.shards.rank > 0)
        return sf_checkpoints_join(directory, diag, &training_run->checkpoints);
    SF_TRY(sf_checkpoints_open(directory, diag, &training_run->checkpoints));
    SF_TRY(sf_checkpoint_find(directory, found, diag));
    if (!*found || (training_run->resumed && is_inside(training_run->resumed, directory)))
        return SF_OK;
    sf_fail(diag, SF_EUSAGE, (sf_loc){directory, 0, 0},
            "there are checkpoints of another run in it");
    sf_hint(diag, "option resume goes on with that run; or save to another directory");
    return SF_EUSAGE;
}

sf_status sf_train_run_enter(sf_train_run *training_run, const char *directory, sf_diag *diag)
{
    sf_comm *comm = training_run->rank_state.options.comm;
    sf_checkpoints before = training_run->checkpoints;
    sf_status status =
        sf_agree(comm, open_directory(training_run, directory, diag), "opening files", diag);
    if (status != SF_OK) {
        if (training_run->checkpoints.open && training_run->checkpoints.lock != before.lock)
            sf_checkpoints_close(&training_run->checkpoints);
        training_run->checkpoints = before;
        return status;
    }
    sf_checkpoints_close(&before);
    return sf_agree_first(comm, "the name of the run", diag, &training_run->checkpoints.run);
}

const char *sf_train_run_path(const sf_train_run *training_run, char out[SF_TRAIN_RUN_PATH])
{
    snprintf(out, SF_TRAIN_RUN_PATH, "%s/step-%06" PRId64, training_run->checkpoints.path,
             training_run->info.step);
    return out;
}

sf_status sf_train_run_save(sf_train_run *training_run, int64_t keep, sf_diag *diag)
{
    sf_state state = sf_rank_state_values(&training_run->rank_state);
    char path[SF_TRAIN_RUN_PATH];
    char *saved = copy_text(sf_train_run_path(training_run, path));
    keep = keep == 0 ? 2 : keep < 0 ? 0 : keep;
    sf_status status =
        sf_checkpoints_save(&training_run->checkpoints, &state, &training_run->info, keep, diag);
    if (status != SF_OK) {
        sf_free(saved);
        return status;
    }
    sf_free(training_run->resumed);
    training_run->resumed = saved;
    training_run->saved = training_run->info.step;
    return SF_OK;
}
