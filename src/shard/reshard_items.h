/* A reshard as items.
 *
 * A tensor is a row-major array of digits (shard/layout.h). Those that a reshard does not touch are
 * merged with their neighbours, across dimensions too; the result is a short list of items
 *
 *     kept      in the shard before and after
 *     source    split before, whole after
 *     target    whole before, split after
 *
 * so that a shard before it has the shape of the kept and target items, one after it that of the
 * kept and source items, and a collective makes places in the group out of targets, and sources out
 * of places. Collectives need these in front, in the order of their axes. */
#ifndef SF_SHARD_RESHARD_ITEMS_H
#define SF_SHARD_RESHARD_ITEMS_H

#include "shard/reshard.h"

typedef enum sf_item_kind { SF_ITEM_KEPT, SF_ITEM_SOURCE, SF_ITEM_TARGET } sf_item_kind;

typedef struct sf_item {
    sf_item_kind kind;
    int axis; /* of a source or target */
    int64_t size;
} sf_item;

/* Sources and targets, and kept ones between them. */
enum { SF_MAX_ITEMS = 4 * SF_MAX_AXES + 1 };

typedef struct sf_items {
    int count;
    sf_item at[SF_MAX_ITEMS];
} sf_items;

sf_items sf_items_of(const sf_type *whole, const sf_layout *before, const sf_layout *after,
                     const sf_mesh *mesh);

/* The items without those of a kind. */
sf_items sf_items_without(const sf_items *items, sf_item_kind kind);

/* The order in which the items of the kind come first, in the order of their axes, then those kept: item order[i]
 * of the list is number i. True where that is the order they have. */
bool sf_items_in_front(const sf_items *items, sf_item_kind kind, int order[SF_MAX_ITEMS]);

/* Whether the shard before it is in the order of its collective; and whether the result is in the
 * order of the shard after it. */
bool sf_items_leave_in_order(const sf_items *items, sf_reshard_kind kind);
bool sf_items_arrive_in_order(const sf_items *items, sf_reshard_kind kind);

#endif
