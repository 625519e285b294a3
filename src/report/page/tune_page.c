/* A page about a tuner's trials: of each pair of variables a map of what settings take, with contour lines, and all trials as
 * a table. It needs no script, and asks for nothing outside. */
#include "report/page/tune_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/boundary.h"
#include "base/guard.h"
#include "base/output.h"
#include "base/units.h"
#include "report/page/page_html.h"

/* Of a map: values of a variable, and pixels of a cell. */
enum { MOST_VALUES = 64, CELL = 44, EDGE = 96 };

/* A setting that was tried, of all that have these two values the best. */
typedef struct cell {
    int trial;     /* the first of them, counted from 1; 0: none */
    double slower; /* than the best, in percent; infinite: none of them fits */
    bool best;
} cell;

typedef struct map {
    const sf_tune_report *report;
    int x, y; /* variables */
    int nx, ny;
    const char *xs[MOST_VALUES], *ys[MOST_VALUES];
    cell *cells; /* row * nx + column */
} map;

static int by_value(const void *a, const void *b)
{
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    double difference = strtod(left, NULL) - strtod(right, NULL);
    return difference < 0 ? -1 : difference > 0 ? 1 : strcmp(left, right);
}

static int place_of(const char *const *values, int count, const char *value)
{
    int at = 0;
    while (at < count && (!value || strcmp(values[at], value) != 0))
        at++;
    return at;
}

int sf_tune_values(const sf_tune_report *report, int variable, int most, const char **out)
{
    int count = 0;
    for (int i = 0; i < report->ntrials; i++) {
        const char *value = report->trials[i]->values[variable];
        if (!value || place_of(out, count, value) < count)
            continue;
        if (count == most)
            return 0;
        out[count++] = value;
    }
    qsort(out, (size_t)count, sizeof *out, by_value);
    return count;
}

static void fill_cells(map *m, sf_arena *arena)
{
    const sf_tune_report *report = m->report;
    double best = report->trials[report->best]->seconds;
    m->cells = SF_ARRAY(arena, (size_t)m->nx * (size_t)m->ny, cell);
    for (int i = 0; i < report->ntrials; i++) {
        const sf_trial *trial = report->trials[i];
        int x = place_of(m->xs, m->nx, trial->values[m->x]),
            y = place_of(m->ys, m->ny, trial->values[m->y]);
        if (x == m->nx || y == m->ny)
            continue;
        cell *at = &m->cells[y * m->nx + x];
        double slower = (trial->seconds / best - 1) * 100;
        at->slower = at->trial ? fmin(at->slower, slower) : slower;
        at->trial = at->trial ? at->trial : i + 1;
        at->best = at->best || i == report->best;
    }
}

/* Drawing ---------------------------------------------------------------------------------------- */

/* The faster, the darker; a hundred percent slower is nearly the ground. */
static double shade(double slower)
{
    return 0.06 + 0.8 * exp(-slower / 25);
}

static void put_cell(const map *m, int x, int y, sf_buf *out)
{
    const cell *at = &m->cells[y * m->nx + x];
    int left = EDGE + x * CELL, top = y * CELL;
    if (!at->trial)
        return;
    sf_buf_printf(out, "<g><title>");
    sf_html_text(m->report->variables[m->x], out);
    sf_buf_putc(out, ' ');
    sf_html_text(m->xs[x], out);
    sf_buf_puts(out, ", ");
    sf_html_text(m->report->variables[m->y], out);
    sf_buf_putc(out, ' ');
    sf_html_text(m->ys[y], out);
    sf_buf_printf(out, ": trial %d</title>", at->trial);
    sf_buf_printf(
        out,
        "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\" fill-opacity=\"%.2f\"%s/>",
        left, top, CELL - 1, CELL - 1, isfinite(at->slower) ? "var(--accent)" : "var(--bad)",
        isfinite(at->slower) ? shade(at->slower) : 0.15,
        at->best ? " stroke=\"var(--ink)\" stroke-width=\"2\"" : "");
    sf_buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", left + CELL / 2,
                  top + CELL / 2 + 4);
    if (at->best)
        sf_buf_puts(out, "best");
    else if (isfinite(at->slower))
        sf_buf_printf(out, "+%.*f", at->slower < 10 ? 1 : 0, at->slower);
    else
        sf_buf_puts(out, "\xc3\x97");
    sf_buf_puts(out, "</text></g>\n");
}

