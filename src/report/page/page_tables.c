/* Tables of a page, as HTML: what it says to those who run no scripts, and what charts stand beside. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "plan/recompute_policy.h"
#include "report/page/page_html.h"
#include "report/report_time.h"

/* Without scripts, so many modules of so many levels. */
enum { MOST_SCOPES = 400, MOST_DEPTH = 3, MOST_DIFFERENCES = 12 };

static sf_text seconds_text(double seconds)
{
    sf_text text = sf_text_seconds(seconds);
    char *unit = strstr(text.at, " us");
    if (unit) /* a page has more letters than a terminal */
        memcpy(unit, " \xc2\xb5s", sizeof " \xc2\xb5s");
    return text;
}

/* Titles are ours; those of columns of numbers begin with '#'. */
static void begin_table(sf_buf *out, const char *caption, const char *const *titles)
{
    sf_buf_printf(out, "<div class=\"scroll\"><table><caption>%s</caption><thead><tr>", caption);
    for (; *titles; titles++)
        sf_buf_printf(out, "<th scope=\"col\"%s>%s</th>", **titles == '#' ? " class=\"n\"" : "",
                      *titles + (**titles == '#'));
    sf_buf_puts(out, "</tr></thead><tbody>\n");
}

static void end_table(sf_buf *out)
{
    sf_buf_puts(out, "</tbody></table></div>\n");
}

static void put_word(sf_buf *out, const char *text)
{
    sf_buf_puts(out, "<td>");
    sf_html_text(text, out);
    sf_buf_puts(out, "</td>");
}

static void put_number(sf_buf *out, sf_text text)
{
    sf_buf_printf(out, "<td class=\"n\">%s</td>", text.at);
}

/* A number with a bar behind it, of so much of the cell. */
static void put_bar(sf_buf *out, sf_text text, double share)
{
    double percent = share > 0 ? fmin(100 * share, 100) : 0;
    sf_buf_printf(out, "<td class=\"n bar\" style=\"--share:%.1f%%\">%s</td>", percent, text.at);
}

/* At a glance ------------------------------------------------------------------------------------ */

static void begin_fact(sf_buf *out, const char *what)
{
    sf_buf_printf(out, "<div class=\"fact\"><dt>%s</dt><dd>", what);
}

static void end_fact(sf_buf *out)
{
    sf_buf_puts(out, "</dd></div>\n");
}

static void put_facts(sf_page *page, sf_buf *out)
{
    const sf_sim_report *r = &page->sim;
    double seconds = r->sim.seconds;
    sf_buf_puts(out, "<dl class=\"facts\">\n");
    begin_fact(out, "step, predicted");
    sf_buf_printf(out, "<b>%s</b><small>at least %s on these devices</small>",
                  seconds_text(seconds).at, seconds_text(page->bound).at);
    end_fact(out);
    begin_fact(out, "memory of a rank");
    sf_buf_printf(out, "<b%s>%s</b><small>of %s%s</small>",
                  r->price.memory > page->limit ? " class=\"bad\"" : "",
                  sf_text_bytes((double)r->price.memory).at, sf_text_bytes((double)page->limit).at,
                  r->price.memory > page->limit ? ": it does not fit" : "");
    end_fact(out);
    begin_fact(out, "MFU");
    sf_buf_printf(out, "<b>%s</b><small>%s flop of products a step</small>",
                  sf_text_share(r->best, seconds).at, sf_text_flops(r->flops).at);
    end_fact(out);
    begin_fact(out, "communication of a rank");
    sf_buf_printf(out, "<b>%s</b><small>%s waited for, %s hidden</small>",
                  sf_text_bytes(r->price.traffic).at, seconds_text(r->sim.exposed).at,
                  seconds_text(r->sim.hidden).at);
    end_fact(out);
    if (r->timed) {
        begin_fact(out, "step, measured");
        sf_buf_printf(out, "<b>%s</b><small>prediction is %s of it</small>",
                      seconds_text(r->timed_seconds).at,
                      sf_text_share(seconds, r->timed_seconds).at);
        end_fact(out);
    }
    sf_buf_puts(out, "</dl>\n");
}

