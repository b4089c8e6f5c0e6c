// Moves rows of words between memory and the scratchpad. Words on the way wait in a FIFO; no more are asked for than fit.
module dma
    import systolic_registers::*;
#(parameter int LANES = 8, parameter int WORDS = 8192) (
    input logic clk,
    input logic rst,
    input logic start,
    input descriptor_t descriptor,
    output logic finished,
    output logic outside,
    // memory
    output logic request,
    output logic write,
    output logic [31:0] address,
    output logic [LANES*8-1:0] value,
    input logic granted,
    input logic valid,
    input logic [LANES*8-1:0] data,
    // scratchpad
    output logic pad_read,
    output logic pad_write,
    output logic [15:0] pad_address,
    output logic [LANES*8-1:0] pad_value,
    input logic pad_granted,
    input logic [LANES*8-1:0] pad_data
);
    localparam int DEPTH = 16;
    localparam int SHIFT = $clog2(LANES);

    // One walks over where words come from, the other over where they go.
    typedef struct packed {
        logic active;
        logic [15:0] row, column;
        logic [31:0] line, place;
    } walk_t;

    logic load, coming;
    logic [15:0] height, width;
    logic [31:0] from_pitch, to_pitch;
    walk_t from, to;
    logic [LANES*8-1:0] fifo [DEPTH];
    logic [3:0] first, last;
    logic [4:0] promised, present; // words that have or will have a place; words that are there
    logic ask, give, arrived;

    logic unused;
    assign unused = &{1'b0, descriptor}; // the rest is for others

    function automatic walk_t begun(input logic [31:0] place);
        begun = '{active: 1'b1, row: 16'd0, column: 16'd0, line: place, place: place};
    endfunction

    function automatic walk_t stepped(input walk_t w, input logic [31:0] pitch);
        stepped = w;
        if (w.column + 1 != width) begin
            stepped.column = w.column + 1;
            stepped.place = w.place + 1;
        end else begin
            stepped.column = 0;
            stepped.row = w.row + 1;
            stepped.line = w.line + pitch;
            stepped.place = w.line + pitch;
            stepped.active = w.row + 1 != height;
        end
    endfunction

    assign ask = from.active && promised != 5'(DEPTH);
    assign give = to.active && present != 0;
    assign request = load ? ask : give;
    assign write = !load;
    assign address = (load ? from.place : to.place) << SHIFT;
    assign value = fifo[first];
    assign pad_read = !load && ask;
    assign pad_write = load && give;
    assign pad_address = load ? to.place[15:0] : from.place[15:0];
    assign pad_value = fifo[first];
    assign arrived = load ? valid : coming;
    assign outside = (pad_read || pad_write) && pad_address >= 16'(WORDS);

    logic asked, given;
    assign asked = ask && (load ? granted : pad_granted);
    assign given = give && (load ? pad_granted : granted);

    always_ff @(posedge clk) begin
        finished <= 0;
        if (rst) begin
            {from.active, to.active, coming} <= '0;
        end else if (start) begin
            load <= descriptor.operation == OP_LOAD;
            height <= descriptor.height;
            width <= descriptor.width;
            from_pitch <= 32'(descriptor.source_row);
            to_pitch <= 32'(descriptor.destination_row);
            from <= begun(descriptor.operation == OP_LOAD ? descriptor.memory >> SHIFT : 32'(descriptor.source));
            to <= begun(descriptor.operation == OP_LOAD ? 32'(descriptor.destination) : descriptor.memory >> SHIFT);
            {first, last, promised, present, coming} <= '0;
        end else begin
            coming <= asked && !load;
            if (asked) from <= stepped(from, from_pitch);
            if (given) begin
                to <= stepped(to, to_pitch);
                first <= first + 1;
                finished <= to.row + 1 == height && to.column + 1 == width;
            end
            if (arrived) begin
                fifo[last] <= load ? data : pad_data;
                last <= last + 1;
            end
            promised <= promised + 5'(asked) - 5'(given);
            present <= present + 5'(arrived) - 5'(given);
        end
    end
endmodule
