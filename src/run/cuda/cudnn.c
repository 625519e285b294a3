#include "run/cuda/cudnn.h"

#include "base/hash.h"
#include "base/mem.h"
#include "run/cuda/algorithm_choice.h"

/* Numbers of the library. */
enum {
    TYPE_HANDLE = 0,
    TYPE_DATA_TYPE = 1,
    TYPE_BOOLEAN = 2,
    TYPE_INT64 = 3,
    TYPE_FLOAT = 4,
    TYPE_DOUBLE = 5,
    TYPE_POINTER = 6,
    TYPE_MODE = 7,
    TYPE_HEURISTIC = 8,
    TYPE_NOTE = 11,
    TYPE_DESCRIPTOR = 15,

    MAKE_CONVOLUTION = 1,
    MAKE_CONFIGURATION = 3,
    MAKE_HEURISTIC = 4,
    MAKE_PLAN = 5,
    MAKE_FORWARD = 10,
    MAKE_FILTER = 11,
    MAKE_DATA = 12,
    MAKE_GRAPH = 15,
    MAKE_PACK = 16,
    MAKE_TENSOR = 17,
    MAKE_ENGINE = 2,

    CONVOLUTION_TYPE = 100,
    CONVOLUTION_MODE = 101,
    CONVOLUTION_DILATIONS = 102,
    CONVOLUTION_STRIDES = 103,
    CONVOLUTION_POST = 104,
    CONVOLUTION_PRE = 105,
    CONVOLUTION_SPATIAL = 106,
    HEURISTIC_MODE = 200,
    HEURISTIC_GRAPH = 201,
    HEURISTIC_RESULTS = 202,
    CONFIGURATION_ENGINE = 300,
    PLAN_HANDLE = 400,
    PLAN_CONFIGURATION = 401,
    PLAN_WORKSPACE = 402,
    FORWARD_FIRST = 700, /* alpha, beta, convolution, w, x, y */
    DATA_FIRST = 706,    /* alpha, beta, convolution, w, x, y */
    FILTER_FIRST = 712,  /* alpha, beta, convolution, w, x, y */
    GRAPH_HANDLE = 800,
    GRAPH_OPERATIONS = 801,
    TENSOR_ALIGNMENT = 900,
    TENSOR_TYPE = 901,
    TENSOR_SIZES = 902,
    TENSOR_STRIDES = 903,
    TENSOR_ID = 906,
    PACK_IDS = 1000,
    PACK_POINTERS = 1001,
    PACK_WORKSPACE = 1003,
    ENGINE_NOTES = 1303,

    NOTE_TENSOR_CORE = 0,
    NOTE_ROUNDED_INPUTS = 1,
    NOTE_ROUNDED_SUMS = 2,
    NOTE_OTHER_BITS = 4,

    CROSS_CORRELATION = 1,
    BY_MODEL = 3, /* the library's better guess, */
    BY_RULES = 2, /* and the one that always works */
    MOST_CONFIGURATIONS = 24,
    MOST_TRIED = 8,
    MOST_NOTES = 32,
    ALIGNED_TO = 16,
    IMAGE_ROOM = 256, /* where images begin, in memory for trials */
};

typedef const sf_cuda_convolutions table;

struct sf_cudnn_plan {
    const sf_cudnn *cudnn;
    void *plan;
};

bool sf_cudnn_open(sf_cudnn *d)
{
    bool found = sf_cuda_load_convolutions(NULL, &d->library) == SF_OK;
    if (found && d->library->create(&d->handle) == 0 &&
        d->library->set_stream(d->handle, d->stream) == 0) {
        d->machine = sf_choice_machine(d->driver, d->ordinal, d->library->property);
        return true;
    }
    if (found)
        sf_cudnn_close(d);
    d->library = NULL;
    return false;
}

void sf_cudnn_close(sf_cudnn *d)
{
    if (d->handle)
        d->library->destroy(d->handle);
    d->handle = NULL;
}

/* Descriptors. One that could not be made is NULL, and setting its attributes fails. */

static void *make(table *l, int kind)
{
    void *made = NULL;
    return l->make(kind, &made) == 0 ? made : NULL;
}

static bool set(table *l, void *descriptor, int name, int type, int64_t count, const void *value)
{
    return descriptor && l->set(descriptor, name, type, count, value) == 0;
}

static void drop(table *l, void *descriptor)
{
    if (descriptor)
        l->drop(descriptor);
}

static bool finish(table *l, void *descriptor)
{
    return descriptor && l->finish(descriptor) == 0;
}

static int type_number(sf_dtype dtype)
{
    return dtype == SF_F64 ? 1 : dtype == SF_F16 ? 2 : dtype == SF_BF16 ? 9 : 0;
}