static void put_line(sf_page *page, sf_buf *out)
{
    const sf_sim_report *r = &page->sim;
    sf_buf mesh = {0};
    sf_mesh_print(&r->plan->mesh, &mesh);
    sf_buf_puts(out, "<p class=\"from\">");
    sf_html_text(r->graph->name, out);
    sf_buf_printf(out, ", %s parameters, on ",
                  sf_text_flops((double)page->summary.roles[SF_ROLE_PARAM].elements).at);
    sf_html_text(r->cluster->name, out);
    sf_buf_puts(out, ": mesh <code>");
    sf_html_text(mesh.text, out);
    sf_buf_printf(out, "</code>, %s rank%s, made by ",
                  sf_text_count(sf_mesh_size(&r->plan->mesh)).at,
                  sf_plural((uint64_t)sf_mesh_size(&r->plan->mesh)));
    sf_html_text(page->made_by, out);
    sf_buf_printf(out, ". Step <code>%016" PRIx64 "</code>.", page->summary.hash);
    if (r->plan->recomputed)
        sf_buf_printf(out, " %s ops of the forward pass, %.1f %% of the compute, are done again.",
                      sf_text_count(sf_count_recomputed(r->graph, r->plan)).at,
                      100 * sf_recomputed_share(r->plan, r->graph));
    if (page->repeated >= 0.01)
        sf_buf_printf(out, " %.0f %% of what ranks compute is done by several of them alike.",
                      100 * page->repeated);
    sf_buf_puts(out, "</p>\n");
    sf_buf_free(&mesh);
}

/* Where the time goes, as one bar. */
static void put_split(const sf_page *page, sf_buf *out)
{
    const sf_sim_report *r = &page->sim;
    double all = r->sim.seconds > 0 ? r->sim.seconds : 1;
    double compute = 100 * r->sim.compute / all, exposed = 100 * r->sim.exposed / all;
    sf_buf_printf(out,
                  "<div class=\"split\" role=\"img\" aria-label=\"compute %.1f percent, waiting "
                  "%.1f percent\"><i class=\"compute\" style=\"width:%.2f%%\"></i>"
                  "<i class=\"waits\" style=\"width:%.2f%%\"></i></div>"
                  "<p class=\"key\"><span class=\"compute\">compute %s, %.1f %%</span>"
                  "<span class=\"waits\">waiting for others %s, %.1f %%</span></p>\n",
                  compute, exposed, compute, exposed, seconds_text(r->sim.compute).at, compute,
                  seconds_text(r->sim.exposed).at, exposed);
}

void sf_page_put_glance(sf_page *page, sf_buf *out)
{
    sf_buf_puts(out, "<ul class=\"words\">");
    for (size_t i = 0; i < page->nwords; i++) {
        sf_buf_puts(out, "<li>");
        sf_html_text(page->words[i], out);
        sf_buf_puts(out, "</li>");
    }
    sf_buf_puts(out, "</ul>\n");
    put_line(page, out);
    put_facts(page, out);
    put_split(page, out);
}

/* Memory and communication ----------------------------------------------------------------------- */

void sf_page_put_memory(sf_page *page, sf_buf *out)
{
    static const char *const titles[] = {"kind", "#bytes", "#share", NULL};
    const sf_price *price = &page->sim.price;
    begin_table(out, "What a rank holds at its peak", titles);
    for (int k = 0; k < SF_MEMORY_KIND_COUNT; k++) {
        if (price->by_kind[k] == 0)
            continue;
        sf_buf_printf(out, "<tr><td><i class=\"dot k%d\"></i>%s</td>", k,
                      sf_memory_kind_name((sf_memory_kind)k));
        put_number(out, sf_text_bytes((double)price->by_kind[k]));
        put_bar(out, sf_text_share((double)price->by_kind[k], (double)price->memory),
                (double)price->by_kind[k] / (double)price->memory);
        sf_buf_puts(out, "</tr>\n");
    }
    sf_buf_puts(out, "<tr class=\"sum\"><td>all</td>");
    put_number(out, sf_text_bytes((double)price->memory));
    sf_buf_printf(out, "<td class=\"n\">%s of %s</td></tr>\n",
                  sf_text_share((double)price->memory, (double)page->limit).at,
                  sf_text_bytes((double)page->limit).at);
    end_table(out);
    sf_buf_puts(out, "<p class=\"note\">The peak is ");
    sf_html_text(page->peak, out);
    sf_buf_puts(out, ".</p>\n");
}

