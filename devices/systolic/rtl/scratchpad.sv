// The device's own memory: port A only reads, port B reads or writes. Data come a cycle after their address.
module scratchpad #(parameter int LANES = 8, parameter int WORDS = 8192) (
    input logic clk,
    input logic a_read,
    input logic [$clog2(WORDS)-1:0] a_address,
    output logic [LANES*8-1:0] a_data,
    input logic b_read,
    input logic b_write,
    input logic [$clog2(WORDS)-1:0] b_address,
    input logic [LANES*8-1:0] b_value,
    output logic [LANES*8-1:0] b_data
);
    logic [LANES*8-1:0] words [WORDS];

    always_ff @(posedge clk) begin
        if (a_read) a_data <= words[a_address];
        if (b_read) b_data <= words[b_address];
        if (b_write) words[b_address] <= b_value;
    end
endmodule
