/* A program that was built against older headers, and one that was built against newer ones: its
 * structs are shorter or longer than those of the library. Memory after a short struct is not
 * accessible. Prints "ok". */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sheaf/sheaf.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("FAILED: line %d: %s\n", __LINE__, #condition);                                 \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

/* The first fields, as they were in an older version; not a copy of today's header. */
struct older_show {
    size_t size;
    const char *file;
    bool json;
};
struct older_output {
    size_t size;
    const char *path;
};
struct older_train {
    size_t size;
    int64_t steps;
    const char *data;
};
struct older_report {
    size_t size;
    int64_t first, step;
};
struct older_type {
    size_t size;
    const char *dtype;
    int bytes, rank;
};
struct newer_load {
    sf_load_options known;
    int64_t unknown;
};
struct newer_type {
    sf_tensor_type known;
    int64_t unknown;
};

/* A copy that ends where the memory of the process does. */
static void *at_the_end(const void *from, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0)
        return NULL;
    return memcpy(pages + page - size, from, size);
}
#define AT_THE_END(value) at_the_end(&(value), sizeof(value))

int main(int argc, char **argv)
{
    struct newer_load load = {.known.size = sizeof load};
    struct older_show show = {.size = sizeof show, .json = true};
    struct older_output output = {.size = sizeof output, .path = "/dev/null"};
    struct older_train train = {.size = sizeof train, .steps = 2, .data = "synthetic"};
    struct older_report report = {.size = sizeof report};
    struct older_type type = {.size = sizeof type};
    struct newer_type newer = {.known.size = sizeof newer, .unknown = 7};
    sf_graph *graph;
    CHECK(argc == 2);
    CHECK(sf_load(argv[1], &load.known, NULL, &graph) == SF_OK);
    load.unknown = 1;
    sf_graph *none;
    CHECK(sf_load(argv[1], &load.known, NULL, &none) == SF_EUSAGE && !none);

    sf_show_options *shows = AT_THE_END(show);
    sf_output *nowhere = AT_THE_END(output);
    sf_train_options *training = AT_THE_END(train);
    sf_train_report *made = AT_THE_END(report);
    sf_tensor_type *shown = AT_THE_END(type);
    CHECK(shows && nowhere && training && made && shown);
    CHECK(sf_show(graph, shows, nowhere, NULL) == SF_OK);
    CHECK(sf_train(graph, training, NULL, made) == SF_OK);
    CHECK(((struct older_report *)made)->step == 2 && made->size == sizeof report);
    CHECK(sf_graph_argument_type(graph, 0, shown));
    CHECK(((struct older_type *)shown)->bytes > 0 && shown->size == sizeof type);
    CHECK(sf_graph_argument_type(graph, 0, &newer.known));
    CHECK(newer.known.size == sizeof newer && newer.unknown == 0 && newer.known.count > 0);
    sf_graph_free(graph);
    puts("ok");
    return 0;
}
