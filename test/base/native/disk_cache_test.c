/* The cache keeps to its limit: what was used last stays, whoever removes what while others read and write. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/native/compile.h"
#include "base/native/disk_cache.h"

static char folder[] = "/tmp/sheaf-limit-XXXXXX";
static char inside[SF_PATH_SIZE];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1) != 0)
        return -1;
    return sf_cache_folder(inside, sizeof inside) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static const char *path_of(const char *name)
{
    static char path[2 * SF_PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", inside, name);
    return path;
}

/* A file of so many bytes that was last used at that time. */
static void put_file(const char *name, size_t bytes, time_t used)
{
    char data[1000] = {0};
    const struct timespec times[2] = {{.tv_sec = used}, {.tv_sec = used}};
    int file = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0 && bytes <= sizeof data);
    assert_int_equal(write(file, data, bytes), bytes);
    close(file);
    assert_int_equal(utimensat(AT_FDCWD, path_of(name), times, 0), 0);
}

static bool is_there(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

static void test_removes_what_was_not_used(void **state)
{
    (void)state;
    put_file("a.so", 400, 1000);
    put_file("b.so", 400, 2000);
    put_file("c.other", 400, 3000);
    assert_int_equal(sf_cache_trim(1200), 0);
    assert_true(sf_cache_has(path_of("a.so"))); /* is used now */
    assert_int_equal(sf_cache_trim(1199), 1);
    assert_false(is_there("b.so"));
    assert_int_equal(sf_cache_trim(400), 1);
    assert_true(is_there("a.so") && !is_there("c.other"));
    sf_cache_kind kinds[SF_CACHE_KINDS];
    sf_cache_count(kinds);
    int64_t files = 0, bytes = 0;
    for (int k = 0; k < SF_CACHE_KINDS; k++) {
        files += kinds[k].files;
        bytes += kinds[k].bytes;
    }
    assert_int_equal(kinds[0].files, 1);
    assert_int_equal(files, 1);
    assert_int_equal(bytes, 400);
    assert_int_equal(sf_cache_trim(0), 1);
    assert_false(is_there("a.so"));
}

static void test_reads_its_limit(void **state)
{
    (void)state;
    static const struct {
        const char *said;
        int64_t mib;
    } rows[] = {{"3", 3}, {"0", 0}, {"-1", 512}, {"much", 512}, {"99999999999999999", 512}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("SHEAF_CACHE_MIB", rows[i].said, 1);
        assert_int_equal(sf_cache_limit(), rows[i].mib << 20);
    }
    unsetenv("SHEAF_CACHE_MIB");
    assert_int_equal(sf_cache_limit(), INT64_C(512) << 20);
}

/* Folders of compilations that were broken off go, when they are old; nothing else is touched. */
static void test_clears_workshops(void **state)
{
    (void)state;
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    mkdir(path_of("compiling-oldone"), 0700);
    put_file("compiling-oldone/k.c", 10, 1000);
    utimensat(AT_FDCWD, path_of("compiling-oldone"), old, 0);
    mkdir(path_of("compiling-newone"), 0700);
    mkdir(path_of("another"), 0700);
    utimensat(AT_FDCWD, path_of("another"), old, 0);
    sf_cache_trim(0);
    assert_false(is_there("compiling-oldone"));
    assert_true(is_there("compiling-newone") && is_there("another"));
    rmdir(path_of("compiling-newone"));
    rmdir(path_of("another"));
}

/* Compiles texts, the same as all others do, with no room for any. */
static int compile_some(void)
{
    static const char *const flags[] = {"-shared", "-fPIC", NULL};
    sf_diag *diag = sf_diag_new();
    for (int i = 0; i < 6; i++) {
        char text[64];
        void *handle;
        snprintf(text, sizeof text, "int number(void) { return %d; }\n", i % 2);
        sf_compiling what = {.text = sf_str_of(text), .flags = flags, .kept = true};
        sf_status status = sf_compile(&what, diag, &handle);
        if (status == SF_EUNSUPPORTED)
            return 0; /* no compiler */
        if (status != SF_OK || !handle)
            return 1;
    }
    sf_diag_free(diag);
    return 0;
}

static void test_shares_with_others(void **state)
{
    enum { PROCESSES = 3 };
    (void)state;
    pid_t children[PROCESSES];
    setenv("SHEAF_CACHE_MIB", "0", 1);
    for (int p = 0; p < PROCESSES; p++) {
        children[p] = fork();
        assert_true(children[p] >= 0);
        if (children[p] == 0)
            _exit(compile_some());
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        assert_int_equal(waitpid(children[p], &status, 0), children[p]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    unsetenv("SHEAF_CACHE_MIB");
    sf_cache_kind kinds[SF_CACHE_KINDS];
    sf_cache_count(kinds);
    for (int k = 0; k < SF_CACHE_KINDS; k++)
        assert_int_equal(kinds[k].files, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_removes_what_was_not_used),
        cmocka_unit_test(test_reads_its_limit),
        cmocka_unit_test(test_clears_workshops),
        cmocka_unit_test(test_shares_with_others),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
