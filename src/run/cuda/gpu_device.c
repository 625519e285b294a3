/* A GPU as a device, through its driver. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "run/cuda/algorithm_choice.h"
#include "run/cuda/cublaslt.h"
#include "run/cuda/cublaslt_epilogue.h"
#include "run/cuda/cuda_device.h"
#include "run/cuda/cuda_env.h"
#include "run/cuda/cudnn.h"
#include "run/cuda/nvrtc.h"
#include "run/cuda/streams.h"
#include "run/text/padded_product.h"

enum {
    COMPUTE_MAJOR = 75, /* attributes of a device */
    COMPUTE_MINOR = 76,
    MOST_SHARED = 8,         /* and of a function */
    PLAIN_SHARED = 48 << 10, /* that every function may have */
    CAPTURE_THREAD = 1,      /* work of other threads is not captured */
    NOT_READY = 600,         /* work is still going on */
};

/* The compiled kernel. */
typedef struct gpu_kernel {
    void *function;
    int shared;
} gpu_kernel;

typedef struct gpu {
    sf_device device;
    const sf_cuda_driver *driver;
    const sf_cuda_compiler *compiler;
    int ordinal;
    void *context;
    cu_stream stream; /* that computes */
    sf_streams streams;
    sf_lt lt;
    sf_cudnn cudnn;
    char architecture[32];
    bool has_groups; /* of warps */
    void **modules;
    size_t nmodules;
    gpu_kernel *kernels;
    void **marks; /* events */
    size_t nmarks;
} gpu;

static sf_status check(const gpu *g, int status, const char *what, sf_diag *diag)
{
    const char *why = NULL;
    if (status == 0)
        return SF_OK;
    g->driver->error_string(status, &why);
    return sf_fail(diag, status == 2 ? SF_ENOMEM : SF_EIO, SF_NOWHERE, "the GPU fails to %s: %s",
                   what, why ? why : "unknown error");
}

#define TRY(call, what) SF_TRY(check(g, g->driver->call, what, diag))

/* Memory */

static sf_status alloc_gpu(sf_device *d, int64_t bytes, sf_diag *diag, char **out)
{
    gpu *g = (gpu *)d;
    cu_pointer at = 0;
    *out = NULL;
    g->driver->context_set(g->context);
    TRY(alloc(&at, bytes > 0 ? (size_t)bytes : 1), "find memory");
    TRY(set(at, 0, bytes > 0 ? (size_t)bytes : 1, g->stream), "clear memory");
    *out = (char *)(uintptr_t)at;
    return SF_OK;
}

static void release_gpu(sf_device *d, char *memory)
{
    gpu *g = (gpu *)d;
    g->driver->context_set(g->context);
    g->driver->release((cu_pointer)(uintptr_t)memory);
}

static sf_status reserve_gpu(sf_device *d, int64_t bytes, sf_diag *diag)
{
    gpu *g = (gpu *)d;
    char *workspace;
    SF_TRY(alloc_gpu(d, bytes, diag, &workspace));
    g->lt.workspace = workspace;
    g->lt.workspace_bytes = (size_t)bytes;
    g->cudnn = (sf_cudnn){.driver = g->driver,
                          .ordinal = g->ordinal,
                          .stream = g->stream,
                          .workspace = workspace,
                          .workspace_bytes = bytes};
    d->workspace = bytes;
    d->memory -= bytes;
    return SF_OK;
}

static sf_status pin_gpu(sf_device *d, int64_t bytes, sf_diag *diag, char **out)
{
    gpu *g = (gpu *)d;
    void *memory = NULL;
    g->driver->context_set(g->context);
    TRY(pin(&memory, bytes > 0 ? (size_t)bytes : 1), "find memory of the host");
    *out = memory;
    return SF_OK;
}

static void unpin_gpu(sf_device *d, char *memory)
{
    gpu *g = (gpu *)d;
    g->driver->context_set(g->context);
    g->driver->unpin(memory);
}

static sf_status wait_gpu(sf_device *d, sf_diag *diag)
{
    gpu *g = (gpu *)d;
    g->driver->context_set(g->context);
    TRY(stream_wait(g->stream), "end its work");
    return SF_OK;
}

