// Brings a sum to a byte in three stages: product, scaled number, zero point and bounds.
module requant
    import systolic_types::*;
(
    input logic clk,
    input scale_t scale,
    input logic [31:0] sum,
    input logic [31:0] multiplier,
    input logic [7:0] shift, // SCALE_TWICE: signed, left is positive; SCALE_ONCE: right, and bit 7: halves away from zero
    input logic [8:0] count,
    input logic [7:0] zero,
    input logic [7:0] low,
    input logic [7:0] high,
    output logic [7:0] value
);
    localparam int RECIPROCAL_BITS = 24; // exact for sums of up to 256 bytes

    logic [24:0] reciprocals [512];
    initial begin
        reciprocals[0] = 0;
        for (int i = 1; i < 512; i++) reciprocals[i] = 25'((2 ** RECIPROCAL_BITS + i - 1) / i);
    end

    logic [31:0] size, left, right;
    logic signed [63:0] wide_left, wide_right, product;
    logic [7:0] amount;
    logic was_negative;
    logic [5:0] fraction;

    assign size = sum[31] ? 32'd0 - sum : sum;
    always_comb
        unique case (scale)
            SCALE_TWICE: {left, right} = {shift[7] ? sum : sum << shift[4:0], multiplier};
            SCALE_ONCE: {left, right} = {sum, multiplier};
            SCALE_MEAN: {left, right} = {size + {24'd0, count[8:1]}, {7'd0, reciprocals[count]}};
            default: {left, right} = {sum, 32'd1};
        endcase
    assign wide_left = 64'($signed(left));
    assign wide_right = 64'($signed(right));

    // Stage 1.
    always_ff @(posedge clk) begin
        product <= wide_left * wide_right;
        amount <= shift;
        was_negative <= sum[31];
    end

    // Stage 2.
    logic signed [63:0] added, shifted;
    logic [31:0] scaled;
    logic [4:0] twice;
    assign fraction = scale == SCALE_TWICE ? 6'd31 : scale == SCALE_ONCE ? amount[5:0]
        : scale == SCALE_MEAN ? 6'(RECIPROCAL_BITS) : 6'd0;
    always_comb begin
        added = product;
        if (scale == SCALE_TWICE || scale == SCALE_ONCE) added = added + (64'sd1 << (fraction - 6'd1));
        if (scale == SCALE_ONCE && amount[7] && was_negative) added = added - 64'sd1;
        shifted = added >>> fraction;
        if (scale == SCALE_MEAN && was_negative) shifted = -shifted;
    end
    // Results beyond a byte and a half are held there; SCALE_TWICE still divides, and has 32 bits.
    logic over, under;
    assign over = shifted > 64'sd1023;
    assign under = shifted < -64'sd1023;
    always_ff @(posedge clk) begin
        twice <= scale == SCALE_TWICE && amount[7] ? 5'(8'd0 - amount) : 5'd0;
        if (scale == SCALE_TWICE) scaled <= shifted[31:0];
        else scaled <= over ? 32'd1023 : under ? -32'd1023 : shifted[31:0];
    end

    // Stage 3.
    logic signed [32:0] wide, divided, half, result, least, most;
    assign wide = 33'($signed(scaled));
    assign half = twice == 0 ? 33'sd0 : (33'sd1 << (twice - 5'd1)) - {32'd0, scaled[31]};
    assign divided = (wide + half) >>> twice;
    assign result = divided + 33'($signed(zero));
    assign least = 33'($signed(low));
    assign most = 33'($signed(high));
    always_ff @(posedge clk) value <= result < least ? low : result > most ? high : result[7:0];
endmodule
