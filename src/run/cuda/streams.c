#include "run/cuda/streams.h"

#include "base/mem.h"

enum { NON_BLOCKING = 1, NO_TIME = 2 };

int sf_streams_add(sf_streams *s)
{
    int status = s->driver->stream_create(&s->at[s->count], NON_BLOCKING);
    s->count += status == 0;
    return status;
}

int sf_streams_open(sf_streams *s)
{
    int status = 0;
    for (int i = 0; i < SF_LANE_COUNT && status == 0; i++)
        status = sf_streams_add(s);
    return status == 0 ? s->driver->event_create(&s->point, NO_TIME) : status;
}

static void drop_raised(sf_streams *s)
{
    for (size_t i = 0; i < s->nraised; i++)
        if (s->raised[i])
            s->driver->event_destroy(s->raised[i]);
    sf_free(s->raised);
    s->raised = NULL;
    s->nraised = 0;
}

void sf_streams_close(sf_streams *s)
{
    drop_raised(s);
    if (s->point)
        s->driver->event_destroy(s->point);
    for (int i = 0; i < s->count; i++)
        s->driver->stream_destroy(s->at[i]);
}

/* A wait for an event is for its last record at that time: it may be recorded once more. */
int sf_streams_follow(sf_streams *s, sf_lane which, sf_lane whom)
{
    int status = s->driver->event_record(s->point, s->at[whom]);
    return status == 0 ? s->driver->stream_follow(s->at[which], s->point, 0) : status;
}

int sf_streams_raise(sf_streams *s, sf_lane lane, size_t event, size_t count)
{
    if (s->nraised < count) {
        drop_raised(s);
        s->raised = sf_alloc(count * sizeof *s->raised);
        s->nraised = count;
    }
    int status = 0;
    if (!s->raised[event])
        status = s->driver->event_create(&s->raised[event], NO_TIME);
    return status == 0 ? s->driver->event_record(s->raised[event], s->at[lane]) : status;
}

int sf_streams_await(sf_streams *s, sf_lane lane, size_t event)
{
    return s->driver->stream_follow(s->at[lane], s->raised[event], 0);
}
