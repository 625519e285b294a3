#include "base/native/compile.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/native/disk_cache.h"

enum { MOST_WORDS = 64, MOST_VERSION = 400, MOST_SAID = 300 };

extern char **environ;

/* The command line: words of $CC, then arguments. */
typedef struct command {
    char words[1024];
    const char *arguments[MOST_WORDS + 1];
    int count;
} command;

static void add_argument(command *c, const char *argument)
{
    if (c->count < MOST_WORDS)
        c->arguments[c->count++] = argument;
}

static command begin_command(void)
{
    const char *said = getenv("CC");
    command c = {.count = 0};
    snprintf(c.words, sizeof c.words, "%s", said && said[strspn(said, " ")] ? said : "cc");
    return c;
}

/* The words point into the command, so it stays where it is from then on. */
static void split_words(command *c)
{
    char *rest = NULL;
    for (char *word = strtok_r(c->words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        add_argument(c, word);
}

/* The beginning of a pipe's output, of which all is read. */
static void read_some(int fd, char *text, size_t size)
{
    char rest[512];
    size_t length = 0;
    for (;;) {
        bool room = length + 1 < size;
        ssize_t count =
            room ? read(fd, text + length, size - 1 - length) : read(fd, rest, sizeof rest);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        length += room ? (size_t)count : 0;
    }
    text[length] = '\0';
}

/* Runs it; the beginning of its output on `from`, standard output or error, goes to the text. Its
 * exit status, or -1 if it cannot be run. */
static int run_command(command *c, int from, char *said, size_t size)
{
    posix_spawn_file_actions_t files;
    pid_t child;
    int status = 0, ends[2];
    c->arguments[c->count] = NULL;
    *said = '\0';
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    int failed = posix_spawn_file_actions_init(&files);
    if (!failed) {
        posix_spawn_file_actions_adddup2(&files, ends[1], from); /* first: a closed one may be it */
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&files, 3 - from, "/dev/null", O_WRONLY, 0);
        failed = posix_spawnp(&child, c->arguments[0], &files, NULL,
                              (char *const *)(uintptr_t)c->arguments, environ);
        posix_spawn_file_actions_destroy(&files);
    }
    close(ends[1]);
    if (!failed)
        read_some(ends[0], said, size);
    close(ends[0]);
    if (failed)
        return -1;
    pid_t ended = waitpid(child, &status, 0);
    while (ended < 0 && errno == EINTR)
        ended = waitpid(child, &status, 0);
    return ended == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool write_all(const char *path, sf_str text)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    bool written = fwrite(text.at, 1, text.length, file) == text.length;
    return fclose(file) == 0 && written;
}

/* A folder for one compilation, and the files in it. */
typedef struct workroom {
    int fd;
    char folder[SF_PATH_SIZE];
    char source[SF_PATH_SIZE + 8], object[SF_PATH_SIZE + 8];
} workroom;

static sf_status open_workroom(workroom *w, const char *in, sf_diag *diag)
{
    w->fd = sf_workroom_open(in, w->folder, sizeof w->folder);
    if (w->fd < 0)
        return sf_fail(diag, SF_EIO, SF_NOWHERE,
                       "no folder can be made in %s that nobody else may write to", in);
    snprintf(w->source, sizeof w->source, "%s/k.c", w->folder);
    snprintf(w->object, sizeof w->object, "%s/k.so", w->folder);
    return SF_OK;
}

static void close_workroom(const workroom *w)
{
    unlink(w->source);
    unlink(w->object);
    rmdir(w->folder);
    close(w->fd);
}

/* The version of the compiler: another one makes other objects. */
static sf_status ask_version(sf_diag *diag, char *version, size_t size)
{
    command c = begin_command();
    split_words(&c);
    add_argument(&c, "--version");
    if (run_command(&c, STDOUT_FILENO, version, size) != 0)
        return sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE, "the compiler %s cannot be run",
                       c.arguments[0]);
    return SF_OK;
}

/* The lines of /proc/cpuinfo with the processor's instruction sets. */
static uint64_t hash_processor(uint64_t hash)
{
    static const char *const keys[] = {"model name",      "flags",    "Features",
                                       "CPU implementer", "CPU part", "CPU variant",
                                       "CPU revision"};
    struct utsname name;
    char line[8192];
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (uname(&name) == 0)
        hash = sf_hash_bytes(hash, name.machine, strlen(name.machine));
    while (file && fgets(line, sizeof line, file) && line[0] != '\n')
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (strncmp(line, keys[i], strlen(keys[i])) == 0)
                hash = sf_hash_bytes(hash, line, strlen(line));
    if (file)
        fclose(file);
    return hash;
}

