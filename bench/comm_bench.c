/* How fast ranks exchange data, and how much of it is hidden behind work.
 *
 *     comm_bench [RANKS]             ranks as threads, 2 unless told
 *     mpirun -n RANKS comm_bench     over MPI, beside the bare calls of MPI in the same run
 *     ... comm_bench overlap         how much of an all-reduce is hidden, instead of the table
 *
 * Microseconds per transfer: the sizes are what a member puts in, or gets, whichever is more. Both sides
 * take turns, and the best of the turns counts. Overlap: an all-reduce is started, a matrix product is
 * computed, the all-reduce is waited for; hidden is the part of the all-reduce that this did not add.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "base/mem.h"
#include "run/comm/comm.h"
#include "run/gemm/gemm.h"

#if SF_HAVE_MPI
#include <mpi.h>
#endif

enum { TURNS = 7, MOST_RANKS = 64 };

typedef struct bench {
    sf_comm *comm;
    sf_group *group;
    int rank, size;
    bool bare;    /* compare with MPI */
    bool overlap; /* instead of the table */
    float *in, *out;
} bench;

static void stop(const char *why)
{
    fprintf(stderr, "comm_bench: %s\n", why);
    exit(1);
}

/* `bytes` of data on the larger side of every member. */
static sf_request *start(const bench *b, sf_collective kind, int64_t bytes, bool waits)
{
    int64_t count = bytes / (int64_t)sizeof(float);
    bool blocks = kind == SF_ALL_GATHER || kind == SF_REDUCE_SCATTER || kind == SF_ALL_TO_ALL;
    sf_transfer_part part = {.in = b->in, .out = b->out, .count = blocks ? count / b->size : count};
    sf_transfer transfer = {.kind = kind,
                            .dtype = SF_F32,
                            .monoid = SF_MONOID_ADD,
                            .nparts = 1,
                            .parts = &part,
                            .to = (b->rank + 1) % b->size,
                            .from = (b->rank + b->size - 1) % b->size,
                            .what = "bench"};
    if (kind == SF_BROADCAST) {
        transfer.from = 0;
        part.in = part.out; /* as MPI has it */
    }
    sf_request *request = NULL;
    sf_status status = waits ? sf_comm_run(b->group, &transfer, NULL)
                             : sf_comm_start(b->group, &transfer, NULL, &request);
    if (status != SF_OK)
        stop("a transfer fails");
    return request;
}

static void run_ours(const bench *b, sf_collective kind, int64_t bytes)
{
    start(b, kind, bytes, true);
}

static void run_bare(const bench *b, sf_collective kind, int64_t bytes)
{
#if SF_HAVE_MPI
    int count = (int)(bytes / (int64_t)sizeof(float)), block = count / b->size;
    int to = (b->rank + 1) % b->size, from = (b->rank + b->size - 1) % b->size;
    MPI_Comm world = MPI_COMM_WORLD;
    switch (kind) {
    case SF_ALL_REDUCE:
        MPI_Allreduce(b->in, b->out, count, MPI_FLOAT, MPI_SUM, world);
        break;
    case SF_ALL_GATHER:
        MPI_Allgather(b->in, block, MPI_FLOAT, b->out, block, MPI_FLOAT, world);
        break;
    case SF_REDUCE_SCATTER:
        MPI_Reduce_scatter_block(b->in, b->out, block, MPI_FLOAT, MPI_SUM, world);
        break;
    case SF_ALL_TO_ALL:
        MPI_Alltoall(b->in, block, MPI_FLOAT, b->out, block, MPI_FLOAT, world);
        break;
    case SF_BROADCAST:
        MPI_Bcast(b->out, count, MPI_FLOAT, 0, world);
        break;
    case SF_PERMUTE:
        MPI_Sendrecv(b->in, count, MPI_FLOAT, to, 1, b->out, count, MPI_FLOAT, from, 1, world,
                     MPI_STATUS_IGNORE);
        break;
    case SF_COLLECTIVE_COUNT:
        break;
    }
#else
    (void)b, (void)kind, (void)bytes;
#endif
}

static void meet(const bench *b)
{
    run_ours(b, SF_ALL_REDUCE, (int64_t)sizeof(float));
}

/* Seconds of one transfer, `repeats` in a row. */
static double measure(const bench *b, bool bare, sf_collective kind, int64_t bytes, int repeats)
{
    meet(b);
    double began = sf_now();
    for (int i = 0; i < repeats; i++)
        (bare ? run_bare : run_ours)(b, kind, bytes);
    double took = (sf_now() - began) / repeats;
    meet(b);
    return took;
}

static void print_row(const bench *b, sf_collective kind, int64_t bytes)
{
    double ours = 1e9, bare = 1e9;
    int repeats = bytes > 4000000 ? 1 : bytes > 100000 ? 20 : 200;
    for (int microbatch = 0; microbatch < TURNS; microbatch++) {
        double took = measure(b, false, kind, bytes, repeats);
        ours = took < ours ? took : ours;
        if (b->bare) {
            took = measure(b, true, kind, bytes, repeats);
            bare = took < bare ? took : bare;
        }
    }
    if (b->rank != 0)
        return;
    printf("%-14s %9.0f KB %11.1f %8.2f", sf_collective_name(kind), (double)bytes / 1024,
           1e6 * ours, (double)bytes / ours / 1e9);
    if (b->bare)
        printf(" %11.1f %7.2f", 1e6 * bare, bare / ours);
    printf("\n");
    fflush(stdout);
}

/* A product that takes about as long as `seconds`: of square matrices, again and again. */
typedef struct product {
    sf_gemm gemm;
    sf_threads *threads;
    int times;
} product;

static void run_product(const product *p)
{
    for (int i = 0; i < p->times; i++)
        sf_gemm_run(&p->gemm, p->threads);
}

