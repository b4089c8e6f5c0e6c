/*
 * How far a function of the library is from the truth, which is taken from the C library's double function: its error
 * is below 2^-52, nothing beside half a unit of a float.
 *
 *     accuracy NAME FIRST COUNT STEP THREADS    the floats whose bits are FIRST, FIRST + STEP, ...
 *     accuracy NAME stratified LOG2 THREADS     2^(9+LOG2) stratified inputs (pairs for a function of two arguments)
 *     accuracy NAME special                     every special value (every pair of them)
 *
 * Prints: name, inputs tested, largest error in ULP, its input(s), inputs not correctly rounded, inputs whose special
 * result (not a number, infinity, sign of zero) is wrong.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"
#include "nn_libm.h"

typedef struct function {
    const char *name;
    float (*one)(float);
    double (*true_one)(double);
    float (*two)(float, float);
    double (*true_two)(double, double);
} function;

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

static double minimum(double x, double y)
{
    return isnan(x) ? y : isnan(y) ? x : x < y || (x == y && signbit(x)) ? x : y;
}

static double maximum(double x, double y)
{
    return isnan(x) ? y : isnan(y) ? x : x > y || (x == y && !signbit(x)) ? x : y;
}

static const function functions[] = {
    {"ceilf", nn_ceilf, ceil, NULL, NULL},
    {"cosf", nn_cosf, cos, NULL, NULL},
    {"erff", nn_erff, erf, NULL, NULL},
    {"exp2f", nn_exp2f, exp2, NULL, NULL},
    {"expf", nn_expf, exp, NULL, NULL},
    {"expm1f", nn_expm1f, expm1, NULL, NULL},
    {"fabsf", nn_fabsf, fabs, NULL, NULL},
    {"floorf", nn_floorf, floor, NULL, NULL},
    {"log1pf", nn_log1pf, log1p, NULL, NULL},
    {"logf", nn_logf, log, NULL, NULL},
    {"logisticf", nn_logisticf, logistic, NULL, NULL},
    {"rintf", nn_rintf, rint, NULL, NULL},
    {"roundf", nn_roundf, round, NULL, NULL},
    {"sinf", nn_sinf, sin, NULL, NULL},
    {"sqrtf", nn_sqrtf, sqrt, NULL, NULL},
    {"tanhf", nn_tanhf, tanh, NULL, NULL},
    {"truncf", nn_truncf, trunc, NULL, NULL},
    {"fmaxf", NULL, NULL, nn_fmaxf, maximum},
    {"fminf", NULL, NULL, nn_fminf, minimum},
    {"fmodf", NULL, NULL, nn_fmodf, fmod},
    {"powf", NULL, NULL, nn_powf, pow},
};

typedef struct tally {
    const function *f;
    uint64_t first, count, step;
    unsigned log2_strata;
    int mode; /* 0: bits, 1: stratified, 2: special */
    double worst;
    float worst_x, worst_y;
    uint64_t misrounded, wrong;
} tally;

/* The distance of neighbouring floats at the truth, 2^-149 at least. */
static double unit(double truth)
{
    const double size = fabs(truth);
    double result;
    uint64_t bits;

    if (size < 0x1p-126)
        return 0x1p-149;
    memcpy(&bits, &size, sizeof bits);
    bits = ((bits >> 52) - 23) << 52;
    memcpy(&result, &bits, sizeof result);
    return result;
}

static void compare(tally *t, float x, float y, float got, double truth)
{
    const float rounded = (float)truth;
    double error;

    if (isnan(truth)) {
        t->wrong += nn_bits_of(got) != (t->f->one == nn_fabsf ? nn_bits_of(x) & 0x7fffffff : 0x7fc00000);
        return;
    }
    if (nn_bits_of(got) == nn_bits_of(rounded) && (isinf(rounded) || truth == (double)got))
        return;
    if (isnan(got) || signbit(got) != signbit(rounded) || (isinf(truth) && !isinf(got))
        || (isinf(got) && fabs(truth) < 0x1.fffffdp127)) {
        t->wrong++;
        return;
    }
    if (nn_bits_of(got) != nn_bits_of(rounded))
        t->misrounded++;
    /* An infinite result stands for 2^128 here, as in rounding. */
    error = fabs((isinf(got) ? copysign(0x1p128, got) : (double)got) - truth) / unit(truth);
    if (error > t->worst) {
        t->worst = error;
        t->worst_x = x;
        t->worst_y = y;
    }
}

