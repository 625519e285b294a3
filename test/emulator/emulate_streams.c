#include "emulator/emulate_streams.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { LANES = SF_LANE_COUNT + SF_MORE_LANES };

typedef struct job {
    struct job *next;
    sf_host_work work;
    char what[]; /* or its argument, if one was given */
} job;

typedef struct lane {
    sf_host_stream stream; /* first: libraries have a pointer to it */
    sf_host_lanes *all;
    bool has_thread;
    pthread_t thread;
    job *first, **last; /* not done; the first is being done */
} lane;

/* How often an event was raised, always on the same lane, and how often that has been reached: who waits for one waits for the last
 * time it was raised by then. */
typedef struct event {
    uint64_t raised, reached;
} event;

struct sf_host_graph {
    job *first, **last;
    sf_host_graph *next; /* of those that are forgotten */
};

struct sf_host_lanes {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    lane at[LANES];
    int count;
    bool stops;
    bool has_one_queue;
    sf_host_graph *drawn;     /* work on lanes goes there, or NULL */
    sf_host_graph *forgotten; /* freed by who made them, when all is done */
    event *events;            /* first, by lane, those of lanes that are followed */
    size_t nevents;
};

static void drop_work(const sf_host_work *work)
{
    if (work->drop)
        work->drop(work->argument);
}

