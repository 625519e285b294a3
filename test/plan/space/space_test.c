/* Spaces: their primitives become a plan that computes the step; impossible ones are refused with
 * the reason; orders are kept, and a cycle is reported with its tasks. */
#include "plan/space/space.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sheaf/sheaf.h"
#include "solve/search/dice.h"
#include "support/plans.h"
#include "support/sanitized.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A space as text, its primitives separated by ';':
 *
 *     recipe NAME     schedule NAME
 *     trans OPS HOW PARTS (space|time)     assign OPS TURN DEVICE...     order OPS PASS TURN ROUND
 *                                          OPS PASS TURN ROUND
 *
 * OPS - is all, TURN * is every, PASS is F, B or W. */
typedef struct words {
    char text[4000], *at[64];
    int count;
} words;

static words split_words(const char *text, size_t length)
{
    words w = {.count = 0};
    assert_true(length < sizeof w.text);
    memcpy(w.text, text, length);
    w.text[length] = '\0';
    return w;
}

static void cut_words(words *w)
{
    char *save = NULL;
    for (char *at = strtok_r(w->text, " ", &save); at && w->count < 64;
         at = strtok_r(NULL, " ", &save))
        w->at[w->count++] = at;
}

static const char *ops_of(const char *word)
{
    return strcmp(word, "-") == 0 ? NULL : word;
}

static int turn_of(const char *word)
{
    return strcmp(word, "*") == 0 ? SF_EVERY : atoi(word);
}

static sf_task task_of(char **at)
{
    return (sf_task){sizeof(sf_task), ops_of(at[0]), (sf_pass)(strchr("FBW", at[1][0]) - "FBW"),
                     turn_of(at[2]), atoi(at[3])};
}

static sf_status say_one(sf_space *space, words *w, sf_diag *diag)
{
    if (strcmp(w->at[0], "trans") == 0)
        return sf_trans(space, ops_of(w->at[1]), w->at[2], atoi(w->at[3]),
                        strcmp(w->at[4], "time") == 0 ? SF_IN_TIME : SF_IN_SPACE, diag);
    if (strcmp(w->at[0], "assign") == 0) {
        int devices[64], count = 0;
        for (int i = 3; i < w->count; i++)
            devices[count++] = atoi(w->at[i]);
        return sf_assign(space, ops_of(w->at[1]), turn_of(w->at[2]), devices, count, diag);
    }
    sf_task before = task_of(w->at + 1), after = task_of(w->at + 5);
    return sf_order(space, &before, &after, diag);
}

typedef struct wanted {
    const char *step;
    int devices;
    const char *said;
} wanted;

static sf_status make(const sf_graph *graph, const wanted *it, sf_diag *diag, sf_plan **out)
{
    sf_space *space = NULL;
    char recipe[40] = "", schedule[40] = "";
    *out = NULL;
    sf_status status = sf_space_new(graph, it->devices, diag, &space);
    for (const char *at = it->said; *at && status == SF_OK;) {
        size_t length = strcspn(at, ";");
        words w = split_words(at, length);
        cut_words(&w);
        if (w.count > 0 && strcmp(w.at[0], "recipe") == 0)
            snprintf(recipe, sizeof recipe, "%s", w.at[1]);
        else if (w.count > 0 && strcmp(w.at[0], "schedule") == 0)
            snprintf(schedule, sizeof schedule, "%s", w.at[1]);
        else if (w.count > 0)
            status = say_one(space, &w, diag);
        at += length + (at[length] == ';');
    }
    if (status == SF_OK)
        status = sf_space_plan(space,
                               &(sf_plan_spec){.size = sizeof(sf_plan_spec),
                                               .recipe = *recipe ? recipe : NULL,
                                               .schedule = *schedule ? schedule : NULL},
                               diag, out);
    sf_space_free(space);
    return status;
}

