// An accelerator for int8 networks: a queue of descriptors, a DMA engine, a scratchpad, an array of LANES x LANES
// multipliers. The host sees registers and an interrupt; the device reads and writes memory through one port, where
// answers come in order and carry the tag of their request.
module systolic
    import systolic_registers::*;
    import systolic_types::*;
#(parameter int LANES = 8, parameter int WORDS = 65536 / LANES, parameter int GROUP = 256, parameter int QUEUE = 4) (
    input logic clk,
    input logic rst_n,
    input logic bus_select,
    input logic bus_write,
    input logic [7:0] bus_address,
    input logic [31:0] bus_value,
    output logic [31:0] bus_data,
    output logic irq,
    output logic mem_request,
    output logic mem_write,
    output logic [31:0] mem_address,
    output logic [LANES*8-1:0] mem_value,
    output logic [5:0] mem_tag,
    input logic mem_granted,
    input logic mem_valid,
    input logic mem_error,
    input logic [5:0] mem_answer,
    input logic [LANES*8-1:0] mem_data
);
    localparam int BITS = $clog2(WORDS);

    logic rst, halted, queued, pop, fetching, ready, take, start_array, start_dma, array_busy, dma_busy;
    logic [3:0] epoch, fetch_error, raised;
    logic [31:0] queue_address;
    descriptor_t descriptor;
    logic [15:0] array_tag, dma_tag, done_tag, raised_tag;
    logic done, done_interrupt, issues, stalls;
    logic array_finished, array_failed, array_outside, dma_finished, dma_outside;

    // Memory: constants first, then descriptors, then the DMA engine.
    logic array_request, fetch_request, dma_request, dma_write;
    logic [31:0] array_address, fetch_address, dma_address;
    logic [1:0] array_port;
    logic answered, broken;
    assign mem_request = !rst && (array_request || fetch_request || dma_request); // what a reset ends asks no more
    assign mem_write = !array_request && !fetch_request && dma_write;
    assign mem_address = array_request ? array_address : fetch_request ? fetch_address : dma_address;
    assign mem_tag = {epoch, array_request ? array_port : fetch_request ? PORT_DESCRIPTOR : PORT_DMA};
    assign answered = mem_valid && mem_answer[5:2] == epoch && !rst;
    assign broken = answered && mem_error;

    // Scratchpad: the array reads port A; its results go first on port B, the DMA engine waits.
    logic a_read, array_writes, dma_reads, dma_writes;
    logic [15:0] a_address, array_target, dma_place;
    logic [LANES*8-1:0] a_data, b_data, array_value, dma_value;

    logic unused;
    assign unused = &{1'b0, a_address, array_target, dma_place}; // higher bits are an error that the engines report

    registers #(.LANES(LANES), .WORDS(WORDS), .QUEUE(QUEUE)) host (
        .clk, .rst_n, .bus_select, .bus_write, .bus_address, .bus_value, .bus_data, .irq, .rst, .epoch, .halted,
        .queued, .queue_address, .pop, .fetching, .head_ready(ready), .head_tag(descriptor.tag),
        .started(take), .array_busy, .dma_busy, .issues, .stalls,
        .reads(mem_request && mem_granted && !mem_write), .writes(mem_request && mem_granted && mem_write), .done, .done_tag, .done_interrupt, .raised, .raised_tag
    );
    fetch #(.LANES(LANES)) fetcher (
        .clk, .rst, .halted, .queued, .queue_address, .pop, .request(fetch_request), .address(fetch_address),
        .granted(mem_granted && !array_request), .valid(answered && mem_answer[1:0] == PORT_DESCRIPTOR),
        .data(mem_data), .descriptor, .ready, .busy(fetching), .take, .error(fetch_error)
    );
    dispatch dispatcher (
        .clk, .rst, .halted, .ready, .descriptor, .take, .start_array, .start_dma, .array_finished, .dma_finished,
        .array_busy, .dma_busy, .array_tag, .dma_tag, .done, .done_tag, .done_interrupt
    );
    array #(.LANES(LANES), .WORDS(WORDS), .GROUP(GROUP)) engine (
        .clk, .rst, .start(start_array), .descriptor, .finished(array_finished), .failed(array_failed),
        .outside(array_outside), .issues, .stalls, .request(array_request), .address(array_address), .port(array_port),
        .granted(mem_granted), .weights_valid(answered && mem_answer[1:0] == PORT_WEIGHTS),
        .parameters_valid(answered && mem_answer[1:0] == PORT_PARAMETERS), .data(mem_data), .pad_read(a_read),
        .pad_source(a_address), .pad_data(a_data), .pad_write(array_writes), .pad_target(array_target),
        .pad_value(array_value)
    );
    dma #(.LANES(LANES), .WORDS(WORDS)) mover (
        .clk, .rst, .start(start_dma), .descriptor, .finished(dma_finished), .outside(dma_outside), .request(dma_request),
        .write(dma_write), .address(dma_address), .value(mem_value),
        .granted(mem_granted && !array_request && !fetch_request),
        .valid(answered && mem_answer[1:0] == PORT_DMA), .data(mem_data), .pad_read(dma_reads), .pad_write(dma_writes),
        .pad_address(dma_place), .pad_value(dma_value), .pad_granted(!array_writes), .pad_data(b_data)
    );
    scratchpad #(.LANES(LANES), .WORDS(WORDS)) pad (
        .clk, .a_read, .a_address(a_address[BITS-1:0]), .a_data, .b_read(dma_reads && !array_writes),
        .b_write(array_writes || dma_writes), .b_address(array_writes ? array_target[BITS-1:0] : dma_place[BITS-1:0]),
        .b_value(array_writes ? array_value : dma_value), .b_data
    );

    // The first thing that goes wrong is what the host is told.
    always_comb begin
        {raised, raised_tag} = {fetch_error, descriptor.tag};
        if (array_failed) {raised, raised_tag} = {ERROR_CONSTANTS, array_tag};
        if (array_outside) {raised, raised_tag} = {ERROR_ADDRESS, array_tag};
        if (dma_outside) {raised, raised_tag} = {ERROR_ADDRESS, dma_tag};
        if (broken) {raised, raised_tag} = {ERROR_MEMORY, mem_answer[1:0] == PORT_DMA ? dma_tag : array_tag};
    end
endmodule
