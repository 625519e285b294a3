/* The cache keeps to its limit: the last used files stay, whoever removes which while others read
 * and write. A damaged file counts as missing: it is neither read nor loaded, whatever a crash, a
 * disk or another user has done to it. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
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

static void set_age(const char *path, time_t used)
{
    const struct timespec times[2] = {{.tv_sec = used}, {.tv_sec = used}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Reads a file; false where the cache has none. */
static bool reads(const char *name)
{
    void *bytes;
    size_t size;
    if (!sf_cache_read(path_of(name), &bytes, &size))
        return false;
    sf_free(bytes);
    return true;
}

static bool is_there(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

static void test_removes_what_was_not_used(void **state)
{
    (void)state;
    char data[368] = "a"; /* and the 32 bytes of a digest */
    assert_true(sf_cache_write(path_of("a.so"), data, sizeof data, false));
    set_age(path_of("a.so"), 1000);
    put_file("b.so", 400, 2000);
    put_file("c.other", 400, 3000);
    assert_int_equal(sf_cache_trim(1200), 0);
    assert_true(reads("a.so")); /* is used now */
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
        assert_int_equal(sf_cache_check(NULL), i < 2 ? SF_OK : SF_EUSAGE);
    }
    unsetenv("SHEAF_CACHE_MIB");
    assert_int_equal(sf_cache_check(NULL), SF_OK);
    assert_int_equal(sf_cache_limit(), INT64_C(512) << 20);
}

/* How many files and folders there are in the cache. */
static int count_entries(void)
{
    char command[SF_PATH_SIZE + 64];
    int count = -1;
    snprintf(command, sizeof command, "find %s -mindepth 1 | wc -l", inside);
    FILE *out = popen(command, "r");
    assert_int_equal(fscanf(out, "%d", &count), 1);
    pclose(out);
    return count;
}

static char *slurp(const char *path, size_t *size)
{
    struct stat s;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &s), 0);
    char *bytes = malloc((size_t)s.st_size + 1);
    *size = fread(bytes, 1, (size_t)s.st_size, file);
    fclose(file);
    return bytes;
}

static void put_bytes(const char *path, const char *bytes, size_t size)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
}

/* Every truncation of a file, every flipped bit, bytes after it, another's name; after each it can
 * be written once more. */
static void test_damaged_is_not_there(void **state)
{
    static const char content[] = "what was compiled";
    void *bytes;
    size_t size, whole;
    (void)state;
    assert_true(sf_cache_write(path_of("a.cubin"), content, sizeof content, false));
    assert_true(sf_cache_read(path_of("a.cubin"), &bytes, &size));
    assert_int_equal(size, sizeof content);
    assert_memory_equal(bytes, content, size);
    sf_free(bytes);
    char *good = slurp(path_of("a.cubin"), &whole), *bad = malloc(whole + 1);
    memcpy(bad, good, whole);
    for (size_t cut = 0; cut < whole; cut++) {
        put_bytes(path_of("a.cubin"), good, cut);
        assert_false(reads("a.cubin"));
        assert_false(is_there("a.cubin"));
    }
    for (size_t bit = 0; bit < 8 * whole; bit++) {
        bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
        put_bytes(path_of("a.cubin"), bad, whole);
        assert_false(reads("a.cubin"));
        bad[bit / 8] = good[bit / 8];
    }
    bad[whole] = 0;
    put_bytes(path_of("a.cubin"), bad, whole + 1);
    assert_false(reads("a.cubin"));
    put_bytes(path_of("b.cubin"), good, whole);
    assert_false(reads("b.cubin"));
    put_bytes(path_of("a.cubin"), good, whole);
    assert_true(reads("a.cubin"));
    /* One that is damaged does not keep the first to come from being the first. */
    put_bytes(path_of("a.cubin"), good, whole - 1);
    assert_false(sf_cache_write(path_of("a.cubin"), content, sizeof content, true));
    assert_false(reads("a.cubin"));
    assert_true(sf_cache_write(path_of("a.cubin"), content, sizeof content, true));
    assert_false(sf_cache_write(path_of("a.cubin"), "x", 1, true));
    assert_true(sf_cache_read(path_of("a.cubin"), &bytes, &size));
    assert_int_equal(size, sizeof content);
    sf_free(bytes);
    free(good);
    free(bad);
    sf_cache_trim(0);
    assert_int_equal(count_entries(), 0);
}

