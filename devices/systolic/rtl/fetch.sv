// Reads a descriptor of 64 bytes from memory, checks its CRC and what it says, and holds it until it is taken.
module fetch
    import systolic_registers::*;
#(parameter int LANES = 8) (
    input logic clk,
    input logic rst,
    input logic halted,
    input logic queued,
    input logic [31:0] queue_address,
    output logic pop,
    output logic request,
    output logic [31:0] address,
    input logic granted,
    input logic valid,
    input logic [LANES*8-1:0] data,
    output descriptor_t descriptor,
    output logic ready,
    output logic busy,
    input logic take,
    output logic [3:0] error
);
    localparam int PARTS = 64 / LANES;
    localparam int BITS = $clog2(PARTS) + 1;
    localparam logic [31:0] RESIDUE = 32'hdebb20e3; // of anything followed by its own CRC

    typedef enum logic [1:0] {EMPTY, READING, CHECK, FULL} state_t;
    state_t state;
    logic [BITS-1:0] asked, come;
    logic [511:0] buffer;
    logic [31:0] crc;
    logic sizes_fit, sane;

    assign descriptor = descriptor_t'(buffer);
    assign request = state == READING && asked != BITS'(PARTS);
    assign pop = state == EMPTY && queued && !halted;
    assign ready = state == FULL;
    assign busy = state != EMPTY;

    crc32 #(.LANES(LANES)) check (.clk, .clear(state == EMPTY), .valid(valid && state == READING), .word(data), .crc);

    assign sizes_fit = descriptor.height != 0 && descriptor.width != 0 && descriptor.in_blocks != 0
        && descriptor.out_blocks != 0 && descriptor.kernel_height != 0 && descriptor.kernel_width != 0
        && descriptor.group_rows != 0;
    assign sane = descriptor.operation >= OP_CONV && descriptor.operation <= OP_STORE
        && descriptor.version == VERSION && sizes_fit && descriptor.reserved == 0;

    always_ff @(posedge clk) begin
        error <= ERROR_NONE;
        if (rst) state <= EMPTY;
        else
            unique case (state)
                EMPTY:
                    if (pop) begin
                        state <= READING;
                        address <= queue_address;
                        asked <= 0;
                        come <= 0;
                    end
                READING: begin
                    if (request && granted) begin
                        asked <= asked + 1;
                        address <= address + LANES;
                    end
                    if (valid) begin
                        buffer <= {data, buffer[511:LANES*8]};
                        come <= come + 1;
                        if (come == BITS'(PARTS - 1)) state <= CHECK;
                    end
                end
                CHECK: begin
                    if (crc == RESIDUE && sane) state <= FULL;
                    else if (!halted) error <= crc == RESIDUE ? ERROR_TASK : ERROR_DESCRIPTOR;
                end
                FULL: if (take) state <= EMPTY;
            endcase
    end
endmodule
