/* main.c: printed by nnbuild. Runs @PREFIX@ on the sample in @PREFIX@_sample.h and prints its outputs. */
#include <stdio.h>

#include "@PREFIX@.h"
#include "@PREFIX@_sample.h"

static @PREFIX@_context model; /* all of the model's working memory */
static float answer[@UPPER@_OUTPUT0_SIZE];

@ENTRY@
{
    @PREFIX@_init(&model);
@SET_INPUTS@    if (@PREFIX@_run(&model) != 0) {
        printf("the run failed\n");
        @FAILED@
    }
    @PREFIX@_dequantize_output(&model, 0, answer);
@ANSWER@@DONE@}