static uint64_t hash_all(uint64_t hash, const sf_compiling *what, const char *version)
{
    const char *compiler = getenv("CC");
    hash = sf_hash_bytes(hash, what->text.at, what->text.length);
    for (const char *const *flag = what->flags; *flag; flag++)
        hash = sf_hash_bytes(hash, *flag, strlen(*flag));
    hash = sf_hash_bytes(hash, compiler ? compiler : "", compiler ? strlen(compiler) : 0);
    hash = sf_hash_bytes(hash, version, strlen(version));
    return hash_processor(hash);
}

static sf_status run_compiler(const workroom *w, const sf_compiling *what, sf_diag *diag)
{
    command c = begin_command();
    char said[MOST_SAID];
    split_words(&c);
    for (const char *const *flag = what->flags; *flag; flag++)
        add_argument(&c, *flag);
    add_argument(&c, "-o");
    add_argument(&c, w->object);
    add_argument(&c, w->source);
    add_argument(&c, "-lm");
    if (!write_all(w->source, what->text))
        return sf_fail(diag, SF_EIO, SF_NOWHERE, "%s cannot be written", w->source);
    if (run_command(&c, STDERR_FILENO, said, sizeof said) == 0)
        return SF_OK;
    said[strcspn(said, "\n")] = '\0';
    return sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE, "%s does not compile kernels%s%s",
                   c.arguments[0], *said ? ": " : "", said);
}

static sf_status load_object(const char *path, sf_diag *diag, void **handle)
{
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return *handle ? SF_OK
                   : sf_fail(diag, SF_EIO, SF_NOWHERE, "%s cannot be loaded: %s", path, dlerror());
}

/* Checks the bytes first: loading a truncated object crashes the process. */
static bool load_cached(const char *path, void **handle)
{
    void *bytes;
    size_t size;
    if (!sf_cache_read(path, &bytes, &size))
        return false;
    sf_free(bytes);
    return load_object(path, NULL, handle) == SF_OK;
}

/* Without memory for it, it is not kept. */
static void keep_object(const char *object, const char *path)
{
    struct stat s;
    FILE *file = fopen(object, "rbe");
    void *bytes =
        file && fstat(fileno(file), &s) == 0 ? sf_alloc_kept((size_t)s.st_size + 1) : NULL;
    if (bytes && fread(bytes, 1, (size_t)s.st_size, file) == (size_t)s.st_size)
        sf_cache_write(path, bytes, (size_t)s.st_size, false);
    sf_free(bytes);
    if (file)
        fclose(file);
}

/* Made in a folder of its own in this one, loaded from there, and kept where a path is given. */
static sf_status compile_in(const char *folder, const char *path, const sf_compiling *what,
                            sf_diag *diag, void **handle)
{
    workroom w;
    SF_TRY(open_workroom(&w, folder, diag));
    sf_status status = run_compiler(&w, what, diag);
    if (status == SF_OK)
        status = load_object(w.object, diag, handle);
    if (status == SF_OK && path)
        keep_object(w.object, path);
    close_workroom(&w);
    return status;
}

/* Beside the cache, which is on a disk from which programs may be loaded; where that is full or cannot be written, where
 * temporary files are. */
static sf_status compile_anywhere(const char *path, const sf_compiling *what, sf_diag *diag,
                                  void **handle)
{
    const char *temporary = getenv("TMPDIR");
    char folder[SF_PATH_SIZE];
    if (path && sf_cache_folder(folder, sizeof folder) &&
        compile_in(folder, path, what, NULL, handle) == SF_OK)
        return SF_OK;
    return compile_in(temporary && *temporary ? temporary : "/tmp", path, what, diag, handle);
}

static sf_status compile_kept(const sf_compiling *what, sf_diag *diag, void **handle)
{
    char version[MOST_VERSION], name[64], path[SF_PATH_SIZE + 64];
    SF_TRY(ask_version(diag, version, sizeof version));
    snprintf(name, sizeof name, "%016" PRIx64 "%016" PRIx64 ".so", hash_all(1, what, version),
             hash_all(2, what, version));
    if (!sf_cache_path(name, path, sizeof path))
        return compile_anywhere(NULL, what, diag, handle);
    return load_cached(path, handle) ? SF_OK : compile_anywhere(path, what, diag, handle);
}

sf_status sf_compile(const sf_compiling *what, sf_diag *diag, void **handle)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    *handle = NULL;
    pthread_mutex_lock(&lock);
    sf_status status =
        what->kept ? compile_kept(what, diag, handle) : compile_anywhere(NULL, what, diag, handle);
    pthread_mutex_unlock(&lock);
    return status;
}