/* Sizes are those of batch, channels, space; in memory channels come last. A line is an image of one row. */
static void *make_tensor(table *l, const sf_convolve *c, int image)
{
    int64_t sizes[SF_MAX_RANK + 1], strides[SF_MAX_RANK + 1], align = ALIGNED_TO;
    int64_t id = image + 1, n = 0;
    int type = type_number(c->dtype);
    bool is_line = c->spatial == 1;
    sizes[n++] = image == SF_IMAGE_W ? c->k : c->n;
    sizes[n++] = image == SF_IMAGE_X ? c->c : image == SF_IMAGE_Y ? c->k : c->c / c->groups;
    if (is_line)
        sizes[n++] = 1;
    for (int d = 0; d < c->spatial; d++)
        sizes[n++] = c->images[image].sizes[d];
    strides[1] = 1;
    int64_t stride = sizes[1];
    for (int64_t d = n - 1; d >= 2; d--) {
        strides[d] = stride;
        stride *= sizes[d];
    }
    strides[0] = stride;
    void *tensor = make(l, MAKE_TENSOR);
    if (set(l, tensor, TENSOR_TYPE, TYPE_DATA_TYPE, 1, &type) &&
        set(l, tensor, TENSOR_SIZES, TYPE_INT64, n, sizes) &&
        set(l, tensor, TENSOR_STRIDES, TYPE_INT64, n, strides) &&
        set(l, tensor, TENSOR_ID, TYPE_INT64, 1, &id) &&
        set(l, tensor, TENSOR_ALIGNMENT, TYPE_INT64, 1, &align) && finish(l, tensor))
        return tensor;
    drop(l, tensor);
    return NULL;
}

/* With the row of a line before the others. */
static int64_t spread(const sf_convolve *c, const int64_t *from, int64_t row, int64_t *to)
{
    int64_t n = 0;
    if (c->spatial == 1)
        to[n++] = row;
    for (int d = 0; d < c->spatial; d++)
        to[n++] = from[d];
    return n;
}

static void *make_convolution(table *l, const sf_convolve *c)
{
    int type = type_number(c->dtype == SF_F64 ? SF_F64 : SF_F32), mode = CROSS_CORRELATION;
    int64_t pad[SF_MAX_RANK], stride[SF_MAX_RANK], dilation[SF_MAX_RANK];
    int64_t n = spread(c, c->pad, 0, pad);
    spread(c, c->stride, 1, stride);
    spread(c, c->dilation, 1, dilation);
    void *made = make(l, MAKE_CONVOLUTION);
    if (set(l, made, CONVOLUTION_SPATIAL, TYPE_INT64, 1, &n) &&
        set(l, made, CONVOLUTION_TYPE, TYPE_DATA_TYPE, 1, &type) &&
        set(l, made, CONVOLUTION_MODE, TYPE_MODE, 1, &mode) &&
        set(l, made, CONVOLUTION_DILATIONS, TYPE_INT64, n, dilation) &&
        set(l, made, CONVOLUTION_STRIDES, TYPE_INT64, n, stride) &&
        set(l, made, CONVOLUTION_PRE, TYPE_INT64, n, pad) &&
        set(l, made, CONVOLUTION_POST, TYPE_INT64, n, pad) && finish(l, made))
        return made;
    drop(l, made);
    return NULL;
}

/* The operation and all that it is made of. */
typedef struct drawing {
    void *tensors[3], *convolution, *operation, *graph;
} drawing;

static void drop_drawing(table *l, const drawing *g)
{
    drop(l, g->graph);
    drop(l, g->operation);
    drop(l, g->convolution);
    for (int i = 0; i < 3; i++)
        drop(l, g->tensors[i]);
}

static bool make_operation(table *l, const sf_convolve *c, drawing *g)
{
    static const int kinds[] = {MAKE_FORWARD, MAKE_DATA, MAKE_FILTER};
    static const int firsts[] = {FORWARD_FIRST, DATA_FIRST, FILTER_FIRST};
    const float one = 1, zero = 0;
    const double wide_one = 1, wide_zero = 0;
    bool is_wide = c->dtype == SF_F64;
    int first = firsts[c->kind], scale = is_wide ? TYPE_DOUBLE : TYPE_FLOAT;
    g->operation = make(l, kinds[c->kind]);
    return set(l, g->operation, first, scale, 1, is_wide ? (const void *)&wide_one : &one) &&
           set(l, g->operation, first + 1, scale, 1, is_wide ? (const void *)&wide_zero : &zero) &&
           set(l, g->operation, first + 2, TYPE_DESCRIPTOR, 1, &g->convolution) &&
           set(l, g->operation, first + 3, TYPE_DESCRIPTOR, 1, &g->tensors[SF_IMAGE_W]) &&
           set(l, g->operation, first + 4, TYPE_DESCRIPTOR, 1, &g->tensors[SF_IMAGE_X]) &&
           set(l, g->operation, first + 5, TYPE_DESCRIPTOR, 1, &g->tensors[SF_IMAGE_Y]) &&
           finish(l, g->operation);
}

