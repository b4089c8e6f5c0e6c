/*
 * One digest a function, over the bits of its results for 2^18 stratified inputs and every special value: "name
 * digest". Runs on the host and, with BARE defined, where there is no C library.
 */
#include "inputs.h"
#include "nn_libm.h"

#ifdef BARE
#include "bare.h"
#else
#include <stdio.h>
#endif

enum { LOG2_STRATA = 9, STRATIFIED = 512 << LOG2_STRATA };

/* FNV-1a's mixing, a word at a time. */
static uint64_t mixed(uint64_t digest, float result)
{
    return (digest ^ nn_bits_of(result)) * 0x100000001b3;
}

static uint64_t digest_one(float (*f)(float))
{
    uint64_t digest = 0xcbf29ce484222325;

    for (uint32_t i = 0; i < STRATIFIED; i++)
        digest = mixed(digest, f(stratified(i, LOG2_STRATA)));
    for (uint32_t i = 0; i < SPECIALS; i++)
        digest = mixed(digest, f(special(i)));
    return digest;
}

/* Partners of every kind, one half of them within a factor of 2^16 of one. */
static float partner(uint32_t index)
{
    const uint32_t any = scrambled(index ^ 0x9e3779b9);

    return nn_float_of(index & 1 ? any : (any & 0x807fffff) | (119 + (any >> 23) % 16) << 23);
}

static uint64_t digest_two(float (*f)(float, float))
{
    uint64_t digest = 0xcbf29ce484222325;

    for (uint32_t i = 0; i < STRATIFIED; i++)
        digest = mixed(digest, f(stratified(i, LOG2_STRATA), partner(i)));
    for (uint32_t i = 0; i < STRATIFIED; i++)
        digest = mixed(digest, f(special(i % SPECIALS), special(scrambled(i) % SPECIALS)));
    return digest;
}

static void report(const char *name, uint64_t digest)
{
#ifdef BARE
    say(name);
    say(" ");
    say_hexadecimal((uint32_t)(digest >> 32));
    say_hexadecimal((uint32_t)(digest & 0xffffffff));
    say("\n");
#else
    printf("%s %016llx\n", name, (unsigned long long)digest);
#endif
}

static void report_all(void)
{
    report("ceilf", digest_one(nn_ceilf));
    report("cosf", digest_one(nn_cosf));
    report("erff", digest_one(nn_erff));
    report("exp2f", digest_one(nn_exp2f));
    report("expf", digest_one(nn_expf));
    report("expm1f", digest_one(nn_expm1f));
    report("fabsf", digest_one(nn_fabsf));
    report("floorf", digest_one(nn_floorf));
    report("log1pf", digest_one(nn_log1pf));
    report("logf", digest_one(nn_logf));
    report("logisticf", digest_one(nn_logisticf));
    report("rintf", digest_one(nn_rintf));
    report("roundf", digest_one(nn_roundf));
    report("sinf", digest_one(nn_sinf));
    report("sqrtf", digest_one(nn_sqrtf));
    report("tanhf", digest_one(nn_tanhf));
    report("truncf", digest_one(nn_truncf));
    report("fmaxf", digest_two(nn_fmaxf));
    report("fminf", digest_two(nn_fminf));
    report("fmodf", digest_two(nn_fmodf));
    report("powf", digest_two(nn_powf));
}

#ifdef BARE
void start(void)
{
    report_all();
    finish();
}
#else
int main(void)
{
    report_all();
    return 0;
}
#endif
