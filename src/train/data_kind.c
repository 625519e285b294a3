#include "train/data_kind.h"

#include "base/hash.h"

int64_t sf_data_item(const sf_data *data, int64_t place)
{
    int64_t epoch = place / data->count, index = place % data->count;
    if (!data->shuffled)
        return index;
    sf_draw draw = sf_draw_of(data->options.seed, SF_DRAW_ORDER, (uint64_t)epoch);
    return (int64_t)sf_draw_permuted(&draw, (uint64_t)data->count, (uint64_t)index);
}

uint64_t sf_data_fingerprint(sf_str bytes)
{
    enum { PIECES = 64, PIECE = 4096 };
    uint64_t hash = sf_hash_mix(0, bytes.length);
    for (size_t i = 0; i < PIECES; i++) {
        size_t at = bytes.length / PIECES * i, rest = bytes.length - at;
        hash = sf_hash_bytes(hash, bytes.at + at, rest < PIECE ? rest : PIECE);
    }
    return hash;
}
