/* The host in the place of a GPU, a library that SHEAF_CUDA names (run/cuda/cuda_device.h): the text of kernels, compiled by the compiler of the system (CC, or cc) into a library
 * that is loaded. Threads of a block run one after the other; where a kernel has barriers, each has a stack of its own,
 * and the next one goes on when one comes to a barrier.
 *
 * SHEAF_EMULATE=edges, for tensors that are too large for that: of each kernel the first blocks, one in the middle and the last ones
 * run, libraries do nothing, and of copies the ends are made. What is computed is wrong, but with SHEAF_CUDA_CHECK=1 it is seen
 * whether these blocks stay within their memory. Only memory that is touched is taken. */
#undef _FORTIFY_SOURCE /* it takes jumps between stacks for faults */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/machine.h"
#include "base/mem.h"
#include "base/native/compile.h"
#include "emulator/emulate_streams.h"
#include "emulator/emulator.h"
#include "run/cuda/cuda_device.h"
#include "run/cuda/cuda_env.h"

enum { STACK_BYTES = 128 << 10, MOST_THREADS = 1024 };

typedef void entrance(void **params);

typedef struct host_kernel {
    entrance *run;
    const struct library *library;
    bool meets; /* has barriers */
} host_kernel;

/* Kernels that were compiled once stay loaded: their names say their text. */
typedef struct library {
    void *handle;
    void (*here)(long long **block, long long **blocks, int **thread, int **threads,
                 void (***barrier)(void));
    struct library *next;
} library;

static library *libraries;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The indices of a kernel's thread, in this thread. */
typedef struct place {
    long long *block, *blocks;
    int *thread, *threads;
    void (**barrier)(void);
} place;

typedef struct host {
    sf_device device;
    sf_host_lanes *lanes;
    host_kernel *kernels;
    double *marks;
    size_t nmarks;
} host;

/* Fibers */

typedef struct fiber {
    ucontext_t context; /* where it begins */
    jmp_buf at;
    bool begun, done;
} fiber;

typedef struct crowd {
    fiber *fibers;
    ucontext_t home_context;
    jmp_buf home;
    int now;
    place at;
    entrance *run;
    void **params;
} crowd;

static _Thread_local crowd *here;

/* Jumps take no system calls, but sanitizers follow no jumps between stacks. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SWAPS_CONTEXTS 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SWAPS_CONTEXTS 1
#endif

/* From the thread's stack to a fiber's. */
static void enter_fiber(crowd *c, fiber *f)
{
#ifdef SWAPS_CONTEXTS
    swapcontext(&c->home_context, &f->context);
#else
    if (_setjmp(c->home))
        return;
    if (f->begun)
        _longjmp(f->at, 1);
    f->begun = true;
    setcontext(&f->context);
#endif
}

static void leave_fiber(crowd *c, fiber *f)
{
#ifdef SWAPS_CONTEXTS
    swapcontext(&f->context, &c->home_context);
#else
    if (!_setjmp(f->at))
        _longjmp(c->home, 1);
#endif
}

static void meet(void)
{
    crowd *c = here;
    leave_fiber(c, &c->fibers[c->now]);
    *c->at.thread = c->now;
}

/* One block after the other. */
static void run_fiber(void)
{
    crowd *c = here;
    for (;;) {
        *c->at.thread = c->now;
        c->run(c->params);
        c->fibers[c->now].done = true;
        leave_fiber(c, &c->fibers[c->now]);
    }
}

static void make_fiber(fiber *f, char *stack)
{
    getcontext(&f->context);
    f->begun = false;
    f->context.uc_stack.ss_sp = stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, run_fiber, 0);
}

static void run_block(crowd *c, int threads)
{
    for (int i = 0; i < threads; i++)
        c->fibers[i].done = false;
    for (int left = threads; left > 0;) {
        left = 0;
        for (c->now = 0; c->now < threads; c->now++) {
            fiber *f = &c->fibers[c->now];
            if (f->done)
                continue;
            enter_fiber(c, f);
            left += !f->done;
        }
    }
}

static bool runs_edges(void)
{
    const char *value = getenv("SHEAF_EMULATE");
    return value && strcmp(value, "edges") == 0;
}

/* The block that runs after this one. */
static int64_t next_block(int64_t block, int64_t blocks, bool edges)
{
    int64_t middle = blocks / 2, last = blocks - 2;
    if (!edges || block + 1 < 2 || block + 1 >= last)
        return block + 1;
    return block < middle ? middle : last;
}