static void put_links(const sf_page *page, sf_buf *out)
{
    static const char *const titles[] = {"link", "#sent by a rank", "#in use", NULL};
    const sf_sim_report *r = &page->sim;
    begin_table(out, "By link", titles);
    for (int l = 0; l < SF_LEVELS; l++) {
        double used = 0;
        for (size_t i = 0; i < r->ncomms; i++)
            used +=
                sf_costs_group_links(r->costs, r->comms[i].axes) >> l & 1 ? r->comms[i].seconds : 0;
        if (page->traffic.sent[l] == 0 && used == 0)
            continue;
        sf_buf_printf(out, "<tr><td><i class=\"dot l%d\"></i>%s</td>", l, sf_level_name(l));
        put_number(out, sf_text_bytes(page->traffic.sent[l]));
        put_number(out, seconds_text(used));
        sf_buf_puts(out, "</tr>\n");
    }
    end_table(out);
}

void sf_page_put_traffic(sf_page *page, sf_buf *out)
{
    static const char *const titles[] = {"collective", "axes",    "link",        "#count", "#bytes",
                                         "#time",      "#hidden", "#waited for", NULL};
    const sf_sim_report *r = &page->sim;
    double most = 0;
    if (r->ncomms == 0) {
        sf_buf_puts(out, "<p class=\"note\">Ranks send nothing.</p>\n");
        return;
    }
    for (size_t i = 0; i < r->ncomms; i++)
        most = fmax(most, r->comms[i].exposed);
    begin_table(out, "Collectives of a step", titles);
    for (size_t i = 0; i < r->ncomms; i++) {
        const sf_sim_comm *c = &r->comms[i];
        char axes[SF_AXES_TEXT];
        sf_buf_puts(out, "<tr>");
        put_word(out, c->name);
        put_word(out, sf_axes_text(&r->plan->mesh, c->axes, axes));
        put_word(out, sf_level_name(c->level));
        put_number(out, sf_text_count(c->count));
        put_number(out, sf_text_bytes(c->bytes));
        put_number(out, seconds_text(c->seconds));
        put_number(out, seconds_text(fmax(c->seconds - c->exposed, 0)));
        put_bar(out, seconds_text(c->exposed), most > 0 ? c->exposed / most : 0);
        sf_buf_puts(out, "</tr>\n");
    }
    end_table(out);
    put_links(page, out);
}

/* Modules ---------------------------------------------------------------------------------------- */

static void put_scope(const sf_page *page, uint32_t index, sf_buf *out)
{
    const sf_scope_cost *cost = &page->summary.scopes[index];
    const sf_page_scope *scope = &page->scopes[index];
    sf_buf_printf(out, "<tr><td style=\"padding-left:%" PRIu32 "em\">", 1 + cost->scope->depth);
    sf_html_text(index == 0 ? "all" : cost->scope->name, out);
    sf_buf_puts(out, "</td>");
    put_number(out, sf_text_flops((double)cost->parameters));
    put_number(out, sf_text_flops(cost->all.flops));
    put_number(out, seconds_text(scope->seconds));
    put_number(out, seconds_text(scope->waits));
    put_number(out, sf_text_bytes(scope->held));
    put_word(out, scope->made);
    sf_buf_puts(out, "</tr>\n");
}

void sf_page_put_scopes(sf_page *page, sf_buf *out)
{
    static const char *const titles[] = {"module",
                                         "#parameters",
                                         "#flops",
                                         "#compute",
                                         "#waits",
                                         "#at peak",
                                         "largest, and its layout",
                                         NULL};
    int rows = 0;
    begin_table(out, "Modules, of a rank", titles);
    for (uint32_t i = 0; i < page->summary.nscopes && rows < MOST_SCOPES; i++)
        if (page->summary.scopes[i].scope->depth <= MOST_DEPTH) {
            put_scope(page, i, out);
            rows++;
        }
    end_table(out);
    if (rows == MOST_SCOPES)
        sf_buf_puts(out, "<p class=\"note\">And more: sheaf report --json has all.</p>\n");
}