static void *serve_lane(void *argument)
{
    lane *l = argument;
    sf_host_lanes *all = l->all;
    pthread_mutex_lock(&all->lock);
    while (l->first || !all->stops) {
        job *j = l->first;
        if (!j) {
            pthread_cond_wait(&all->changed, &all->lock);
            continue;
        }
        pthread_mutex_unlock(&all->lock);
        j->work.run(j->work.argument);
        drop_work(&j->work);
        pthread_mutex_lock(&all->lock);
        l->first = j->next;
        if (!l->first)
            l->last = &l->first;
        sf_free(j);
        pthread_cond_broadcast(&all->changed);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

static bool asks_for_one_queue(void)
{
    const char *asked = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    return asked && strcmp(asked, "1") == 0;
}

/* The queue of the lane. */
static lane *queue_of(sf_host_lanes *lanes, sf_lane at)
{
    return &lanes->at[lanes->has_one_queue && lanes->at[at].has_thread ? SF_LANE_COMPUTE : at];
}

/* A job that has a copy of the so many bytes that its argument is, if there are any. */
static void begin_job(job *j, sf_host_work work, size_t bytes)
{
    *j = (job){.work = work};
    if (bytes == 0)
        return;
    memcpy(j->what, work.argument, bytes);
    j->work.argument = j->what;
}

static void put_job(lane *l, sf_host_work work, size_t bytes)
{
    sf_host_lanes *all = l->all;
    sf_lane at = (sf_lane)(l - all->at);
    job *j = l->has_thread ? sf_alloc_kept(sizeof *j + bytes) : NULL;
    if (!j) { /* now, then */
        sf_host_lanes_wait(all, at);
        work.run(work.argument);
        drop_work(&work);
        return;
    }
    begin_job(j, work, bytes);
    lane *queue = queue_of(all, at);
    pthread_mutex_lock(&all->lock);
    *queue->last = j;
    queue->last = &j->next;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
}

static void put_or_draw(lane *l, sf_host_work work, size_t bytes)
{
    sf_host_graph *drawn = l->all->drawn;
    if (!drawn) {
        put_job(l, work, bytes);
        return;
    }
    job *j = sf_alloc(sizeof *j + bytes);
    begin_job(j, work, bytes);
    *drawn->last = j;
    drawn->last = &j->next;
}

static void put_on_stream(sf_host_stream *stream, sf_host_work work)
{
    put_or_draw((lane *)stream, work, 0);
}

void sf_host_lanes_put(sf_host_lanes *lanes, sf_lane at, void (*run)(void *what), const void *what,
                       size_t bytes)
{
    put_or_draw(&lanes->at[at], (sf_host_work){run, NULL, (void *)(uintptr_t)what}, bytes);
}

sf_status sf_host_lanes_add(sf_host_lanes *lanes, sf_diag *diag, sf_lane *out)
{
    if (lanes->count == LANES)
        return sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE, "there are %d lanes already",
                       lanes->count);
    *out = (sf_lane)lanes->count++;
    return SF_OK;
}

sf_host_lanes *sf_host_lanes_new(void)
{
    sf_host_lanes *lanes = sf_alloc(sizeof *lanes);
    pthread_mutex_init(&lanes->lock, NULL);
    pthread_cond_init(&lanes->changed, NULL);
    lanes->count = SF_LANE_COUNT;
    lanes->has_one_queue = asks_for_one_queue();
    for (int i = 0; i < LANES; i++) {
        lane *l = &lanes->at[i];
        *l = (lane){.stream = {put_on_stream}, .all = lanes, .last = &l->first};
    }
    return lanes;
}

static void free_forgotten(sf_host_lanes *lanes)
{
    for (sf_host_graph *graph = lanes->forgotten, *next; graph; graph = next) {
        next = graph->next;
        for (job *j = graph->first, *behind; j; j = behind) {
            behind = j->next;
            sf_free(j);
        }
        sf_free(graph);
    }
}

void sf_host_lanes_free(sf_host_lanes *lanes)
{
    pthread_mutex_lock(&lanes->lock);
    lanes->stops = true;
    pthread_cond_broadcast(&lanes->changed);
    pthread_mutex_unlock(&lanes->lock);
    for (int i = 0; i < lanes->count; i++)
        if (lanes->at[i].has_thread)
            pthread_join(lanes->at[i].thread, NULL);
    pthread_cond_destroy(&lanes->changed);
    pthread_mutex_destroy(&lanes->lock);
    free_forgotten(lanes);
    sf_free(lanes->events);
    sf_free(lanes);
}

/* Signals are for the threads of the program. */
static sf_status start_thread(lane *l, sf_diag *diag)
{
    sigset_t all, before;
    if (l->has_thread)
        return SF_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    l->has_thread = pthread_create(&l->thread, NULL, serve_lane, l) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return l->has_thread ? SF_OK : sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no thread can be started");
}

sf_status sf_host_lanes_stream(sf_host_lanes *lanes, sf_lane at, sf_diag *diag, void **out)
{
    SF_TRY(start_thread(&lanes->at[SF_LANE_COMPUTE], diag));
    SF_TRY(start_thread(&lanes->at[at], diag));
    *out = &lanes->at[at].stream;
    return SF_OK;
}

bool sf_host_lanes_ended(sf_host_lanes *lanes, sf_lane at)
{
    pthread_mutex_lock(&lanes->lock);
    bool ended = !queue_of(lanes, at)->first;
    pthread_mutex_unlock(&lanes->lock);
    return ended;
}

void sf_host_lanes_wait(sf_host_lanes *lanes, sf_lane at)
{
    pthread_mutex_lock(&lanes->lock);
    while (queue_of(lanes, at)->first)
        pthread_cond_wait(&lanes->changed, &lanes->lock);
    pthread_mutex_unlock(&lanes->lock);
}

/* Events */

typedef struct moment {
    sf_host_lanes *lanes;
    size_t event;
    uint64_t raised;
} moment;

static void reach(void *what)
{
    const moment *m = what;
    pthread_mutex_lock(&m->lanes->lock);
    m->lanes->events[m->event].reached = m->raised;
    pthread_cond_broadcast(&m->lanes->changed);
    pthread_mutex_unlock(&m->lanes->lock);
}

static void wait_until_reached(void *what)
{
    const moment *m = what;
    pthread_mutex_lock(&m->lanes->lock);
    while (m->lanes->events[m->event].reached < m->raised)
        pthread_cond_wait(&m->lanes->changed, &m->lanes->lock);
    pthread_mutex_unlock(&m->lanes->lock);
}

static moment moment_of(sf_host_lanes *lanes, size_t number, bool raises)
{
    pthread_mutex_lock(&lanes->lock);
    if (lanes->nevents <= number) {
        event *events = sf_alloc((2 * number + 1) * sizeof *events);
        if (lanes->nevents > 0)
            memcpy(events, lanes->events, lanes->nevents * sizeof *events);
        sf_free(lanes->events);
        lanes->events = events;
        lanes->nevents = 2 * number + 1;
    }
    moment m = {lanes, number, lanes->events[number].raised += raises};
    pthread_mutex_unlock(&lanes->lock);
    return m;
}

static void put_moment(sf_host_lanes *lanes, sf_lane at, size_t number, bool raises)
{
    if (lanes->drawn) /* one after the other */
        return;
    moment m = moment_of(lanes, number, raises);
    sf_host_lanes_put(lanes, at, raises ? reach : wait_until_reached, &m, sizeof m);
}

void sf_host_lanes_follow(sf_host_lanes *lanes, sf_lane which, sf_lane whom)
{
    put_moment(lanes, whom, whom, true);
    put_moment(lanes, which, whom, false);
}

void sf_host_lanes_raise(sf_host_lanes *lanes, sf_lane at, size_t number)
{
    put_moment(lanes, at, LANES + number, true);
}

void sf_host_lanes_await(sf_host_lanes *lanes, sf_lane at, size_t number)
{
    put_moment(lanes, at, LANES + number, false);
}

/* Graphs */

void sf_host_lanes_begin(sf_host_lanes *lanes)
{
    lanes->drawn = sf_alloc(sizeof *lanes->drawn);
    lanes->drawn->last = &lanes->drawn->first;
}

bool sf_host_lanes_draws(const sf_host_lanes *lanes)
{
    return lanes->drawn != NULL;
}

sf_host_graph *sf_host_lanes_end(sf_host_lanes *lanes)
{
    sf_host_graph *graph = lanes->drawn;
    lanes->drawn = NULL;
    return graph;
}

void sf_host_lanes_replay(sf_host_lanes *lanes, const sf_host_graph *graph)
{
    for (const job *j = graph->first; j; j = j->next)
        put_job(&lanes->at[SF_LANE_COMPUTE],
                (sf_host_work){.run = j->work.run, .argument = j->work.argument}, 0);
}

static void drop_graph(void *what)
{
    const sf_host_graph *graph = what;
    for (const job *j = graph->first; j; j = j->next)
        drop_work(&j->work);
}

void sf_host_lanes_forget(sf_host_lanes *lanes, sf_host_graph *graph)
{
    graph->next = lanes->forgotten;
    lanes->forgotten = graph;
    put_job(&lanes->at[SF_LANE_COMPUTE], (sf_host_work){.run = drop_graph, .argument = graph}, 0);
}
