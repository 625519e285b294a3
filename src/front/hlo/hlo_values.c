/* The values of a computation by name: open addressing over an array in the order of the text. */
#include "base/hash.h"
#include "front/hlo/hlo_reader.h"

uint32_t sf_hlo_find_value(const sf_hlo_frame *frame, sf_str name)
{
    if (frame->nslots == 0)
        return SF_NONE;
    uint64_t hash = sf_hash_bytes(0, name.at, name.length);
    for (size_t at = hash & (frame->nslots - 1);; at = (at + 1) & (frame->nslots - 1)) {
        if (frame->slots[at] == 0)
            return SF_NONE;
        const sf_hlo_value *value = &frame->values[frame->slots[at] - 1];
        if (value->hash == hash && sf_str_equal(value->name, name))
            return frame->slots[at] - 1;
    }
}

static void insert_value(sf_hlo_frame *frame, uint32_t number)
{
    size_t at = frame->values[number].hash & (frame->nslots - 1);
    while (frame->slots[at] != 0)
        at = (at + 1) & (frame->nslots - 1);
    frame->slots[at] = number + 1;
}

bool sf_hlo_add_value(sf_hlo_frame *frame, const sf_hlo_value *value, uint32_t *out)
{
    sf_arena *arena = &frame->reader->arena;
    *out = sf_hlo_find_value(frame, value->name);
    if (*out != SF_NONE)
        return false;
    *out = (uint32_t)frame->nvalues;
    SF_PUSH(arena, frame->values, frame->nvalues, frame->value_capacity, *value);
    frame->values[*out].hash = sf_hash_bytes(0, value->name.at, value->name.length);
    if (frame->nvalues * 2 > frame->nslots) {
        frame->nslots = frame->nslots ? frame->nslots * 4 : 16;
        frame->slots = SF_ARRAY(arena, frame->nslots, uint32_t);
        for (uint32_t i = 0; i < *out; i++)
            insert_value(frame, i);
    }
    insert_value(frame, *out);
    return true;
}