/* Others ----------------------------------------------------------------------------------------- */

/* Bars end at so many times what the plan takes: what is far slower would make all others small. */
#define LONGEST_BAR 3

/* Time, how much more than the plan takes, memory, and whether it fits. */
static void put_other(const sf_page *page, const sf_page_other *o, double most, sf_buf *out)
{
    double mine = page->sim.price.seconds;
    put_bar(out, seconds_text(o->seconds), most > 0 ? o->seconds / most : 0);
    sf_buf_printf(out, "<td class=\"n\">%+.1f %%</td>",
                  mine > 0 ? 100 * (o->seconds / mine - 1) : 0);
    put_number(out, sf_text_bytes((double)o->memory));
    sf_buf_printf(out, "<td>%s%s</td></tr>\n", o->fits ? "yes" : "<span class=\"bad\">no</span>",
                  o->exact ? "" : ", estimated");
}

static double longest_of(const sf_page *page, const sf_page_other *others, size_t count)
{
    double most = page->sim.price.seconds;
    for (size_t i = 0; i < count; i++)
        most = others[i].status == SF_OK ? fmax(most, others[i].seconds) : most;
    return fmin(most, LONGEST_BAR * page->sim.price.seconds);
}

static void put_name(const sf_page_other *o, sf_buf *out)
{
    if (*o->name)
        sf_html_text(o->name, out);
    else
        sf_buf_printf(out, "%s with %d micro-batch%s", o->recompute, o->micro_batches,
                      o->micro_batches > 1 ? "es" : "");
}

/* What cannot be, by reason. */
static void put_refused(const sf_page_other *others, size_t count, sf_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        bool said = others[i].status == SF_OK;
        for (size_t j = 0; j < i && !said; j++)
            said = others[j].status != SF_OK && strcmp(others[j].why, others[i].why) == 0;
        if (said)
            continue;
        sf_buf_puts(out, "<p class=\"note\">Not possible: ");
        for (size_t j = i; j < count; j++)
            if (others[j].status != SF_OK && strcmp(others[j].why, others[i].why) == 0) {
                sf_buf_puts(out, j == i ? "" : ", ");
                put_name(&others[j], out);
            }
        sf_buf_puts(out, ". ");
        sf_html_text(others[i].why, out);
        sf_buf_puts(out, ".</p>\n");
    }
}

void sf_page_put_frontier(sf_page *page, sf_buf *out)
{
    static const char *const titles[] = {"recompute", "#micro-batches", "#step", "#slower by",
                                         "#memory",   "fits",           NULL};
    double most = longest_of(page, page->frontier, page->nfrontier);
    begin_table(out, "This plan with more or less of it computed again, in more or fewer turns",
                titles);
    for (size_t i = 0; i < page->nfrontier; i++) {
        const sf_page_other *o = &page->frontier[i];
        if (o->status != SF_OK)
            continue;
        sf_buf_puts(out, o->chosen ? "<tr class=\"chosen\">" : "<tr>");
        put_word(out, o->recompute);
        put_number(out, sf_text_count(o->micro_batches));
        put_other(page, o, most, out);
    }
    end_table(out);
    put_refused(page->frontier, page->nfrontier, out);
}

