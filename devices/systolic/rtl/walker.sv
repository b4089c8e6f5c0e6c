// Walks over blocks of output channels, groups of rows, taps of the window and pixels: one pixel a cycle.
module walker
    import systolic_registers::*;
    import systolic_types::*;
(
    input logic clk,
    input logic rst,
    input logic start,
    input descriptor_t descriptor,
    input logic [2:0] blocks,
    input logic [1:0] pages,
    output logic block_used,
    output logic page_used,
    output logic walking,
    output step_t step
);
    localparam logic [3:0] FLIGHT = 4'd2; // cycles until a sum may be added to again

    descriptor_t d;
    logic windowed, constant_taps, sums;
    logic [15:0] stride_row, stride_pixel;

    // Where the walk is: the block, the group's first row, the tap, the pixel.
    logic [15:0] out_block, group_row, in_block, row, column;
    logic [7:0] ky, kx, pixel;
    logic [3:0] age;

    // Source addresses: of the block, the tap's row and column, the tap, the pixel's row, the pixel.
    logic [15:0] block_from, next_from, ky_from, kx_from, tap_from, row_from, from;
    logic [15:0] block2_from, group2_from;
    // Rows and columns of the input that belong to them.
    logic [16:0] next_y, tap_y, y, tap_x, x;
    // Target addresses.
    logic [15:0] block_to, group_to, next_to, row_to, to;
    logic [1:0] slot;
    logic page;

    logic second, rested, last_tap, row_ends, rows_end, pass_ends, group_ends, ends, ready, go;
    logic [15:0] row_pitch, pixel_pitch, rows_left;
    logic [8:0] rows_inside, columns_inside;

    logic unused;
    assign unused = &{1'b0, d}; // the rest of the descriptor is for others

    // Taps of a window that begins at `at` which lie in 0 .. size - 1.
    function automatic logic [8:0] inside_of(input logic [16:0] at, input logic [7:0] kernel, input logic [15:0] size);
        logic [16:0] low, high;
        low = at[16] ? 17'd0 - at : 17'd0;
        high = {1'b0, size} - at; // taps until the input ends; positive, for no window begins behind the end
        inside_of = 9'((high > {9'd0, kernel} ? {9'd0, kernel} : high) - low);
    endfunction

    assign sums = d.operation == OP_ADD;
    assign windowed = d.operation != OP_CONV; // output block n is made of input block n
    assign constant_taps = d.operation != OP_MAX_POOL && d.operation != OP_AVERAGE_POOL;
    assign second = sums && in_block[0];
    assign row_pitch = second ? d.source2_row : stride_row;
    assign pixel_pitch = second ? d.source2_pixel : stride_pixel;
    assign last_tap = in_block + 1 == d.in_blocks && kx + 1 == d.kernel_width && ky + 1 == d.kernel_height;
    assign row_ends = column + 1 == d.width;
    assign rows_left = d.height - group_row;
    assign rows_end = row + 1 == d.group_rows || row + 1 == rows_left;
    assign rested = age >= FLIGHT - 1;
    assign group_ends = rows_left <= d.group_rows;
    assign ends = group_ends && out_block + 1 == d.out_blocks;
    assign ready = !constant_taps || (blocks != 0 && pages != 0);
    assign go = walking && ready && (!(row_ends && rows_end) || rested);
    assign pass_ends = go && row_ends && rows_end;
    assign block_used = pass_ends && constant_taps;
    assign page_used = pass_ends && last_tap && group_ends && constant_taps;
    assign rows_inside = inside_of(y - 17'(ky), d.kernel_height, d.in_height);
    assign columns_inside = inside_of(x - 17'(kx), d.kernel_width, d.in_width);

    always_ff @(posedge clk) begin
        step <= '0;
        if (rst) walking <= 0;
        else if (start) begin
            walking <= 1;
            d <= descriptor;
            stride_row <= 16'(descriptor.stride_y) * descriptor.source_row;
            stride_pixel <= 16'(descriptor.stride_x) * descriptor.source_pixel;
            {block_from, ky_from, kx_from, tap_from, row_from, from} <= {6{descriptor.source}};
            {block2_from, group2_from} <= {2{descriptor.source2}};
            {block_to, group_to, row_to, to} <= {4{descriptor.destination}};
            {tap_y, y} <= {2{17'd0 - 17'(descriptor.pad_top)}};
            {tap_x, x} <= {2{17'd0 - 17'(descriptor.pad_left)}};
            {out_block, group_row, in_block, row, column, ky, kx, pixel, age, slot, page} <= '0;
        end else if (walking) begin
            if (age != 4'hf) age <= age + 1;
            if (go) begin
                step <= '{
                    valid: 1'b1,
                    first: ky == 0 && kx == 0 && in_block == 0,
                    last: last_tap,
                    in_input: sums || (y < {1'b0, d.in_height} && x < {1'b0, d.in_width}),
                    end_block: pass_ends && constant_taps,
                    end_parameters: page_used,
                    end_task: pass_ends && last_tap && ends,
                    source: from,
                    target: to,
                    pixel: pixel,
                    count: 9'(rows_inside * columns_inside),
                    slot: slot,
                    page: page
                };
                advance();
            end
        end
    end

    // The next pixel, and where a row, a pass, a group, a block ends, the next of these.
    task automatic advance();
        pixel <= pixel + 1;
        column <= column + 1;
        from <= from + pixel_pitch;
        x <= x + 17'(d.stride_x);
        to <= to + d.destination_pixel;
        if (row_ends) begin
            column <= 0;
            row <= row + 1;
            {row_from, from} <= {2{row_from + row_pitch}};
            y <= y + 17'(d.stride_y);
            x <= tap_x;
            {row_to, to} <= {2{row_to + d.destination_row}};
        end
        if (row_ends && rows_end) next_pass();
    endtask

    task automatic next_pass();
        logic [15:0] at;
        {row, pixel, age} <= '0;
        {row_to, to} <= {2{group_to}};
        slot <= slot + 1;
        if (ky == 0 && kx == 0 && in_block == 0) begin
            next_from <= row_from + row_pitch;
            next_y <= y + 17'(d.stride_y);
            next_to <= row_to + d.destination_row;
        end
        if (last_tap) next_group();
        else if (in_block + 1 != d.in_blocks) begin
            in_block <= in_block + 1;
            at = sums ? group2_from : tap_from + 1;
            {tap_from, row_from, from} <= {3{at}};
            y <= tap_y;
            x <= tap_x;
        end else if (kx + 1 != d.kernel_width) begin
            in_block <= 0;
            kx <= kx + 1;
            at = kx_from + d.source_pixel;
            {kx_from, tap_from, row_from, from} <= {4{at}};
            y <= tap_y;
            {tap_x, x} <= {2{tap_x + 17'd1}};
        end else begin
            in_block <= 0;
            kx <= 0;
            ky <= ky + 1;
            at = ky_from + d.source_row;
            {ky_from, kx_from, tap_from, row_from, from} <= {5{at}};
            {tap_y, y} <= {2{tap_y + 17'd1}};
            {tap_x, x} <= {2{17'd0 - 17'(d.pad_left)}};
        end
    endtask

    task automatic next_group();
        logic [15:0] at;
        logic one_tap;
        one_tap = d.in_blocks == 1 && d.kernel_width == 1 && d.kernel_height == 1;
        {ky, kx, in_block} <= '0;
        {tap_x, x} <= {2{17'd0 - 17'(d.pad_left)}};
        if (!group_ends) begin
            group_row <= group_row + d.group_rows;
            at = one_tap ? row_from + row_pitch : next_from;
            {ky_from, kx_from, tap_from, row_from, from} <= {5{at}};
            group2_from <= row_from + row_pitch;
            {tap_y, y} <= {2{one_tap ? y + 17'(d.stride_y) : next_y}};
            at = one_tap ? row_to + d.destination_row : next_to;
            {group_to, row_to, to} <= {3{at}};
        end else begin
            group_row <= 0;
            out_block <= out_block + 1;
            page <= !page;
            at = windowed ? block_from + 1 : block_from;
            {block_from, ky_from, kx_from, tap_from, row_from, from} <= {6{at}};
            {block2_from, group2_from} <= {2{block2_from + 16'd1}};
            {tap_y, y} <= {2{17'd0 - 17'(d.pad_top)}};
            {block_to, group_to, row_to, to} <= {4{block_to + 16'd1}};
            if (ends) walking <= 0;
        end
    endtask
endmodule