static sf_plan *must_make(const sf_graph *graph, const wanted *it)
{
    sf_diag *diag = sf_diag_new();
    sf_plan *plan;
    if (make(graph, it, diag, &plan) != SF_OK)
        fail_msg("%s: %s: %s", it->step, it->said, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return plan;
}

static void verify(const sf_graph *graph, const sf_plan *plan, const wanted *it)
{
    sf_diag *diag = sf_diag_new();
    sf_verify_report *report = NULL;
    if (sf_plan_check(plan, graph, 0, diag) != SF_OK ||
        sf_verify_plan(graph, plan, &SF_OPTIONS(sf_verify_options, .steps = 2), diag, &report) !=
            SF_OK)
        fail_msg("%s: %s: %s", it->step, it->said, sf_diag_text(diag, 0));
    assert_true(report->passed);
    sf_verify_free(report);
    sf_diag_free(diag);
}

/* Each becomes a plan of that mesh, in so many stages, that computes the step. */
static void test_what_is_said_computes_the_step(void **state)
{
    (void)state;
    static const struct {
        wanted what;
        const char *mesh;
        uint32_t stages; /* 0: no pipeline */
    } table[] = {
        {{"gpt-micro", 1, ""}, "data=1", 0},
        {{"gpt-micro", 2, "trans - batch 2 space"}, "data=2", 0},
        {{"gpt-micro", 1, "trans - batch 4 time"}, "data=1", 0},
        {{"gpt-micro", 2, "trans layer_?/mlp/up/dot_general j 2 space"}, "model=2", 0},
        {{"gpt-micro", 2, "trans layer_?/mlp/down/dot_general l 2 space"}, "model=2", 0},
        {{"gpt-micro", 4,
          "trans - batch 2 space; trans layer_?/mlp/up/dot_general k 2 space; trans layer_0 "
          "recompute 1 time"},
         "data=2,model=2",
         0},
        {{"gpt-micro", 1, "trans layer_?/mlp/up/dot_general k 4 time"}, "data=1", 0},
        {{"gpt-micro", 1, "trans - batch 2 time; trans layer_?/mlp/up/dot_general k 4 time"},
         "data=1",
         0},
        {{"gpt-micro", 2,
          "trans - batch 2 time; assign layer_0 * 0; assign layer_1 * 1; trans "
          "layer_0/mlp/up/dot_general k 2 time"},
         "pipe=2",
         2},
        {{"gpt-micro", 2, "trans - batch 2 time; assign layer_0 * 0; assign layer_1 * 1"},
         "pipe=2",
         2},
        {{"gpt-micro", 2, "trans - batch 2 time; assign layer_0 * 1; assign layer_1 * 0"},
         "pipe=2",
         2},
        {{"gpt-micro", 2,
          "trans - batch 2 time; assign layer_0 * 0; assign layer_1/attn * 1; assign layer_1/mlp "
          "* 0"},
         "pipe=2",
         3},
        {{"gpt-micro", 4,
          "trans - batch 2 time; trans - batch 2 space; assign layer_0 * 0 1; assign layer_1 * 2 "
          "3"},
         "pipe=2,data=2",
         2},
        {{"gpt-micro", 4,
          "trans - batch 2 time; trans - batch 2 space; assign layer_0 * 0 2; assign layer_1 * 1 "
          "3; trans - recompute 1 time"},
         "data=2,pipe=2",
         2},
        {{"gpt-micro", 4,
          "trans - batch 2 time; assign layer_0 * 1 0; assign layer_1 * 3 2; "
          "recipe megatron"},
         "pipe=2,model=2",
         2},
        /* as in chimera: micro-batches go down and up */
        {{"gpt-micro", 2,
          "trans - batch 2 time; assign layer_0 0 0; assign layer_1 0 1; assign layer_0 1 1; "
          "assign layer_1 1 0"},
         "pipe=2",
         2},
        /* micro-batches in any order, and all forward before all backward */
        {{"gpt-micro", 2,
          "trans - batch 4 time; assign layer_0 * 0; assign layer_1 * 1; order layer_0 F 3 0 "
          "layer_0 F 0 0; order layer_1 F 2 0 layer_1 F 1 0"},
         "pipe=2",
         2},
        {{"gpt-micro", 2,
          "trans - batch 4 time; assign layer_0 * 0; assign layer_1 * 1; order layer_0 F 3 0 "
          "layer_0 B 0 0"},
         "pipe=2",
         2},
        /* gradients of weights apart */
        {{"gpt-micro", 2,
          "trans - batch 4 time; assign layer_0 * 0; assign layer_1 * 1; order layer_1 B 3 0 "
          "layer_1 W 0 0"},
         "pipe=2",
         2},
        /* one device, two parts with an order of their own */
        {{"gpt-micro", 1,
          "trans - batch 2 time; order layer_1 F * 0 layer_1/mlp B * 0; order layer_0 F 1 0 "
          "layer_1 B 0 0"},
         "pipe=1",
         4},
        {{"gpt-micro", 2,
          "trans - batch 4 time; assign layer_0 * 0; assign layer_1 * 1; "
          "schedule 1f1b"},
         "pipe=2",
         2},
        {{"t5-micro", 2, "trans - batch 2 time; assign *enc* * 0; assign *dec* * 1"}, "pipe=2", 2},
        /* three forward passes through both, then one backward pass */
        {{"evoformer-micro", 2, "trans - batch 2 time; assign row,row_ln * 0; assign col,mt * 1"},
         "pipe=2",
         6},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        sf_graph *graph = test_step(table[i].what.step);
        sf_plan *plan = must_make(graph, &table[i].what);
        sf_buf mesh = {0};
        sf_mesh_print(&plan->mesh, &mesh);
        if (strcmp(mesh.text, table[i].mesh) != 0)
            fail_msg("%s: mesh %s", table[i].what.said, mesh.text);
        uint32_t stages = plan->pipeline ? plan->pipeline->stages.count : 0;
        if (stages != table[i].stages)
            fail_msg("%s: %u stages", table[i].what.said, stages);
        verify(graph, plan, &table[i].what);
        sf_buf_free(&mesh);
        sf_plan_free(plan);
        sf_graph_free(graph);
    }
}

/* Refusals ------------------------------------------------------------------------------------- */

#define PIPE "trans - batch 4 time; assign layer_0 * 0; assign layer_1 * 1; "

static void test_what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct {
        int devices;
        const char *said, *message;
    } table[] = {
        {0, "", "a space has 1 to"},
        {1, "trans nowhere i 2 space", "\"nowhere\" matches no op of the forward pass"},
        {1, "trans layer_0/mlpp i 2 space", "did you mean \"layer_0/mlp\"?"},
        {1, "trans layer_0/mlp/up/dot_general z 2 space", "has no factor z"},
        {1, "trans layer_0/mlp/up/dot_general z 2 space", "factors that it can be cut along: i of"},
        {1, "trans layer_0/mlp/up/dot_general j 7 space", "7 parts of it would not be equal"},
        {1, "trans layer_0 j 0 space", "0 parts"},
        {1, "trans layer_0 j -3 space", "-3 parts"},
        {1, "trans - batch 2000000000 time", "2000000000 parts"},
        {1, "trans layer_0 fold 2 space", "there is no transformation \"fold\""},
        {1, "trans layer_0 batch 2 time", "the batch runs through all ops"},
        {1, "trans - recompute 2 time", "recomputed ops are not split"},
        {1, "trans - batch 2 time; trans - batch 4 time", "cut into 2 parts in time already"},
        {1, "trans - batch 2 space", "the step is on 1 device, and what is split in space has 2"},
        {4, "trans - batch 2 space", "the step is on 4 devices, and what is split in space has 2"},
        {2, "assign layer_0 * 2", "there is no device 2: they are numbered from 0 to 1"},
        {2, "assign layer_0 * -1", "there is no device -1"},
        {2, "assign layer_0 * 1 1", "device 1 is listed twice"},
        {2, "assign layer_0 *", "expected at least one device"},
        {2, "assign layer_0 -2 0", "there is no micro-batch -2"},
        {2, "assign layer_0 5 0; assign layer_0 * 0; assign layer_1 * 1", "and there are 1"},
        {2, "assign layer_0 0 0; assign layer_1 0 1; trans - batch 2 time",
         "has no devices in micro-batch 1"},
        {2, "assign layer_0 * 0; assign layer_1 * 1; assign layer_1/mlp * 0", "is placed on"},
        {2, "assign layer_0 * 0", "device 1 has nothing to do"},
        {4, "assign layer_0 * 0 1; assign layer_1 * 1 2 3", "overlap, but are not the same"},
        {4, "assign layer_0 * 0 3; assign layer_1 * 1 2", "stand side by side"},
        {2, PIPE "order layer_0 F 4 0 layer_0 B 0 0", "there is no micro-batch 4 of layer_0"},
        {2, PIPE "order layer_0 F 0 2 layer_0 B 0 0", "goes through layer_0 for the 2th time"},
        {2, PIPE "order layer_0 F -7 0 layer_0 B 0 0", "no micro-batch -7"},
        {2, PIPE "order layer_0 F 0 -1 layer_0 B 0 0", "no round -1"},
        {2, PIPE "order layer_9 F 0 0 layer_0 B 0 0", "\"layer_9\" matches no op"},
        {2, PIPE "order layer_0 B 0 0 layer_0 F 0 0",
         "the order goes in a circle: F0.0 (layer_0) is ordered after B0.0 (layer_0), which "
         "needs what is made by"},
        {2, PIPE "order layer_0 F 0 0 layer_0 F 0 0", "F0.0 (layer_0) is ordered after F0.0"},
        /* a circle by way of the other device */
        {2, PIPE "order layer_0 B 0 0 layer_0 F 1 0; order layer_1 F 1 0 layer_1 B 0 0",
         "the order goes in a circle"},
        {2, PIPE "order layer_0 F 1 0 layer_0 F 0 0; schedule 1f1b", "completed by a search"},
        {2, "schedule 1f1b; trans - batch 2 space", "a schedule is of stages"},
        {2, PIPE "schedule gpip", "did you mean gpipe?"},
        {2, "trans - batch 4 time; assign layer_0 * 1; assign layer_1 * 0; schedule 1f1b",
         "on other devices than it was assigned to"},
        {4, PIPE "recipe nonsense", "device 2 has nothing to do"},
    };
    sf_graph *graph = test_step("gpt-micro");
    for (size_t i = 0; i < COUNT(table); i++) {
        sf_diag *diag = sf_diag_new();
        sf_plan *plan;
        wanted what = {"gpt-micro", table[i].devices, table[i].said};
        sf_status status = make(graph, &what, diag, &plan);
        if (status == SF_OK || plan)
            fail_msg("\"%s\" is taken", table[i].said);
        bool found = false;
        for (int t = 0; sf_diag_text(diag, t); t++)
            found = found || strstr(sf_diag_text(diag, t), table[i].message);
        if (!found)
            fail_msg("\"%s\": %s", table[i].said, sf_diag_text(diag, 0));
        sf_diag_free(diag);
    }
    sf_graph_free(graph);
}

