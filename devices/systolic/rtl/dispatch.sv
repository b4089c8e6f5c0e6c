// Starts the task at the head when what it waits for is idle, and reports tasks as finished in the order of the queue,
// whichever engine finishes first.
module dispatch
    import systolic_registers::*;
(
    input logic clk,
    input logic rst,
    input logic halted,
    input logic ready,
    input descriptor_t descriptor,
    output logic take,
    output logic start_array,
    output logic start_dma,
    input logic array_finished,
    input logic dma_finished,
    output logic array_busy,
    output logic dma_busy,
    output logic [15:0] array_tag,
    output logic [15:0] dma_tag,
    output logic done,
    output logic [15:0] done_tag,
    output logic done_interrupt
);
    localparam int DEPTH = 8;
    logic [15:0] tags [DEPTH];
    logic [DEPTH-1:0] interrupts, finished, array_slot, dma_slot, at_tail;
    logic [2:0] head, tail;
    logic [3:0] held;
    logic is_dma, free, fenced;

    logic unused;
    assign unused = &{1'b0, descriptor}; // the rest is for the engines

    assign is_dma = descriptor.operation == OP_LOAD || descriptor.operation == OP_STORE;
    assign free = is_dma ? !dma_busy : !array_busy;
    assign fenced = (descriptor.flags[FLAG_AFTER_ARRAY] && array_busy) || (descriptor.flags[FLAG_AFTER_DMA] && dma_busy);
    assign take = ready && !halted && free && !fenced && held != 4'(DEPTH);
    assign start_array = take && !is_dma;
    assign start_dma = take && is_dma;
    assign done = held != 0 && finished[head];
    assign done_tag = tags[head];
    assign done_interrupt = interrupts[head];
    assign at_tail = DEPTH'(1) << tail;

    always_ff @(posedge clk)
        if (rst) begin
            {head, tail, held, finished, array_busy, dma_busy} <= '0;
        end else begin
            finished <= (finished & ~(done ? DEPTH'(1) << head : '0))
                | (array_finished ? array_slot : '0) | (dma_finished ? dma_slot : '0);
            held <= held + 4'(take) - 4'(done);
            if (done) head <= head + 1;
            if (array_finished) array_busy <= 0;
            if (dma_finished) dma_busy <= 0;
            if (take) begin
                tags[tail] <= descriptor.tag;
                interrupts[tail] <= descriptor.flags[FLAG_INTERRUPT];
                tail <= tail + 1;
                if (is_dma) begin
                    dma_busy <= 1;
                    dma_slot <= at_tail;
                    dma_tag <= descriptor.tag;
                end else begin
                    array_busy <= 1;
                    array_slot <= at_tail;
                    array_tag <= descriptor.tag;
                end
            end
        end
endmodule