static bool draw(const sf_cudnn *d, const sf_convolve *c, drawing *g)
{
    table *l = d->library;
    for (int i = 0; i < 3; i++)
        g->tensors[i] = make_tensor(l, c, i);
    g->convolution = make_convolution(l, c);
    if (!g->tensors[0] || !g->tensors[1] || !g->tensors[2] || !g->convolution ||
        !make_operation(l, c, g))
        return false;
    g->graph = make(l, MAKE_GRAPH);
    return set(l, g->graph, GRAPH_HANDLE, TYPE_HANDLE, 1, &d->handle) &&
           set(l, g->graph, GRAPH_OPERATIONS, TYPE_DESCRIPTOR, 1, &g->operation) &&
           finish(l, g->graph);
}

/* Ways */

/* Whether an engine rounds no more than it may, and gives the same bits in each run. */
static bool is_allowed(table *l, void *configuration, bool rounds)
{
    void *engine = make(l, MAKE_ENGINE);
    int64_t count = 0, nnotes = 0;
    int notes[MOST_NOTES];
    bool allowed = engine && l->get(configuration, CONFIGURATION_ENGINE, TYPE_DESCRIPTOR, 1, &count,
                                    &engine) == 0;
    if (allowed)
        allowed = l->get(engine, ENGINE_NOTES, TYPE_NOTE, MOST_NOTES, &nnotes, notes) == 0;
    for (int64_t i = 0; allowed && i < nnotes && i < MOST_NOTES; i++) {
        if (notes[i] == NOTE_OTHER_BITS || notes[i] == NOTE_ROUNDED_SUMS)
            allowed = false;
        if ((notes[i] == NOTE_TENSOR_CORE || notes[i] == NOTE_ROUNDED_INPUTS) && !rounds)
            allowed = false;
    }
    drop(l, engine);
    return allowed;
}

static sf_cudnn_plan *make_plan(const sf_cudnn *d, void *configuration)
{
    table *l = d->library;
    void *made = make(l, MAKE_PLAN);
    int64_t count = 0, workspace = 0;
    if (set(l, made, PLAN_HANDLE, TYPE_HANDLE, 1, &d->handle) &&
        set(l, made, PLAN_CONFIGURATION, TYPE_DESCRIPTOR, 1, &configuration) && finish(l, made) &&
        l->get(made, PLAN_WORKSPACE, TYPE_INT64, 1, &count, &workspace) == 0 &&
        workspace <= d->workspace_bytes) {
        sf_cudnn_plan *plan = sf_alloc(sizeof *plan);
        *plan = (sf_cudnn_plan){.cudnn = d, .plan = made};
        return plan;
    }
    drop(l, made);
    return NULL;
}

static int execute(const sf_cudnn_plan *plan, char *const *images)
{
    table *l = plan->cudnn->library;
    const int64_t ids[3] = {1, 2, 3};
    void *pointers[3] = {images[0], images[1], images[2]}, *room = plan->cudnn->workspace;
    void *pack = make(l, MAKE_PACK);
    int status = 1;
    if (set(l, pack, PACK_POINTERS, TYPE_POINTER, 3, pointers) &&
        set(l, pack, PACK_IDS, TYPE_INT64, 3, ids) &&
        set(l, pack, PACK_WORKSPACE, TYPE_POINTER, 1, &room) && finish(l, pack))
        status = l->execute(plan->cudnn->handle, plan->plan, pack);
    drop(l, pack);
    return status;
}

/* Ways that may be taken, and those that were made of them to be tried. */
typedef struct ways {
    const sf_cudnn *cudnn;
    const sf_convolve *convolve;
    void *found[MOST_CONFIGURATIONS]; /* of the library, */
    void *allowed[MOST_TRIED];        /* and of those */
    int count;
    sf_cudnn_plan *plans[MOST_TRIED];
    cu_pointer memory; /* for images */
} ways;

static void find_ways(ways *w, const drawing *g, int mode, bool rounds)
{
    table *l = w->cudnn->library;
    void *heuristic = make(l, MAKE_HEURISTIC);
    int64_t count = 0;
    for (int i = 0; i < MOST_CONFIGURATIONS; i++)
        w->found[i] = make(l, MAKE_CONFIGURATION);
    if (set(l, heuristic, HEURISTIC_GRAPH, TYPE_DESCRIPTOR, 1, &g->graph) &&
        set(l, heuristic, HEURISTIC_MODE, TYPE_HEURISTIC, 1, &mode) && finish(l, heuristic) &&
        l->get(heuristic, HEURISTIC_RESULTS, TYPE_DESCRIPTOR, MOST_CONFIGURATIONS, &count,
               w->found) == 0)
        for (int64_t i = 0; i < count && i < MOST_CONFIGURATIONS && w->count < MOST_TRIED; i++)
            if (is_allowed(l, w->found[i], rounds))
                w->allowed[w->count++] = w->found[i];
    drop(l, heuristic);
}

