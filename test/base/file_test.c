#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef SF_HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef SF_HAVE_LZMA
#include <lzma.h>
#endif

#include "base/file.h"
#include "base/mem.h"

static char directory[] = "/tmp/sheaf-file-test-XXXXXX";

static const char *in_directory(const char *name)
{
    static char path[4][300];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", directory, name);
    return path[turn];
}

static int count_files(void)
{
    int count = 0;
    DIR *open_directory = opendir(directory);
    for (struct dirent *entry; (entry = readdir(open_directory));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(open_directory);
    return count;
}

static int count_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* By other means than those under test. */
static void put(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void check_content(const char *path, const char *expected)
{
    char text[100] = "";
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    assert_int_equal(got, strlen(expected));
    assert_string_equal(text, expected);
}

/* Text that compresses, but not to nothing. */
static char *make_text(size_t size)
{
    char *text = malloc(size + 1);
    uint32_t random = 12345;
    for (size_t i = 0; i < size; i++) {
        random = random * 1664525u + 1013904223u;
        text[i] = i % 3 ? (char)('a' + (random >> 28)) : ' ';
    }
    text[size] = 0;
    return text;
}

static void check_reads(const char *path, const char *text, size_t size)
{
    size_t before = sf_mem_live();
    int descriptors = count_descriptors();
    sf_arena arena = {0};
    sf_str out = {0};
    sf_diag *diag = sf_diag_new();
    sf_arena_alloc(&arena, 100);
    if (sf_file_read(path, &arena, 0, &out, diag) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    assert_int_equal(out.length, size);
    assert_memory_equal(out.at, text, size);
    assert_int_equal(out.at[size], 0);
    /* The limit is exact. */
    if (size > 1) {
        assert_int_equal(sf_file_read(path, &arena, size, &out, diag), SF_OK);
        assert_int_equal(sf_file_read(path, &arena, size - 1, &out, diag), SF_ENOMEM);
        assert_non_null(strstr(sf_diag_text(diag, 0), "larger than the limit of"));
        assert_non_null(strstr(sf_diag_text(diag, 0), path));
    }
    sf_diag_free(diag);
    sf_arena_free(&arena);
    assert_int_equal(sf_mem_live(), before);
    assert_int_equal(count_descriptors(), descriptors);
}

static const size_t sizes[] = {0, 1, 2, 5, 6, 7, 100, 65535, 65536, 65537, 300000};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void test_reads_plain(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++) {
        char *text = make_text(sizes[i]);
        put(in_directory("plain"), text, sizes[i]);
        check_reads(in_directory("plain"), text, sizes[i]);
        free(text);
    }
}

/* A file of /proc says that it has no bytes. */
static void test_reads_what_has_no_size(void **state)
{
    (void)state;
    if (access("/proc/self/status", R_OK) != 0)
        skip();
    sf_arena arena = {0};
    sf_str out;
    assert_int_equal(sf_file_read("/proc/self/status", &arena, 0, &out, NULL), SF_OK);
    assert_true(out.length > 100 && strncmp(out.at, "Name:", 5) == 0);
    sf_arena_free(&arena);
}

struct feed {
    int fd;
    const char *data;
    size_t size;
};

static void *feed_pipe(void *argument)
{
    const struct feed *feed = argument;
    for (size_t done = 0; done < feed->size;) {
        size_t part = feed->size - done < 777 ? feed->size - done : 777;
        ssize_t count = write(feed->fd, feed->data + done, part);
        if (count < 0)
            break;
        done += (size_t)count;
    }
    close(feed->fd);
    return NULL;
}

/* The result of sf_file_read("-") for these bytes when they come through a pipe in small parts. */
static sf_status read_pipe(const char *data, size_t size, sf_arena *arena, size_t limit,
                           sf_str *out)
{
    int ends[2], old = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    struct feed feed = {ends[1], data, size};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, feed_pipe, &feed), 0);
    sf_status status = sf_file_read("-", arena, limit, out, NULL);
    if (old >= 0) {
        dup2(old, STDIN_FILENO);
        close(old);
    } else {
        close(STDIN_FILENO);
    }
    pthread_join(thread, NULL);
    return status;
}

