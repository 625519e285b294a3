/* Common to the engine and its flows: writing letters, and ending the world. See comm_mpi.h. */
#if SF_HAVE_MPI

#include <stdarg.h>

#include "base/mem.h"
#include "run/comm/comm_mpi.h"

void sf_engine_end(sf_mpi_engine *engine, bool tell, const char *reason)
{
    if (atomic_load(&engine->ending))
        return;
    snprintf(engine->reason, sizeof engine->reason, "%s", reason);
    engine->tell = tell;
    atomic_store(&engine->ending, true);
    pthread_cond_signal(&engine->work);
    pthread_cond_broadcast(&engine->changed);
}

void sf_engine_fail(sf_mpi_engine *engine, sf_status status, const char *format, ...)
{
    char text[SF_MPI_REASON];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&engine->lock);
    if (!atomic_load(&engine->ending))
        engine->status = status;
    sf_engine_end(engine, true, text);
    pthread_mutex_unlock(&engine->lock);
}

bool sf_engine_check(sf_mpi_engine *engine, int code, const char *doing, int peer)
{
    if (code == MPI_SUCCESS)
        return true;
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length, kind = MPI_SUCCESS;
    MPI_Error_string(code, text, &length);
    MPI_Error_class(code, &kind);
    sf_engine_fail(engine, kind == MPI_ERR_NO_MEM ? SF_ENOMEM : SF_EPEER, "%s rank %d: %s", doing,
                   peer, text);
    return false;
}

sf_letter *sf_engine_allocate_letter(sf_mpi_engine *engine, int64_t size)
{
    sf_letter *letter = sf_alloc_kept(sizeof *letter + (size_t)size);
    if (!letter)
        sf_engine_fail(engine, SF_ENOMEM, "no memory for a message");
    return letter;
}

/* Head and payload are sent as one: nothing lies between them. */
_Static_assert(offsetof(sf_letter, payload) == offsetof(sf_letter, head) + sizeof(sf_letter_head),
               "the payload follows the head");

sf_letter *sf_engine_new_letter(sf_mpi_engine *engine, sf_letter_kind kind, int peer,
                                int64_t payload)
{
    sf_letter *letter = sf_engine_allocate_letter(engine, payload);
    if (!letter)
        return NULL;
    letter->peer = peer;
    letter->size = (int)(sizeof letter->head + (size_t)payload);
    letter->head.kind = (int32_t)kind;
    letter->head.epoch = engine->epoch;
    return letter;
}

void sf_engine_post(sf_mpi_engine *engine, sf_letter *letter)
{
    int code = MPI_Isend(&letter->head, letter->size, MPI_BYTE, letter->peer, SF_MPI_LETTER_TAG,
                         engine->world, &letter->request);
    if (!sf_engine_check(engine, code, "writing to", letter->peer)) {
        sf_free(letter);
        return;
    }
    letter->next = engine->outbox;
    engine->outbox = letter;
}

#endif