static const cell *corner(const map *m, int x, int y)
{
    return &m->cells[y * m->nx + x];
}

/* Where the level is crossed between two corners; false: it is not. */
static bool cross(const map *m, const int from[2], const int to[2], double level, double out[2])
{
    double a = corner(m, from[0], from[1])->slower, b = corner(m, to[0], to[1])->slower;
    if ((a < level) == (b < level))
        return false;
    double share = (level - a) / (b - a);
    out[0] = EDGE + ((from[0] + share * (to[0] - from[0])) + 0.5) * CELL;
    out[1] = ((from[1] + share * (to[1] - from[1])) + 0.5) * CELL;
    return true;
}

/* Marching squares: between four settings that fit, a line from edge to edge. */
static void put_contour_in(const map *m, int x, int y, double level, sf_buf *out)
{
    const int corners[5][2] = {{x, y}, {x + 1, y}, {x + 1, y + 1}, {x, y + 1}, {x, y}};
    double points[4][2];
    int count = 0;
    for (int i = 0; i < 4; i++) {
        const cell *at = corner(m, corners[i][0], corners[i][1]);
        if (!at->trial || !isfinite(at->slower))
            return;
    }
    for (int i = 0; i < 4; i++)
        count += cross(m, corners[i], corners[i + 1], level, points[count]);
    for (int i = 0; i + 1 < count; i += 2)
        sf_buf_printf(out, "M%.1f %.1fL%.1f %.1f", points[i][0], points[i][1], points[i + 1][0],
                      points[i + 1][1]);
}

static void put_contours(const map *m, sf_buf *out)
{
    static const double levels[] = {1, 2, 5, 10, 20, 50, 100};
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        sf_buf line = {0};
        for (int y = 0; y + 1 < m->ny; y++)
            for (int x = 0; x + 1 < m->nx; x++)
                put_contour_in(m, x, y, levels[l], &line);
        if (line.length > 0)
            sf_buf_printf(
                out,
                "<path d=\"%s\" fill=\"none\" stroke=\"var(--ink)\" stroke-opacity=\"0.55\">"
                "<title>%g %% slower than the best</title></path>\n",
                line.text, levels[l]);
        sf_buf_free(&line);
    }
}

static void put_label(const char *text, int x, int y, const char *anchor, sf_buf *out)
{
    sf_buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" fill=\"var(--dim)\">", x, y,
                  anchor);
    sf_html_text(text, out);
    sf_buf_puts(out, "</text>\n");
}

static void put_map(const map *m, sf_buf *out)
{
    int width = EDGE + m->nx * CELL, height = m->ny * CELL;
    sf_buf_puts(out, "<section><h2>");
    sf_html_text(m->report->variables[m->y], out);
    sf_buf_puts(out, " by ");
    sf_html_text(m->report->variables[m->x], out);
    sf_buf_printf(
        out,
        "</h2><figure><svg viewBox=\"0 0 %d %d\" width=\"%d\" font-size=\"12\" "
        "fill=\"var(--ink)\" role=\"img\" aria-label=\"How much slower than the best each "
        "setting is\">\n",
        width, height + 44, width);
    for (int y = 0; y < m->ny; y++) {
        put_label(m->ys[y], EDGE - 8, y * CELL + CELL / 2 + 4, "end", out);
        for (int x = 0; x < m->nx; x++)
            put_cell(m, x, y, out);
    }
    for (int x = 0; x < m->nx; x++)
        put_label(m->xs[x], EDGE + x * CELL + CELL / 2, height + 16, "middle", out);
    put_label(m->report->variables[m->x], EDGE + m->nx * CELL / 2, height + 36, "middle", out);
    put_label(m->report->variables[m->y], 4, 12, "start", out);
    put_contours(m, out);
    sf_buf_puts(out,
                "</svg><figcaption class=\"note\">Percent slower than the best; &#215; does not "
                "fit; what is empty was not tried. Lines are at 1, 2, 5, 10, 20, 50 and 100 "
                "percent.</figcaption></figure></section>\n");
}