static void check_pipe(const char *data, size_t size, const char *text, size_t text_size)
{
    sf_arena arena = {0};
    sf_str out = {0};
    assert_int_equal(read_pipe(data, size, &arena, 0, &out), SF_OK);
    assert_int_equal(out.length, text_size);
    assert_memory_equal(out.at, text, text_size);
    assert_int_equal(out.at[text_size], 0);
    if (text_size > 1)
        assert_int_equal(read_pipe(data, size, &arena, text_size - 1, &out), SF_ENOMEM);
    sf_arena_free(&arena);
}

static void test_reads_pipe(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++) {
        char *text = make_text(sizes[i]);
        check_pipe(text, sizes[i], text, sizes[i]);
        free(text);
    }
}

static void check_fails(const char *path, sf_status status, const char *why)
{
    size_t before = sf_mem_live();
    int descriptors = count_descriptors();
    sf_arena arena = {0};
    sf_str out = {"untouched", 9};
    sf_diag *diag = sf_diag_new();
    assert_int_equal(sf_file_read(path, &arena, 0, &out, diag), status);
    assert_string_equal(out.at, "untouched");
    char expected[400];
    snprintf(expected, sizeof expected, "%s: error: %s", path, why);
    assert_memory_equal(sf_diag_text(diag, 0), expected, strlen(expected));
    sf_diag_free(diag);
    sf_arena_free(&arena);
    assert_int_equal(sf_mem_live(), before);
    assert_int_equal(count_descriptors(), descriptors);
}

static void test_read_errors(void **state)
{
    (void)state;
    check_fails(in_directory("missing"), SF_EIO, "cannot open: No such file or directory");
    check_fails(directory, SF_EIO, "is a directory");
    put(in_directory("secret"), "x", 1);
    chmod(in_directory("secret"), 0);
    if (geteuid() != 0)
        check_fails(in_directory("secret"), SF_EIO, "cannot open: Permission denied");
    unlink(in_directory("secret"));
}

#ifdef SF_HAVE_ZLIB
static size_t gzip(const char *text, size_t size, char *out, size_t room)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (unsigned char *)(uintptr_t)text;
    stream.avail_in = (unsigned)size;
    stream.next_out = (unsigned char *)out;
    stream.avail_out = (unsigned)room;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return stream.total_out;
}
#endif

#ifdef SF_HAVE_LZMA
static size_t xz(const char *text, size_t size, char *out, size_t room)
{
    size_t used = 0;
    assert_int_equal(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, NULL, (const uint8_t *)text, size,
                                             (uint8_t *)out, &used, room),
                     LZMA_OK);
    return used;
}
#endif

typedef size_t compressor(const char *text, size_t size, char *out, size_t room);

#if defined(SF_HAVE_ZLIB) || defined(SF_HAVE_LZMA)
static void check_round_trip(compressor *compress)
{
    for (int i = 0; i < SIZES; i++) {
        size_t size = sizes[i], room = 2 * size + 1000;
        char *text = make_text(2 * size), *data = malloc(room);
        size_t first = compress(text, size, data, room);
        put(in_directory("packed.txt"), data, first);
        check_reads(in_directory("packed.txt"), text, size);
        check_pipe(data, first, text, size);
        size_t second = compress(text + size, size, data + first, room - first);
        put(in_directory("packed.txt"), data, first + second);
        check_reads(in_directory("packed.txt"), text, 2 * size);
        free(text);
        free(data);
    }
}

/* What is packed twice is said to be. */
static void check_twice(compressor *compress)
{
    char *text = make_text(700), once[3000], twice[4000];
    size_t size = compress(text, 700, once, sizeof once);
    put(in_directory("twice"), twice, compress(once, size, twice, sizeof twice));
    check_fails(in_directory("twice"), SF_EINPUT,
                "is packed twice, with gzip or xz: unpack it once");
    free(text);
}

