/* Hashing: one 64-bit mixing step (the finaliser of MurmurHash3) and what is built on it. The result
 * depends on the values alone, never on addresses or on byte order. */
#ifndef SF_BASE_HASH_H
#define SF_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t sf_hash_mix(uint64_t hash, uint64_t value)
{
    uint64_t x = (hash ^ value) * UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 32;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 29 ^ hash << 1;
}

static inline uint64_t sf_hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    size_t rest = length;
    for (; rest >= 8; at += 8, rest -= 8) {
        uint64_t word = 0;
        for (int i = 0; i < 8; i++)
            word |= (uint64_t)at[i] << 8 * i;
        hash = sf_hash_mix(hash, word);
    }
    uint64_t word = 0;
    for (size_t i = 0; i < rest; i++)
        word |= (uint64_t)at[i] << 8 * i;
    return sf_hash_mix(sf_hash_mix(hash, word), length);
}

#endif
