/* Runs the model on a sample and prints its outputs. */
#include <stdio.h>

#include "@PREFIX@.h"
#include "sample.h" /* @SAMPLE@ */

static @PREFIX@_context model; /* all of the model's working memory */
static float answer[@UPPER@_OUTPUT0_SIZE];

int main(void)
{
    int best = 0;

    @PREFIX@_init(&model);
@SET_INPUTS@    if (@PREFIX@_run(&model) != 0) {
        return 1;
    }
    @PREFIX@_dequantize_output(&model, 0, answer);
    for (int i = 0; i < @UPPER@_OUTPUT0_SIZE; ++i) {
        printf(@PRINT_ONE@, (double)answer[i]);
        best = answer[i] > answer[best] ? i : best;
    }
    printf(@PRINT_BEST@);
    return 0;
}
