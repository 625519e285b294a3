/* Hashing: one 64-bit mixing step (the finaliser of MurmurHash3) and functions built on it. The
 * result depends on the values alone, never on addresses or on byte order. */
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

/* The low byte comes first, on every machine. */
static inline uint64_t sf_hash_word(const unsigned char *at, size_t count)
{
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++)
        word |= (uint64_t)at[i] << 8 * i;
    return word;
}

static inline uint64_t sf_hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    size_t rest = length;
    for (; rest >= 8; at += 8, rest -= 8)
        hash = sf_hash_mix(hash, sf_hash_word(at, 8));
    return sf_hash_mix(sf_hash_mix(hash, sf_hash_word(at, rest)), length);
}

#endif
