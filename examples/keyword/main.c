/* Listens on a bare STM32F4: an interrupt brings a sample each 1/16,000 s, here from flash where a microphone's would
 * come from, and the program takes what has arrived. It says what it hears, at last how busy it was.
 *
 *     nnbuild build words.h5 … --features sound.toml --board stm32 -o out --application main.c
 *
 * sound.h holds the samples; python benchmarks/realtime.py makes it, builds this and runs it. */
#include "nn_app.h"
#include "sound.h"
#include "words_listen.h"

#define CORE_HERTZ 168000000u
#define RING 2048u /* samples, a power of two */
#define MOST 256   /* taken at once */

#define SYST_CSR (*(volatile uint32_t *)0xe000e010u)
#define SYST_RVR (*(volatile uint32_t *)0xe000e014u)
#define SYST_CVR (*(volatile uint32_t *)0xe000e018u)
#define SCB_VTOR (*(volatile uint32_t *)0xe000ed08u)
#define SYSTICK 15
#define VECTORS 98

static uint32_t vectors[VECTORS] __attribute__((aligned(512))); /* with a handler of our own */
static int16_t ring[RING];
static volatile uint32_t arrived, taken, lost;
static words_listener listener;

static void sample(void)
{
    if (arrived == SOUND_SIZE) {
        return;
    }
    if (arrived - taken == RING) {
        lost = lost + 1u;
        return;
    }
    ring[arrived % RING] = sound[arrived];
    arrived = arrived + 1u;
}

static void start(void)
{
    const uint32_t *const old = (const uint32_t *)(uintptr_t)SCB_VTOR;

    for (int i = 0; i < VECTORS; ++i) {
        vectors[i] = old[i];
    }
    vectors[SYSTICK] = (uint32_t)(uintptr_t)sample;
    SCB_VTOR = (uint32_t)(uintptr_t)vectors;
    SYST_RVR = CORE_HERTZ / WORDS_FEATURES_RATE - 1u;
    SYST_CVR = 0;
    SYST_CSR = 7; /* the core's clock, its interrupt, on */
}

static void say(void)
{
    nn_print(words_class((unsigned)listener.spotter.event));
    nn_print(" at ");
    nn_print_real((float)taken / (float)WORDS_FEATURES_RATE, 2);
    nn_print(" s\n");
}

int main(void)
{
    uint64_t busy = 0, longest = 0, begin, whole;

    words_listen_init(&listener);
    begin = nn_platform_ticks();
    start();
    while (taken < SOUND_SIZE) {
        const uint32_t at = taken % RING, there = arrived - taken;
        uint32_t n = there < RING - at ? there : RING - at;
        uint64_t before, took;
        int32_t heard;

        if (n == 0) {
#ifndef AWAKE /* an emulator that is asleep loses ticks */
            nn_sleep();
#endif
            continue;
        }
        n = n < MOST ? n : MOST;
        before = nn_platform_ticks();
        heard = words_listen(&listener, ring + at, (int32_t)n);
        took = nn_platform_ticks() - before;
        busy += took;
        longest = took > longest ? took : longest;
        taken = taken + n;
        if (heard > 0) {
            say();
        }
    }
    whole = nn_platform_ticks() - begin;
    nn_print("lost ");
    nn_print_whole((int32_t)lost);
    nn_print(" of ");
    nn_print_whole(SOUND_SIZE);
    nn_print(" samples, load ");
    nn_print_real(100.0f * (float)busy / (float)whole, 1);
    nn_print(" %, of a step at most ");
    nn_print_real(100.0f * (float)longest * (float)SOUND_SIZE / (float)WORDS_FEATURES_STEP / (float)whole, 1);
    nn_print(" %\n");
    return 0;
}
