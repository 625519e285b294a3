/* sheaf version: describes this build. */
#include <stdio.h>

#include "cli/cli.h"
#include "run/gemm/gemm.h"

static const struct feature {
    const char *name, *what;
    int in;
} features[] = {
    {"zlib", "gzip files", SF_FEATURE_ZLIB},
    {"lzma", "xz files", SF_FEATURE_LZMA},
    {"lua", "schedules in Lua", SF_FEATURE_LUA},
    {"blas", "matrix products by a CBLAS", SF_FEATURE_BLAS},
    {"mpi", "runs over MPI", SF_FEATURE_MPI},
    {"cuda", "runs on NVIDIA GPUs", SF_FEATURE_CUDA},
};
enum { FEATURES = sizeof features / sizeof *features };

static void print_version_json(void)
{
    printf("{\n  \"version\": \"%s\",\n  \"compiler\": \"%s\",\n  \"target\": \"%s\",\n"
           "  \"features\": {",
           sf_version(), SF_BUILD_COMPILER, SF_BUILD_TARGET);
    for (int i = 0; i < FEATURES; i++)
        printf("%s\n    \"%s\": %s", i ? "," : "", features[i].name,
               features[i].in ? "true" : "false");
    printf("\n  },\n  \"products\": \"%s\"\n}\n", sf_gemm_library());
}

int sf_cli_version(int argc, char **argv)
{
    bool json = false;
    const sf_cli_option options[] = {
        {SF_OPT_JSON, &json, "print JSON"},
    };
    const sf_cli_command command = {
        .name = "version",
        .synopsis = "[--json]",
        .about = "Prints the version, the compiler and the target of this build, and which "
                 "features are in it.",
        .options = options,
        .noptions = sizeof options / sizeof *options,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, NULL, &exit_code))
        return exit_code;
    if (json) {
        print_version_json();
        return SF_EXIT_GOOD;
    }
    printf("sheaf %s\ncompiler: %s\ntarget: %s\n", sf_version(), SF_BUILD_COMPILER,
           SF_BUILD_TARGET);
    for (int i = 0; i < FEATURES; i++)
        printf("%s: %s (%s)\n", features[i].name, features[i].in ? "in" : "out", features[i].what);
    printf("matrix products: %s\n", sf_gemm_library());
    return SF_EXIT_GOOD;
}