/* Links, pipes and folders in the place of a file are no files. */
static void test_reads_files_alone(void **state)
{
    (void)state;
    assert_true(sf_cache_write(path_of("a.so"), "a", 1, false));
    assert_int_equal(symlink("a.so", path_of("b.so")), 0);
    assert_false(reads("b.so"));
    assert_true(reads("a.so"));
    assert_int_equal(mkfifo(path_of("c.so"), 0600), 0);
    assert_false(reads("c.so"));
    assert_int_equal(mkdir(path_of("d.so"), 0700), 0);
    assert_false(reads("d.so"));
    chmod(path_of("a.so"), 0666);
    assert_false(reads("a.so"));
    rmdir(path_of("d.so"));
    sf_cache_trim(0);
    assert_int_equal(count_entries(), 0);
}

/* A disk that is full half way through: no file is there, and none is left. */
static void test_full_disk(void **state)
{
    static char data[100000];
    struct rlimit old, small;
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    for (rlim_t most = 0; most <= 100032; most += 16672) {
        small = old;
        small.rlim_cur = most;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        bool written = sf_cache_write(path_of("a.so"), data, sizeof data, false);
        setrlimit(RLIMIT_FSIZE, &old);
        assert_int_equal(written, most >= 100032);
        assert_int_equal(reads("a.so"), written);
        assert_int_equal(count_entries(), written);
    }
    sf_cache_trim(0);
    signal(SIGXFSZ, SIG_DFL);
}

