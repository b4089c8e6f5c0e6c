// The array engine: constants, walker, LANES columns, and the pipeline from the scratchpad back to it.
module array
    import systolic_registers::*;
    import systolic_types::*;
#(parameter int LANES = 8, parameter int WORDS = 8192, parameter int GROUP = 256) (
    input logic clk,
    input logic rst,
    input logic start,
    input descriptor_t descriptor,
    output logic finished,
    output logic failed,
    output logic outside,
    output logic issues,
    output logic stalls,
    // memory
    output logic request,
    output logic [31:0] address,
    output logic [1:0] port,
    input logic granted,
    input logic weights_valid,
    input logic parameters_valid,
    input logic [LANES*8-1:0] data,
    // scratchpad
    output logic pad_read,
    output logic [15:0] pad_source,
    input logic [LANES*8-1:0] pad_data,
    output logic pad_write,
    output logic [15:0] pad_target,
    output logic [LANES*8-1:0] pad_value
);
    localparam int SLOTS = 4;
    localparam int LATER = 4; // stages from a sum to its byte

    take_t take;
    scale_t scale;
    logic [7:0] zero_out, low, high, fill;
    logic walking, block_used, page_used, page, right;
    logic [1:0] slot, pages;
    logic [$clog2(LANES)-1:0] row;
    logic [3:0] item;
    logic [2:0] blocks;
    step_t walked, read, summed, later [LATER];
    logic [LANES*8-1:0] pixels;

    constants #(.LANES(LANES), .SLOTS(SLOTS)) stream (
        .clk, .rst, .start, .descriptor, .request, .address, .port, .granted, .weights_valid, .parameters_valid, .data,
        .slot, .row, .page, .item, .blocks, .pages, .block_used, .block_free(summed.valid && summed.end_block),
        .page_used, .page_free(later[0].valid && later[0].end_parameters), .right
    );
    walker walk (.clk, .rst, .start, .descriptor, .blocks, .pages, .block_used, .page_used, .walking, .step(walked));

    always_ff @(posedge clk)
        if (start) begin
            zero_out <= descriptor.zero_out;
            low <= descriptor.low;
            high <= descriptor.high;
            fill <= descriptor.zero_in;
            scale <= descriptor.flags[FLAG_ONCE] ? SCALE_ONCE : SCALE_TWICE;
            unique case (descriptor.operation)
                OP_CONV: take <= TAKE_DOT;
                OP_DEPTHWISE: take <= TAKE_DIAGONAL;
                OP_ADD: take <= TAKE_SCALED;
                OP_MAX_POOL: {take, scale, fill} <= {TAKE_LARGEST, SCALE_NONE, 8'h80};
                default: {take, scale, fill} <= {TAKE_VALUE, SCALE_MEAN, 8'h00};
            endcase
        end

    // The pipeline: address, data, products, sums, three stages of requantization.
    assign pad_read = walked.valid && walked.in_input;
    assign pad_source = walked.source;
    assign pixels = read.in_input ? pad_data : {LANES{fill}};
    always_ff @(posedge clk)
        if (rst) begin
            {read, summed} <= '0;
            for (int i = 0; i < LATER; i++) later[i] <= '0;
        end else begin
            read <= walked;
            summed <= read;
            later[0] <= summed;
            for (int i = 1; i < LATER; i++) later[i] <= later[i-1];
        end

    for (genvar i = 0; i < LANES; i++) begin : columns
        column #(.LANES(LANES), .INDEX(i), .GROUP(GROUP), .SLOTS(SLOTS)) channel (
            .clk, .weights_valid, .weights_slot(slot), .weights_row(row), .parameters_valid, .parameters_page(page),
            .parameters_item(item), .constant(data), .take, .scale, .zero(scale == SCALE_MEAN || scale == SCALE_NONE
            ? 8'd0 : zero_out), .low, .high, .at_data(read), .at_sum(summed), .data(pixels), .value(pad_value[i*8+:8])
        );
    end

    assign pad_write = later[LATER-1].valid && later[LATER-1].last;
    assign pad_target = later[LATER-1].target;
    assign finished = later[LATER-1].valid && later[LATER-1].end_task && right;
    assign failed = later[LATER-1].valid && later[LATER-1].end_task && !right;
    assign outside = (pad_read && pad_source >= 16'(WORDS)) || (pad_write && pad_target >= 16'(WORDS));
    assign issues = walked.valid;
    assign stalls = walking && !walked.valid;
endmodule
