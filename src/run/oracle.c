/* The oracle as an engine: every step is one evaluation with the reference kernels, on one thread.
 * Collectives are begun and waited for where they stand. */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/machine.h"
#include "base/mem.h"
#include "op/eval.h"
#include "run/collective.h"
#include "run/engine_kind.h"

struct oracle {
    const sf_graph *graph;
    sf_arena arena;
    sf_tensor *arguments, *results, *next; /* results get their data from each evaluation */
    uint32_t *becomes;                     /* by result: the argument that it becomes, or SF_NONE */
    int64_t held;                          /* bytes of the arguments */
    sf_eval_setup setup;
    sf_collectives collectives;
    int64_t peak; /* bytes, of all evaluations */
};

static void free_data(uint32_t count, sf_tensor *tensors)
{
    for (uint32_t i = 0; i < count; i++) {
        sf_free(tensors[i].data);
        tensors[i].data = NULL;
    }
}

static void close_oracle(void *self)
{
    struct oracle *oracle = self;
    free_data(oracle->graph->top->nresults, oracle->results);
    sf_arena_free(&oracle->arena);
    sf_free(oracle);
}

static sf_status measure(struct oracle *oracle, int64_t memory, sf_diag *diag)
{
    const sf_block *top = oracle->graph->top;
    for (uint32_t i = 0; i < top->narguments; i++)
        if (!sf_add(oracle->held, sf_type_bytes(sf_type_of(oracle->graph, top->arguments[i])),
                    &oracle->held))
            return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "the arguments are too large");
    if (memory > 0 && oracle->held >= memory)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE,
                       "the arguments need %" PRId64 " bytes, and there are %" PRId64, oracle->held,
                       memory);
    oracle->setup.limit = memory > 0 ? memory - oracle->held : 0;
    return SF_OK;
}

static sf_status run_collective(void *context, const sf_node *node, const sf_tensor *in,
                                sf_tensor *out, sf_diag *diag)
{
    struct oracle *oracle = context;
    sf_arena scratch = {0};
    char **from = SF_ARRAY(&scratch, node->noperands, char *);
    char **to = SF_ARRAY(&scratch, node->nresults, char *);
    for (uint32_t i = 0; i < node->noperands; i++)
        from[i] = in[i].data;
    for (uint32_t i = 0; i < node->nresults; i++)
        to[i] = out[i].data;
    sf_request *request;
    sf_status status =
        sf_collective_start(&oracle->collectives, oracle->graph, node, from, to, diag, &request);
    if (status == SF_OK && request)
        status = sf_comm_wait(request, diag);
    sf_arena_free(&scratch);
    return status;
}

static sf_status open_oracle(const sf_graph *graph, const sf_engine_options *options, sf_diag *diag,
                             void **self)
{
    const sf_block *top = graph->top;
    struct oracle *oracle = sf_alloc(sizeof *oracle);
    oracle->graph = graph;
    oracle->setup = (sf_eval_setup){.collective = run_collective, .context = oracle};
    oracle->collectives = (sf_collectives){.comm = options->comm, .mesh = options->mesh};
    sf_status status =
        measure(oracle, options->memory ? options->memory : sf_machine_memory(), diag);
    if (status != SF_OK) {
        sf_free(oracle);
        return status;
    }
    oracle->arguments = SF_ARRAY(&oracle->arena, top->narguments, sf_tensor);
    oracle->results = SF_ARRAY(&oracle->arena, top->nresults, sf_tensor);
    oracle->next = SF_ARRAY(&oracle->arena, top->nresults, sf_tensor);
    oracle->becomes = SF_ARRAY(&oracle->arena, top->nresults, uint32_t);
    for (uint32_t i = 0; i < top->nresults; i++)
        oracle->becomes[i] = SF_NONE;
    for (uint32_t i = 0; i < top->narguments; i++) {
        const sf_type *type = sf_type_of(graph, top->arguments[i]);
        uint32_t next = graph->arguments[i].next;
        oracle->arguments[i].type = type;
        oracle->arguments[i].data = sf_arena_alloc(&oracle->arena, (size_t)sf_type_bytes(type));
        if (next != SF_NONE)
            oracle->becomes[next] = i;
    }
    *self = oracle;
    return SF_OK;
}

static sf_tensor get_argument(void *self, uint32_t index)
{
    return ((struct oracle *)self)->arguments[index];
}

static sf_tensor get_result(void *self, uint32_t index)
{
    struct oracle *oracle = self;
    uint32_t argument = oracle->becomes[index];
    return argument == SF_NONE ? oracle->results[index] : oracle->arguments[argument];
}

/* Results that become arguments are copied there: arguments never move. */
static void carry_state(struct oracle *oracle)
{
    const sf_graph *graph = oracle->graph;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_tensor *argument = &oracle->arguments[i];
        uint32_t next = graph->arguments[i].next;
        if (next != SF_NONE)
            memcpy(argument->data, oracle->results[next].data,
                   (size_t)sf_type_bytes(argument->type));
    }
}

static sf_status step(void *self, sf_diag *diag)
{
    struct oracle *oracle = self;
    uint32_t count = oracle->graph->top->nresults;
    int64_t peak = 0;
    free_data(count, oracle->results);
    sf_status status = sf_eval_measured(oracle->graph, oracle->arguments, oracle->next,
                                        &oracle->setup, &peak, diag);
    if (peak > oracle->peak)
        oracle->peak = peak;
    if (status != SF_OK) {
        free_data(count, oracle->next);
        return status;
    }
    memcpy(oracle->results, oracle->next, count * sizeof *oracle->results);
    memset(oracle->next, 0, count * sizeof *oracle->next);
    carry_state(oracle);
    return SF_OK;
}

static int64_t memory(const void *self)
{
    const struct oracle *oracle = self;
    return oracle->held + oracle->peak;
}

static int threads(const void *self)
{
    (void)self;
    return 1;
}

const sf_engine_table sf_engine_oracle = {
    .name = "oracle",
    .open = open_oracle,
    .close = close_oracle,
    .argument = get_argument,
    .result = get_result,
    .step = step,
    .memory = memory,
    .threads = threads,
};