/* Cut off at every length, and with every byte changed: an error or the right text, no leak. */
static void check_damage(compressor *compress, const char *format, size_t magic)
{
    char data[3000], expected[100];
    char *text = make_text(700);
    size_t size = compress(text, 700, data, sizeof data);
    const char *path = in_directory("damaged");
    for (size_t length = magic; length < size; length++) {
        put(path, data, length);
        snprintf(expected, sizeof expected, "the %s data is cut off", format);
        check_fails(path, SF_EINPUT, expected);
    }
    int refused = 0;
    for (size_t at = magic; at < size; at++) {
        data[at] ^= 0x55;
        put(path, data, size);
        data[at] ^= 0x55;
        sf_arena arena = {0};
        sf_str out;
        if (sf_file_read(path, &arena, 10000, &out, NULL) != SF_OK)
            refused++;
        else
            assert_true(out.length == 700 && memcmp(out.at, text, 700) == 0);
        sf_arena_free(&arena);
    }
    assert_true(refused > (int)size - 20); /* a name or a time in a header may be anything */
    memcpy(data + size, "garbage, garbage", 16);
    put(path, data, size + 16);
    snprintf(expected, sizeof expected, "the %s data is corrupt", format);
    check_fails(path, SF_EINPUT, expected);
    free(text);
}

/* 64 MiB of zeros in a few kilobytes: refused long before it is all there. */
static void check_bomb(compressor *compress)
{
    size_t size = (size_t)64 << 20, room = size / 100;
    char *zeros = calloc(1, size), *data = malloc(room);
    put(in_directory("bomb"), data, compress(zeros, size, data, room));
    free(zeros);
    free(data);
    size_t live = sf_mem_live();
    sf_arena arena = {0};
    sf_str out;
    sf_diag *diag = sf_diag_new();
    assert_int_equal(sf_file_read(in_directory("bomb"), &arena, 1000000, &out, diag), SF_ENOMEM);
    assert_non_null(strstr(sf_diag_text(diag, 0), "larger than the limit of 1000000 bytes"));
    sf_diag_free(diag);
    assert_int_equal(sf_mem_live(), live);
    sf_arena_free(&arena);
}

/* Nobody gave a limit: 128 MiB of zeros in many members are refused by their ratio, and read once it is said how much
 * may come. */
static void check_ratio(compressor *compress)
{
    enum { MEMBERS = 128 };
    size_t size = (size_t)1 << 20, room = size;
    char *zeros = calloc(1, size), *data = malloc(room);
    size_t packed = compress(zeros, size, data, room);
    FILE *file = fopen(in_directory("bomb"), "w");
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(fwrite(data, 1, packed, file), packed);
    fclose(file);
    free(zeros);
    free(data);
    size_t live = sf_mem_live();
    sf_arena arena = {0};
    sf_str out;
    sf_diag *diag = sf_diag_new();
    sf_mem_restart_peak();
    assert_int_equal(sf_file_read(in_directory("bomb"), &arena, 0, &out, diag), SF_ENOMEM);
    assert_non_null(strstr(sf_diag_text(diag, 0), "unpacks to more than 900 times its size"));
    assert_true(sf_mem_live() - live < 4096); /* the message */
    assert_true(sf_mem_peak() - live < MEMBERS * size * 3 / 2);
    sf_file_set_limit(MEMBERS * (int64_t)size - 1);
    assert_int_equal(sf_file_read(in_directory("bomb"), &arena, 0, &out, diag), SF_ENOMEM);
    assert_non_null(strstr(sf_diag_text(diag, 1), "larger than the limit of 134217727 bytes"));
    sf_file_set_limit(MEMBERS * (int64_t)size);
    assert_int_equal(sf_file_read(in_directory("bomb"), &arena, 0, &out, diag), SF_OK);
    assert_int_equal(out.length, MEMBERS * size);
    sf_file_set_limit(0);
    sf_diag_free(diag);
    sf_arena_free(&arena);
}

static sf_status read_with(long successes)
{
    sf_guard guard;
    sf_arena arena = {0};
    sf_guard_enter(&guard);
    if (setjmp(guard.target) != 0) {
        sf_mem_fail_after(-1);
        return SF_ENOMEM;
    }
    sf_str out;
    sf_mem_fail_after(successes);
    sf_status status = sf_file_read(in_directory("memory"), &arena, 0, &out, NULL);
    sf_mem_fail_after(-1);
    sf_guard_leave(&guard);
    sf_arena_free(&arena);
    return status;
}

/* Every allocation may fail, those inside of the library that decompresses too. */
static void check_no_memory(compressor *compress)
{
    char *text = make_text(200000), *data = malloc(400000);
    put(in_directory("memory"), data, compress(text, 200000, data, 400000));
    free(text);
    free(data);
    size_t before = sf_mem_live();
    int descriptors = count_descriptors();
    sf_status status = SF_ENOMEM;
    long failures = 0;
    for (; status != SF_OK; failures++) {
        status = read_with(failures);
        assert_true(status == SF_OK || status == SF_ENOMEM);
        assert_int_equal(sf_mem_live(), before);
        assert_int_equal(count_descriptors(), descriptors);
    }
    assert_true(failures > 4);
}
#endif

