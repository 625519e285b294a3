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
#include "base/native/disk_cache.h"

enum { MOST_WORDS = 64, MOST_VERSION = 400, MOST_SAID = 300 };

extern char **environ;

/* What is run: words of $CC, then what is added. */
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

/* Runs it; what it says goes to these files. Its exit status, or -1 where it cannot be run. */
static int run_command(command *c, const char *out, const char *err)
{
    posix_spawn_file_actions_t files;
    pid_t child;
    int status = 0;
    c->arguments[c->count] = NULL;
    if (posix_spawn_file_actions_init(&files) != 0)
        return -1;
    int mode = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, out, mode, 0600);
    posix_spawn_file_actions_addopen(&files, 2, err, mode, 0600);
    int failed = posix_spawnp(&child, c->arguments[0], &files, NULL,
                              (char *const *)(uintptr_t)c->arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed)
        return -1;
    pid_t ended = waitpid(child, &status, 0);
    while (ended < 0 && errno == EINTR)
        ended = waitpid(child, &status, 0);
    return ended == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The beginning of a file. */
static size_t read_some(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, size - 1, file) : 0;
    text[length] = '\0';
    if (file)
        fclose(file);
    return length;
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
typedef struct workshop {
    char folder[SF_PATH_SIZE];
    char source[SF_PATH_SIZE + 8], object[SF_PATH_SIZE + 8], said[SF_PATH_SIZE + 8];
} workshop;

static sf_status open_workshop(workshop *w, const char *in, sf_diag *diag)
{
    char whole[SF_PATH_SIZE];
    if (!realpath(in, whole) ||
        snprintf(w->folder, sizeof w->folder, "%s/compiling-XXXXXX", whole) >=
            (int)sizeof w->folder ||
        !mkdtemp(w->folder))
        return sf_fail(diag, SF_EIO, SF_NOWHERE, "no folder can be made in %s", in);
    if (!sf_folder_is_private(w->folder)) {
        rmdir(w->folder);
        return sf_fail(diag, SF_EIO, SF_NOWHERE, "others may write to %s, or to what it is in", in);
    }
    snprintf(w->source, sizeof w->source, "%s/k.c", w->folder);
    snprintf(w->object, sizeof w->object, "%s/k.so", w->folder);
    snprintf(w->said, sizeof w->said, "%s/said", w->folder);
    return SF_OK;
}

static void close_workshop(const workshop *w)
{
    unlink(w->source);
    unlink(w->object);
    unlink(w->said);
    rmdir(w->folder);
}

/* What the compiler says of itself: of another one, objects are others. */
static sf_status ask_version(const workshop *w, sf_diag *diag, char *version, size_t size)
{
    command c = begin_command();
    split_words(&c);
    add_argument(&c, "--version");
    if (run_command(&c, w->said, "/dev/null") != 0)
        return sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE, "the compiler %s cannot be run",
                       c.arguments[0]);
    read_some(w->said, version, size);
    return SF_OK;
}

/* The lines of /proc/cpuinfo that say what instructions a processor has. */
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

static sf_status run_compiler(const workshop *w, const sf_compiling *what, sf_diag *diag)
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
    if (run_command(&c, "/dev/null", w->said) == 0)
        return SF_OK;
    read_some(w->said, said, sizeof said);
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

/* From the cache, or made and put there. What is there and cannot be loaded, or is removed meanwhile, is made again; what is made is
 * loaded before others can remove it. */
static sf_status compile_kept(const workshop *w, const char *cache, const sf_compiling *what,
                              sf_diag *diag, void **handle)
{
    char version[MOST_VERSION], path[SF_PATH_SIZE + 64];
    SF_TRY(ask_version(w, diag, version, sizeof version));
    snprintf(path, sizeof path, "%s/%016" PRIx64 "%016" PRIx64 ".so", cache,
             hash_all(1, what, version), hash_all(2, what, version));
    if (sf_cache_has(path) && load_object(path, NULL, handle) == SF_OK)
        return SF_OK;
    SF_TRY(run_compiler(w, what, diag));
    SF_TRY(load_object(w->object, diag, handle));
    if (chmod(w->object, 0700) == 0 && rename(w->object, path) == 0)
        sf_cache_trim(sf_cache_limit());
    return SF_OK;
}

sf_status sf_compile(const sf_compiling *what, sf_diag *diag, void **handle)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const char *temporary = getenv("TMPDIR");
    char folder[SF_PATH_SIZE];
    workshop w;
    *handle = NULL;
    bool kept = what->kept && sf_cache_folder(folder, sizeof folder);
    if (!kept)
        snprintf(folder, sizeof folder, "%s", temporary && *temporary ? temporary : "/tmp");
    SF_TRY(open_workshop(&w, folder, diag));
    pthread_mutex_lock(&lock);
    sf_status status = SF_OK;
    if (kept)
        status = compile_kept(&w, folder, what, diag, handle);
    else
        status = run_compiler(&w, what, diag);
    if (!kept && status == SF_OK)
        status = load_object(w.object, diag, handle);
    pthread_mutex_unlock(&lock);
    close_workshop(&w);
    return status;
}