static void run_together(place at, entrance *run, int64_t blocks, int threads, void **params)
{
    crowd c = {.at = at, .run = run, .params = params};
    c.fibers = sf_alloc((size_t)threads * sizeof *c.fibers);
    char *stacks = sf_alloc((size_t)threads * STACK_BYTES);
    for (int i = 0; i < threads; i++)
        make_fiber(&c.fibers[i], stacks + (size_t)i * STACK_BYTES);
    here = &c;
    *at.barrier = meet;
    bool edges = runs_edges();
    for (*at.block = 0; *at.block < blocks; *at.block = next_block(*at.block, blocks, edges))
        run_block(&c, threads);
    here = NULL;
    sf_free(stacks);
    sf_free(c.fibers);
}

static void run_alone(place at, entrance *run, int64_t blocks, int threads, void **params)
{
    bool edges = runs_edges();
    for (*at.block = 0; *at.block < blocks; *at.block = next_block(*at.block, blocks, edges))
        for (*at.thread = 0; *at.thread < threads; ++*at.thread)
            run(params);
}

typedef struct launch {
    const host_kernel *kernel;
    int64_t blocks;
    int threads;
    void **params;
} launch;

static void run_kernel(void *what)
{
    const launch *l = what;
    place at;
    l->kernel->library->here(&at.block, &at.blocks, &at.thread, &at.threads, &at.barrier);
    *at.blocks = l->blocks;
    *at.threads = l->threads;
    if (l->kernel->meets)
        run_together(at, l->kernel->run, l->blocks, l->threads, l->params);
    else
        run_alone(at, l->kernel->run, l->blocks, l->threads, l->params);
}

static sf_status launch_on_host(sf_device *d, sf_lane lane, void *function, int64_t blocks,
                                int threads, void **params, sf_diag *diag)
{
    (void)diag;
    launch l = {function, blocks, threads, params};
    sf_host_lanes_put(((host *)d)->lanes, lane, run_kernel, &l, sizeof l);
    return SF_OK;
}

static sf_status launch_host(sf_device *d, void *function, int64_t blocks, int threads,
                             void **params, sf_diag *diag)
{
    return launch_on_host(d, SF_LANE_COMPUTE, function, blocks, threads, params, diag);
}

/* Compiling */

/* Quickly made rather than fast. */
static sf_status build_library(const sf_buf *text, sf_diag *diag)
{
    const char *architecture = sf_cuda_asked_architecture();
    bool has_groups = !architecture || strcmp(architecture, "sm_90a") == 0;
    const char *const flags[] = {"-std=gnu11",
                                 "-w",
                                 runs_edges() ? "-O1" : "-O0",
                                 "-ffp-contract=off",
                                 has_groups ? "-DHAS_GROUPS=1" : "-DHAS_GROUPS=0",
                                 "-fPIC",
                                 "-shared",
                                 NULL};
    library *l = sf_alloc_kept(sizeof *l);
    if (!l)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no memory for kernels");
    sf_compiling what = {.text = {text->text, text->length}, .flags = flags};
    sf_status status = sf_compile(&what, diag, &l->handle);
    if (status != SF_OK) {
        sf_free(l);
        return status;
    }
    *(void **)&l->here = dlsym(l->handle, "sf_here");
    l->next = libraries;
    libraries = l;
    return SF_OK;
}

static bool find_loaded(const sf_kernel *kernel, host_kernel *out)
{
    char name[64];
    snprintf(name, sizeof name, "%s_run", kernel->name);
    for (const library *l = libraries; l; l = l->next) {
        *(void **)&out->run = dlsym(l->handle, name);
        out->library = l;
        if (out->run)
            return true;
    }
    return false;
}

/* Those that are not loaded yet, together. */
static sf_status load_kernels(const sf_kernels *module, sf_diag *diag)
{
    sf_kernels missing = {.needs = module->needs};
    host_kernel found;
    for (size_t i = 0; i < module->nkernels; i++)
        if (!find_loaded(module->kernels[i], &found))
            SF_PUSH(&missing.arena, missing.kernels, missing.nkernels, missing.capacity,
                    module->kernels[i]);
    sf_buf text = {0};
    sf_status status = SF_OK;
    if (missing.nkernels > 0) {
        sf_kernels_text(&missing, 0, missing.nkernels, true, &text);
        status = build_library(&text, diag);
    }
    sf_buf_free(&text);
    sf_kernels_free(&missing);
    return status;
}

