/* The text form of a specification: printed text reads back alike, and errors have their place. */
#include "plan/spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/diag.h"
#include "sheaf/sheaf.h"

static sf_plan_spec one(const char *field, const char *text)
{
    const sf_plan_spec all[] = {{.mesh = text},      {.stages = text},   {.schedule = text},
                                {.recompute = text}, {.co_shard = text}, {.shard_state = text},
                                {.kernels = text}};
    static const char *const names[] = {"mesh",     "stages",      "schedule", "recompute",
                                        "co_shard", "shard_state", "kernels"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], field) == 0)
            return all[i];
    fail_msg("no field %s", field);
    return all[0];
}

static const char *text_of(const sf_plan_spec *spec, const char *field)
{
    const char *found = NULL;
    const char *const texts[] = {spec->mesh,     spec->stages,      spec->schedule, spec->recompute,
                                 spec->co_shard, spec->shard_state, spec->kernels};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i]) {
            assert_null(found); /* no other field is said */
            found = texts[i];
        }
    return found ? found : field;
}

static void test_round_trip(void **state)
{
    (void)state;
    static const struct {
        const char *field, *text, *printed; /* NULL: as it was */
    } rows[] = {
        {"mesh", "data=2,model=4", NULL},
        {"stages", "auto", NULL},
        {"stages", "4", NULL},
        {"stages", "layer_3", NULL},
        {"stages", "layer_3,layer_6", NULL},
        {"stages", "/a/b?,*c", NULL},
        {"stages", "@0-1,@2", NULL},
        {"stages", "@all,layer_0@0,layer_2@1+3,head@all", "@0-3,layer_0@0,layer_2@1+3,head@0-3"},
        {"stages", "@0+1+2+5,x@63", "@0-2+5,x@63"},
        {"schedule", "interleaved:2", NULL},
        {"recompute", "auto", NULL},
        {"recompute", "none", NULL},
        {"recompute", "text", NULL},
        {"recompute", "parts", NULL},
        {"recompute", "layer", NULL},
        {"recompute", "layer:1", "layer"},
        {"recompute", "full:12", NULL},
        {"recompute", "layer_?/attn,head", NULL},
        {"recompute", "#17+18,#3,layer_0", NULL},
        {"recompute", "layers", NULL}, /* a scope */
        {"co_shard", "none", NULL},
        {"co_shard", "1", "none"},
        {"co_shard", "1@layer_0,sequence:1", "none"},
        {"co_shard", "1@layer_0,2", NULL},
        {"co_shard", "4", NULL},
        {"co_shard", "megatron:4", "4"},
        {"co_shard", "sequence:2", NULL},
        {"co_shard", "4@layer_0,sequence:2", NULL},
        {"co_shard", "4@layer_?/attn", NULL},
        {"shard_state", "full", NULL},
        {"shard_state", "between", NULL},
        {"kernels", "none", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sf_arena arena = {0};
        sf_plan_spec said = one(rows[i].field, rows[i].text), printed, recomputed;
        const char *wanted = rows[i].printed ? rows[i].printed : rows[i].text;
        sf_spec spec;
        assert_int_equal(sf_spec_read(&said, &arena, NULL, &spec), SF_OK);
        sf_spec_print(&spec, &arena, &printed);
        assert_string_equal(text_of(&printed, "nothing"), wanted);
        assert_int_equal(sf_spec_read(&printed, &arena, NULL, &spec), SF_OK);
        sf_spec_print(&spec, &arena, &recomputed);
        assert_string_equal(text_of(&recomputed, "nothing"), wanted);
        sf_arena_free(&arena);
    }
}

static void test_values(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_plan_spec said = {.size = sizeof said,
                         .mesh = "data=2",
                         .stages = "@0-1,layer_3@2",
                         .recompute = "layer_0,#5+7",
                         .co_shard = "4@layer_0,1@layer_1,sequence:2"};
    sf_spec spec;
    assert_int_equal(sf_spec_read(&said, &arena, NULL, &spec), SF_OK);
    assert_int_equal(sf_mesh_size(spec.mesh), 2);
    assert_int_equal(spec.stages.count, 2);
    assert_int_equal(spec.stages.ngroups, 3);
    assert_null(spec.stages.scopes[0]);
    assert_string_equal(spec.stages.scopes[1], "layer_3");
    assert_int_equal(spec.stages.groups[0], 3);
    assert_int_equal(spec.stages.groups[1], 4);
    assert_int_equal(spec.recompute.nscopes, 2);
    assert_string_equal(spec.recompute.scopes[0].pattern, "layer_0");
    assert_int_equal(spec.recompute.scopes[1].nops, 2);
    assert_int_equal(spec.recompute.scopes[1].ops[1], 7);
    assert_int_equal(spec.co_shard.count, 3);
    assert_int_equal(spec.co_shard.at[0].chunks, 4);
    assert_string_equal(spec.co_shard.at[0].in, "layer_0");
    assert_int_equal(spec.co_shard.at[1].chunks, 1);
    assert_string_equal(spec.co_shard.at[2].by, "sequence");
    said = (sf_plan_spec){.size = sizeof(sf_plan_spec), .stages = "layer_3,layer_6"};
    assert_int_equal(sf_spec_read(&said, &arena, NULL, &spec), SF_OK);
    assert_int_equal(spec.stages.count, 3);
    assert_null(spec.stages.groups);
    assert_int_equal(spec.micro_batches, 0);
    assert_int_equal(spec.recompute.kind, SF_RECOMPUTE_UNSAID);
    assert_false(spec.co_shard.is_said);
    sf_arena_free(&arena);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *field, *text, *says;
    } rows[] = {
        {"stages", "", "expected a scope at its end"},
        {"stages", "0", "1 to 64 stages at character 1"},
        {"stages", "65", "1 to 64 stages"},
        {"stages", "a,", "a scope at its end"},
        {"stages", "@0,b", "@ and the pipeline ranks of the stage at its end"},
        {"stages", "a@0,b@1",
         "@ and the pipeline ranks of the first stage, which begins with the step at "
         "character 1, not \"a@0,b@1\""},
        {"stages", "@x,b@1", "a pipeline rank, 0 to 63, or all at character 2"},
        {"stages", "@1-0,b@1", "the last pipeline rank of a range, 63 at most at character 4"},
        {"stages", "@0+,b@1", "a pipeline rank, 0 to 63, or all at character 4"},
        {"stages", "@64", "a pipeline rank"},
        {"stages", "@all,b@all", "how many pipeline ranks there are"},
        {"stages", "@0,b@1,@2", "a scope, as other stages have at character 8"},
        {"stages", "@0,@1,b@2", "@, as no other stage has a scope at character 7"},
        {"recompute", "", "at its end"},
        {"recompute", "layer:0", "1 or more, at character 7"},
        {"recompute", "full:two", "at character 6, not \"two\""},
        {"recompute", "layer_0,,b", "at character 9"},
        {"recompute", "#", "the number of an op at its end"},
        {"recompute", "#3+,b", "the number of an op at character 4"},
        {"recompute", "#3;4", "a comma or the end at character 3, not \";4\""},
        {"co_shard", "many", "a number of chunks, 1 or more at character 1"},
        {"co_shard", "0", "a number of chunks"},
        {"co_shard", "sequence:", "a number of chunks, 1 or more at its end"},
        {"co_shard", "4@", "a scope at its end"},
        {"co_shard", "4x", "@, a comma or the end at character 2"},
        {"co_shard", "4,99999999999", "a number of chunks, 1 or more at character 3"},
        {"shard_state", "half", "expected auto, full or between at character 1"},
        {"kernels", "some", "expected best, none or all"},
        {"mesh", "data", ""},
        {"schedule", "sideways", "sideways"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sf_arena arena = {0};
        sf_diag *diag = sf_diag_new();
        sf_plan_spec said = one(rows[i].field, rows[i].text);
        sf_spec spec;
        if (sf_spec_read(&said, &arena, diag, &spec) != SF_EUSAGE)
            fail_msg("%s \"%s\" is not refused", rows[i].field, rows[i].text);
        if (!strstr(sf_diag_text(diag, 0), rows[i].says))
            fail_msg("%s \"%s\": %s", rows[i].field, rows[i].text, sf_diag_text(diag, 0));
        sf_diag_free(diag);
        sf_arena_free(&arena);
    }
}

static void test_set(void **state)
{
    (void)state;
    sf_diag *diag = sf_diag_new();
    sf_plan_spec spec = {.size = sizeof spec};
    for (int f = 0; sf_spec_field(f); f++) {
        static const char *const values[] = {"data=2",  "dp", "2",    "4",    "1f1b", "8",
                                             "layer:2", "4",  "full", "fsdp", "all",  "1024"};
        assert_int_equal(sf_plan_spec_set(&spec, sf_spec_field(f), values[f], diag), SF_OK);
    }
    assert_string_equal(spec.mesh, "data=2");
    assert_string_equal(spec.kernels, "all");
    assert_int_equal(spec.ranks, 2);
    assert_int_equal(spec.micro_batches, 8);
    assert_int_equal(spec.memory, 1024);
    assert_int_equal(sf_plan_spec_set(&spec, "micro_batches", "auto", diag), SF_OK);
    assert_int_equal(spec.micro_batches, 0);
    static const char *const wrong[][3] = {
        {"micro_batches", "0", "expected a number of at least 1, or auto"},
        {"micro_batches", "some", "expected a number of at least 1, or auto"},
        {"ranks", "auto", "expected a number of at least 1"},
        {"stages", "@", "a pipeline rank"},
        {"recomputes", "none", "has no field \"recomputes\""}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(sf_plan_spec_set(&spec, wrong[i][0], wrong[i][1], diag), SF_EUSAGE);
        assert_non_null(strstr(sf_diag_text(diag, (int)i), wrong[i][2]));
    }
    assert_string_equal(spec.stages, "4");
    sf_diag_free(diag);
}

static void test_merge(void **state)
{
    (void)state;
    sf_arena arena = {0};
    const char *const mine[] = {"a=R@x"}, *const theirs[] = {"b=R@x", "c=R@x"};
    sf_plan_spec more = {.size = sizeof more,
                         .mesh = "x=2",
                         .micro_batches = 4,
                         .pins = mine,
                         .npins = 1},
                 into = {.recompute = "layer", .memory = 7, .pins = theirs, .npins = 2};
    assert_null(sf_spec_merge(&more, &arena, &into));
    assert_string_equal(into.mesh, "x=2");
    assert_string_equal(into.recompute, "layer");
    assert_int_equal(into.micro_batches, 4);
    assert_int_equal(into.memory, 7);
    assert_int_equal(into.npins, 3);
    assert_string_equal(into.pins[0], "a=R@x");
    assert_string_equal(into.pins[2], "c=R@x");
    static const struct {
        sf_plan_spec both;
        const char *field;
    } rows[] = {{{.mesh = "x=2"}, "mesh"},
                {{.recompute = "none"}, "recompute"},
                {{.micro_batches = 1}, "micro_batches"},
                {{.memory = 1}, "memory"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(sf_spec_merge(&rows[i].both, &arena, &into), rows[i].field);
    sf_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_values),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_set),
        cmocka_unit_test(test_merge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