#ifdef SF_HAVE_ZLIB
static void test_gzip(void **state)
{
    (void)state;
    check_round_trip(gzip);
    check_twice(gzip);
    check_damage(gzip, "gzip", 2);
    check_bomb(gzip);
    check_ratio(gzip);
    check_no_memory(gzip);
}
#else
static void test_gzip(void **state)
{
    (void)state;
    put(in_directory("packed"), "\x1f\x8b\x08\0\0\0\0\0", 8);
    check_fails(in_directory("packed"), SF_EUNSUPPORTED,
                "compressed with gzip, which this build cannot read\n"
                "  hint: decompress it first, or rebuild with zlib");
    skip(); /* not compiled in */
}
#endif

#ifdef SF_HAVE_LZMA
static void test_xz(void **state)
{
    (void)state;
    check_round_trip(xz);
    check_twice(xz);
    check_damage(xz, "xz", 6);
    check_bomb(xz);
    check_ratio(xz);
    check_no_memory(xz);
}
#else
static void test_xz(void **state)
{
    (void)state;
    put(in_directory("packed"),
        "\xfd"
        "7zXZ\0\0\0",
        8);
    check_fails(in_directory("packed"), SF_EUNSUPPORTED,
                "compressed with xz, which this build cannot read\n"
                "  hint: decompress it first, or rebuild with liblzma");
    skip(); /* not compiled in */
}
#endif

static void test_no_memory_plain(void **state)
{
    (void)state;
    put(in_directory("memory"), "some text", 9);
    size_t before = sf_mem_live();
    sf_arena arena = {0};
    sf_str out;
    sf_mem_fail_after(1); /* the first is the reader itself */
    sf_status status = sf_file_read(in_directory("memory"), &arena, 0, &out, NULL);
    sf_mem_fail_after(-1);
    assert_int_equal(status, SF_ENOMEM);
    assert_int_equal(sf_mem_live(), before);
}

static void test_writes(void **state)
{
    (void)state;
    const char *path = in_directory("written");
    int files = count_files(), descriptors = count_descriptors();
    mode_t mask = umask(027);
    assert_int_equal(sf_file_write(path, "one", 3, NULL), SF_OK);
    umask(mask);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    check_content(path, "one");
    chmod(path, 0604);
    assert_int_equal(sf_file_write(path, "another", 7, NULL), SF_OK);
    check_content(path, "another");
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0604);
    assert_int_equal(sf_file_write(path, NULL, 0, NULL), SF_OK);
    check_content(path, "");
    assert_int_equal(count_files(), files + 1);
    assert_int_equal(count_descriptors(), descriptors);
    unlink(path);
}

static void test_writes_relative_and_long_names(void **state)
{
    (void)state;
    char name[256];
    memset(name, 'n', 255);
    name[255] = 0;
    int here = open(".", O_RDONLY | O_DIRECTORY);
    assert_int_equal(chdir(directory), 0);
    assert_int_equal(sf_file_write(name, "x", 1, NULL), SF_OK);
    check_content(name, "x");
    unlink(name);
    assert_int_equal(fchdir(here), 0);
    close(here);
}

static void test_follows_links(void **state)
{
    (void)state;
    const char *target = in_directory("target"), *link = in_directory("link");
    assert_int_equal(symlink("target", link), 0);
    assert_int_equal(sf_file_write(link, "new", 3, NULL), SF_OK); /* points to nothing yet */
    check_content(target, "new");
    assert_int_equal(sf_file_write(link, "newer", 5, NULL), SF_OK);
    check_content(target, "newer");
    struct stat info;
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    unlink(target);
    unlink(link);
    assert_int_equal(symlink("link", link), 0);
    assert_int_equal(sf_file_write(link, "x", 1, NULL), SF_EIO); /* points to itself */
    unlink(link);
}

