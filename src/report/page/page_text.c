/* Words of a page, as a page may show them. */
#include "report/page/page.h"

const char *sf_page_shown(sf_page *page, const char *text)
{
    sf_buf shown = {0};
    sf_buf_show(&shown, sf_str_of(text));
    const char *kept =
        sf_arena_string(&page->sim.arena, shown.text ? shown.text : "", shown.length);
    sf_buf_free(&shown);
    return kept;
}

const char *sf_page_layout(sf_page *page, sf_value value, const sf_layout *layout)
{
    const sf_type *type = sf_type_of(page->sim.graph, value);
    sf_buf text = {0};
    sf_layout_print(layout, &page->sim.plan->mesh, type->rank, type->dims, &text);
    const char *kept = sf_arena_string(&page->sim.arena, text.text, text.length);
    sf_buf_free(&text);
    return kept;
}

const char *sf_page_stream(sf_page *page, const sf_stream *stream)
{
    char axes[SF_AXES_TEXT];
    sf_buf text = {0};
    if (stream->kind == SF_STREAM_COMPUTE)
        return "compute";
    if (stream->kind == SF_STREAM_COPY)
        return stream->to == SF_SPACE_HOST ? "copies to the host" : "copies from the host";
    sf_buf_printf(&text, "along %s", sf_axes_text(&page->sim.plan->mesh, stream->axes, axes));
    const char *kept = sf_arena_string(&page->sim.arena, text.text, text.length);
    sf_buf_free(&text);
    return kept;
}
