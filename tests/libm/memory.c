/* The memory functions against simple truths, for every alignment and length up to 40; exits 0 when all hold. */
#include "nn_libm.h"

enum { SIZE = 96 };

static unsigned char place[SIZE], copy[SIZE], expected[SIZE];

static void refill(void)
{
    for (unsigned i = 0; i < SIZE; i++) {
        place[i] = (unsigned char)(i * 37 + 11);
        copy[i] = (unsigned char)(i * 101 + 7);
    }
}

static int differs(const unsigned char *a, const unsigned char *b)
{
    for (unsigned i = 0; i < SIZE; i++) {
        if (a[i] != b[i])
            return 1;
    }
    return 0;
}

static int check(unsigned to, unsigned from, unsigned size)
{
    refill();
    for (unsigned i = 0; i < SIZE; i++)
        expected[i] = i - to < size ? place[i - to + from] : copy[i];
    if (nn_memcpy(copy + to, place + from, size) != copy + to || differs(copy, expected))
        return 1;
    if (nn_memcmp(copy + to, place + from, size) != 0)
        return 2;
    if (size) {
        copy[to + size - 1] ^= 0x80; /* a difference only in the last byte and only right when unsigned */
        if ((nn_memcmp(copy + to, place + from, size) > 0) != (copy[to + size - 1] > place[from + size - 1]))
            return 3;
        if (nn_memcmp(copy + to, place + from, size - 1) != 0)
            return 4;
    }
    refill();
    for (unsigned i = 0; i < SIZE; i++)
        expected[i] = i - to < size ? place[i - to + from] : place[i];
    if (nn_memmove(place + to, place + from, size) != place + to || differs(place, expected))
        return 5;
    refill();
    for (unsigned i = 0; i < SIZE; i++)
        expected[i] = i - to < size ? 0xa5 : copy[i];
    if (nn_memset(copy + to, 0x7fa5, size) != copy + to || differs(copy, expected))
        return 6;
    return 0;
}

int main(void)
{
    for (unsigned to = 0; to < 24; to++) {
        for (unsigned from = 0; from < 24; from++) {
            for (unsigned size = 0; size <= 40; size++) {
                const int failed = check(to, from, size);
                if (failed)
                    return failed;
            }
        }
    }
    return 0;
}