void sf_page_put_recipes(sf_page *page, sf_buf *out)
{
    static const char *const titles[] = {"what",    "mesh", "#step", "#slower by",
                                         "#memory", "fits", NULL};
    sf_page_other mine = {.seconds = page->sim.price.seconds,
                          .memory = page->sim.price.memory,
                          .fits = page->sim.price.memory <= page->limit,
                          .exact = true};
    double most = longest_of(page, page->recipes, page->nrecipes);
    sf_buf mesh = {0};
    sf_mesh_print(&page->sim.plan->mesh, &mesh);
    begin_table(out, "Recipes", titles);
    sf_buf_puts(out, "<tr class=\"chosen\">");
    put_word(out, "this plan");
    put_word(out, mesh.text);
    put_other(page, &mine, most, out);
    for (size_t i = 0; i < page->nrecipes; i++) {
        const sf_page_other *o = &page->recipes[i];
        if (o->status != SF_OK)
            continue;
        sf_buf_puts(out, "<tr>");
        put_word(out, o->name);
        put_word(out, o->mesh);
        put_other(page, o, most, out);
    }
    end_table(out);
    sf_buf_printf(out, "<p class=\"note\">Here: %s.</p>\n", page->recipes_from);
    put_refused(page->recipes, page->nrecipes, out);
    sf_buf_free(&mesh);
}

/* The schedule ------------------------------------------------------------------------------------- */

/* What a schedule in Lua said, in its order. */
void sf_page_put_schedule(sf_page *page, sf_buf *out)
{
    const sf_plan *plan = page->sim.plan;
    if (plan->nsaid == 0)
        return;
    sf_buf_puts(out, "<section id=\"schedule\">\n<h2>Schedule</h2>\n<ol>\n");
    for (size_t i = 0; i < plan->nsaid; i++) {
        sf_buf_puts(out, "<li><code>");
        sf_html_text(plan->said[i], out);
        sf_buf_puts(out, "</code></li>\n");
    }
    sf_buf_puts(out, "</ol></section>\n\n");
}

/* Measured --------------------------------------------------------------------------------------- */

static double length_of(const sf_timing *t)
{
    return t->end - t->start;
}

static void put_beside(sf_buf *out, double simulated, double measured)
{
    put_number(out, seconds_text(simulated));
    put_number(out, seconds_text(measured));
    put_number(out, sf_text_share(simulated, measured));
}

static void put_kinds_measured(const sf_page *page, sf_buf *out)
{
    static const char *const titles[] = {"what", "#simulated", "#measured", "#of measured", NULL};
    const sf_sim_report *r = &page->sim;
    begin_table(out, "By kind of instruction", titles);
    for (int k = 0; k < SF_INST_KIND_COUNT; k++)
        if (r->kinds[k].count > 0 && k != SF_INST_COMM && k != SF_INST_COPY) {
            sf_buf_puts(out, "<tr>");
            put_word(out, sf_inst_kind_name((sf_inst_kind)k));
            put_beside(out, r->kinds[k].seconds, r->timed_kinds[k]);
            sf_buf_puts(out, "</tr>\n");
        }
    sf_buf_puts(out, "<tr><td>waiting</td>");
    put_beside(out, r->sim.exposed, r->timed_waits);
    sf_buf_puts(out, "</tr>\n<tr class=\"sum\"><td>step</td>");
    put_beside(out, r->sim.seconds, r->timed_seconds);
    sf_buf_puts(out, "</tr>\n");
    end_table(out);
}

static void put_differences(const sf_page *page, sf_buf *out)
{
    static const char *const titles[] = {"op",        "phase",        "module", "#simulated",
                                         "#measured", "#of measured", NULL};
    const sf_sim_report *r = &page->sim;
    begin_table(out, "Largest differences", titles);
    for (size_t i = 0; i < r->program->ninsts && i < MOST_DIFFERENCES; i++) {
        uint32_t at = r->differing[i];
        const sf_origin *origin = &r->program->insts[at].origin;
        sf_buf_puts(out, "<tr>");
        put_word(out, origin->op);
        put_word(out, sf_phase_name(origin->phase));
        put_word(out, origin->scope);
        put_beside(out, length_of(&r->sim.insts[at]), length_of(&r->timed[at]));
        sf_buf_puts(out, "</tr>\n");
    }
    end_table(out);
}

void sf_page_put_measured(sf_page *page, sf_buf *out)
{
    if (!page->sim.timed)
        return;
    sf_buf_puts(out, "<section id=\"measured\"><h2>Predicted against measured</h2>"
                     "<div class=\"columns\">");
    put_kinds_measured(page, out);
    put_differences(page, out);
    sf_buf_puts(out, "</div></section>\n");
}
