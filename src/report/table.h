/* Text for people: tables with aligned columns, and numbers with units.
 *
 * Output follows a style: on a terminal it has a width and perhaps colours; otherwise it is plain and
 * as wide as it needs to be. Texts from a user's file are made safe: control characters become '?'.
 */
#ifndef SF_REPORT_TABLE_H
#define SF_REPORT_TABLE_H

#include "base/arena.h"
#include "base/str.h"
#include "base/units.h"

typedef struct sf_style {
    int width; /* columns of the terminal, 0 for no limit */
    bool colour;
} sf_style;

/* How a column shrinks if the table is too wide. */
typedef enum sf_squeeze {
    SF_STAYS,
    SF_SHRINKS,    /* is cut in the middle; at most one column */
    SF_GOES_FIRST, /* is left out, where shrinking leaves too little to read */
    SF_GOES_SECOND,
    SF_GOES_THIRD,
} sf_squeeze;

typedef struct sf_column {
    const char *title;
    bool right; /* align numbers to the right */
    sf_squeeze squeeze;
} sf_column;

/* Rows of cells. Lives in the arena. */
typedef struct sf_table {
    sf_arena *arena;
    const sf_column *columns;
    int ncolumns;
    const char **cells; /* row after row */
    size_t ncells, capacity;
} sf_table;

/* `columns` is borrowed. */
sf_table sf_table_new(sf_arena *arena, int ncolumns, const sf_column *columns);

/* The next cell, from left to right and row by row. */
void sf_table_add(sf_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends the table, each line indented by two spaces, with a line of titles if there are any. All
 * rows are complete. Where even squeezing does not make it fit, lines are longer than the width. */
void sf_table_print(const sf_table *table, sf_style style, sf_buf *out);

/* Appends a heading on a line of its own, with an empty line before it unless it is the first. */
void sf_heading(sf_buf *out, sf_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends a remark: indented, dim on a terminal. */
void sf_remark(sf_buf *out, sf_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