static product new_product(void)
{
    enum { N = 512 };
    product p = {.threads = sf_threads_new(1), .times = 1};
    float *memory = sf_alloc_kept(3 * sizeof(float) * N * N);
    sf_matrix m = {.dtype = SF_F32, .row = N, .column = 1};
    p.gemm = (sf_gemm){.batches = 1, .m = N, .n = N, .k = N, .a = m, .b = m, .c = m};
    p.gemm.a.data = memory;
    p.gemm.b.data = memory + N * N;
    p.gemm.c.data = memory + 2 * N * N;
    p.gemm.scratch = sf_alloc_kept((size_t)sf_gemm_scratch(&p.gemm, 1) + 64);
    run_product(&p);
    return p;
}

static void free_product(product *p)
{
    sf_free(p->gemm.a.data);
    sf_free(p->gemm.scratch);
    sf_threads_free(p->threads);
}

static void print_overlap(const bench *b, int64_t bytes)
{
    product p = new_product();
    double transfer = 1e9, once = 1e9, work = 1e9, both = 1e9;
    for (int microbatch = 0; microbatch < TURNS; microbatch++) {
        double took = measure(b, false, SF_ALL_REDUCE, bytes, 1);
        transfer = took < transfer ? took : transfer;
        double began = sf_now();
        run_product(&p);
        took = sf_now() - began;
        once = took < once ? took : once;
    }
    /* All ranks must do the same: the first one decides, with half as much again as is needed. */
    float times = (float)(1.5 * transfer / once) + 1;
    b->out[0] = times;
    run_ours(b, SF_BROADCAST, (int64_t)sizeof(float));
    p.times = (int)b->out[0];
    for (int microbatch = 0; microbatch < TURNS; microbatch++) {
        meet(b);
        double began = sf_now();
        run_product(&p);
        double alone = sf_now() - began;
        work = alone < work ? alone : work;
        meet(b);
        began = sf_now();
        sf_request *request = start(b, SF_ALL_REDUCE, bytes, false);
        run_product(&p);
        if (sf_comm_wait(request, NULL) != SF_OK)
            stop("a transfer fails");
        double took = sf_now() - began;
        both = took < both ? took : both;
    }
    if (b->rank == 0)
        printf(
            "overlap of %.0f MB: transfer %.1f ms, product %.1f ms, both %.1f ms: %.0f %% hidden\n",
            (double)bytes / 1048576, 1e3 * transfer, 1e3 * work, 1e3 * both,
            100 * (transfer + work - both) / transfer);
    free_product(&p);
}

static const int64_t sizes[] = {1 << 10, 1 << 20, 64 << 20};

static void print_table(const bench *b)
{
    if (b->rank == 0)
        printf("%d ranks, %s\ntransfer                      ours us     GB/s%s\n", b->size,
               sf_comm_kind(b->comm), b->bare ? "     bare us   ratio" : "");
    for (int kind = 0; kind < SF_COLLECTIVE_COUNT; kind++)
        for (int i = 0; i < 3; i++)
            print_row(b, (sf_collective)kind, sizes[i]);
}

static void run_bench(bench *b)
{
    int ranks[MOST_RANKS];
    b->rank = sf_comm_rank(b->comm);
    b->size = sf_comm_size(b->comm);
    for (int r = 0; r < b->size; r++)
        ranks[r] = r;
    if (sf_comm_group(b->comm, ranks, b->size, NULL, &b->group) != SF_OK)
        stop("no group of all ranks");
    b->in = sf_alloc_kept((size_t)sizes[2]);
    b->out = sf_alloc_kept((size_t)sizes[2]);
    memset(b->in, 0, (size_t)sizes[2]);
    memset(b->out, 0, (size_t)sizes[2]);
    if (b->overlap)
        print_overlap(b, sizes[2]);
    else
        print_table(b);
    sf_free(b->in);
    sf_free(b->out);
}

static void *run_thread(void *argument)
{
    bench *b = argument;
    run_bench(b);
    sf_comm_free(b->comm);
    return NULL;
}

static void run_threads(int size, bool overlap)
{
    sf_comm *ends[MOST_RANKS];
    bench benches[MOST_RANKS];
    pthread_t threads[MOST_RANKS];
    if (size < 1 || size > MOST_RANKS || sf_comm_threads_new(size, NULL, NULL, ends) != SF_OK)
        stop("no such number of ranks");
    for (int r = 0; r < size; r++) {
        benches[r] = (bench){.comm = ends[r], .overlap = overlap};
        if (pthread_create(&threads[r], NULL, run_thread, &benches[r]) != 0)
            stop("no thread");
    }
    for (int r = 0; r < size; r++)
        pthread_join(threads[r], NULL);
}

int main(int argc, char **argv)
{
    bool overlap = argc > 1 && strcmp(argv[1], "overlap") == 0;
    if (sf_comm_mpi_size() == 0) {
        const char *count = argv[overlap ? 2 : 1];
        run_threads(count ? atoi(count) : 2, overlap);
        return 0;
    }
    bench b = {.bare = true, .overlap = overlap};
#if SF_HAVE_MPI
    /* The bare calls come from this thread, ours from the engine's. */
    int level;
    sf_comm_mpi_prefer();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (level < MPI_THREAD_MULTIPLE)
        stop("this MPI cannot be called by two threads");
#endif
    if (sf_comm_mpi_new(NULL, NULL, &b.comm) != SF_OK || sf_comm_size(b.comm) > MOST_RANKS)
        stop("no MPI, or too many ranks");
    run_bench(&b);
    sf_comm_free(b.comm);
#if SF_HAVE_MPI
    MPI_Finalize();
#endif
    return 0;
}
