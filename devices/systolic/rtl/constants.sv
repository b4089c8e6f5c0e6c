// Streams a task's constants from memory, ahead of the walker as far as there is room: for every block of output
// channels its biases, multipliers and shifts, then the blocks of weights, again for every group of rows.
module constants
    import systolic_registers::*;
    import systolic_types::*;
#(parameter int LANES = 8, parameter int SLOTS = 4) (
    input logic clk,
    input logic rst,
    input logic start,
    input descriptor_t descriptor,
    // memory
    output logic request,
    output logic [31:0] address,
    output logic [1:0] port,
    input logic granted,
    input logic weights_valid,
    input logic parameters_valid,
    input logic [LANES*8-1:0] data,
    // where words go
    output logic [1:0] slot,
    output logic [$clog2(LANES)-1:0] row,
    output logic page,
    output logic [3:0] item,
    // what is there
    output logic [2:0] blocks,
    output logic [1:0] pages,
    input logic block_used,
    input logic block_free,
    input logic page_used,
    input logic page_free,
    output logic right
);
    localparam int PARAMETERS = 9;

    logic active, reading_page, diagonal;
    logic [15:0] out_block, out_blocks, height, group_rows, group_row;
    logic [31:0] taps, tap, first_weight, crc, expected;
    logic [3:0] word, words;
    logic [2:0] claimed_blocks;
    logic [1:0] claimed_pages;
    logic room, word_ends, tap_ends, groups_end, block_begins;
    logic has_constants, filled_block, filled_page;

    logic unused;
    assign unused = &{1'b0, descriptor}; // the rest is for others

    assign has_constants = descriptor.operation == OP_CONV || descriptor.operation == OP_DEPTHWISE
        || descriptor.operation == OP_ADD;
    assign words = reading_page ? 4'(PARAMETERS - 1) : diagonal ? 4'd0 : 4'(LANES - 1);
    assign room = word != 0 || (reading_page ? claimed_pages != 2'd2 : claimed_blocks != 3'(SLOTS));
    assign request = active && room;
    assign port = reading_page ? PORT_PARAMETERS : PORT_WEIGHTS;
    assign word_ends = word == words;
    assign tap_ends = tap + 1 == taps;
    assign groups_end = group_row + group_rows >= height;
    assign block_begins = request && granted && word == 0;

    crc32 #(.LANES(LANES)) check (.clk, .clear(start), .valid(weights_valid || parameters_valid), .word(data), .crc);
    assign right = crc == ~expected;

    // Asking.
    always_ff @(posedge clk)
        if (rst) active <= 0;
        else if (start) begin
            active <= has_constants;
            reading_page <= 1;
            diagonal <= descriptor.operation != OP_CONV;
            address <= descriptor.memory;
            expected <= has_constants ? descriptor.constants_crc : 32'h0;
            taps <= 32'(descriptor.kernel_height) * 32'(descriptor.kernel_width) * 32'(descriptor.in_blocks);
            out_blocks <= descriptor.out_blocks;
            height <= descriptor.height;
            group_rows <= descriptor.group_rows;
            {out_block, group_row, tap, word} <= '0;
        end else if (request && granted) begin
            address <= address + LANES;
            word <= word_ends ? 4'd0 : word + 1;
            if (word_ends && reading_page) begin
                reading_page <= 0;
                first_weight <= address + LANES;
            end else if (word_ends && !tap_ends) tap <= tap + 1;
            else if (word_ends) begin
                tap <= 0;
                if (!groups_end) begin
                    group_row <= group_row + group_rows;
                    address <= first_weight;
                end else begin
                    group_row <= 0;
                    reading_page <= 1;
                    out_block <= out_block + 1;
                    active <= out_block + 1 != out_blocks;
                end
            end
        end

    // Answers, in the order asked.
    assign filled_block = weights_valid && (diagonal || row == $clog2(LANES)'(LANES - 1));
    assign filled_page = parameters_valid && item == 4'(PARAMETERS - 1);
    always_ff @(posedge clk)
        if (rst || start) begin
            {slot, row, page, item, blocks, pages, claimed_blocks, claimed_pages} <= '0;
        end else begin
            if (weights_valid) row <= filled_block ? '0 : row + 1;
            if (filled_block) slot <= slot + 1;
            if (parameters_valid) item <= filled_page ? '0 : item + 1;
            if (filled_page) page <= !page;
            blocks <= blocks + 3'(filled_block) - 3'(block_used);
            pages <= pages + 2'(filled_page) - 2'(page_used);
            claimed_blocks <= claimed_blocks + 3'(block_begins && !reading_page) - 3'(block_free);
            claimed_pages <= claimed_pages + 2'(block_begins && reading_page) - 2'(page_free);
        end
endmodule
