/* --schedule: the name of a pipeline schedule, a file with a table of tasks, or a program in Lua. */
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/cli.h"

bool sf_cli_is_script(const char *schedule)
{
    size_t length = schedule ? strlen(schedule) : 0;
    return length > 4 && strcmp(schedule + length - 4, ".lua") == 0;
}

void sf_cli_say_schedule(const char *schedule)
{
    char name[SF_CLI_SHOWN];
    if (schedule && sf_ranks_started() <= 1)
        fprintf(stderr, "schedule: %s, %s\n", sf_cli_shown(schedule, name),
                sf_file_is_same(schedule, schedule) ? "a table of tasks" : "by its name");
}

int sf_cli_script_ranks(int64_t said)
{
    int started = sf_ranks_started();
    return said > 0 ? (int)said : started > 1 ? started : 0;
}

sf_status sf_cli_run_script(const sf_cli_script *script, const sf_graph *graph, sf_diag *diag,
                            sf_primitives **out)
{
    char name[SF_CLI_SHOWN];
    SF_TRY(sf_primitives_new(graph, diag, out));
    sf_status status = sf_script_run(
        script->path,
        &SF_OPTIONS(sf_script_options, .unsafe = script->unsafe, .ranks = script->ranks), *out,
        diag);
    if (status != SF_OK) {
        sf_primitives_free(*out);
        *out = NULL;
        return status;
    }
    int count = sf_primitives_count(*out);
    if (sf_ranks_started() <= 1)
        fprintf(stderr, "schedule: %s, in Lua, %d primitive%s\n", sf_cli_shown(script->path, name),
                count, count == 1 ? "" : "s");
    return SF_OK;
}

sf_status sf_cli_check_unchanged(const sf_graph *step, const sf_graph *made, const char *output,
                                 sf_diag *diag)
{
    if (step == made || !output)
        return SF_OK;
    sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
            "the schedule replaces ops: a plan is of a step in a file, and this one is in none");
    return sf_hint(diag,
                   "write it first, sheaf convert STEP --schedule LUA -o FILE, then plan that");
}

void sf_cli_say_cost(const sf_plan *plan, const sf_plan *free_plan)
{
    double with = sf_plan_seconds(plan), without = sf_plan_seconds(free_plan);
    if (!(with > 0) || !(without > 0))
        return;
    fprintf(stderr,
            "schedule: a step takes %s with it, and %s as planned without it: it costs %.1f %%\n",
            sf_text_seconds(with).at, sf_text_seconds(without).at, (with / without - 1) * 100);
}
