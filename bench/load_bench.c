/* How fast a step is read and imported, and in how much memory.
 *
 *     load_bench [--json] FILE...
 *
 * Each file is measured in a process of its own, so that the peak is its own. Times are processor
 * time, which other work on the machine disturbs least, and the best of several runs; decompression
 * is not counted. Bytes are those of the library's allocator at its peak, the text itself included.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "front/import.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct timing {
    double read, import;
    size_t ops, nodes;
};

static sf_status load_once(sf_str text, const char *path, struct timing *out, sf_diag *diag)
{
    static const sf_import_options options = {.unroll = SF_UNROLL_DEFAULT,
                                              .most_nodes = SF_MOST_NODES_DEFAULT};
    sf_pool *pool = sf_pool_new();
    sf_module *module = sf_module_new(pool);
    sf_graph *graph = NULL;
    double start = now();
    sf_status status = strstr(path, ".hlo") ? sf_hlo_read(text, path, module, diag)
                                            : sf_stablehlo_read(text, path, module, diag);
    double middle = now();
    if (status == SF_OK)
        status = sf_import(module, &options, diag, &graph);
    double end = now();
    if (status == SF_OK)
        *out = (struct timing){middle - start, end - middle, module->graph->nnodes, graph->nnodes};
    sf_graph_free(graph);
    sf_module_free(module);
    sf_pool_release(pool);
    return status;
}

static int measure(const char *path, int json)
{
    sf_arena arena = {0};
    sf_str text;
    sf_diag *diag = sf_diag_new();
    struct timing best = {.read = 1e9, .import = 1e9}, t;
    sf_status status = sf_file_read(path, &arena, 0, &text, diag);
    double start = now();
    for (int run = 0; status == SF_OK && (run < 3 || (now() - start < 1.0 && run < 50)); run++) {
        status = load_once(text, path, &t, diag);
        if (status == SF_OK && t.read + t.import < best.read + best.import)
            best = t;
    }
    if (status != SF_OK) {
        fprintf(stderr, "%s\n", sf_diag_text(diag, 0));
        return 1;
    }
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    double megabytes = (double)text.length / 1e6, seconds = best.read + best.import;
    double bytes = (double)sf_mem_peak() / (double)text.length;
    if (json)
        printf("{\"file\": \"%s\", \"mb\": %.3f, \"ops\": %zu, \"nodes\": %zu, \"read_ms\": %.2f, "
               "\"import_ms\": %.2f, \"mb_per_s\": %.1f, \"bytes_per_byte\": %.1f}\n",
               name, megabytes, best.ops, best.nodes, best.read * 1e3, best.import * 1e3,
               megabytes / seconds, bytes);
    else
        printf("%-34.34s %7.2f %8zu %8zu %8.2f %8.2f %7.1f %9.1f\n", name, megabytes, best.ops,
               best.nodes, best.read * 1e3, best.import * 1e3, megabytes / seconds, bytes);
    sf_diag_free(diag);
    sf_arena_free(&arena);
    return 0;
}

int main(int argc, char **argv)
{
    int json = argc > 1 && strcmp(argv[1], "--json") == 0, failed = 0;
    if (!json)
        printf("%-34s %7s %8s %8s %8s %8s %7s %9s\n", "step", "MB", "ops", "nodes", "read ms",
               "imp. ms", "MB/s", "bytes/B");
    for (int i = 1 + json; i < argc; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            int result = measure(argv[i], json);
            fflush(stdout);
            _exit(result);
        }
        int status = 1;
        waitpid(child, &status, 0);
        failed |= status != 0;
    }
    return failed;
}
