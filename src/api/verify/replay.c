#include "api/verify/replay.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "file/stored.h"

sf_status sf_replay_open(const sf_graph *graph, const char *path, sf_arena *arena, sf_diag *diag,
                         sf_replay *out)
{
    *out = (sf_replay){.graph = graph, .path = path};
    out->arguments = SF_ARRAY(arena, graph->top->narguments, sf_tensor);
    SF_TRY(sf_safetensors_read(path, diag, &out->file));
    return sf_values_arguments(graph, &out->file, path, diag, out->arguments);
}

void sf_replay_close(sf_replay *replay)
{
    sf_safetensors_close(&replay->file);
}

/* Whether the last words of `name` are `ending`, letters and digits alone considered, and how long
 * that is. HLO writes batch__ids__.1 for batch['ids']. */
static size_t match_ending(sf_str name, sf_str ending)
{
    size_t at = name.length, matched = 0;
    while (at > 0 && isdigit((unsigned char)name.at[at - 1]))
        at--;
    if (at > 0 && name.at[at - 1] == '.')
        name.length = at - 1;
    for (size_t i = name.length, k = ending.length;;) {
        bool word = i > 0 && isalnum((unsigned char)name.at[i - 1]);
        while (k > 0 && !isalnum((unsigned char)ending.at[k - 1]))
            k--;
        if (k == 0)
            return word ? 0 : matched;
        while (i > 0 && !isalnum((unsigned char)name.at[i - 1]))
            i--;
        if (i == 0 || name.at[--i] != ending.at[--k])
            return 0;
        matched++;
    }
}

/* Whether the numbers are those of the input. */
static bool holds_input(sf_replay *replay, const sf_named_tensor *named, const sf_tensor *input)
{
    sf_tensor found;
    sf_mark mark = sf_arena_mark(&replay->file.arena);
    bool same = sf_stored_is_akin(named->tensor.type->dtype, input->type->dtype) &&
                sf_stored_shape_fits(named->tensor.type, input->type) &&
                sf_values_take(&replay->file, &named->tensor, "", input->type, replay->path, NULL,
                               &found) == SF_OK &&
                memcmp(found.data, input->data, (size_t)sf_type_bytes(input->type)) == 0;
    sf_arena_reset(&replay->file.arena, mark);
    return same;
}

/* The name of the batch tensor that feeds an argument: the longest one that the argument's name
 * ends with; else, if the text has no names, the one whose first batch equals the inputs there.
 * Empty when there is none. */
static sf_str find_batch(sf_replay *replay, uint32_t argument)
{
    static const char prefix[] = "batch.0.";
    const sf_tensor *input = &replay->arguments[argument];
    sf_str best = {0}, same = {0};
    size_t most = 0, sames = 0;
    for (size_t i = 0; i < replay->file.count; i++) {
        const sf_named_tensor *named = &replay->file.tensors[i];
        if (!sf_str_starts(named->name, prefix))
            continue;
        sf_str name = {named->name.at + strlen(prefix), named->name.length - strlen(prefix)};
        size_t length = match_ending(sf_str_of(replay->graph->arguments[argument].name), name);
        if (length > most) {
            most = length;
            best = name;
        }
        if (holds_input(replay, named, input)) {
            same = name;
            sames++;
        }
    }
    return most > 0 ? best : sames == 1 ? same : (sf_str){0};
}

void sf_replay_find(sf_replay *replay, sf_arena *arena)
{
    const sf_graph *graph = replay->graph;
    replay->batches = SF_ARRAY(arena, graph->top->narguments, sf_str);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next == SF_NONE && graph->arguments[i].role != SF_ROLE_KEY)
            replay->batches[i] = find_batch(replay, i);
}

enum { BATCH_NAME = 300 };

static void batch_name(const sf_replay *replay, uint32_t argument, int step, char name[BATCH_NAME])
{
    sf_str batch = replay->batches[argument];
    snprintf(name, BATCH_NAME, "batch.%d.%.*s", step, (int)batch.length,
             batch.length ? batch.at : "");
}

int sf_replay_count(const sf_replay *replay)
{
    int count = INT_MAX;
    for (uint32_t i = 0; i < replay->graph->top->narguments; i++) {
        char name[BATCH_NAME];
        int there = 0;
        if (replay->batches[i].length == 0)
            continue;
        for (batch_name(replay, i, 0, name); sf_safetensors_find(&replay->file, name);)
            batch_name(replay, i, ++there, name);
        count = there < count ? there : count;
    }
    return count;
}

sf_status sf_replay_batch(sf_replay *replay, int step, sf_diag *diag, bool *changed)
{
    const sf_graph *graph = replay->graph;
    *changed = false;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        sf_tensor *argument = &replay->arguments[i];
        char name[BATCH_NAME];
        batch_name(replay, i, step, name);
        if (replay->batches[i].length == 0 && graph->arguments[i].role != SF_ROLE_BATCH)
            continue;
        const sf_tensor *batch = sf_safetensors_find(&replay->file, name);
        if (!batch)
            return sf_fail(diag, SF_EINPUT, (sf_loc){replay->path, 0, 0},
                           "there is no %s%s for the argument '%s'", name,
                           replay->batches[i].length ? "" : "NAME", graph->arguments[i].name);
        sf_tensor taken;
        SF_TRY(
            sf_values_take(&replay->file, batch, name, argument->type, replay->path, diag, &taken));
        if (memcmp(argument->data, taken.data, (size_t)sf_type_bytes(argument->type)) != 0)
            *changed = true;
        argument->data = taken.data;
    }
    return SF_OK;
}

void sf_carry_state(const sf_graph *graph, const sf_tensor *results, sf_tensor *arguments)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            arguments[i].data = results[graph->arguments[i].next].data;
}

sf_status sf_check_state(const sf_graph *graph, sf_diag *diag)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        uint32_t next = graph->arguments[i].next;
        char has[SF_TYPE_TEXT], wants[SF_TYPE_TEXT];
        if (next == SF_NONE)
            continue;
        const sf_type *from = sf_result_type(graph, next), *to = sf_argument_type(graph, i);
        if (from->dtype != to->dtype || !sf_same_shape(from, to))
            return sf_fail(
                diag, SF_EINPUT, SF_NOWHERE, "result %u, %s, cannot become the argument '%s', %s",
                next, sf_type_text(from, has), graph->arguments[i].name, sf_type_text(to, wants));
    }
    return SF_OK;
}

sf_status sf_find_loss(const sf_graph *graph, sf_diag *diag, uint32_t *out)
{
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        if (graph->results[i].is_loss && sf_result_type(graph, i)->count == 1) {
            *out = i;
            return SF_OK;
        }
    return sf_fail(diag, SF_EINPUT, SF_NOWHERE, "no result of the step is the loss");
}
