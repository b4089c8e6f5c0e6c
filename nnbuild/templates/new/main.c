/* Runs the model once and prints what it answers. */
#include <stdio.h>

#include "@PREFIX@.h"

static @PREFIX@_context model; /* all the memory it works in */

int main(void)
{
    @PREFIX@_init(&model);
    @INPUT@ *input = (@INPUT@ *)@PREFIX@_input(&model, 0);
    for (int i = 0; i < @UPPER@_INPUT0_SIZE; ++i) {
        input[i] = 0; /* your data goes here, before every run */
    }
    if (@PREFIX@_run(&model) != 0) {
        return 1;
    }
    const @OUTPUT@ *output = (const @OUTPUT@ *)@PREFIX@_output(&model, 0);
    for (int i = 0; i < @UPPER@_OUTPUT0_SIZE; ++i) {
        printf("output %d: %g\n", i, (double)output[i]);
    }
    return 0;
}
