/* main.c: printed by nnbuild. Shows @PREFIX@ the sample in @PREFIX@_sample.h and prints what it answers. */
#include <stdio.h>

#include "@PREFIX@.h"
#include "@PREFIX@_sample.h"

static @PREFIX@_context model; /* all the memory it works in */
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
