#include "base/work_queue.h"

#include <pthread.h>
#include <signal.h>

#include "base/mem.h"

typedef struct lane {
    sf_lanes *lanes;
    pthread_t thread;
    bool started;
    sf_lane_job *first, *last; /* that are not done */
} lane;

/* Jobs are few and long, so one lock and one condition are enough for all. */
struct sf_lanes {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool ends;
    lane lanes[SF_LANES];
};

static bool may_begin(const sf_lane_job *job)
{
    for (uint32_t i = 0; i < job->nafter; i++)
        if (!job->after[i]->done)
            return false;
    return true;
}

/* With the lock, which is given up for as long as the job takes. */
static void do_job(sf_lanes *l, sf_lane_job *job)
{
    while (!may_begin(job))
        pthread_cond_wait(&l->changed, &l->mutex);
    pthread_mutex_unlock(&l->mutex);
    job->work(job->context);
    pthread_mutex_lock(&l->mutex);
    job->done = true;
    pthread_cond_broadcast(&l->changed);
}

static void *run_lane(void *argument)
{
    lane *self = argument;
    sf_lanes *l = self->lanes;
    pthread_mutex_lock(&l->mutex);
    for (;;) {
        while (!self->first && !l->ends)
            pthread_cond_wait(&l->changed, &l->mutex);
        sf_lane_job *job = self->first;
        if (!job)
            break;
        self->first = job->next;
        do_job(l, job);
    }
    pthread_mutex_unlock(&l->mutex);
    return NULL;
}

sf_lanes *sf_lanes_new(void)
{
    sf_lanes *l = sf_alloc_kept(sizeof *l);
    if (!l)
        return NULL;
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->changed, NULL);
    for (int i = 0; i < SF_LANES; i++)
        l->lanes[i].lanes = l;
    return l;
}

void sf_lanes_free(sf_lanes *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->mutex);
    l->ends = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
    for (int i = 0; i < SF_LANES; i++)
        if (l->lanes[i].started)
            pthread_join(l->lanes[i].thread, NULL);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->mutex);
    sf_free(l);
}

/* Signals are for the threads of the program that uses the library, not for ours. */
static bool start_lane(lane *self)
{
    sigset_t all, before;
    if (self->started)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    self->started = pthread_create(&self->thread, NULL, run_lane, self) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return self->started;
}

void sf_lanes_start(sf_lanes *l, int index, sf_lane_job *job)
{
    lane *at = &l->lanes[index];
    bool beside = start_lane(at);
    pthread_mutex_lock(&l->mutex);
    job->next = NULL;
    job->done = false;
    if (beside) {
        *(at->first ? &at->last->next : &at->first) = job;
        at->last = job;
        pthread_cond_broadcast(&l->changed);
    } else {
        do_job(l, job);
    }
    pthread_mutex_unlock(&l->mutex);
}

void sf_lanes_wait(sf_lanes *l, const sf_lane_job *job)
{
    pthread_mutex_lock(&l->mutex);
    while (!job->done)
        pthread_cond_wait(&l->changed, &l->mutex);
    pthread_mutex_unlock(&l->mutex);
}
