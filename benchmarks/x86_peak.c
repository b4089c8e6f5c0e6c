/* How many floating-point operations a second one core can do: fused multiply-adds on sums enough to hide their
 * latency. */
#include <immintrin.h>

#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9)

#define START(i) VECTOR sum##i = ONE;
#define STEP(i) sum##i = FMA(sum##i, factor, factor);
#define KEEP(i) __asm__ volatile("" : "+v"(sum##i));
#define BODY                                                                                                           \
    const VECTOR factor = ONE;                                                                                         \
    EACH(START)                                                                                                        \
    for (long n = 0; n < times; ++n) {                                                                                 \
        EACH(STEP)                                                                                                     \
        EACH(KEEP)                                                                                                     \
    }

/* Twenty operations a lane and time: ten multiplications and ten additions. */
__attribute__((target("avx512f"))) void peak_avx512(long times)
{
#define VECTOR __m512
#define ONE _mm512_set1_ps(0.999f)
#define FMA _mm512_fmadd_ps
    BODY
#undef VECTOR
#undef ONE
#undef FMA
}

__attribute__((target("avx2,fma"))) void peak_avx2(long times)
{
#define VECTOR __m256
#define ONE _mm256_set1_ps(0.999f)
#define FMA _mm256_fmadd_ps
    BODY
}
