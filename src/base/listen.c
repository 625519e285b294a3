#include "base/listen.h"

#include <stdatomic.h>

#include "base/mem.h"

struct sf_interrupt {
    atomic_bool raised;
};

sf_interrupt *sf_interrupt_new(void)
{
    return sf_alloc_kept(sizeof(sf_interrupt));
}

void sf_interrupt_free(sf_interrupt *interrupt)
{
    sf_free(interrupt);
}

/* An atomic without a lock: signal handlers may store to it. */
void sf_interrupt_raise(sf_interrupt *interrupt)
{
    if (interrupt)
        atomic_store(&interrupt->raised, true);
}

void sf_interrupt_clear(sf_interrupt *interrupt)
{
    if (interrupt)
        atomic_store(&interrupt->raised, false);
}

bool sf_interrupt_is_raised(const sf_interrupt *interrupt)
{
    return interrupt && atomic_load(&interrupt->raised);
}

/* Where the events of this thread go; NULL: to the listener itself. */
static _Thread_local sf_relay *relay_of_thread;

bool sf_is_heard(const sf_audience *audience)
{
    return audience->listener || audience->interrupt;
}

static bool post(sf_relay *relay, const sf_audience *audience, const sf_event *event)
{
    pthread_mutex_lock(relay->lock);
    while (relay->event)
        pthread_cond_wait(&relay->answered, relay->lock);
    relay->audience = audience;
    relay->event = event;
    relay->served = false;
    pthread_cond_signal(relay->wake);
    while (!relay->served)
        pthread_cond_wait(&relay->answered, relay->lock);
    bool answer = relay->answer;
    relay->event = NULL;
    pthread_cond_broadcast(&relay->answered);
    pthread_mutex_unlock(relay->lock);
    return answer;
}

bool sf_tell(const sf_audience *audience, const sf_event *event)
{
    bool goes_on = true;
    if (audience->listener && relay_of_thread)
        goes_on = post(relay_of_thread, audience, event);
    else if (audience->listener)
        goes_on = audience->listener(audience->context, event);
    return goes_on && !sf_interrupt_is_raised(audience->interrupt);
}

void sf_relay_open(sf_relay *relay, pthread_mutex_t *lock, pthread_cond_t *wake)
{
    *relay = (sf_relay){.lock = lock, .wake = wake};
    pthread_cond_init(&relay->answered, NULL);
}

void sf_relay_close(sf_relay *relay)
{
    pthread_cond_destroy(&relay->answered);
}

void sf_relay_enter(sf_relay *relay)
{
    relay_of_thread = relay;
}

void sf_relay_serve(sf_relay *relay)
{
    if (!relay->event || relay->served)
        return;
    sf_audience audience = *relay->audience;
    audience.interrupt = NULL;
    pthread_mutex_unlock(relay->lock);
    bool answer = sf_tell(&audience, relay->event);
    pthread_mutex_lock(relay->lock);
    relay->answer = answer;
    relay->served = true;
    pthread_cond_broadcast(&relay->answered);
}
