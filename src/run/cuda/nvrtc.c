#include "run/cuda/nvrtc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/native/disk_cache.h"

enum { KERNELS_EACH = 8 }; /* compiled together: all processors have some */

typedef struct compiling {
    const sf_cuda_compiler *compiler;
    const char *architecture;
    const sf_buf *texts; /* by part */
    sf_cubin *cubins;
} compiling;

static bool cubin_path(uint64_t hash, char *path, size_t size)
{
    char name[64];
    snprintf(name, sizeof name, "%016" PRIx64 ".cubin", hash);
    return sf_cache_path(name, path, size);
}

static void compile_text(const compiling *job, const char *text, sf_cubin *out)
{
    const sf_cuda_compiler *c = job->compiler;
    const char *options[] = {job->architecture, "--fmad=false", "-w"};
    void *program = NULL;
    size_t size = 0;
    int status = c->create(&program, text, "sheaf.cu", 0, NULL, NULL);
    if (status == 0)
        status = c->compile(program, 3, options);
    if (status == 0 && c->binary_size(program, &out->size) == 0 &&
        (out->bytes = sf_alloc_kept(out->size)) != NULL)
        c->binary(program, out->bytes);
    else if (c->log_size(program, &size) == 0 && (out->log = sf_alloc_kept(size + 1)) != NULL)
        c->log(program, out->log);
    c->destroy(&program);
}

static void compile_part(const compiling *job, const sf_buf *text, sf_cubin *out)
{
    int major = 0, minor = 0;
    char path[SF_PATH_SIZE + 32];
    job->compiler->version(&major, &minor);
    uint64_t hash =
        sf_hash_bytes((uint64_t)major * 100 + (uint64_t)minor, text->text, text->length);
    hash = sf_hash_bytes(hash, job->architecture, strlen(job->architecture));
    bool has_path = cubin_path(hash, path, sizeof path);
    void *kept;
    if (has_path && sf_cache_read(path, &kept, &out->size)) {
        out->bytes = kept;
        return;
    }
    compile_text(job, text->text, out);
    if (has_path && out->bytes)
        sf_cache_write(path, out->bytes, out->size, false);
}

static void compile_parts(void *context, int part, int64_t first, int64_t end)
{
    const compiling *job = context;
    (void)part;
    for (int64_t i = first; i < end; i++)
        compile_part(job, &job->texts[i], &job->cubins[i]);
}

size_t sf_nvrtc_parts(const sf_kernels *module)
{
    return (module->nkernels + KERNELS_EACH - 1) / KERNELS_EACH;
}

void sf_nvrtc_compile(const sf_cuda_compiler *compiler, const char *architecture,
                      const sf_kernels *module, sf_threads *threads, sf_cubin *out)
{
    size_t parts = sf_nvrtc_parts(module);
    sf_buf *texts = sf_alloc((parts + 1) * sizeof *texts); /* not by threads: memory may run out */
    for (size_t i = 0; i < parts; i++) {
        out[i].first = i * KERNELS_EACH;
        size_t left = module->nkernels - out[i].first;
        out[i].count = left < KERNELS_EACH ? left : KERNELS_EACH;
        sf_kernels_text(module, out[i].first, out[i].count, false, &texts[i]);
    }
    compiling job = {compiler, architecture, texts, out};
    sf_threads_run(threads, (int64_t)parts, 1, compile_parts, &job);
    for (size_t i = 0; i < parts; i++)
        sf_buf_free(&texts[i]);
    sf_free(texts);
}

void sf_nvrtc_free(sf_cubin *cubins, size_t parts)
{
    for (size_t i = 0; i < parts; i++) {
        sf_free(cubins[i].bytes);
        sf_free(cubins[i].log);
    }
    sf_free(cubins);
}