static sf_status put_gpu(sf_device *d, char *to, const void *from, int64_t bytes, sf_diag *diag)
{
    gpu *g = (gpu *)d;
    g->driver->context_set(g->context);
    if (bytes > 0)
        TRY(put((cu_pointer)(uintptr_t)to, from, (size_t)bytes, g->stream), "copy from the host");
    return wait_gpu(d, diag);
}

static sf_status get_gpu(sf_device *d, void *to, const char *from, int64_t bytes, sf_diag *diag)
{
    gpu *g = (gpu *)d;
    g->driver->context_set(g->context);
    if (bytes > 0)
        TRY(get(to, (cu_pointer)(uintptr_t)from, (size_t)bytes, g->stream), "copy to the host");
    return wait_gpu(d, diag);
}

static sf_status copy_gpu(sf_device *d, char *to, const char *from, int64_t bytes, sf_diag *diag)
{
    gpu *g = (gpu *)d;
    if (bytes > 0)
        TRY(copy((cu_pointer)(uintptr_t)to, (cu_pointer)(uintptr_t)from, (size_t)bytes, g->stream),
            "copy");
    return SF_OK;
}

/* Lanes */

static sf_status move_gpu(sf_device *d, sf_lane lane, char *to, const char *from, int64_t bytes,
                          sf_diag *diag)
{
    gpu *g = (gpu *)d;
    g->driver->context_set(g->context);
    if (bytes > 0)
        TRY(move((cu_pointer)(uintptr_t)to, (cu_pointer)(uintptr_t)from, (size_t)bytes,
                 g->streams.at[lane]),
            "copy");
    return SF_OK;
}

static sf_status launch_on_gpu(sf_device *d, sf_lane lane, void *function, int64_t blocks,
                               int threads, void **params, sf_diag *diag)
{
    gpu *g = (gpu *)d;
    const gpu_kernel *k = function;
    g->driver->context_set(g->context);
    TRY(launch(k->function, (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, (unsigned)k->shared,
               g->streams.at[lane], params, NULL),
        "start a kernel");
    return SF_OK;
}

static sf_status wait_on_gpu(sf_device *d, sf_lane lane, sf_diag *diag)
{
    gpu *g = (gpu *)d;
    g->driver->context_set(g->context);
    TRY(stream_wait(g->streams.at[lane]), "end its work");
    return SF_OK;
}

static sf_status follow_gpu(sf_device *d, sf_lane which, sf_lane whom, sf_diag *diag)
{
    gpu *g = (gpu *)d;
    return check(g, sf_streams_follow(&g->streams, which, whom), "follow a stream", diag);
}

static sf_status raise_gpu(sf_device *d, sf_lane lane, size_t event, size_t count, sf_diag *diag)
{
    gpu *g = (gpu *)d;
    return check(g, sf_streams_raise(&g->streams, lane, event, count), "raise an event", diag);
}

static sf_status await_gpu(sf_device *d, sf_lane lane, size_t event, sf_diag *diag)
{
    gpu *g = (gpu *)d;
    return check(g, sf_streams_await(&g->streams, lane, event), "wait for an event", diag);
}

static sf_status add_lane(sf_device *d, sf_diag *diag, sf_lane *out)
{
    gpu *g = (gpu *)d;
    if (g->streams.count == SF_LANE_COUNT + SF_MORE_LANES)
        return sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE, "there are %d streams already",
                       g->streams.count);
    g->driver->context_set(g->context);
    *out = (sf_lane)g->streams.count;
    return check(g, sf_streams_add(&g->streams), "make a stream", diag);
}

static sf_status stream_of(sf_device *d, sf_lane lane, sf_diag *diag, void **out)
{
    const gpu *g = (const gpu *)d;
    (void)diag;
    *out = g->streams.at[lane];
    return SF_OK;
}

static sf_status has_ended(sf_device *d, sf_lane lane, sf_diag *diag, bool *out)
{
    const gpu *g = (const gpu *)d;
    g->driver->context_set(g->context);
    int status = g->driver->stream_query(g->streams.at[lane]);
    *out = status != NOT_READY;
    return check(g, *out ? status : 0, "do its work", diag);
}