/* A disk that is full, played by a limit on the size of files. */
static void test_failure_leaves_the_old_file(void **state)
{
    (void)state;
    const char *path = in_directory("precious");
    put(path, "old", 3);
    int files = count_files(), descriptors = count_descriptors();
    struct rlimit old_limit, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    limit = old_limit;
    limit.rlim_cur = 1000;
    void (*old_handler)(int) = signal(SIGXFSZ, SIG_IGN);
    char *text = make_text(5000);
    sf_diag *diag = sf_diag_new();
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    sf_status status = sf_file_write(path, text, 5000, diag);
    setrlimit(RLIMIT_FSIZE, &old_limit);
    signal(SIGXFSZ, old_handler);
    free(text);
    assert_int_equal(status, SF_EIO);
    assert_int_equal(sf_diag_count(diag), 1);
    assert_non_null(strstr(sf_diag_text(diag, 0), path));
    assert_non_null(strstr(sf_diag_text(diag, 0), "cannot write: File too large"));
    check_content(path, "old");
    assert_int_equal(count_files(), files);
    assert_int_equal(count_descriptors(), descriptors);
    sf_diag_free(diag);
}

static void test_writer_aborts_and_sticks(void **state)
{
    (void)state;
    const char *path = in_directory("pieces");
    put(path, "old", 3);
    int files = count_files();
    sf_file_writer writer = {0};
    sf_file_writer_abort(&writer);
    assert_int_equal(sf_file_writer_open(&writer, path, NULL), SF_OK);
    assert_int_equal(sf_file_writer_write(&writer, "half", 4, NULL), SF_OK);
    assert_int_equal(count_files(), files + 1);
    check_content(path, "old");
    sf_file_writer_abort(&writer);
    sf_file_writer_abort(&writer);
    assert_int_equal(count_files(), files);
    check_content(path, "old");

    assert_int_equal(sf_file_writer_open(&writer, path, NULL), SF_OK);
    writer.status = SF_EIO; /* as if a write had failed */
    assert_int_equal(sf_file_writer_write(&writer, "more", 4, NULL), SF_EIO);
    assert_int_equal(sf_file_writer_commit(&writer, NULL), SF_EIO);
    assert_int_equal(count_files(), files);
    check_content(path, "old");

    assert_int_equal(sf_file_writer_open(&writer, path, NULL), SF_OK);
    sf_file_writer_write(&writer, "ne", 2, NULL);
    sf_file_writer_write(&writer, "w", 1, NULL);
    assert_int_equal(sf_file_writer_commit(&writer, NULL), SF_OK);
    assert_int_equal(count_files(), files);
    check_content(path, "new");
}

/* An existing file with the name of the temporary one is not touched. */
static void test_names_that_are_taken(void **state)
{
    (void)state;
    char taken[300];
    snprintf(taken, sizeof taken, "%s/.sheaf-%jd-0", directory, (intmax_t)getpid());
    put(taken, "mine", 4);
    assert_int_equal(sf_file_write(in_directory("other"), "x", 1, NULL), SF_OK);
    check_content(in_directory("other"), "x");
    check_content(taken, "mine");
    unlink(taken);
}

static void check_write_fails(const char *path, const char *why)
{
    int files = count_files(), descriptors = count_descriptors();
    sf_diag *diag = sf_diag_new();
    assert_int_equal(sf_file_write(path, "data", 4, diag), SF_EIO);
    assert_int_equal(sf_diag_count(diag), 1);
    assert_non_null(strstr(sf_diag_text(diag, 0), path));
    assert_non_null(strstr(sf_diag_text(diag, 0), why));
    sf_diag_free(diag);
    assert_int_equal(count_files(), files);
    assert_int_equal(count_descriptors(), descriptors);
}

static void test_write_errors(void **state)
{
    (void)state;
    check_write_fails(directory, "cannot write: Is a directory");
    check_write_fails(in_directory("no/such"), "cannot write: No such file or directory");
    if (access("/dev/full", W_OK) == 0)
        check_write_fails("/dev/full", "cannot write: No space left on device");
    char *path = malloc(6000);
    memset(path, 'p', 5999);
    path[5999] = 0;
    sf_diag *diag = sf_diag_new();
    assert_int_equal(sf_file_write(path, "x", 1, diag), SF_EIO);
    assert_non_null(strstr(sf_diag_text(diag, 0), "File name too long"));
    sf_diag_free(diag);
    free(path);
}

