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

sf_status sf_course_open(const sf_seat_options *options, sf_diag *diag, sf_course *out)
{
    out->loss = find_loss(options->graph);
    out->last = (double)NAN;
    out->saved = -1;
    out->info = (sf_checkpoint_info){.graph = sf_graph_hash(options->graph), .data = ""};
    return sf_seat_open(options, diag, &out->seat);
}

void sf_course_close(sf_course *course)
{
    sf_seat_close(&course->seat);
    sf_free(course->resumed);
    sf_free(course->data);
    course->resumed = course->data = NULL;
}

void sf_course_end(sf_course *course)
{
    sf_checkpoints_close(&course->checkpoints);
    sf_mappings_close(&course->mappings);
}

sf_status sf_course_find(const char *path, char out[SF_PATH_SIZE], sf_diag *diag)
{
    SF_TRY(sf_checkpoint_find(path, out, diag));
    if (*out)
        return SF_OK;
    return sf_fail(diag, SF_EINPUT, (sf_loc){path, 0, 0}, "there is no checkpoint in it");
}

/* Weights from a checkpoint, which must be of this step where it is one of several ranks. */
static sf_status init_from_checkpoint(sf_course *course, const char *path, sf_diag *diag)
{
    char found[SF_PATH_SIZE], whole[SF_PATH_SIZE + sizeof SF_CHECKPOINT_STATE + 1];
    sf_holder holder = sf_seat_holder(&course->seat);
    sf_state state = sf_seat_state(&course->seat);
    sf_arena scratch = {0};
    sf_checkpoint_info info;
    struct stat about;
    SF_TRY(sf_course_find(path, found, diag));
    snprintf(whole, sizeof whole, "%s/%s", found, SF_CHECKPOINT_STATE);
    if (stat(whole, &about) == 0)
        return sf_init_file(&course->seat.pieces, course->seat.names, whole, course->info.seed,
                            course->seat.options.pool, &holder, diag);
    sf_status status = sf_checkpoint_load(found, &state, &course->mappings, &scratch, &info, diag);
    sf_arena_free(&scratch);
    return status;
}

static sf_status init_by_rules(sf_course *course, const char *rules, sf_diag *diag)
{
    sf_holder holder = sf_seat_holder(&course->seat);
    sf_arena scratch = {0};
    sf_init_rules parsed;
    sf_status status = sf_init_parse(rules, &scratch, diag, &parsed);
    if (status == SF_OK)
        status = sf_init_random(&course->seat.pieces, course->seat.names, &parsed,
                                course->info.seed, course->seat.options.pool, &holder, diag);
    sf_arena_free(&scratch);
    return status;
}

sf_status sf_course_init(sf_course *course, const char *init, uint64_t seed, sf_diag *diag)
{
    sf_holder holder = sf_seat_holder(&course->seat);
    struct stat about;
    course->info.seed = seed;
    if (!init || sf_init_is_rules(init) || stat(init, &about) != 0)
        return init_by_rules(course, init, diag);
    if (S_ISDIR(about.st_mode))
        return init_from_checkpoint(course, init, diag);
    return sf_init_file(&course->seat.pieces, course->seat.names, init, seed,
                        course->seat.options.pool, &holder, diag);
}

sf_status sf_course_start(sf_course *course, sf_diag *diag, bool *goes_on)
{
    SF_TRY(sf_seat_hand_in(&course->seat, diag));
    return sf_seat_start(&course->seat, diag, goes_on);
}

sf_status sf_course_finish(sf_course *course, sf_diag *diag)
{
    SF_TRY(sf_seat_finish(&course->seat, diag));
    course->info.step++;
    if (course->loss == SF_NONE)
        return SF_OK;
    return sf_seat_number(&course->seat, course->loss, diag, &course->last);
}

sf_status sf_course_step(sf_course *course, sf_diag *diag)
{
    bool goes_on;
    SF_TRY(sf_course_start(course, diag, &goes_on));
    return sf_course_finish(course, diag);
}

static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(sf_alloc(size), text, size);
}

/* Memory that may jump comes first: until then the course is as it was. */
static void take_info(sf_course *course, const char *checkpoint, const sf_checkpoint_info *info)
{
    char *resumed = copy_text(checkpoint), *data = copy_text(info->data);
    sf_free(course->resumed);
    sf_free(course->data);
    course->resumed = resumed;
    course->data = data;
    course->info = *info;
    course->info.data = data;
    course->saved = info->step;
}

sf_status sf_course_load(sf_course *course, const char *checkpoint, sf_diag *diag)
{
    sf_state state = sf_seat_state(&course->seat);
    sf_arena scratch = {0};
    sf_checkpoint_info info;
    sf_status status =
        sf_checkpoint_load(checkpoint, &state, &course->mappings, &scratch, &info, diag);
    if (status == SF_OK)
        take_info(course, checkpoint, &info);
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

static sf_status open_directory(sf_course *course, const char *directory, sf_diag *diag)
{
    char found[SF_PATH_SIZE];
    if (course->seat.pieces.rank > 0)
        return sf_checkpoints_join(directory, diag, &course->checkpoints);
    SF_TRY(sf_checkpoints_open(directory, diag, &course->checkpoints));
    SF_TRY(sf_checkpoint_find(directory, found, diag));
    if (!*found || (course->resumed && is_inside(course->resumed, directory)))
        return SF_OK;
    sf_fail(diag, SF_EUSAGE, (sf_loc){directory, 0, 0},
            "there are checkpoints of another run in it");
    sf_hint(diag, "option resume goes on with that run; or save to another directory");
    return SF_EUSAGE;
}

sf_status sf_course_enter(sf_course *course, const char *directory, sf_diag *diag)
{
    sf_comm *comm = course->seat.options.comm;
    sf_checkpoints before = course->checkpoints;
    sf_status status =
        sf_agree(comm, open_directory(course, directory, diag), "opening files", diag);
    if (status != SF_OK) {
        if (course->checkpoints.open && course->checkpoints.lock != before.lock)
            sf_checkpoints_close(&course->checkpoints);
        course->checkpoints = before;
        return status;
    }
    sf_checkpoints_close(&before);
    return sf_agree_first(comm, "the name of the run", diag, &course->checkpoints.run);
}

const char *sf_course_path(const sf_course *course, char out[SF_COURSE_PATH])
{
    snprintf(out, SF_COURSE_PATH, "%s/step-%06" PRId64, course->checkpoints.path,
             course->info.step);
    return out;
}

sf_status sf_course_save(sf_course *course, int64_t keep, sf_diag *diag)
{
    sf_state state = sf_seat_state(&course->seat);
    char path[SF_COURSE_PATH];
    char *saved = copy_text(sf_course_path(course, path));
    keep = keep == 0 ? 2 : keep < 0 ? 0 : keep;
    sf_status status = sf_checkpoints_save(&course->checkpoints, &state, &course->info, keep, diag);
    if (status != SF_OK) {
        sf_free(saved);
        return status;
    }
    sf_free(course->resumed);
    course->resumed = saved;
    course->saved = course->info.step;
    return SF_OK;
}