/* Loading */

static sf_status load_part(gpu *g, const sf_kernels *module, const sf_cubin *b, void **functions,
                           sf_diag *diag)
{
    if (!b->bytes)
        return sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE, "NVRTC does not compile a kernel: %.600s",
                       b->log ? b->log : "it is out of memory");
    TRY(module_load(&g->modules[g->nmodules], b->bytes), "load kernels");
    void *loaded = g->modules[g->nmodules++];
    for (size_t i = b->first; i < b->first + b->count; i++) {
        gpu_kernel *k = &g->kernels[i];
        k->shared = g->has_groups ? module->kernels[i]->shared : 0;
        functions[i] = k;
        TRY(module_function(&k->function, loaded, module->kernels[i]->name), "find a kernel");
        if (k->shared > PLAIN_SHARED)
            TRY(function_set(k->function, MOST_SHARED, k->shared), "give a kernel shared memory");
    }
    return SF_OK;
}

static sf_status compile_gpu(sf_device *d, const sf_kernels *module, sf_threads *threads,
                             sf_diag *diag, void **functions)
{
    gpu *g = (gpu *)d;
    size_t total = module->nkernels, parts = sf_nvrtc_parts(module);
    sf_cubin *cubins = sf_alloc((parts + 1) * sizeof *cubins);
    g->modules = sf_alloc((parts + 1) * sizeof *g->modules);
    g->kernels = sf_alloc((total + 1) * sizeof *g->kernels);
    g->driver->context_set(g->context);
    sf_nvrtc_compile(g->compiler, g->architecture, module, threads, cubins);
    sf_status status = SF_OK;
    for (size_t i = 0; i < parts && status == SF_OK; i++)
        status = load_part(g, module, &cubins[i], functions, diag);
    sf_nvrtc_free(cubins, parts);
    return status;
}

/* Work */

