// One output channel: its weights, biases and multipliers, the sum of LANES products, the accumulators, requantization.
module column
    import systolic_types::*;
#(parameter int LANES = 8, parameter int INDEX = 0, parameter int GROUP = 256, parameter int SLOTS = 4) (
    input logic clk,
    // constants
    input logic weights_valid,
    input logic [1:0] weights_slot,
    input logic [$clog2(LANES)-1:0] weights_row,
    input logic parameters_valid,
    input logic parameters_page,
    input logic [3:0] parameters_item,
    input logic [LANES*8-1:0] constant,
    // what is computed
    input take_t take,
    input scale_t scale,
    input logic [7:0] zero,
    input logic [7:0] low,
    input logic [7:0] high,
    input step_t at_data,
    input step_t at_sum,
    input logic [LANES*8-1:0] data,
    output logic [7:0] value
);
    localparam int SHARE = LANES / 4; // biases and multipliers in a word
    localparam logic [3:0] ITEM = 4'(INDEX / SHARE);
    localparam int PLACE = INDEX % SHARE;

    logic [LANES*8-1:0] weights [SLOTS];
    logic [31:0] biases [2], multipliers [2];
    logic [7:0] shifts [2];

    always_ff @(posedge clk) begin
        if (weights_valid && (take != TAKE_DOT || weights_row == $clog2(LANES)'(INDEX))) weights[weights_slot] <= constant;
        if (parameters_valid && parameters_item == ITEM) biases[parameters_page] <= constant[PLACE*32+:32];
        if (parameters_valid && parameters_item == ITEM + 4) multipliers[parameters_page] <= constant[PLACE*32+:32];
        if (parameters_valid && parameters_item == 8) shifts[parameters_page] <= constant[INDEX*8+:8];
    end

    logic unused;
    assign unused = &{1'b0, at_data, at_sum}; // the rest is for others

    // The sum of products, or what stands for it.
    logic [LANES*8-1:0] own;
    logic signed [7:0] one;
    logic signed [31:0] dot, scaled, taken, fresh, old, sum;
    assign own = weights[at_data.slot];
    assign one = data[INDEX*8+:8];

    // A sum's operand, less its zero point, with 20 spare bits below, by its multiplier: own holds multiplier, shift, zero.
    logic signed [8:0] centred;
    logic signed [40:0] product;
    logic signed [31:0] rounded, half;
    logic [4:0] amount;
    assign amount = own[36:32];
    assign centred = 9'(one) - 9'($signed(own[47:40]));
    assign product = 41'(centred) * 41'($signed(own[31:0])) + 41'sd1024;
    assign rounded = 32'(product >>> 11);
    assign half = amount == 0 ? 32'sd0 : (32'sd1 << (amount - 5'd1)) - {31'd0, rounded[31]};
    assign scaled = (rounded + half) >>> amount;

    always_comb begin
        dot = 0;
        for (int i = 0; i < LANES; i++) dot = dot + 32'($signed(data[i*8+:8])) * 32'($signed(own[i*8+:8]));
    end

    always_ff @(posedge clk)
        unique case (take)
            TAKE_DOT: taken <= dot;
            TAKE_DIAGONAL: taken <= 32'(one) * 32'($signed(own[INDEX*8+:8]));
            TAKE_SCALED: taken <= scaled;
            default: taken <= 32'(one);
        endcase

    // The accumulators: what comes first takes the bias, what comes last goes on.
    logic [31:0] sums [GROUP];
    assign fresh = take == TAKE_LARGEST ? -32'sd128 : take == TAKE_VALUE ? 32'sd0 : biases[at_sum.page];
    assign sum = at_sum.first ? fresh : old;
    logic signed [31:0] total;
    assign total = take == TAKE_LARGEST ? (sum > taken ? sum : taken) : sum + taken;
    always_ff @(posedge clk) begin
        old <= sums[at_data.pixel];
        if (at_sum.valid && !at_sum.last) sums[at_sum.pixel] <= total;
    end

    logic [31:0] complete, multiplier;
    logic [7:0] shift;
    logic [8:0] count;
    always_ff @(posedge clk) begin
        complete <= total;
        multiplier <= multipliers[at_sum.page];
        shift <= shifts[at_sum.page];
        count <= at_sum.count;
    end
    requant last (.clk, .scale, .sum(complete), .multiplier, .shift, .count, .zero, .low, .high, .value);
endmodule
