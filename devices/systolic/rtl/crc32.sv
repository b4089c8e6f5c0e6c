// CRC-32 (polynomial EDB88320) over words, the lowest byte first; held from clear to clear.
module crc32 #(parameter int LANES = 8) (
    input logic clk,
    input logic clear,
    input logic valid,
    input logic [LANES*8-1:0] word,
    output logic [31:0] crc
);
    logic [31:0] rows [256];
    initial begin
        for (int i = 0; i < 256; i++) begin
            rows[i] = i;
            for (int bit_ = 0; bit_ < 8; bit_++) rows[i] = (rows[i] >> 1) ^ (rows[i][0] ? 32'hedb88320 : 32'h0);
        end
    end

    function automatic logic [31:0] next(input logic [31:0] start, input logic [LANES*8-1:0] bytes);
        next = start;
        for (int i = 0; i < LANES; i++) next = (next >> 8) ^ rows[next[7:0] ^ bytes[i*8+:8]];
    endfunction

    always_ff @(posedge clk)
        if (clear) crc <= 32'hffffffff;
        else if (valid) crc <= next(crc, word);
endmodule
