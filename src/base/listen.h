/* Sends events to a listener (sheaf/event.h), which answers whether to go on.
 *
 * Listeners run on the thread that called the library. A thread that the library starts for longer work passes its events
 * on to the thread that waits for it:
 *
 *     the thread that waits                 a thread that works
 *     sf_relay_open(&relay, ...)
 *     starts the thread                     sf_relay_enter(&relay)
 *     sf_relay_serve(&relay), whenever      sf_tell(...) posts the event, wakes the waiting thread,
 *         it is woken                           and waits for the answer */
#ifndef SF_BASE_LISTEN_H
#define SF_BASE_LISTEN_H

#include <pthread.h>

#include "sheaf/event.h"

/* The listener, and an interrupt; all may be NULL. */
typedef struct sf_audience {
    sf_listener *listener;
    void *context;
    const sf_interrupt *interrupt;
} sf_audience;

/* Whether an event is worth making: somebody listens, or may stop the work. */
bool sf_is_heard(const sf_audience *audience);

/* Sends the event; false to stop. */
bool sf_tell(const sf_audience *audience, const sf_event *event);

/* One event at a time. `lock` and `wake` belong to the thread that waits. */
typedef struct sf_relay {
    pthread_mutex_t *lock;
    pthread_cond_t *wake;    /* signalled when an event is posted */
    pthread_cond_t answered; /* broadcast when it was served */
    const sf_audience *audience;
    const sf_event *event; /* posted, or NULL */
    bool served, answer;
} sf_relay;

void sf_relay_open(sf_relay *relay, pthread_mutex_t *lock, pthread_cond_t *wake);
void sf_relay_close(sf_relay *relay);

/* Events of this thread go to the relay from now on. */
void sf_relay_enter(sf_relay *relay);

/* Calls the listener, if an event was posted. The lock is held, but not during the call. */
void sf_relay_serve(sf_relay *relay);

#endif
