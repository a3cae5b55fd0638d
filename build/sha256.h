/* SHA-256; see sha256.c. */
#ifndef SHA256_H
#define SHA256_H

#include <stddef.h>
#include <stdint.h>

struct sha256 {
    uint32_t state[8];
    uint64_t size; /* of all added data, bytes */
    unsigned char pending[64];
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *data, size_t size);
/* 64 hexadecimal digits and a zero. */
void sha256_end(struct sha256 *hash, char digits[65]);

#endif
