/* The oracle as an engine: every step is one evaluation with the reference kernels, on one thread.
 * Collectives are started and waited for at their place, but sends are asynchronous copies, so that
 * two ranks that send to each other do not wait for each other. */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/units.h"
#include "op/eval.h"
#include "run/engine/engine_backend.h"
#include "run/engine/engine_collective.h"

struct oracle {
    const sf_graph *graph;
    const sf_mesh *mesh;
    int rank;
    const sf_type **argument_types, **result_types;
    sf_arena arena;
    sf_tensor *arguments, *results, *next; /* results get their data from each evaluation */
    uint32_t *becomes;                     /* by result: the argument that it becomes, or SF_NONE */
    int64_t held;                          /* bytes of the arguments */
    sf_eval_setup setup;
    sf_collectives collectives;
    int64_t peak; /* bytes, of all evaluations */
    sf_arena mail;
    sf_request **sent; /* in flight in this step, with their data */
    size_t nsent, sent_capacity;
};

static void free_data(uint32_t count, sf_tensor *tensors)
{
    for (uint32_t i = 0; i < count; i++) {
        sf_free(tensors[i].data);
        tensors[i].data = NULL;
    }
}

/* Waits for the sends of this step; the first failure counts. */
static sf_status clear_mail(struct oracle *oracle, sf_diag *diag)
{
    sf_status status = SF_OK;
    sf_diag unheard = {0};
    for (size_t i = 0; i < oracle->nsent; i++) {
        sf_status one = oracle->sent[i]
                            ? sf_comm_wait(oracle->sent[i], status == SF_OK ? diag : &unheard)
                            : SF_OK;
        status = status == SF_OK ? one : status;
    }
    sf_diag_clear(&unheard);
    sf_arena_free(&oracle->mail);
    oracle->sent = NULL;
    oracle->nsent = oracle->sent_capacity = 0;
    return status;
}

/* After a failure: informs the others, so that they stop waiting, and frees the sends. */
static void drop_mail(struct oracle *oracle, const char *why)
{
    sf_diag unheard = {0};
    if (oracle->nsent > 0)
        sf_comm_abort(oracle->collectives.comm, why ? why : "it failed");
    (void)clear_mail(oracle, &unheard);
    sf_diag_clear(&unheard);
}

static void close_oracle(void *self)
{
    struct oracle *oracle = self;
    free_data(oracle->graph->top->nresults, oracle->results);
    drop_mail(oracle, NULL);
    sf_arena_free(&oracle->arena);
    sf_free(oracle);
}

static sf_status measure_arguments(struct oracle *oracle, int64_t memory, sf_diag *diag)
{
    const sf_block *top = oracle->graph->top;
    for (uint32_t i = 0; i < top->narguments; i++)
        if (!sf_add(oracle->held, sf_type_bytes(sf_type_of(oracle->graph, top->arguments[i])),
                    &oracle->held))
            return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "the arguments are too large");
    if (memory > 0 && oracle->held >= memory)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "the arguments need %s, and there are %s",
                       sf_text_bytes((double)oracle->held).at, sf_text_bytes((double)memory).at);
    oracle->setup.limit = memory > 0 ? memory - oracle->held : 0;
    return SF_OK;
}

/* Copies the operand of a send, so that the evaluation may go on and free it. Returns the place of
 * its request. */
static sf_request **post(struct oracle *oracle, const sf_node *node, const sf_tensor *in,
                         char **from)
{
    for (uint32_t i = 0; i < node->noperands; i++)
        from[i] = sf_arena_copy(&oracle->mail, in[i].data, (size_t)sf_type_bytes(in[i].type));
    SF_PUSH(&oracle->mail, oracle->sent, oracle->nsent, oracle->sent_capacity, NULL);
    return &oracle->sent[oracle->nsent - 1];
}

