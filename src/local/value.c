/* Values of the step in the layouts that they are wanted in: as made, then moved. */
#include "ir/name.h"
#include "local/build.h"

void local_record(local_builder *b, sf_value value, sf_value whole, const sf_layout *layout)
{
    static const sf_piece nothing = {.whole = SF_NONE};
    sf_local *local = b->local;
    while (b->npieces <= value)
        SF_PUSH(&local->arena, local->pieces, b->npieces, b->piece_capacity, nothing);
    local->pieces[value] = (sf_piece){whole, *layout};
}

void local_add(local_builder *b, sf_value whole, const sf_layout *layout, int phase, sf_value value)
{
    local_version **end = &b->versions[whole];
    while (*end)
        end = &(*end)->next;
    *end = SF_NEW(&b->arena, local_version);
    **end = (local_version){*layout, phase, value, NULL};
    local_record(b, value, whole, layout);
}

/* A piece that holds no more than the value as it was made may be kept from phase to phase: a gradient is
 * reduced once. A larger one, a gathered parameter, is made again. */
static int phase_of_piece(const local_builder *b, sf_value whole, sf_value piece)
{
    const sf_type *made = sf_type_of(b->graph, b->versions[whole]->value);
    return sf_type_of(b->graph, piece)->count <= made->count ? ANY_PHASE : (int)b->phase;
}

static sf_status walk_path(local_builder *b, sf_value value, const local_version *from,
                           const sf_way *way, sf_value *out)
{
    const sf_type *whole = sf_type_of(b->whole, value);
    const sf_node *maker = sf_maker(b->whole, value);
    sf_layout layout = from->layout;
    sf_loc loc = b->loc;
    sf_buf name = {0};
    b->what = sf_value_name(b->whole, value, &name);
    if (maker)
        b->loc = maker->loc;
    *out = from->value;
    for (int i = 0; i < way->count; i++) {
        *out = local_move(b, *out, whole, &layout, &way->moves[i]);
        layout = way->moves[i].after;
        local_add(b, value, &layout, phase_of_piece(b, value, *out), *out);
    }
    b->loc = loc;
    sf_buf_free(&name);
    return SF_OK;
}

static sf_status fail_to_move(local_builder *b, sf_value value, const sf_layout *to)
{
    const sf_type *type = sf_type_of(b->whole, value);
    sf_buf name = {0}, text = {0};
    sf_layout_print(&b->versions[value]->layout, b->mesh, type->rank, type->dims, &text);
    sf_buf_puts(&text, " cannot become ");
    sf_layout_print(to, b->mesh, type->rank, type->dims, &text);
    sf_status status = sf_fail(b->diag, SF_EINPUT, b->loc, "plan: %s as %s",
                               sf_value_name(b->whole, value, &name), text.text);
    int pin = b->plan->pinned ? b->plan->pinned[value] : -1;
    if (pin >= 0 && pin < b->plan->npins)
        status = sf_hint(b->diag, "the pin %s decided it", b->plan->pins[pin].text);
    sf_buf_free(&name);
    sf_buf_free(&text);
    return status;
}

sf_status local_value(local_builder *b, sf_value value, const sf_layout *layout, sf_value *out)
{
    const sf_type *type = sf_type_of(b->whole, value);
    const local_version *best = NULL;
    const sf_way *shortest = NULL;
    for (const local_version *v = b->versions[value]; v; v = v->next) {
        if (v->phase != ANY_PHASE && v->phase != (int)b->phase)
            continue;
        if (sf_layout_equal(&v->layout, layout)) {
            *out = v->value;
            return SF_OK;
        }
        const sf_way *way = sf_ways_find(&b->ways, type, &v->layout, layout);
        if (way->exists && (!best || way->cost < shortest->cost)) {
            best = v;
            shortest = way;
        }
    }
    return best ? walk_path(b, value, best, shortest, out) : fail_to_move(b, value, layout);
}