static sf_status launch_gpu(sf_device *d, void *function, int64_t blocks, int threads,
                            void **params, sf_diag *diag)
{
    gpu *g = (gpu *)d;
    const gpu_kernel *k = function;
    TRY(launch(k->function, (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, (unsigned)k->shared,
               g->stream, params, NULL),
        "start a kernel");
    return SF_OK;
}

/* How one library or the other does a product. */
typedef struct product_plan {
    sf_lt_plan *lt;
    sf_cudnn_plan *cudnn;
    sf_inst inst; /* a convolution as the product that it is */
    sf_convolve convolve;
    sf_padded padded; /* a product as the library has it */
} product_plan;

static void plan_convolution(gpu *g, const sf_inst *inst, product_plan *p)
{
    sf_convolve *c = &p->convolve;
    if (!sf_convolve_of(inst->conv, c))
        return;
    if (c->is_product) {
        p->inst = *inst;
        p->inst.kind = SF_INST_DOT;
        p->inst.dot = &c->dot;
        p->lt = sf_lt_plan_new(&g->lt, &p->inst, false);
        return;
    }
    if (!g->cudnn.library && !sf_cudnn_open(&g->cudnn))
        return;
    p->cudnn = sf_cudnn_plan_new(&g->cudnn, c, g->device.tf32 && !c->exact);
}

static void plan_dot(gpu *g, const sf_inst *inst, product_plan *p, bool *is_whole)
{
    p->inst = *inst;
    if (sf_pad_product(inst, &p->padded))
        p->inst.dot = &p->padded.dot;
    if (sf_cuda_bias(inst) >= 0 && p->inst.dot->n == inst->dot->n) /* as many as the row has */
        p->lt = sf_lt_plan_new(&g->lt, &p->inst, true);
    *is_whole = p->lt != NULL;
    if (!p->lt)
        p->lt = sf_lt_plan_new(&g->lt, &p->inst, false);
}

static sf_status plan_gpu(sf_device *d, const sf_inst *inst, sf_diag *diag, void **plan,
                          bool *is_whole)
{
    gpu *g = (gpu *)d;
    product_plan *p = sf_alloc(sizeof *p);
    (void)diag;
    *plan = NULL;
    g->driver->context_set(g->context);
    g->lt.tf32 = d->tf32;
    *is_whole = false;
    if (inst->kind == SF_INST_DOT)
        plan_dot(g, inst, p, is_whole);
    else
        plan_convolution(g, inst, p);
    if (!p->lt && !p->cudnn) {
        sf_free(p);
        return SF_OK;
    }
    *plan = p;
    return SF_OK;
}

static void drop_plan(sf_device *d, void *plan)
{
    product_plan *p = plan;
    (void)d;
    sf_lt_plan_free(p->lt);
    sf_cudnn_plan_free(p->cudnn);
    sf_free(p);
}

static sf_status multiply_gpu(sf_device *d, const void *plan, char *const *parts, sf_diag *diag)
{
    gpu *g = (gpu *)d;
    const product_plan *p = plan;
    if (p->cudnn)
        return sf_cudnn_run(p->cudnn, parts, diag);
    return sf_lt_run(p->lt, parts, g->stream, diag);
}

/* Marks */

static void drop_marks(gpu *g)
{
    for (size_t i = 0; i < g->nmarks; i++)
        if (g->marks[i])
            g->driver->event_destroy(g->marks[i]);
    sf_free(g->marks);
    g->marks = NULL;
    g->nmarks = 0;
}

static sf_status mark_gpu(sf_device *d, sf_lane lane, size_t index, size_t count, sf_diag *diag)
{
    gpu *g = (gpu *)d;
    if (g->nmarks < count) {
        drop_marks(g);
        g->marks = sf_alloc(count * sizeof *g->marks);
        g->nmarks = count;
    }
    if (!g->marks[index])
        TRY(event_create(&g->marks[index], 0), "make an event");
    TRY(event_record(g->marks[index], g->streams.at[lane]), "note the time");
    return SF_OK;
}

static sf_status when_gpu(sf_device *d, size_t count, double *seconds, sf_diag *diag)
{
    gpu *g = (gpu *)d;
    for (size_t i = 0; i < count; i++) {
        float milliseconds = 0;
        TRY(event_elapsed(&milliseconds, g->marks[0], g->marks[i]), "say the time");
        seconds[i] = (double)milliseconds / 1e3;
    }
    return SF_OK;
}

/* Graphs */

static sf_status begin_graph(sf_device *d, sf_diag *diag)
{
    gpu *g = (gpu *)d;
    g->driver->context_set(g->context);
    TRY(capture_begin(g->stream, CAPTURE_THREAD), "begin a graph");
    return SF_OK;
}

static sf_status end_graph(sf_device *d, sf_diag *diag, void **graph)
{
    gpu *g = (gpu *)d;
    void *drawn = NULL;
    *graph = NULL;
    TRY(capture_end(g->stream, &drawn), "end a graph");
    sf_status status =
        check(g, g->driver->graph_instantiate(graph, drawn, 0), "make a graph", diag);
    g->driver->graph_destroy(drawn);
    return status;
}

static sf_status replay_graph(sf_device *d, void *graph, sf_diag *diag)
{
    gpu *g = (gpu *)d;
    g->driver->context_set(g->context);
    TRY(graph_launch(graph, g->stream), "start a graph");
    return SF_OK;
}

static void forget_graph(sf_device *d, void *graph)
{
    gpu *g = (gpu *)d;
    g->driver->graph_exec_destroy(graph);
}

/* Opening and closing */

static void close_gpu(sf_device *d)
{
    gpu *g = (gpu *)d;
    if (g->context) {
        g->driver->context_set(g->context);
        drop_marks(g);
        for (size_t i = 0; i < g->nmodules; i++)
            g->driver->module_unload(g->modules[i]);
        sf_cudnn_close(&g->cudnn);
        if (g->lt.workspace)
            g->driver->release((cu_pointer)(uintptr_t)g->lt.workspace);
        if (g->lt.handle)
            g->lt.library->destroy(g->lt.handle);
        if (g->streams.driver)
            sf_streams_close(&g->streams);
        g->driver->context_release(g->ordinal);
    }
    sf_free(g->modules);
    sf_free(g->kernels);
    sf_free(g);
}

/* For the compiler. Features of only some GPUs of a kind, such as groups of warps, have a name of
 * their own. */
static void name_architecture(gpu *g, int version)
{
    const char *asked = sf_cuda_asked_architecture();
    char own[16];
    snprintf(own, sizeof own, "sm_%d%s", version, version == 90 ? "a" : "");
    snprintf(g->architecture, sizeof g->architecture, "-arch=%s", asked ? asked : own);
    g->has_groups = strcmp(asked ? asked : own, "sm_90a") == 0;
}

static sf_status find_gpu(gpu *g, int which, sf_diag *diag)
{
    int count = 0;
    SF_TRY(sf_cuda_load_driver(diag, &g->driver));
    if (g->driver->init(0) != 0 || g->driver->device_count(&count) != 0 || count < 1 ||
        g->driver->device_get(&g->ordinal, which % count) != 0) {
        sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE,
                "engine cuda needs a GPU: the driver finds none");
        return sf_hint(diag, "option engine cpu runs the step without one");
    }
    g->device.count = count;
    SF_TRY(sf_cuda_load_compiler(diag, &g->compiler));
    return sf_cuda_load_products(diag, &g->lt.library);
}

