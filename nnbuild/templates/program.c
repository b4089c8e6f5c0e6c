/* Runs @PREFIX@ on a sample of zeros and says which output is the largest. Write your data in their place. */
#include <stdio.h>

#include "@PREFIX@.h"

static @PREFIX@_context model; /* all the memory it works in */
static float values[@UPPER@_INPUT0_SIZE];
static float answer[@UPPER@_OUTPUT0_SIZE];

@ENTRY@
{
    int best = 0;

    @PREFIX@_init(&model);
    @PREFIX@_quantize_input(&model, 0, values);
    if (@PREFIX@_run(&model) != 0) {
        printf("the run failed\n");
        @FAILED@
    }
    @PREFIX@_dequantize_output(&model, 0, answer);
    for (int i = 1; i < @UPPER@_OUTPUT0_SIZE; ++i) {
        best = answer[i] > answer[best] ? i : best;
    }
    printf("output %d of %d is the largest\n", best, @UPPER@_OUTPUT0_SIZE);
@DONE@}
