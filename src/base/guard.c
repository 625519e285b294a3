#include "base/guard.h"

#include <stdatomic.h>

#include "base/mem.h"

sf_status sf_guarded(sf_status (*work)(void *context), void *context, sf_diag *diag)
{
    sf_guard guard;
    const int before = diag ? diag->count : 0;
    sf_guard_enter(&guard);
    if (setjmp(guard.target) != 0) {
        bool is_said = diag && diag->count > before && diag->newest == SF_ENOMEM;
        return is_said ? SF_ENOMEM : sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "out of memory");
    }
    sf_status status = work(context);
    sf_guard_leave(&guard);
    return status;
}

typedef struct each {
    int64_t count;
    sf_each_work *work;
    void *context;
    sf_guard *guards;
    atomic_llong next;
    atomic_bool failed;
} each;

static void do_one(each *e, int64_t i, int part)
{
    sf_guard *guard = &e->guards[i];
    sf_guard_enter(guard);
    if (setjmp(guard->target) != 0) {
        atomic_store(&e->failed, true);
        return;
    }
    e->work(e->context, i, part);
    sf_guard_part(guard);
}

static void do_some(void *context, int part, int64_t first, int64_t end)
{
    each *e = context;
    (void)first;
    (void)end;
    while (!atomic_load(&e->failed)) {
        int64_t i = atomic_fetch_add(&e->next, 1);
        if (i >= e->count)
            return;
        do_one(e, i, part);
    }
}

void sf_guarded_each(sf_threads *threads, int64_t count, sf_each_work *work, void *context)
{
    each e = {.count = count,
              .work = work,
              .context = context,
              .guards = sf_alloc((size_t)count * sizeof *e.guards)};
    sf_threads_run(threads, count, 1, do_some, &e);
    for (int64_t i = 0; i < count; i++)
        sf_guard_take(&e.guards[i]);
    sf_free(e.guards);
    if (atomic_load(&e.failed))
        sf_guard_fail();
}