/* Orders ---------------------------------------------------------------------------------------- */

enum { TURNS = 4 };

static uint32_t place_of(const sf_schedule *schedule, uint32_t group, sf_stage_task task)
{
    uint32_t i = 0;
    while (i < schedule->ntasks[group] &&
           memcmp(&schedule->tasks[group][i], &task, sizeof task) != 0)
        i++;
    assert_true(i < schedule->ntasks[group]);
    return i;
}

typedef struct drawn {
    sf_stage_task before, after;
} drawn;

static void write_order(const drawn *it, char *out, size_t room)
{
    snprintf(out, room, "order layer_%u %c %u 0 layer_%u %c %u 0; ", it->before.stage,
             "FB"[it->before.pass], it -> before.microbatch, it->after.stage, "FB"[it->after.pass],
             it -> after.microbatch);
}

/* Any orders of tasks: they are kept, and the step is computed; or they are refused. Nothing hangs. */
static void test_orders_are_kept_or_refused(void **state)
{
    (void)state;
    enum { MOST = 4, RUN = 20, CHECKED = 4 };
    const int mutants = test_rounds(500);
    sf_graph *graph = test_step("gpt-micro");
    sf_dice dice = {23};
    int refused = 0;
    for (int i = 0; i < mutants; i++) {
        drawn orders[MOST];
        char said[1000] = PIPE;
        int count = 1 + (int)sf_dice_below(&dice, MOST);
        for (int k = 0; k < count; k++) {
            uint32_t stage = sf_dice_below(&dice, 2);
            orders[k] =
                (drawn){{stage, sf_dice_below(&dice, TURNS), (sf_pass)sf_dice_below(&dice, 2)},
                        {sf_dice_below(&dice, 8) ? stage : 1 - stage, sf_dice_below(&dice, TURNS),
                         (sf_pass)sf_dice_below(&dice, 2)}};
            size_t length = strlen(said);
            write_order(&orders[k], said + length, sizeof said - length);
        }
        wanted what = {"gpt-micro", 2, said};
        sf_diag *diag = sf_diag_new();
        sf_plan *plan;
        sf_status status = make(graph, &what, diag, &plan);
        if (status != SF_OK) {
            refused++;
            assert_int_equal(status, SF_EUSAGE);
            if (!strstr(sf_diag_text(diag, 0), "circle") &&
                !strstr(sf_diag_text(diag, 0), "different devices"))
                fail_msg("%s: %s", said, sf_diag_text(diag, 0));
        } else {
            const sf_schedule *schedule = &plan->pipeline->schedule;
            for (int k = 0; k < count; k++)
                if (orders[k].before.stage == orders[k].after.stage)
                    assert_true(place_of(schedule, orders[k].before.stage, orders[k].before) <
                                place_of(schedule, orders[k].before.stage, orders[k].after));
            if (i % CHECKED == 0 && sf_plan_check(plan, graph, 0, diag) != SF_OK)
                fail_msg("%s: %s", said, sf_diag_text(diag, 0));
            if (i % RUN == 0)
                verify(graph, plan, &what);
        }
        sf_diag_free(diag);
        sf_plan_free(plan);
    }
    print_message("%d of %d orders refused\n", refused, mutants);
    assert_true(refused > mutants / 10 && refused < mutants * 9 / 10);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said_computes_the_step),
        cmocka_unit_test(test_what_cannot_be_is_refused),
        cmocka_unit_test(test_orders_are_kept_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
