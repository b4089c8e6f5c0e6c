// Runs the model once a second and prints its outputs.
#include <@PREFIX@.h>

#include "@PREFIX@_sample.h"

static @PREFIX@_context model; // all the memory it works in
static float answer[@UPPER@_OUTPUT0_SIZE];

void setup() {
  Serial.begin(115200);
  @PREFIX@_init(&model);
}

void loop() {
  // Replace the sample here by your sensor's values, in the model's own units.
@SET_SKETCH_INPUTS@  if (@PREFIX@_run(&model) != 0) {
    Serial.println("the model did not run");
    return;
  }
  @PREFIX@_dequantize_output(&model, 0, answer);
@SKETCH_ANSWER@  delay(1000);
}
