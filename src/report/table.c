#include "report/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/output.h"

enum { INDENT = 2, GAP = 2, NARROWEST = 12, READABLE = 36, LEFT_OUT = -1 };

static const char BOLD[] = SF_CODE_BOLD, DIM[] = SF_CODE_DIM, PLAIN[] = SF_CODE_PLAIN;

sf_table sf_table_new(sf_arena *arena, int ncolumns, const sf_column *columns)
{
    return (sf_table){.arena = arena, .columns = columns, .ncolumns = ncolumns};
}

void sf_table_add(sf_table *table, const char *format, ...)
{
    sf_buf buf = {0};
    va_list args;
    va_start(args, format);
    sf_buf_vprintf(&buf, format, args);
    va_end(args);
    sf_buf shown = {0};
    sf_buf_show(&shown, (sf_str){buf.text, buf.length});
    char *cell = sf_arena_string(table->arena, shown.text, shown.length);
    sf_buf_free(&shown);
    sf_buf_free(&buf);
    SF_PUSH(table->arena, table->cells, table->ncells, table->capacity, cell);
}

/* Characters, not bytes: those that do not continue another. */
static int text_width(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static const char *skip_characters(const char *text, int characters)
{
    while (*text && characters > 0) {
        text++;
        while (((unsigned char)*text & 0xc0) == 0x80)
            text++;
        characters--;
    }
    return text;
}

static void pad_with(sf_buf *out, int count)
{
    for (int i = 0; i < count; i++)
        sf_buf_putc(out, ' ');
}

/* Keeps both ends, and more of the last one, which is the specific part. */
static void put_cut(sf_buf *out, const char *text, int width)
{
    int length = text_width(text);
    if (length <= width) {
        sf_buf_puts(out, text);
        return;
    }
    int head = (width - 2) / 4, tail = width - 2 - head;
    sf_buf_add(out, text, (size_t)(skip_characters(text, head) - text));
    sf_buf_puts(out, "..");
    sf_buf_puts(out, skip_characters(text, length - tail));
}

static void put_table_row(const sf_table *table, const int *widths, const char *const *cells,
                          sf_buf *out)
{
    pad_with(out, INDENT);
    for (int c = 0; c < table->ncolumns; c++) {
        if (widths[c] == LEFT_OUT)
            continue;
        int length = text_width(cells[c]);
        int space = length < widths[c] ? widths[c] - length : 0;
        bool last = c == table->ncolumns - 1;
        if (table->columns[c].right)
            pad_with(out, space);
        put_cut(out, cells[c], widths[c]);
        if (!table->columns[c].right && !last)
            pad_with(out, space);
        if (!last)
            pad_with(out, GAP);
    }
    while (out->length && out->text[out->length - 1] == ' ')
        out->text[--out->length] = '\0';
}

static int widest_cell(const sf_table *table, int column)
{
    int width = text_width(table->columns[column].title);
    for (size_t i = (size_t)column; i < table->ncells; i += (size_t)table->ncolumns) {
        int cell = text_width(table->cells[i]);
        width = cell > width ? cell : width;
    }
    return width;
}

/* Leaves columns out until the table fits, or would with the one that shrinks still readable. */
static int leave_out(const sf_table *table, int width, int spare, int total, int *widths)
{
    for (int microbatch = SF_GOES_FIRST; microbatch <= SF_GOES_THIRD; microbatch++)
        for (int c = 0; c < table->ncolumns && total - spare > width; c++)
            if ((int)table->columns[c].squeeze == microbatch) {
                total -= widths[c] + GAP;
                widths[c] = LEFT_OUT;
            }
    return total;
}

static int width_beyond(int width, int least)
{
    return width > least ? width - least : 0;
}

static void fit_columns(const sf_table *table, sf_style style, int *widths)
{
    int total = INDENT - GAP, shrinking = -1;
    for (int c = 0; c < table->ncolumns; c++) {
        widths[c] = widest_cell(table, c);
        total += widths[c] + GAP;
        if (table->columns[c].squeeze == SF_SHRINKS)
            shrinking = c;
    }
    if (style.width <= 0 || total <= style.width)
        return;
    int spare = shrinking < 0 ? 0 : width_beyond(widths[shrinking], READABLE);
    total = leave_out(table, style.width, spare, total, widths);
    if (shrinking < 0 || total <= style.width)
        return;
    int excess = total - style.width, most = width_beyond(widths[shrinking], NARROWEST);
    widths[shrinking] -= excess < most ? excess : most;
}

void sf_table_print(const sf_table *table, sf_style style, sf_buf *out)
{
    int *widths = SF_ARRAY(table->arena, table->ncolumns, int);
    const char **titles = SF_ARRAY(table->arena, table->ncolumns, const char *);
    bool has_titles = false;
    for (int c = 0; c < table->ncolumns; c++) {
        titles[c] = table->columns[c].title;
        has_titles = has_titles || titles[c][0];
    }
    fit_columns(table, style, widths);
    if (has_titles) {
        sf_buf_puts(out, style.colour ? DIM : "");
        put_table_row(table, widths, titles, out);
        sf_buf_puts(out, style.colour ? PLAIN : "");
        sf_buf_putc(out, '\n');
    }
    for (size_t i = 0; i < table->ncells; i += (size_t)table->ncolumns) {
        put_table_row(table, widths, table->cells + i, out);
        sf_buf_putc(out, '\n');
    }
}

/* Appends a text, made safe, between two codes of the terminal. */
static void put_safe(sf_buf *out, const char *before, const char *format, va_list args)
{
    sf_buf text = {0};
    sf_buf_vprintf(&text, format, args);
    sf_buf_puts(out, before);
    sf_buf_show(out, (sf_str){text.text, text.length});
    sf_buf_puts(out, *before ? PLAIN : "");
    sf_buf_free(&text);
    sf_buf_putc(out, '\n');
}

void sf_heading(sf_buf *out, sf_style style, const char *format, ...)
{
    if (out->length)
        sf_buf_putc(out, '\n');
    va_list args;
    va_start(args, format);
    put_safe(out, style.colour ? BOLD : "", format, args);
    va_end(args);
}

void sf_remark(sf_buf *out, sf_style style, const char *format, ...)
{
    pad_with(out, INDENT);
    va_list args;
    va_start(args, format);
    put_safe(out, style.colour ? DIM : "", format, args);
    va_end(args);
}