static sf_status run_collective(void *context, const sf_node *node, const sf_tensor *in,
                                sf_tensor *out, sf_diag *diag)
{
    struct oracle *oracle = context;
    sf_arena scratch = {0};
    char **from = SF_ARRAY(&scratch, node->noperands, char *);
    char **to = SF_ARRAY(&scratch, node->nresults, char *);
    uint32_t nparts = node->nresults > 0 ? node->nresults : node->noperands;
    int64_t *counts = SF_ARRAY(&scratch, nparts, int64_t);
    for (uint32_t i = 0; i < node->noperands; i++) {
        from[i] = in[i].data;
        counts[i < nparts ? i : 0] = in[i].type->count;
    }
    for (uint32_t i = 0; i < node->nresults; i++) {
        to[i] = out[i].data;
        counts[i] = out[i].type->count;
    }
    sf_exchange exchange = sf_exchange_of(node, oracle->mesh, oracle->rank);
    bool sends = sf_is_one_way(&exchange) && exchange.to >= 0;
    sf_request *request = NULL, **place = sends ? post(oracle, node, in, from) : &request;
    const sf_tensor *first = node->nresults > 0 ? out : in;
    sf_collective_memory memory = {.dtype = first->type->dtype,
                                   .nparts = nparts,
                                   .counts = counts,
                                   .in = node->noperands > 0 ? from : NULL,
                                   .out = node->nresults > 0 ? to : NULL};
    sf_status status =
        sf_collective_start(&oracle->collectives, &exchange, &memory, node->loc, diag, place);
    if (status == SF_OK && request)
        status = sf_comm_wait(request, diag);
    sf_arena_free(&scratch);
    return status;
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

static sf_status step_oracle(void *self, sf_diag *diag)
{
    struct oracle *oracle = self;
    uint32_t count = oracle->graph->top->nresults;
    int64_t peak = 0;
    free_data(count, oracle->results);
    sf_status status = sf_eval_measured(oracle->graph, oracle->arguments, oracle->next,
                                        &oracle->setup, &peak, diag);
    if (peak > oracle->peak)
        oracle->peak = peak;
    if (status == SF_OK)
        status = clear_mail(oracle, diag);
    if (status != SF_OK) {
        drop_mail(oracle, sf_diag_reason(diag, status));
        free_data(count, oracle->next);
        return status;
    }
    memcpy(oracle->results, oracle->next, count * sizeof *oracle->results);
    memset(oracle->next, 0, count * sizeof *oracle->next);
    carry_state(oracle);
    return SF_OK;
}

static int64_t oracle_memory(const void *self)
{
    const struct oracle *oracle = self;
    return oracle->held + oracle->peak;
}

static int oracle_threads(const void *self)
{
    (void)self;
    return 1;
}

static sf_status lend_oracle_argument(void *self, uint32_t argument, bool writes, sf_diag *diag,
                                      void **data)
{
    (void)writes, (void)diag;
    *data = ((struct oracle *)self)->arguments[argument].data;
    return SF_OK;
}

static sf_status see_oracle_result(void *self, uint32_t result, sf_diag *diag, void **data)
{
    (void)diag;
    const struct oracle *oracle = self;
    uint32_t argument = oracle->becomes[result];
    *data = argument == SF_NONE ? oracle->results[result].data : oracle->arguments[argument].data;
    return SF_OK;
}

static const sf_engine_table table = {
    .name = "oracle",
    .close = close_oracle,
    .lend = lend_oracle_argument,
    .see = see_oracle_result,
    .step = step_oracle,
    .memory = oracle_memory,
    .threads = oracle_threads,
};

static void list_tensors(struct oracle *oracle)
{
    const sf_graph *graph = oracle->graph;
    const sf_block *top = graph->top;
    sf_arena *arena = &oracle->arena;
    oracle->arguments = SF_ARRAY(arena, top->narguments, sf_tensor);
    oracle->results = SF_ARRAY(arena, top->nresults, sf_tensor);
    oracle->next = SF_ARRAY(arena, top->nresults, sf_tensor);
    oracle->becomes = SF_ARRAY(arena, top->nresults, uint32_t);
    oracle->argument_types = SF_ARRAY(arena, top->narguments, const sf_type *);
    oracle->result_types = SF_ARRAY(arena, top->nresults, const sf_type *);
    for (uint32_t i = 0; i < top->nresults; i++) {
        oracle->becomes[i] = SF_NONE;
        oracle->result_types[i] = sf_type_of(graph, top->results[i]);
    }
    for (uint32_t i = 0; i < top->narguments; i++) {
        const sf_type *type = sf_type_of(graph, top->arguments[i]);
        uint32_t next = graph->arguments[i].next;
        oracle->argument_types[i] = oracle->arguments[i].type = type;
        oracle->arguments[i].data = sf_arena_alloc(arena, (size_t)sf_type_bytes(type));
        if (next != SF_NONE)
            oracle->becomes[next] = i;
    }
}

sf_status sf_engine_open_oracle(const sf_graph *graph, const sf_mesh *mesh,
                                const sf_engine_options *options, sf_diag *diag, sf_engine **out)
{
    struct oracle *oracle = sf_alloc(sizeof *oracle);
    *out = NULL;
    oracle->graph = graph;
    oracle->mesh = mesh;
    oracle->rank = options->comm ? sf_comm_rank(options->comm) : 0;
    oracle->setup = (sf_eval_setup){.collective = run_collective, .context = oracle};
    oracle->collectives = (sf_collectives){.comm = options->comm, .mesh = mesh};
    sf_status status =
        measure_arguments(oracle, options->memory ? options->memory : sf_machine_memory(), diag);
    if (status != SF_OK) {
        sf_free(oracle);
        return status;
    }
    list_tensors(oracle);
    sf_engine *engine = sf_alloc(sizeof *engine);
    *engine = (sf_engine){.table = &table,
                          .self = oracle,
                          .narguments = graph->top->narguments,
                          .nresults = graph->top->nresults,
                          .argument_types = oracle->argument_types,
                          .result_types = oracle->result_types};
    *out = engine;
    return SF_OK;
}