sf_status sf_gpu_find(sf_diag *diag)
{
    gpu g = {0};
    return find_gpu(&g, 0, diag);
}

static int version_of(const gpu *g)
{
    int major = 0, minor = 0;
    g->driver->device_attribute(&major, COMPUTE_MAJOR, g->ordinal);
    g->driver->device_attribute(&minor, COMPUTE_MINOR, g->ordinal);
    return 10 * major + minor;
}

int sf_gpu_version(void)
{
    gpu g = {0};
    int version = find_gpu(&g, 0, NULL) == SF_OK ? version_of(&g) : 0;
    return version;
}

static sf_status open_gpu(gpu *g, int which, sf_diag *diag)
{
    size_t left = 0, all = 0;
    SF_TRY(find_gpu(g, which, diag));
    TRY(context_retain(&g->context, g->ordinal), "make a context");
    TRY(context_set(g->context), "take its context");
    g->streams.driver = g->driver;
    SF_TRY(check(g, sf_streams_open(&g->streams), "make a stream", diag));
    g->stream = g->streams.at[SF_LANE_COMPUTE];
    name_architecture(g, version_of(g));
    g->lt.driver = g->driver;
    g->lt.machine = sf_choice_machine(g->driver, g->ordinal, g->lt.library->property);
    if (g->lt.library->create(&g->lt.handle) != 0)
        return sf_fail(diag, SF_EIO, SF_NOWHERE, "cuBLASLt cannot be started");
    TRY(device_id((char *)g->device.id, g->ordinal), "say its number");
    TRY(memory_info(&left, &all), "say its memory");
    g->device.memory = (int64_t)left;
    return SF_OK;
}

sf_status sf_device_open_gpu(int which, sf_diag *diag, sf_device **out)
{
    static const sf_device_table table = {
        .close = close_gpu,
        .alloc = alloc_gpu,
        .release = release_gpu,
        .reserve = reserve_gpu,
        .pin = pin_gpu,
        .unpin = unpin_gpu,
        .put = put_gpu,
        .get = get_gpu,
        .copy = copy_gpu,
        .wait = wait_gpu,
        .move = move_gpu,
        .launch_on = launch_on_gpu,
        .wait_on = wait_on_gpu,
        .follow = follow_gpu,
        .raise = raise_gpu,
        .await = await_gpu,
        .add = add_lane,
        .stream = stream_of,
        .ended = has_ended,
        .compile = compile_gpu,
        .launch = launch_gpu,
        .plan = plan_gpu,
        .drop = drop_plan,
        .multiply = multiply_gpu,
        .mark = mark_gpu,
        .when = when_gpu,
        .begin = begin_graph,
        .end = end_graph,
        .replay = replay_graph,
        .forget = forget_graph,
    };
    gpu *g = sf_alloc(sizeof *g);
    g->device.table = &table;
    sf_status status = open_gpu(g, which, diag);
    if (status != SF_OK) {
        close_gpu(&g->device);
        return status;
    }
    *out = &g->device;
    return SF_OK;
}
