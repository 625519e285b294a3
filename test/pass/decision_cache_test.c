/* Entries of the cache read back as they were written, and as nothing where a byte of them is another, or is missing. What an
 * entry that is not ours says leads to no other program than none does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/native/disk_cache.h"
#include "pass/decision_cache.h"
#include "support/passed.h"
#include "support/plans.h"

static char folder[] = "/tmp/sheaf-cache-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) && setenv("XDG_CACHE_HOME", folder, 1) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static const sf_pass_record example = {
    .at = {{3, 123456, true}, {0, -1, false}, {75, INT64_MAX, true}}, .left = 0x123456789abcdef};
enum { COUNT = 3, KEY = 77 };

static void put_file(const char *path, const char *text, size_t length)
{
    assert_int_equal(sf_file_write(path, text, length, NULL), SF_OK);
}

static void test_entries(void **state)
{
    (void)state;
    char path[SF_PATH_SIZE + 64], text[512];
    sf_pass_record found;
    assert_false(sf_pass_cache_read(KEY, COUNT, &found));
    sf_pass_cache_write(KEY, COUNT, &example);
    assert_true(sf_pass_cache_read(KEY, COUNT, &found));
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(found.at[i].variant, example.at[i].variant);
        assert_int_equal(found.at[i].limit, example.at[i].limit);
        assert_int_equal(found.at[i].kept, example.at[i].kept);
    }
    assert_true(found.left == example.left);
    assert_false(sf_pass_cache_read(KEY, COUNT - 1, &found));
    assert_false(sf_pass_cache_read(KEY, COUNT + 1, &found));
    snprintf(path, sizeof path, "%s/sheaf/%016x.passes", folder, KEY);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    for (size_t i = 0; i < length; i++) {
        text[i] ^= 1;
        put_file(path, text, length);
        assert_false(sf_pass_cache_read(KEY, COUNT, &found));
        text[i] ^= 1;
        put_file(path, text, i);
        assert_false(sf_pass_cache_read(KEY, COUNT, &found));
    }
    put_file(path, text, length);
    assert_true(sf_pass_cache_read(KEY, COUNT, &found));
    assert_int_equal(chmod(path, 0666), 0);
    assert_false(sf_pass_cache_read(KEY, COUNT, &found)); /* anybody may have written it */
}

static const int64_t much = INT64_C(1) << 30;

/* The hash of the program behind the list; with a record for it in the cache, if one is given. */
static uint64_t hash_behind(const char *passes, const sf_pass_record *record)
{
    sf_cluster *cluster;
    sf_pass_list list;
    sf_graph *graph = test_step("gpt-micro");
    sf_plan *plan = test_plan(graph, "zero3", 2, NULL, NULL);
    assert_int_equal(sf_cluster_open("2xH100", NULL, &cluster), SF_OK);
    test_passed k = test_passed_open(graph, plan, cluster, 2);
    assert_int_equal(sf_pass_list_read(passes, &k.arena, k.diag, &list), SF_OK);
    sf_pass_run run = {&list, k.costs, much, &k.arena, record != NULL};
    if (record)
        sf_pass_cache_write(sf_pass_cache_key(k.program, &run, much), list.count, record);
    assert_int_equal(sf_passes_run(k.program, &run, k.diag, NULL, NULL), SF_OK);
    uint64_t hash = sf_pass_cache_hash(k.program);
    test_passed_close(&k);
    return hash;
}

/* An entry that leads where it says is taken, though a search comes to something else; no other is. */
static void test_strange_entries(void **state)
{
    (void)state;
    enum { VARIANTS = 14 };
    const char *all = "fsdp,unshard,prefetch";
    uint64_t right = hash_behind(all, NULL), part = hash_behind("fsdp,unshard", NULL);
    int taken = 0;
    assert_true(part != right);
    for (int v = -1; v < VARIANTS; v++) {
        sf_pass_record record = {.at = {{0, much, true}, {v, much, true}, {0, much, false}}};
        record.left = part;
        uint64_t found = hash_behind(all, &record);
        assert_true(found == part || found == right);
        taken += found == part;
    }
    print_message("%d of %d variants lead there\n", taken, VARIANTS + 1);
    assert_true(taken > 0 && taken < VARIANTS);
    sf_pass_record record = {.at = {{0, much, true}, {0, much, false}, {0, much, false}}};
    assert_true(hash_behind("fsdp,unshard,prefetch,no-cache", &record) == right);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_entries),
                                       cmocka_unit_test(test_strange_entries)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
