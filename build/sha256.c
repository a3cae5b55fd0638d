/* SHA-256 (FIPS 180-4), with the processor's instructions if it has them: they are five times as fast, and a
 * first start waits for the hash of about forty megabytes.
 */
#include "sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 64

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotated(uint32_t value, int by) { return value >> by | value << (32 - by); }

static uint32_t big_endian(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void compress_anywhere(uint32_t state[8], const unsigned char *data, size_t blocks) {
    for (; blocks; blocks--, data += BLOCK) {
        uint32_t w[64], s[8];
        for (int t = 0; t < 16; t++) w[t] = big_endian(data + 4 * t);
        for (int t = 16; t < 64; t++) {
            uint32_t low = rotated(w[t - 15], 7) ^ rotated(w[t - 15], 18) ^ w[t - 15] >> 3;
            uint32_t high = rotated(w[t - 2], 17) ^ rotated(w[t - 2], 19) ^ w[t - 2] >> 10;
            w[t] = w[t - 16] + low + w[t - 7] + high;
        }
        memcpy(s, state, sizeof s);
        for (int t = 0; t < 64; t++) {
            uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]), majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
            uint32_t one = s[7] + (rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25)) + choice + K[t] + w[t];
            uint32_t two = (rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22)) + majority;
            memmove(s + 1, s, 7 * sizeof *s);
            s[4] += one;
            s[0] = one + two;
        }
        for (int i = 0; i < 8; i++) state[i] += s[i];
    }
}

#if defined __x86_64__ && !defined SHA256_ANYWHERE
#include <cpuid.h>
#include <immintrin.h>

/* Intel's manual, volume 2, SHA256RNDS2 and related instructions: one register has A B E F, the other C D G H, highest
 * first. */
__attribute__((target("sha,sse4.1"))) static void compress_here(uint32_t state[8], const unsigned char *data, size_t blocks) {
    const __m128i order = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    __m128i abef = _mm_set_epi32((int)state[0], (int)state[1], (int)state[4], (int)state[5]);
    __m128i cdgh = _mm_set_epi32((int)state[2], (int)state[3], (int)state[6], (int)state[7]);
    for (; blocks; blocks--, data += BLOCK) {
        __m128i w[4], abef_before = abef, cdgh_before = cdgh;
#pragma GCC unroll 16
        for (int t = 0; t < 16; t++) { /* four rounds each */
            if (t < 4) {
                w[t] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)data + t), order);
            } else {
                __m128i sum = _mm_sha256msg1_epu32(w[t % 4], w[(t + 1) % 4]);
                sum = _mm_add_epi32(sum, _mm_alignr_epi8(w[(t + 3) % 4], w[(t + 2) % 4], 4));
                w[t % 4] = _mm_sha256msg2_epu32(sum, w[(t + 3) % 4]);
            }
            __m128i added = _mm_add_epi32(w[t % 4], _mm_loadu_si128((const __m128i *)(K + 4 * t)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    state[0] = (uint32_t)_mm_extract_epi32(abef, 3), state[1] = (uint32_t)_mm_extract_epi32(abef, 2);
    state[4] = (uint32_t)_mm_extract_epi32(abef, 1), state[5] = (uint32_t)_mm_extract_epi32(abef, 0);
    state[2] = (uint32_t)_mm_extract_epi32(cdgh, 3), state[3] = (uint32_t)_mm_extract_epi32(cdgh, 2);
    state[6] = (uint32_t)_mm_extract_epi32(cdgh, 1), state[7] = (uint32_t)_mm_extract_epi32(cdgh, 0);
}

static int has_instructions(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_SSE4_1 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_SHA;
}
#else
#define compress_here compress_anywhere
static int has_instructions(void) { return 0; }
#endif

static void compress(uint32_t state[8], const unsigned char *data, size_t blocks) {
    static int known, has;
    if (!known) has = has_instructions(), known = 1;
    (has ? compress_here : compress_anywhere)(state, data, blocks);
}

void sha256_begin(struct sha256 *hash) {
    static const uint32_t start[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };
    memcpy(hash->state, start, sizeof start);
    hash->size = 0;
}

void sha256_add(struct sha256 *hash, const void *data, size_t size) {
    const unsigned char *at = data;
    size_t held = hash->size % BLOCK;
    hash->size += size;
    if (held) {
        size_t part = size < BLOCK - held ? size : BLOCK - held;
        memcpy(hash->pending + held, at, part);
        if (held + part < BLOCK) return;
        compress(hash->state, hash->pending, 1);
        at += part;
        size -= part;
    }
    compress(hash->state, at, size / BLOCK);
    memcpy(hash->pending, at + size / BLOCK * BLOCK, size % BLOCK);
}

void sha256_end(struct sha256 *hash, char digits[65]) {
    static const unsigned char mark[BLOCK] = {0x80};
    unsigned char bits[8];
    for (int i = 0; i < 8; i++) bits[i] = (unsigned char)(hash->size * 8 >> (56 - 8 * i));
    size_t held = hash->size % BLOCK;
    sha256_add(hash, mark, held < 56 ? 56 - held : 120 - held);
    sha256_add(hash, bits, sizeof bits);
    for (int i = 0; i < 8; i++) snprintf(digits + 8 * i, 9, "%08x", hash->state[i]);
}