static void put_maps(const sf_tune_report *report, sf_buf *out)
{
    for (int y = 0; y < report->nvariables && report->best >= 0; y++)
        for (int x = y + 1; x < report->nvariables; x++) {
            sf_arena arena = {0};
            map m = {.report = report, .x = x, .y = y};
            m.nx = sf_tune_values(report, x, MOST_VALUES, m.xs);
            m.ny = sf_tune_values(report, y, MOST_VALUES, m.ys);
            if (m.nx > 0 && m.ny > 0) {
                fill_cells(&m, &arena);
                put_map(&m, out);
            }
            sf_arena_free(&arena);
        }
}

static void put_trials(const sf_tune_report *report, sf_buf *out)
{
    sf_buf_puts(out, "<section><h2>Trials</h2><div class=\"scroll\"><table><thead><tr><th "
                     "class=\"n\">trial</th>");
    for (int v = 0; v < report->nvariables; v++) {
        sf_buf_puts(out, "<th>");
        sf_html_text(report->variables[v], out);
        sf_buf_puts(out, "</th>");
    }
    sf_buf_puts(
        out, "<th class=\"n\">step</th><th class=\"n\">memory</th><th></th></tr></thead><tbody>\n");
    for (int i = 0; i < report->ntrials; i++) {
        const sf_trial *trial = report->trials[i];
        sf_buf_printf(out, "<tr%s><td class=\"n\">%d</td>",
                      i == report->best ? " class=\"chosen\"" : "", i + 1);
        for (int v = 0; v < report->nvariables; v++) {
            sf_buf_puts(out, "<td>");
            sf_html_text(trial->values[v] ? trial->values[v] : "-", out);
            sf_buf_puts(out, "</td>");
        }
        sf_buf_printf(out, "<td class=\"n\">%s</td><td class=\"n\">%s</td><td>",
                      isfinite(trial->seconds) ? sf_text_seconds(trial->seconds).at : "-",
                      trial->memory > 0 ? sf_text_bytes((double)trial->memory).at : "-");
        sf_html_text(trial->why          ? trial->why
                     : trial->pruned     ? "does not fit"
                     : i == report->best ? "best"
                                         : "",
                     out);
        sf_buf_puts(out, "</td></tr>\n");
    }
    sf_buf_puts(out, "</tbody></table></div></section>\n");
}

struct writing {
    const sf_tune_report *report;
    const char *title;
    const sf_output *output;
    sf_diag *diag;
};

static sf_status write_page(void *context)
{
    const struct writing *job = context;
    const sf_tune_report *report = job->report;
    sf_buf out = {0};
    sf_buf_puts(&out,
                "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                "<meta name=\"generator\" content=\"sheaf tune\"><meta "
                "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                "'unsafe-inline'\"><title>");
    sf_html_text(job->title, &out);
    sf_buf_puts(&out, "</title><style>\n");
    sf_buf_add(&out, (const char *)sf_page_style.at, sf_page_style.length);
    sf_buf_puts(&out, "</style></head><body><header><h1>");
    sf_html_text(job->title, &out);
    sf_buf_printf(&out, "</h1></header><main><p>%d of %" PRId64 " settings looked at.",
                  report->ntrials, report->points);
    if (report->best >= 0) {
        sf_buf_puts(&out, " Best: <b>");
        sf_html_text(report->trials[report->best]->setting, &out);
        sf_buf_printf(&out, "</b>, %s a step.",
                      sf_text_seconds(report->trials[report->best]->seconds).at);
    }
    sf_buf_puts(&out, "</p>\n");
    put_maps(report, &out);
    put_trials(report, &out);
    sf_buf_puts(&out, "</main></body></html>\n");
    sf_status status = sf_output_write(job->output, &out, job->diag);
    sf_buf_free(&out);
    return status;
}

sf_status sf_tune_page(const sf_tune_report *report, const char *title, const sf_output *output,
                       sf_diag *diag)
{
    SF_NEED(diag, report, title);
    struct writing job = {report, title, output, diag};
    return sf_guarded(write_page, &job, diag);
}
