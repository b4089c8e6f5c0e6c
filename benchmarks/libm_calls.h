/*
 * The functions to measure and the inputs of each: X(name, low, high) for one argument, Y(name, low, high) for two, the
 * second from the same range.
 */
#define ONE_ARGUMENT(X) \
    X(floorf, -100.0f, 100.0f) \
    X(ceilf, -100.0f, 100.0f) \
    X(roundf, -100.0f, 100.0f) \
    X(truncf, -100.0f, 100.0f) \
    X(rintf, -100.0f, 100.0f) \
    X(fabsf, -100.0f, 100.0f) \
    X(sqrtf, 0.0f, 100.0f) \
    X(expf, -10.0f, 10.0f) \
    X(exp2f, -10.0f, 10.0f) \
    X(expm1f, -10.0f, 10.0f) \
    X(logf, 0.0f, 100.0f) \
    X(log1pf, 0.0f, 100.0f) \
    X(tanhf, -4.0f, 4.0f) \
    X(logisticf, -6.0f, 6.0f) \
    X(sinf, -10.0f, 10.0f) \
    X(cosf, -10.0f, 10.0f) \
    X(erff, -3.0f, 3.0f)
#define TWO_ARGUMENTS(Y) \
    Y(fminf, -100.0f, 100.0f) \
    Y(fmaxf, -100.0f, 100.0f) \
    Y(fmodf, 1.0f, 100.0f) \
    Y(powf, 0.1f, 10.0f)

enum { CALLS = 256 };

static float inputs[2 * CALLS];

/* CALLS values spread over [low, high) in a scrambled order, twice. */
static void fill(float low, float high)
{
    for (unsigned i = 0; i < 2 * CALLS; i++)
        inputs[i] = low + (high - low) * (float)((i * 2654435761u) >> 8) * 0x1p-24f;
}

/* The sigmoid as one writes it with the C library. */
static float plain_logisticf(float x)
{
    return 1.0f / (1.0f + expf(-x));
}
