#include "shard/reshard_items.h"

static void add_item(sf_items *list, sf_item_kind kind, int axis, int64_t size)
{
    sf_item *last = list->count ? &list->at[list->count - 1] : NULL;
    if (kind == SF_ITEM_KEPT && last && last->kind == SF_ITEM_KEPT)
        last->size *= size;
    else
        list->at[list->count++] = (sf_item){kind, axis, size};
}

sf_items sf_items_of(const sf_type *whole, const sf_layout *before, const sf_layout *after,
                     const sf_mesh *mesh)
{
    sf_items list = {0};
    for (int d = 0; d < whole->rank; d++) {
        sf_joint_digit digits[SF_MAX_JOINT];
        int count = sf_layout_joint(before, after, mesh, d, whole->dims[d], digits);
        SF_ASSERT(count >= 0);
        for (int i = 0; i < count; i++) {
            const sf_joint_digit *digit = &digits[i];
            if (digit->before < 0 && digit->after < 0)
                add_item(&list, SF_ITEM_KEPT, -1, digit->size);
            else if (digit->before < 0)
                add_item(&list, SF_ITEM_TARGET, digit->after, digit->size);
            else if (digit->after < 0)
                add_item(&list, SF_ITEM_SOURCE, digit->before, digit->size);
        }
    }
    return list;
}

sf_items sf_items_without(const sf_items *items, sf_item_kind kind)
{
    sf_items out = {0};
    for (int i = 0; i < items->count; i++)
        if (items->at[i].kind != kind)
            out.at[out.count++] = items->at[i];
    return out;
}

/* Items of size 1 may be anywhere. */
bool sf_items_in_front(const sf_items *items, sf_item_kind kind, int order[SF_MAX_ITEMS])
{
    int next = 0, last = -1;
    bool in_order = true;
    for (int axis = 0; axis < SF_MAX_AXES; axis++)
        for (int i = 0; i < items->count; i++)
            if (items->at[i].kind == kind && items->at[i].axis == axis)
                order[next++] = i;
    for (int i = 0; i < items->count; i++)
        if (items->at[i].kind == SF_ITEM_KEPT)
            order[next++] = i;
    for (int i = 0; i < next; i++) {
        if (items->at[order[i]].size == 1)
            continue;
        in_order = in_order && order[i] > last;
        last = order[i];
    }
    return in_order;
}

bool sf_items_leave_in_order(const sf_items *items, sf_reshard_kind kind)
{
    int order[SF_MAX_ITEMS];
    sf_items before = sf_items_without(items, SF_ITEM_SOURCE);
    bool cuts = sf_collective_get(sf_reshard_collective(kind))->in_blocks;
    return !cuts || sf_items_in_front(&before, SF_ITEM_TARGET, order);
}

bool sf_items_arrive_in_order(const sf_items *items, sf_reshard_kind kind)
{
    int order[SF_MAX_ITEMS];
    sf_items after = sf_items_without(items, SF_ITEM_TARGET);
    bool joins = sf_collective_get(sf_reshard_collective(kind))->out_blocks;
    return !joins || sf_items_in_front(&after, SF_ITEM_SOURCE, order);
}
