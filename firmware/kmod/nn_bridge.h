/* The interface between a model and the glue: integers and addresses only.
 *
 * The model's own files may be compiled for floating point and include no kernel header; the glue includes kernel
 * headers and has no floating point. These declarations use no type of either side. */
#ifndef NN_BRIDGE_H
#define NN_BRIDGE_H

#include <stdint.h>

/* One region of a context: an input, output, step output or state of the model, as nn_target.h numbers them. */
typedef struct nn_place {
    uint32_t kind;
    uint32_t index;
    uint32_t offset;
    uint32_t size;
} nn_place;

/* Initial value of a range of the state, at the start of a sequence. */
typedef struct nn_filling {
    uint32_t offset;
    uint32_t size;
    uint32_t width; /* bytes of one value: 1, 2 or 4 */
    int32_t  value;
} nn_filling;

/* One step: its number of work items, and how many to take together at first. */
typedef struct nn_step {
    int32_t extent;
    int32_t width;
} nn_step;

/* An input or output: its description, its number of values, and the conversion from a value with 16 fractional bits.
 * For integers: value * scale / 2^shift + zero_point; for float32 width is 4 and scale is 0. */
typedef struct nn_port {
    const char *text;
    uint32_t    count;
    uint32_t    width;
    int32_t     zero_point;
    uint32_t    to_scale;
    uint32_t    to_shift;
    uint32_t    from_scale;
    uint32_t    from_shift;
} nn_port;

/* A check of the model's results: inputs and expected `outputs`. Several run in sequence and carry the state. */
typedef struct nn_golden {
    const uint8_t *inputs;
    const uint8_t *outputs;
    uint32_t       count;
} nn_golden;

extern const char        nn_model_name[];
extern const char        nn_model_hash[];
extern const char        nn_model_plan[];
extern const char        nn_model_version[];
extern const uint32_t    nn_model_context_bytes;
extern const uint32_t    nn_model_steps;
extern const nn_step     nn_model_step_table[];
extern const uint32_t    nn_model_place_count;
extern const nn_place    nn_model_places[];
extern const uint32_t    nn_model_filling_count;
extern const nn_filling  nn_model_fillings[];
extern const uint32_t    nn_model_inputs;
extern const uint32_t    nn_model_outputs;
extern const nn_port     nn_model_input_ports[];
extern const nn_port     nn_model_output_ports[];
extern const nn_golden   nn_model_golden;
extern const uint32_t    nn_model_weight_bytes; /* 0 where the weights cannot be replaced */
extern const uint8_t *const nn_model_weights; /* those built in */

/* Work items [begin, end) of one step. `weights` is the weights' address in a module with replaceable weights. */
void nn_model_part(void *context, const uint8_t *weights, uint32_t step, int32_t begin, int32_t end);

/* Whether an output is within the golden check's tolerance for this sample. */
int nn_model_close(uint32_t sample, uint32_t output, const uint8_t *found, const uint8_t *wanted);

#endif