static void drop_ways(const ways *w)
{
    if (w->memory)
        w->cudnn->driver->release(w->memory);
    for (int i = 0; i < w->count; i++)
        sf_cudnn_plan_free(w->plans[i]);
    for (int i = 0; i < MOST_CONFIGURATIONS; i++)
        drop(w->cudnn->library, w->found[i]);
}

static sf_cudnn_plan *plan_of(ways *w, int way)
{
    if (!w->plans[way])
        w->plans[way] = make_plan(w->cudnn, w->allowed[way]);
    return w->plans[way];
}

static bool make_room(ways *w, int64_t bytes)
{
    const sf_cuda_driver *driver = w->cudnn->driver;
    return w->memory || (driver->alloc(&w->memory, (size_t)bytes) == 0 &&
                         driver->set(w->memory, 0, (size_t)bytes, w->cudnn->stream) == 0);
}

static int try_way(void *context, int way)
{
    ways *w = context;
    const sf_cudnn_plan *plan = plan_of(w, way);
    int64_t begins[4] = {0};
    char *images[3];
    for (int i = 0; i < 3; i++) {
        int64_t bytes = w->convolve->images[i].bytes;
        begins[i + 1] = begins[i] + (bytes + IMAGE_ROOM - 1) / IMAGE_ROOM * IMAGE_ROOM;
    }
    if (!plan || !make_room(w, begins[3]))
        return 1;
    for (int i = 0; i < 3; i++)
        images[i] = (char *)(uintptr_t)w->memory + begins[i];
    return execute(plan, images);
}

static uint64_t key_of(const sf_cudnn *d, const sf_convolve *c, int mode, bool rounds)
{
    const int64_t numbers[] = {(int64_t)c->kind, c->spatial,        c->n,   c->c, c->k,
                               c->groups,        (int64_t)c->dtype, rounds, mode};
    size_t some = (size_t)c->spatial * sizeof *c->pad;
    uint64_t key = sf_hash_bytes(d->machine, numbers, sizeof numbers);
    key = sf_hash_bytes(key, c->pad, some);
    key = sf_hash_bytes(key, c->stride, some);
    key = sf_hash_bytes(key, c->dilation, some);
    for (int i = 0; i < 3; i++)
        key = sf_hash_bytes(key, c->images[i].sizes, some);
    return key;
}

/* The fastest of those that the library proposes; where that cannot be made, the first that can. */
static sf_cudnn_plan *fastest_plan(const sf_cudnn *d, const sf_convolve *c, const drawing *g,
                                   int mode, bool rounds)
{
    ways w = {.cudnn = d, .convolve = c};
    find_ways(&w, g, mode, rounds);
    sf_choice choice = {.key = key_of(d, c, mode, rounds), .count = w.count};
    sf_choose(&choice, &(sf_trial){d->driver, d->stream, try_way, &w});
    int taken = choice.way;
    for (int i = 0; w.count > 0 && !plan_of(&w, taken) && i < w.count; i++)
        taken = i;
    sf_cudnn_plan *plan = w.count > 0 ? w.plans[taken] : NULL;
    if (plan)
        w.plans[taken] = NULL;
    drop_ways(&w);
    return plan;
}

sf_cudnn_plan *sf_cudnn_plan_new(const sf_cudnn *d, const sf_convolve *c, bool tf32)
{
    drawing g = {0};
    bool rounds = c->dtype != SF_F32 || tf32;
    sf_cudnn_plan *plan = NULL;
    if (!d->library)
        return NULL;
    if (draw(d, c, &g)) {
        plan = fastest_plan(d, c, &g, BY_MODEL, rounds);
        if (!plan)
            plan = fastest_plan(d, c, &g, BY_RULES, rounds);
    }
    drop_drawing(d->library, &g);
    return plan;
}

void sf_cudnn_plan_free(sf_cudnn_plan *plan)
{
    if (!plan)
        return;
    drop(plan->cudnn->library, plan->plan);
    sf_free(plan);
}

sf_status sf_cudnn_run(const sf_cudnn_plan *plan, char *const *images, sf_diag *diag)
{
    int status = execute(plan, images);
    if (status == 0)
        return SF_OK;
    return sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE, "cuDNN refuses a convolution (%d)", status);
}