/* The folder is ours alone, or there is none. */
static void test_folder_is_private(void **state)
{
    char path[SF_PATH_SIZE], aside[SF_PATH_SIZE + 8];
    struct stat s;
    (void)state;
    chmod(inside, 0755);
    assert_true(sf_cache_folder(path, sizeof path));
    assert_int_equal(stat(inside, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0700);
    chmod(inside, 0720);
    assert_false(sf_cache_folder(path, sizeof path));
    assert_false(sf_cache_path("a.so", path, sizeof path));
    assert_int_equal(sf_cache_trim(0), 0);
    chmod(inside, 0700);
    snprintf(aside, sizeof aside, "%s.aside", inside);
    assert_int_equal(rename(inside, aside), 0);
    assert_int_equal(symlink(aside, inside), 0);
    assert_false(sf_cache_folder(path, sizeof path));
    unlink(inside);
    assert_int_equal(rename(aside, inside), 0);
    assert_true(sf_cache_folder(path, sizeof path));
}

/* Folders of compilations that were broken off go, when they are old; nothing else is touched. */
static void test_clears_workrooms(void **state)
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

/* A folder where a file should be is out of the way of the next one. */
static void test_clears_folders_away(void **state)
{
    (void)state;
    void *bytes;
    size_t size;
    for (int full = 0; full < 2; full++) {
        mkdir(path_of("a.cubin"), 0700);
        if (full)
            put_file("a.cubin/more", 10, 1000);
        set_age(path_of("a.cubin"), 1000);
        assert_false(sf_cache_read(path_of("a.cubin"), &bytes, &size));
        assert_false(is_there("a.cubin"));
        assert_true(sf_cache_write(path_of("a.cubin"), "text", 4, false));
        assert_true(sf_cache_read(path_of("a.cubin"), &bytes, &size));
        assert_int_equal(size, 4);
        sf_free(bytes);
        sf_cache_trim(0);
        assert_int_equal(count_entries(), 0);
    }
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

/* In a process of its own: compiles a text, loads it, and runs it. */
static int run_one(void)
{
    static const char *const flags[] = {"-shared", "-fPIC", NULL};
    static const char text[] = "const char filler[20000] = {1};\nint number(void) { return 17; }\n";
    sf_compiling what = {.text = sf_str_of(text), .flags = flags, .kept = true};
    int (*number)(void);
    void *handle;
    sf_status status = sf_compile(&what, NULL, &handle);
    if (status == SF_EUNSUPPORTED)
        return 77;
    if (status != SF_OK)
        return 1;
    *(void **)&number = dlsym(handle, "number");
    return number && number() == 17 ? 0 : 2;
}

static int in_a_process(int (*run)(void))
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(run());
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* The one object of the cache. */
static void find_object(char *path, size_t size)
{
    char command[SF_PATH_SIZE + 64];
    snprintf(command, sizeof command, "find %s -name '*.so'", inside);
    FILE *out = popen(command, "r");
    assert_non_null(fgets(path, (int)size, out));
    pclose(out);
    path[strcspn(path, "\n")] = 0;
}

/* Objects that are truncated at any page, or have a hole, are compiled once more: loading them
 * crashes. */
static void test_damaged_objects(void **state)
{
    enum { PAGE = 4096 };
    char path[SF_PATH_SIZE];
    size_t whole;
    (void)state;
    int first = in_a_process(run_one);
    if (first == 77)
        skip();
    assert_int_equal(first, 0);
    find_object(path, sizeof path);
    char *good = slurp(path, &whole), *bad = malloc(whole);
    for (size_t at = 0; at < whole; at += PAGE) {
        put_bytes(path, good, at);
        assert_int_equal(in_a_process(run_one), 0);
        memcpy(bad, good, whole);
        memset(bad + at, 0, whole - at < PAGE ? whole - at : PAGE);
        put_bytes(path, bad, whole);
        assert_int_equal(in_a_process(run_one), 0);
    }
    assert_int_equal(count_entries(), 1);
    free(good);
    free(bad);
    sf_cache_trim(0);
}

/* A process that was killed while it compiled leaves a folder. It is removed, but never that of a
 * live process. */
static void test_killed_while_compiling(void **state)
{
    char compiler[SF_PATH_SIZE], begun[SF_PATH_SIZE], script[2 * SF_PATH_SIZE];
    const char *old = getenv("CC");
    (void)state;
    snprintf(compiler, sizeof compiler, "%s/slow-cc", folder);
    snprintf(begun, sizeof begun, "%s/begun", folder);
    snprintf(script, sizeof script,
             "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n: >%s\nexec sleep 60\n", begun);
    put_bytes(compiler, script, strlen(script));
    chmod(compiler, 0700);
    setenv("CC", compiler, 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setpgid(0, 0);
        _exit(run_one());
    }
    setpgid(child, child);
    for (int i = 0; i < 1000 && access(begun, F_OK) != 0; i++)
        usleep(10000);
    if (old)
        setenv("CC", old, 1);
    else
        unsetenv("CC");
    assert_int_equal(count_entries(), 2); /* the folder, and the text in it */
    char command[SF_PATH_SIZE + 64];
    snprintf(command, sizeof command, "touch -d '1 hour ago' %s/compiling-*", inside);
    assert_int_equal(system(command), 0);
    sf_cache_trim(0);
    assert_int_equal(count_entries(), 2);
    assert_int_equal(kill(-child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    sf_cache_trim(0);
    assert_int_equal(count_entries(), 0);
    /* Files that were not finished go likewise. */
    put_bytes(path_of(".new-abcdef"), "x", 1);
    sf_cache_trim(0);
    assert_true(is_there(".new-abcdef"));
    set_age(path_of(".new-abcdef"), 1000);
    sf_cache_trim(0);
    assert_int_equal(count_entries(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_removes_what_was_not_used),
        cmocka_unit_test(test_reads_its_limit),
        cmocka_unit_test(test_clears_workrooms),
        cmocka_unit_test(test_clears_folders_away),
        cmocka_unit_test(test_shares_with_others),
        cmocka_unit_test(test_damaged_is_not_there),
        cmocka_unit_test(test_reads_files_alone),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_folder_is_private),
        cmocka_unit_test(test_damaged_objects),
        cmocka_unit_test(test_killed_while_compiling),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
