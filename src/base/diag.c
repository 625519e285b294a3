#include "base/diag.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/boundary.h"
#include "base/mem.h"
#include "base/str.h"

const char *sf_status_name(sf_status status)
{
    static const char *const names[] = {
        [SF_OK] = "good",
        [SF_EINPUT] = "bad input",
        [SF_EUNSUPPORTED] = "not supported",
        [SF_EMISMATCH] = "mismatch",
        [SF_EUSAGE] = "misuse",
        [SF_EIO] = "input/output error",
        [SF_ENOMEM] = "out of memory",
        [SF_EPEER] = "lost rank",
    };
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "no status";
}

sf_diag *sf_diag_new(void)
{
    return sf_alloc_kept(sizeof(sf_diag));
}

void sf_diag_clear(sf_diag *diag)
{
    SF_NEED_OR(, diag);
    for (int i = 0; i < SF_DIAG_KEPT; i++) {
        sf_message *message = &diag->messages[i];
        sf_free((void *)(uintptr_t)message->loc.file);
        sf_free(message->text);
        sf_free(message->hint);
        sf_free(message->whole);
    }
    *diag = (sf_diag){0};
}

void sf_diag_free(sf_diag *diag)
{
    if (!diag)
        return;
    sf_diag_clear(diag);
    sf_free(diag);
}

/* Copies are kept memory, because the guard of a call that fails must not take them along; a copy
 * that cannot be had is NULL. */
static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = sf_alloc_kept(size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

static char *format_text(const char *format, va_list args)
{
    char text[2048];
    vsnprintf(text, sizeof text, format, args);
    return copy_text(text);
}

static void add_message(sf_diag *diag, sf_status status, sf_loc loc, const char *format,
                        va_list args)
{
    if (diag->count < SF_DIAG_KEPT) {
        sf_message *message = &diag->messages[diag->count];
        message->text = format_text(format, args);
        message->status = status;
        message->loc = loc;
        if (loc.file)
            message->loc.file = copy_text(loc.file);
    }
    diag->count++;
    diag->newest = status;
}

/* The status of the newest failure of this thread without a diagnostic: later code, a hint, has to
 * return it. */
static _Thread_local sf_status unread;

sf_status sf_fail(sf_diag *diag, sf_status status, sf_loc loc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (diag)
        add_message(diag, status, loc, format, args);
    else
        unread = status;
    va_end(args);
    return status;
}

sf_status sf_status_of_errno(void)
{
    return errno == ENOMEM ? SF_ENOMEM : SF_EIO;
}

void sf_warn(sf_diag *diag, sf_loc loc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (diag)
        add_message(diag, SF_OK, loc, format, args);
    va_end(args);
}

sf_status sf_hint(sf_diag *diag, const char *format, ...)
{
    if (!diag)
        return unread;
    if (diag->count == 0)
        return SF_EINPUT;
    if (diag->count <= SF_DIAG_KEPT) {
        sf_message *message = &diag->messages[diag->count - 1];
        sf_free(message->hint);
        sf_free(message->whole);
        message->whole = NULL;
        va_list args;
        va_start(args, format);
        message->hint = format_text(format, args);
        va_end(args);
    }
    return diag->newest;
}

sf_status sf_heard(sf_diag *diag)
{
    if (!diag)
        return unread;
    if (diag->count == 0)
        return SF_EPEER;
    if (diag->count <= SF_DIAG_KEPT)
        diag->messages[diag->count - 1].heard = true;
    return diag->newest;
}

int sf_diag_count(const sf_diag *diag)
{
    return diag ? diag->count : 0;
}

bool sf_diag_get(const sf_diag *diag, int index, sf_diag_entry *out)
{
    SF_NEED_OR(false, diag, out);
    if (index < 0 || index >= diag->count || index >= SF_DIAG_KEPT)
        return false;
    const sf_message *message = &diag->messages[index];
    sf_diag_entry entry = {
        .size = sizeof entry,
        .code = message->status,
        .severity = message->status == SF_OK ? SF_SEVERITY_WARNING : SF_SEVERITY_ERROR,
        .file = message->loc.file ? message->loc.file : "",
        .line = (int)message->loc.line,
        .column = (int)message->loc.column,
        .text = message->text ? message->text : sf_status_name(message->status),
        .hint = message->hint ? message->hint : "",
    };
    return SF_GIVE(sf_diag_entry, out, &entry, NULL) == SF_OK;
}

static size_t add_shown(char *out, size_t size, size_t at, const char *text)
{
    return at +
           sf_show_text(sf_str_of(text), at < size ? out + at : NULL, at < size ? size - at : 0);
}

/* "FILE:LINE:COLUMN: error: TEXT" and the hint. Names in it come from files: they are shown, not obeyed. Returns the
 * length of all of it. */
static size_t put_message(const sf_message *message, char *out, size_t size)
{
    const char *file = message->loc.file ? message->loc.file : "";
    char place[32] = "";
    if (message->loc.line && message->loc.column)
        snprintf(place, sizeof place, "%u:%u:", message->loc.line, message->loc.column);
    else if (message->loc.line)
        snprintf(place, sizeof place, "%u:", message->loc.line);
    size_t at = add_shown(out, size, 0, file);
    at = add_shown(out, size, at, *file ? ":" : "");
    at = add_shown(out, size, at, place);
    at = add_shown(out, size, at, *file || *place ? " " : "");
    at = add_shown(out, size, at, message->status == SF_OK ? "warning: " : "error: ");
    at = add_shown(out, size, at, message->text ? message->text : sf_status_name(message->status));
    if (!message->hint)
        return at;
    if (at < size)
        out[at] = '\n';
    at = add_shown(out, size, at + 1, "  hint: ");
    return add_shown(out, size, at, message->hint);
}

static char *whole_text(const sf_message *message)
{
    size_t size = put_message(message, NULL, 0) + 1;
    char *whole = sf_alloc_kept(size);
    if (whole)
        put_message(message, whole, size);
    return whole;
}

const char *sf_diag_text(sf_diag *diag, int index)
{
    if (!diag || index < 0 || index >= diag->count || index >= SF_DIAG_KEPT)
        return NULL;
    sf_message *message = &diag->messages[index];
    if (!message->whole)
        message->whole = whole_text(message);
    return message->whole ? message->whole : "error: out of memory";
}

const char *sf_diag_reason(const sf_diag *diag, sf_status status)
{
    for (int i = 0; diag && i < diag->count && i < SF_DIAG_KEPT; i++)
        if (diag->messages[i].status != SF_OK && diag->messages[i].text)
            return diag->messages[i].text;
    return sf_status_name(status);
}

void sf_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "sheaf: internal error: %s at %s:%d; please report this\n", condition, file,
            line);
    abort();
}
