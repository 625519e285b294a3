#include "run/fast/box.h"

#include <string.h>

void sf_box_simplify(sf_box *box)
{
    int rank = 0;
    for (int d = 0; d < box->rank; d++) {
        int64_t size = box->dims[d];
        if (size == 1)
            continue;
        bool joins = rank > 0 && box->to[rank - 1] == box->to[d] * size &&
                     box->from[rank - 1] == box->from[d] * size;
        int at = joins ? rank - 1 : rank++;
        box->dims[at] = joins ? box->dims[at] * size : size;
        box->to[at] = box->to[d];
        box->from[at] = box->from[d];
    }
    box->rank = rank;
}

int64_t sf_box_count(const sf_box *box)
{
    int64_t count = 1;
    for (int d = 0; d < box->rank; d++)
        count *= box->dims[d];
    return count;
}

/* A constant width lets the compiler move words instead of calling memcpy for each. */
#define STRIDED(width)                                                                             \
    for (int64_t i = 0; i < count; i++)                                                            \
    memcpy(to + i * to_stride * (width), from + i * from_stride * (width), width)

static void copy_box_row(int64_t width, char *to, int64_t to_stride, const char *from,
                         int64_t from_stride, int64_t count)
{
    if (to_stride == 1 && from_stride == 1 && count > 1) {
        memcpy(to, from, (size_t)(count * width));
        return;
    }
    switch (width) {
    case 1:
        STRIDED(1);
        break;
    case 2:
        STRIDED(2);
        break;
    case 4:
        STRIDED(4);
        break;
    case 16:
        STRIDED(16);
        break;
    default:
        STRIDED(8);
        break;
    }
}

void sf_box_copy(const sf_box *box, int64_t width, char *to, const char *from, int64_t first,
                 int64_t end)
{
    if (first >= end)
        return;
    if (box->rank == 0) {
        copy_box_row(width, to, 1, from, 1, 1);
        return;
    }
    int last = box->rank - 1;
    int64_t row = box->dims[last], index[SF_MAX_RANK], rest = first / row, in_row = first % row;
    int64_t to_at = 0, from_at = 0;
    for (int d = last - 1; d >= 0; d--) {
        index[d] = rest % box->dims[d];
        rest /= box->dims[d];
        to_at += index[d] * box->to[d];
        from_at += index[d] * box->from[d];
    }
    while (first < end) {
        int64_t count = row - in_row < end - first ? row - in_row : end - first;
        copy_box_row(width, to + (to_at + in_row * box->to[last]) * width, box->to[last],
                     from + (from_at + in_row * box->from[last]) * width, box->from[last], count);
        first += count;
        in_row = 0;
        for (int d = last - 1; d >= 0; d--) {
            to_at += box->to[d];
            from_at += box->from[d];
            if (++index[d] < box->dims[d])
                break;
            to_at -= box->dims[d] * box->to[d];
            from_at -= box->dims[d] * box->from[d];
            index[d] = 0;
        }
    }
}

typedef struct copying {
    sf_box box;
    int64_t width;
    char *to;
    const char *from;
} copying;

static void copy_part(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    const copying *c = context;
    sf_box_copy(&c->box, c->width, c->to, c->from, first, end);
}

void sf_box_run(sf_box box, int64_t width, char *to, const char *from, sf_threads *threads)
{
    sf_box_simplify(&box);
    int64_t count = sf_box_count(&box);
    copying c = {box, width, to, from};
    if (count > 0)
        sf_threads_run(threads, count, sf_threads_grain(threads), copy_part, &c);
}

void sf_fill(char *to, int64_t width, const void *element, int64_t count)
{
    const unsigned char *bytes = element;
    bool same = true;
    for (int64_t i = 1; i < width; i++)
        same = same && bytes[i] == bytes[0];
    if (same)
        memset(to, bytes[0], (size_t)(count * width));
    else
        copy_box_row(width, to, 1, element, 0, count);
}

static void fill_part(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    const copying *c = context;
    sf_fill(c->to + first * c->width, c->width, c->from, end - first);
}

void sf_fill_run(char *to, int64_t width, const void *element, int64_t count, sf_threads *threads)
{
    copying c = {.width = width, .to = to, .from = element};
    if (count > 0)
        sf_threads_run(threads, count, sf_threads_grain(threads), fill_part, &c);
}
