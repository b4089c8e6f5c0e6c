// What the host sees: registers, the queue of descriptors' addresses, the interrupt, errors, counters and the watchdog.
module registers
    import systolic_registers::*;
#(parameter int LANES = 8, parameter int WORDS = 8192, parameter int QUEUE = 4) (
    input logic clk,
    input logic rst_n,
    // the host's bus
    input logic bus_select,
    input logic bus_write,
    input logic [7:0] bus_address,
    input logic [31:0] bus_value,
    output logic [31:0] bus_data,
    output logic irq,
    // the rest
    output logic rst,
    output logic [3:0] epoch,
    output logic halted,
    output logic queued,
    output logic [31:0] queue_address,
    input logic pop,
    input logic fetching,
    input logic head_ready,
    input logic [15:0] head_tag,
    input logic started,
    input logic array_busy,
    input logic dma_busy,
    input logic issues,
    input logic stalls,
    input logic reads,
    input logic writes,
    input logic done,
    input logic [15:0] done_tag,
    input logic done_interrupt,
    input logic [3:0] raised,
    input logic [15:0] raised_tag
);
    localparam int BITS = $clog2(QUEUE);

    logic enable, irq_enable, irq_done, irq_error, full, busy, running;
    logic [31:0] addresses [QUEUE];
    logic [BITS-1:0] first, last;
    logic [BITS:0] held;
    logic [3:0] error, cause;
    logic [15:0] last_tag, failed_tag;
    logic [31:0] finished, limit, quiet;
    logic write_ctrl, ring, clear, overflows, expires, begun;
    logic [31:0] span, span_open, idle, idle_open, array_cycles, stall_cycles, mac_cycles, dma_cycles, empty_cycles, cycles, words_read, words_written;

    assign full = held == (BITS+1)'(QUEUE);
    assign running = array_busy || dma_busy;
    assign busy = held != 0 || fetching || running;
    assign halted = error != ERROR_NONE || !enable;
    assign queued = held != 0;
    assign queue_address = addresses[first];
    assign irq = irq_enable && (irq_done || irq_error);
    assign write_ctrl = bus_select && bus_write && bus_address == REG_CTRL;
    assign ring = bus_select && bus_write && bus_address == REG_DOORBELL;
    assign clear = write_ctrl && bus_value[CTRL_CLEAR];
    assign overflows = ring && full;
    assign expires = limit != 0 && quiet >= limit;
    assign cause = raised != ERROR_NONE ? raised : overflows ? ERROR_OVERFLOW : expires ? ERROR_WATCHDOG : ERROR_NONE;

    // A reset by software lasts a cycle; what was asked of memory before belongs to another epoch and is dropped.
    always_ff @(posedge clk)
        if (!rst_n) begin
            rst <= 1;
            epoch <= 0;
        end else begin
            rst <= write_ctrl && bus_value[CTRL_RESET];
            if (write_ctrl && bus_value[CTRL_RESET]) epoch <= epoch + 1;
        end

    always_ff @(posedge clk)
        if (!rst_n) begin
            {enable, irq_enable, limit} <= '0;
        end else if (bus_select && bus_write)
            unique case (bus_address)
                REG_CTRL: {irq_enable, enable} <= {bus_value[CTRL_IRQ_ENABLE], bus_value[CTRL_ENABLE]};
                REG_WATCHDOG: limit <= bus_value;
                default: ;
            endcase

    always_ff @(posedge clk)
        if (rst) begin
            {first, last, held, error, failed_tag, last_tag, finished, irq_done, irq_error, quiet} <= '0;
        end else begin
            if (ring && !full) begin
                addresses[last] <= bus_value;
                last <= last + 1;
            end
            if (pop) first <= first + 1;
            held <= held + (BITS+1)'(ring && !full) - (BITS+1)'(pop);
            if (bus_select && bus_write && bus_address == REG_IRQ) begin
                if (bus_value[IRQ_DONE]) irq_done <= 0;
                if (bus_value[IRQ_ERROR]) irq_error <= 0;
            end
            if (done) begin
                finished <= finished + 1;
                last_tag <= done_tag;
                if (done_interrupt) irq_done <= 1;
            end
            if (error == ERROR_NONE && cause != ERROR_NONE) begin
                error <= cause;
                failed_tag <= raised != ERROR_NONE ? raised_tag : head_tag;
                irq_error <= 1;
            end
            quiet <= busy && !done && error == ERROR_NONE ? quiet + 1 : 0;
        end

    // The open parts of span and idle count once another task shows that the run went on.
    always_ff @(posedge clk)
        if (!rst_n || clear) begin
            {span, span_open, idle, idle_open, array_cycles, stall_cycles, mac_cycles, dma_cycles, empty_cycles, words_read,
                words_written} <= '0;
            begun <= running && rst_n;
        end else begin
            if (started) begun <= 1;
            if (begun || started) begin
                if (started || running) begin
                    span <= span + span_open + 1;
                    idle <= idle + idle_open;
                    {span_open, idle_open} <= '0;
                end else begin
                    span_open <= span_open + 1;
                    idle_open <= idle_open + 1;
                end
            end
            array_cycles <= array_cycles + 32'(array_busy);
            stall_cycles <= stall_cycles + 32'(stalls);
            mac_cycles <= mac_cycles + 32'(issues);
            dma_cycles <= dma_cycles + 32'(dma_busy);
            empty_cycles <= empty_cycles + 32'(begun && !busy);
            words_read <= words_read + 32'(reads);
            words_written <= words_written + 32'(writes);
        end

    always_ff @(posedge clk) cycles <= rst_n ? cycles + 1 : 0;

    always_comb
        unique case (bus_address)
            REG_ID: bus_data = ID;
            REG_VERSION: bus_data = {8'($clog2(WORDS)), 8'(QUEUE), 8'(LANES), VERSION};
            REG_CTRL: bus_data = {30'd0, irq_enable, enable};
            REG_STATUS: bus_data = {18'd0, dma_busy, array_busy, 4'(held), error, 1'b0, irq_done || irq_error, full, busy};
            REG_DONE: bus_data = finished;
            REG_TAG: bus_data = {failed_tag, last_tag};
            REG_IRQ: bus_data = {30'd0, irq_error, irq_done};
            REG_WATCHDOG: bus_data = limit;
            REG_HEAD: bus_data = {15'd0, head_ready, head_tag};
            REG_SPAN: bus_data = span;
            REG_IDLE: bus_data = idle;
            REG_ARRAY: bus_data = array_cycles;
            REG_STALL: bus_data = stall_cycles;
            REG_MAC: bus_data = mac_cycles;
            REG_DMA: bus_data = dma_cycles;
            REG_EMPTY: bus_data = empty_cycles;
            REG_CYCLES: bus_data = cycles;
            REG_READS: bus_data = words_read;
            REG_WRITES: bus_data = words_written;
            default: bus_data = 32'd0;
        endcase
endmodule
