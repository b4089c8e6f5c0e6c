/* Runs the model on a sample and prints its outputs to the serial port. */
#include "@PREFIX@.h"
#include "nn_app.h"
#include "sample.h" /* @SAMPLE@ */

static @PREFIX@_context model NN_CONTEXT; /* all of the model's working memory */
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
@BARE_ONE@        best = answer[i] > answer[best] ? i : best;
    }
@BARE_BEST@    return 0;
}
