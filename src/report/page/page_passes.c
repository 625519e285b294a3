/* What passes did: a table, and for each of them the memory curve before and behind it, under the limit. Drawn here, so it
 * needs no script. */
#include "base/units.h"
#include "pass/pass.h"
#include "report/page/page_html.h"

enum { WIDE = 600, HIGH = 90, POINTS = 300 };

/* The most that stands in a stretch of instructions, so that no peak is lost. */
static int64_t most_in(const sf_pass_outcome *o, uint32_t first, uint32_t end)
{
    int64_t most = 0;
    for (uint32_t i = first; i < end || i == first; i++)
        most = o->memory[i] > most ? o->memory[i] : most;
    return most;
}

static void put_curve(const sf_pass_outcome *o, const char *class, double top, sf_buf *out)
{
    uint32_t count = o->npoints < POINTS ? o->npoints : POINTS;
    sf_buf_printf(out, "<polyline class=\"%s\" points=\"", class);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = (uint32_t)((uint64_t)i * o->npoints / count);
        uint32_t end = (uint32_t)((uint64_t)(i + 1) * o->npoints / count);
        double share = (double)most_in(o, first, end) / top;
        sf_buf_printf(out, "%s%.1f,%.1f", i > 0 ? " " : "",
                      (double)WIDE * i / (count > 1 ? count - 1 : 1), HIGH * (1 - share));
    }
    sf_buf_puts(out, "\"/>");
}

static int64_t peak_of(const sf_pass_outcome *o)
{
    return o->npoints > 0 ? most_in(o, 0, o->npoints) : 0;
}

/* Both curves are as wide as the chart, however many instructions they have. */
static void put_chart(int64_t limit, const sf_pass_outcome *before, const sf_pass_outcome *o,
                      sf_buf *out)
{
    int64_t most = peak_of(before) > peak_of(o) ? peak_of(before) : peak_of(o);
    bool limited = limit > 0 && limit < 2 * most; /* else it is far above */
    double top = 1.05 * (double)(limited && limit > most ? limit : most);
    if (most == 0)
        return;
    sf_buf_puts(out, "<figure class=\"curve\"><figcaption>");
    sf_html_text(o->name, out);
    sf_buf_printf(out, ": peak %s, before it %s, limit %s</figcaption>",
                  sf_text_bytes((double)peak_of(o)).at, sf_text_bytes((double)peak_of(before)).at,
                  sf_text_bytes((double)limit).at);
    sf_buf_printf(out,
                  "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" "
                  "aria-label=\"memory by instruction before and behind the pass\">",
                  WIDE, HIGH);
    put_curve(before, "was", top, out);
    put_curve(o, "is", top, out);
    if (limited)
        sf_buf_printf(out, "<line class=\"limit\" x1=\"0\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>",
                      WIDE, HIGH * (1 - (double)limit / top), HIGH * (1 - (double)limit / top));
    sf_buf_puts(out, "</svg></figure>\n");
}

static void put_row(const sf_pass_outcome *o, sf_buf *out)
{
    sf_buf_puts(out, "<tr><td>");
    sf_html_text(o->name, out);
    sf_buf_printf(out,
                  "</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td>"
                  "<td class=\"n\">%d</td><td class=\"n\">%s</td><td>",
                  sf_text_seconds(o->seconds).at, sf_text_seconds(o->exposed).at,
                  sf_text_bytes((double)o->bytes).at, o->ncollectives,
                  sf_text_bytes(o->traffic).at);
    sf_html_text(o->note, out);
    sf_buf_puts(out, "</td></tr>\n");
}

void sf_page_put_passes(sf_page *page, sf_buf *out)
{
    const sf_rank_run *run = &page->sim.runs.at[page->sim.runs.busiest];
    int64_t limit = page->sim.plan->passes.memory;
    if (run->noutcomes == 0)
        return;
    limit = limit > 0 ? limit : page->limit;
    sf_buf_puts(out,
                "<div class=\"scroll\"><table id=\"passes\"><caption>Passes</caption><thead><tr>"
                "<th>pass</th><th class=\"n\">step</th><th class=\"n\">waited for</th>"
                "<th class=\"n\">memory</th><th class=\"n\">collectives</th>"
                "<th class=\"n\">traffic</th><th>what it did</th></tr></thead><tbody>\n");
    for (int i = 0; i < run->noutcomes; i++)
        put_row(&run->outcomes[i], out);
    sf_buf_puts(out, "</tbody></table></div>\n<p class=\"note\">Memory of a rank, instruction by "
                     "instruction, before each pass (thin) and behind it, and the limit "
                     "(dashed) where it is near.</p>\n");
    for (int i = 1; i < run->noutcomes; i++)
        put_chart(limit, &run->outcomes[i - 1], &run->outcomes[i], out);
}