static sf_status compile_host(sf_device *d, const sf_kernels *module, sf_threads *threads,
                              sf_diag *diag, void **functions)
{
    (void)threads;
    host *h = (host *)d;
    h->kernels = sf_alloc((module->nkernels + 1) * sizeof *h->kernels);
    pthread_mutex_lock(&lock);
    sf_status status = load_kernels(module, diag);
    for (size_t i = 0; i < module->nkernels && status == SF_OK; i++) {
        const char *body = module->kernels[i]->text;
        bool found = find_loaded(module->kernels[i], &h->kernels[i]);
        SF_ASSERT(found);
        h->kernels[i].meets =
            strstr(body, "BARRIER") || strstr(body, "_FOLD(") || strstr(body, "sort_");
        functions[i] = &h->kernels[i];
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* Memory is memory. In front of what is mapped stands its size. */

enum { HEAD = 4096 };

static sf_status map_memory(int64_t bytes, sf_diag *diag, char **out)
{
    size_t size = (size_t)bytes + HEAD;
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
    if (at == MAP_FAILED)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no memory for a device");
    memcpy(at, &size, sizeof size);
    *out = at + HEAD;
    return SF_OK;
}

static sf_status alloc_host(sf_device *d, int64_t bytes, sf_diag *diag, char **out)
{
    (void)d;
    if (runs_edges())
        return map_memory(bytes, diag, out);
    *out = sf_alloc((size_t)bytes);
    return SF_OK;
}

static void release_host(sf_device *d, char *memory)
{
    size_t size;
    (void)d;
    if (!runs_edges()) {
        sf_free(memory);
        return;
    }
    memcpy(&size, memory - HEAD, sizeof size);
    munmap(memory - HEAD, size);
}

/* Lanes */

static sf_status wait_on_host(sf_device *d, sf_lane lane, sf_diag *diag)
{
    const host *h = (host *)d;
    if (sf_host_lanes_draws(h->lanes))
        return sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE, "nothing waits for the host in a graph");
    sf_host_lanes_wait(h->lanes, lane);
    return SF_OK;
}

static sf_status wait_host(sf_device *d, sf_diag *diag)
{
    return wait_on_host(d, SF_LANE_COMPUTE, diag);
}

typedef struct copying {
    char *to;
    const char *from;
    int64_t bytes;
} copying;

static void run_copy(void *what)
{
    enum { END = 1 << 20 };
    const copying *c = what;
    int64_t bytes = runs_edges() && c->bytes > END ? END : c->bytes, rest = c->bytes - bytes;
    if (c->bytes <= 0)
        return;
    memcpy(c->to, c->from, (size_t)bytes);
    if (rest > 0)
        memcpy(c->to + c->bytes - END, c->from + c->bytes - END, END);
}

static sf_status move_host(sf_device *d, sf_lane lane, char *to, const char *from, int64_t bytes,
                           sf_diag *diag)
{
    (void)diag;
    copying c = {to, from, bytes};
    sf_host_lanes_put(((host *)d)->lanes, lane, run_copy, &c, sizeof c);
    return SF_OK;
}

static sf_status copy_host(sf_device *d, char *to, const char *from, int64_t bytes, sf_diag *diag)
{
    return move_host(d, SF_LANE_COMPUTE, to, from, bytes, diag);
}

static sf_status put_host(sf_device *d, char *to, const void *from, int64_t bytes, sf_diag *diag)
{
    SF_TRY(copy_host(d, to, from, bytes, diag));
    return wait_host(d, diag);
}

static sf_status get_host(sf_device *d, void *to, const char *from, int64_t bytes, sf_diag *diag)
{
    return put_host(d, to, from, bytes, diag);
}

static sf_status follow_host(sf_device *d, sf_lane which, sf_lane whom, sf_diag *diag)
{
    (void)diag;
    sf_host_lanes_follow(((host *)d)->lanes, which, whom);
    return SF_OK;
}

static sf_status raise_host(sf_device *d, sf_lane lane, size_t event, size_t count, sf_diag *diag)
{
    (void)count, (void)diag;
    sf_host_lanes_raise(((host *)d)->lanes, lane, event);
    return SF_OK;
}

static sf_status await_host(sf_device *d, sf_lane lane, size_t event, sf_diag *diag)
{
    (void)diag;
    sf_host_lanes_await(((host *)d)->lanes, lane, event);
    return SF_OK;
}

static sf_status add_host(sf_device *d, sf_diag *diag, sf_lane *out)
{
    return sf_host_lanes_add(((host *)d)->lanes, diag, out);
}

static sf_status stream_host(sf_device *d, sf_lane lane, sf_diag *diag, void **out)
{
    return sf_host_lanes_stream(((host *)d)->lanes, lane, diag, out);
}

static sf_status ended_host(sf_device *d, sf_lane lane, sf_diag *diag, bool *out)
{
    (void)diag;
    *out = sf_host_lanes_ended(((host *)d)->lanes, lane);
    return SF_OK;
}

/* The plan of the emulated library: for a convolution. */
typedef struct host_plan {
    sf_convolve convolve;
} host_plan;

static sf_status plan_host(sf_device *d, const sf_inst *inst, sf_diag *diag, void **plan,
                           bool *is_whole)
{
    (void)d, (void)diag, (void)is_whole;
    host_plan p = {0};
    *plan = NULL;
    bool is_skipped = runs_edges() && inst->kind == SF_INST_DOT;
    if (is_skipped)
        *plan = sf_alloc(sizeof p);
    if (inst->kind == SF_INST_CONV && sf_convolve_of(inst->conv, &p.convolve) &&
        !p.convolve.is_product) {
        *plan = sf_alloc(sizeof p);
        memcpy(*plan, &p, sizeof p);
    }
    return SF_OK;
}

static void drop_plan(sf_device *d, void *plan)
{
    (void)d;
    sf_free(plan);
}

typedef struct multiplying {
    const host_plan *plan;
    char *const *parts;
} multiplying;

static void run_plan(void *what)
{
    const multiplying *m = what;
    if (runs_edges())
        return;
    sf_host_convolve(&m->plan->convolve, m->parts);
}

static sf_status multiply_host(sf_device *d, const void *plan, char *const *parts, sf_diag *diag)
{
    (void)diag;
    multiplying m = {plan, parts};
    sf_host_lanes_put(((host *)d)->lanes, SF_LANE_COMPUTE, run_plan, &m, sizeof m);
    return SF_OK;
}

static void run_mark(void *what)
{
    **(double **)what = sf_now();
}

static sf_status mark_host(sf_device *d, sf_lane lane, size_t index, size_t count, sf_diag *diag)
{
    host *h = (host *)d;
    (void)diag;
    if (h->nmarks < count) {
        sf_free(h->marks);
        h->marks = sf_alloc(count * sizeof *h->marks);
        h->nmarks = count;
    }
    double *mark = &h->marks[index];
    sf_host_lanes_put(h->lanes, lane, run_mark, &mark, sizeof mark);
    return SF_OK;
}

static sf_status when_host(sf_device *d, size_t count, double *seconds, sf_diag *diag)
{
    const host *h = (const host *)d;
    (void)diag;
    for (size_t i = 0; i < count; i++)
        seconds[i] = h->marks[i] - h->marks[0];
    return SF_OK;
}

/* Graphs */

static sf_status begin_host(sf_device *d, sf_diag *diag)
{
    (void)diag;
    sf_host_lanes_begin(((host *)d)->lanes);
    return SF_OK;
}

static sf_status end_host(sf_device *d, sf_diag *diag, void **graph)
{
    (void)diag;
    *graph = sf_host_lanes_end(((host *)d)->lanes);
    return SF_OK;
}

static sf_status replay_host(sf_device *d, void *graph, sf_diag *diag)
{
    (void)diag;
    sf_host_lanes_replay(((host *)d)->lanes, graph);
    return SF_OK;
}

static void forget_host(sf_device *d, void *graph)
{
    sf_host_lanes_forget(((host *)d)->lanes, graph);
}

static void close_host(sf_device *d)
{
    host *h = (host *)d;
    sf_host_lanes_free(h->lanes);
    sf_free(h->marks);
    sf_free(h->kernels);
    sf_free(h);
}

SF_API sf_device_opening sheaf_cuda_device;

sf_status sheaf_cuda_device(int which, sf_diag *diag, sf_device **out)
{
    static const sf_device_table table = {
        .close = close_host,
        .alloc = alloc_host,
        .release = release_host,
        .pin = alloc_host,
        .unpin = release_host,
        .put = put_host,
        .get = get_host,
        .copy = copy_host,
        .wait = wait_host,
        .move = move_host,
        .launch_on = launch_on_host,
        .wait_on = wait_on_host,
        .follow = follow_host,
        .raise = raise_host,
        .await = await_host,
        .add = add_host,
        .stream = stream_host,
        .ended = ended_host,
        .compile = compile_host,
        .launch = launch_host,
        .plan = plan_host,
        .mark = mark_host,
        .when = when_host,
        .drop = drop_plan,
        .multiply = multiply_host,
        .begin = begin_host,
        .end = end_host,
        .replay = replay_host,
        .forget = forget_host,
    };
    (void)diag;
    host *h = sf_alloc(sizeof *h);
    h->device =
        (sf_device){.table = &table, .is_host = true, .id = {(uint64_t)which + 1}, .count = 1};
    h->lanes = sf_host_lanes_new();
    *out = &h->device;
    return SF_OK;
}
