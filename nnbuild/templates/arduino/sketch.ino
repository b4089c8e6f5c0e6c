// Runs the model once a second and prints what it answers.
#include <@PREFIX@.h>

static @PREFIX@_context context;

void setup() {
  Serial.begin(115200);
  @PREFIX@_init(&context);
}

void loop() {
  @INPUT@ *input = (@INPUT@ *)@PREFIX@_input(&context, 0);
  for (int i = 0; i < @UPPER@_INPUT0_SIZE; ++i) {
    input[i] = 0; // put your sensor's values here, before every run
  }
  if (@PREFIX@_run(&context) != 0) {
    Serial.println("the model did not run");
    return;
  }
  const @OUTPUT@ *output = (const @OUTPUT@ *)@PREFIX@_output(&context, 0);
  for (int i = 0; i < @UPPER@_OUTPUT0_SIZE; ++i) {
    Serial.println(output[i]);
  }
  delay(1000);
}