static void test_devices_and_pipes_are_written_directly(void **state)
{
    (void)state;
    struct stat before, after;
    assert_int_equal(stat("/dev/null", &before), 0);
    assert_int_equal(sf_file_write("/dev/null", "x", 1, NULL), SF_OK);
    assert_int_equal(stat("/dev/null", &after), 0);
    assert_true(before.st_ino == after.st_ino && S_ISCHR(after.st_mode));

    const char *path = in_directory("fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    assert_int_equal(sf_file_write(path, "through", 7, NULL), SF_OK);
    char text[20] = "";
    assert_int_equal(read(fd, text, sizeof text - 1), 7);
    assert_string_equal(text, "through");
    close(fd);
    assert_int_equal(stat(path, &after), 0);
    assert_true(S_ISFIFO(after.st_mode));
    unlink(path);
}

/* The check changes nothing: of a file, a missing one, a file by its descriptor, a pipe without a
 * reader. */
static void test_tries(void **state)
{
    (void)state;
    const char *path = in_directory("tried"), *fifo = in_directory("fifo");
    char descriptor[40];
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int files = count_files(), descriptors = count_descriptors();
    assert_int_equal(sf_file_try(path, NULL), SF_OK);
    assert_int_equal(sf_file_try(fifo, NULL), SF_OK);
    assert_int_equal(sf_file_try("-", NULL), SF_OK);
    assert_int_equal(count_files(), files);
    put(path, "old", 3);
    assert_int_equal(sf_file_try(path, NULL), SF_OK);
    assert_int_equal(count_files(), files + 1);
    int fd = open(path, O_WRONLY);
    snprintf(descriptor, sizeof descriptor, "/dev/fd/%d", fd);
    assert_int_equal(sf_file_try(descriptor, NULL), SF_OK);
    close(fd);
    check_content(path, "old");
    unlink(fifo);

    sf_diag *diag = sf_diag_new();
    assert_int_equal(sf_file_try(in_directory("no/such"), diag), SF_EIO);
    assert_non_null(strstr(sf_diag_text(diag, 0), "cannot write: No such file or directory"));
    assert_int_equal(sf_file_try(directory, diag), SF_EIO);
    assert_non_null(strstr(sf_diag_text(diag, 1), "cannot write: Is a directory"));
    sf_diag_free(diag);
    assert_int_equal(count_descriptors(), descriptors);
}

/* "-" and /dev/stdout append to standard output, also when it is a file. */
static void test_standard_output(void **state)
{
    (void)state;
    const char *path = in_directory("stdout");
    fflush(stdout);
    int old = dup(STDOUT_FILENO);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDOUT_FILENO);
    close(fd);
    sf_status a = sf_file_write("-", "one ", 4, NULL);
    sf_status b = access("/dev/stdout", W_OK) == 0 ? sf_file_write("/dev/stdout", "two ", 4, NULL)
                                                   : sf_file_write("-", "two ", 4, NULL);
    sf_status c = sf_file_write("-", "three", 5, NULL);
    dup2(old, STDOUT_FILENO);
    close(old);
    assert_int_equal(a, SF_OK);
    assert_int_equal(b, SF_OK);
    assert_int_equal(c, SF_OK);
    check_content(path, "one two three");
}

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    DIR *open_directory = opendir(directory);
    for (struct dirent *entry; (entry = readdir(open_directory));)
        if (entry->d_name[0] != '.')
            unlink(in_directory(entry->d_name));
    closedir(open_directory);
    return rmdir(directory); /* fails when a temporary file was left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_plain),
        cmocka_unit_test(test_reads_what_has_no_size),
        cmocka_unit_test(test_reads_pipe),
        cmocka_unit_test(test_read_errors),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_xz),
        cmocka_unit_test(test_no_memory_plain),
        cmocka_unit_test(test_writes),
        cmocka_unit_test(test_writes_relative_and_long_names),
        cmocka_unit_test(test_follows_links),
        cmocka_unit_test(test_failure_leaves_the_old_file),
        cmocka_unit_test(test_writer_aborts_and_sticks),
        cmocka_unit_test(test_names_that_are_taken),
        cmocka_unit_test(test_write_errors),
        cmocka_unit_test(test_devices_and_pipes_are_written_directly),
        cmocka_unit_test(test_tries),
        cmocka_unit_test(test_standard_output),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