static float input(const tally *t, uint64_t index)
{
    if (t->mode == 0)
        return nn_float_of((uint32_t)(t->first + index * t->step));
    return t->mode == 1 ? stratified((uint32_t)index, t->log2_strata) : special((unsigned)index);
}

/* The partner of a stratified input: one time in eight any float, else one that makes the function work. */
static float partner(const tally *t, float x, uint64_t index)
{
    const uint32_t any = scrambled((uint32_t)index ^ 0x9e3779b9);

    if (index % 8 == 0)
        return nn_float_of(any);
    if (t->f->two == nn_powf) /* x^y = 2^z with z uniform in [-151, 129) */
        return (float)((any * 0x1p-32 * 280 - 151) / log2(fabs((double)x)));
    return nn_float_of(nn_bits_of(x) - any % 0x08000000); /* |y| above |x| / 2^16 */
}

static void *run(void *argument)
{
    tally *t = argument;
    const function *f = t->f;
    const uint64_t end = t->mode == 0 ? t->count : t->first + t->count;

    for (uint64_t i = t->mode == 0 ? 0 : t->first; i < end; i++) {
        if (f->one) {
            const float x = input(t, i);
            compare(t, x, 0, f->one(x), f->true_one(x));
        } else if (t->mode == 2) {
            const float x = special((unsigned)(i / SPECIALS)), y = special((unsigned)(i % SPECIALS));
            compare(t, x, y, f->two(x, y), f->true_two(x, y));
        } else {
            const float x = input(t, i), y = partner(t, x, i);
            compare(t, x, y, f->two(x, y), f->true_two(x, y));
        }
    }
    return NULL;
}

static void run_all(tally whole, unsigned threads)
{
    tally part[64];
    pthread_t id[64];
    const uint64_t share = (whole.count + threads - 1) / threads;
    const uint64_t total = whole.count;

    for (unsigned i = 0; i < threads; i++) {
        const uint64_t from = i * share < total ? i * share : total;
        part[i] = whole;
        part[i].first = whole.first + from * (whole.mode == 0 ? whole.step : 1);
        part[i].count = total - from < share ? total - from : share;
        if (pthread_create(&id[i], NULL, run, &part[i]))
            exit(3);
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(id[i], NULL);
        whole.misrounded += part[i].misrounded;
        whole.wrong += part[i].wrong;
        if (part[i].worst > whole.worst) {
            whole.worst = part[i].worst;
            whole.worst_x = part[i].worst_x;
            whole.worst_y = part[i].worst_y;
        }
    }
    printf("%s %llu %.5f %a", whole.f->name, (unsigned long long)total, whole.worst, (double)whole.worst_x);
    if (whole.f->two)
        printf(",%a", (double)whole.worst_y);
    printf(" %llu %llu\n", (unsigned long long)whole.misrounded, (unsigned long long)whole.wrong);
}

int main(int argc, char **argv)
{
    tally whole = {0};
    unsigned threads = 1;

    for (size_t i = 0; argc > 2 && i < sizeof functions / sizeof functions[0]; i++) {
        if (strcmp(argv[1], functions[i].name) == 0)
            whole.f = &functions[i];
    }
    if (!whole.f)
        return 2;
    whole.step = 1;
    if (strcmp(argv[2], "special") == 0) {
        whole.mode = 2;
        whole.count = whole.f->one ? SPECIALS : (uint64_t)SPECIALS * SPECIALS;
    } else if (strcmp(argv[2], "stratified") == 0 && argc == 5) {
        whole.mode = 1;
        whole.log2_strata = (unsigned)atoi(argv[3]);
        whole.count = (uint64_t)512 << whole.log2_strata;
        threads = (unsigned)atoi(argv[4]);
    } else if (argc == 6) {
        whole.first = strtoull(argv[2], NULL, 0);
        whole.count = strtoull(argv[3], NULL, 0);
        whole.step = strtoull(argv[4], NULL, 0);
        threads = (unsigned)atoi(argv[5]);
    } else {
        return 2;
    }
    if (threads < 1 || threads > 64)
        return 2;
    run_all(whole, threads);
    return 0;
}
