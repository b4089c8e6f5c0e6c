// What travels down the array's pipeline beside a pixel.
package systolic_types;
    typedef struct packed {
        logic valid;
        logic first;          // of the taps of this pixel: the bias is taken instead of the sum so far
        logic last;           // the sum is complete: on to requantization
        logic in_input;         // the tap lies in the input, not in its padding
        logic end_block;      // the last pixel that uses this block of weights
        logic end_parameters; // the last pixel that uses these biases and multipliers
        logic end_task;
        logic [15:0] source;
        logic [15:0] target;
        logic [7:0] pixel;    // place in the accumulators
        logic [8:0] count;    // taps of this pixel that lie in the input
        logic [1:0] slot;     // block of weights
        logic page;           // biases and multipliers
    } step_t;

    typedef enum logic [1:0] {SCALE_TWICE, SCALE_ONCE, SCALE_MEAN, SCALE_NONE} scale_t;
    typedef enum logic [2:0] {TAKE_DOT, TAKE_DIAGONAL, TAKE_SCALED, TAKE_VALUE, TAKE_LARGEST} take_t;

    localparam logic [1:0] PORT_DESCRIPTOR = 2'd0;
    localparam logic [1:0] PORT_WEIGHTS = 2'd1;
    localparam logic [1:0] PORT_PARAMETERS = 2'd2;
    localparam logic [1:0] PORT_DMA = 2'd3;
endpackage
