// Clocks the verilated device, and is its memory: answers come in order, `latency` cycles after they were asked for.
#include "systolic_sim.h"

#include "nn_simulated.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "Vsystolic.h"
#include "verilated.h"
#if VM_COVERAGE
#include "verilated_cov.h"
#endif

double sc_time_stamp() { return 0; }

namespace {
constexpr uint32_t LANES = SYSTOLIC_LANES;
constexpr uint32_t CTRL = 0x08, RESET = 4, SPAN = 0x28;
constexpr uint32_t LATENCY = 8;
constexpr unsigned DESCRIPTOR = 0, WEIGHTS = 1, PARAMETERS = 2;

struct Answer {
    uint64_t due;
    uint32_t address;
    uint8_t tag;
};

struct Fault {
    int kind = SYSTOLIC_FAULT_NONE;
    uint32_t after = 0, where = 0, struck = 0;
    uint64_t mask = 0;

    bool is(int wanted) const { return kind == wanted; }

    // Whether this event is the one, or one of those, that it strikes.
    bool strikes(int wanted, bool once) {
        if (kind != wanted) return false;
        if (after) return after--, false;
        struck++;
        if (once) kind = SYSTOLIC_FAULT_NONE;
        return true;
    }
};
}  // namespace

struct systolic_sim {
    VerilatedContext context;
    std::unique_ptr<Vsystolic> model;
    std::vector<uint8_t> own;
    uint8_t *memory = nullptr;
    uint32_t size = 0, latency = 8;
    uint64_t cycle = 0;
    std::vector<Answer> answers = std::vector<Answer>(256);
    unsigned first = 0, last = 0;
    Fault fault;
    bool granting = true, pin = false;

    void answer() {
        Vsystolic &m = *model;
        m.mem_valid = first != last && answers[first].due <= cycle;
        if (!m.mem_valid) return;
        const Answer a = answers[first];
        first = (first + 1) % answers.size();
        const bool fits = a.address <= size - LANES;
        m.mem_answer = a.tag;
        m.mem_error = !fits || fault.strikes(SYSTOLIC_FAULT_ERROR, true);
        if (fits) std::memcpy(&m.mem_data, memory + a.address, LANES);
        const unsigned port = a.tag & 3;
        const uint64_t mask = fault.mask;
        if ((port == DESCRIPTOR && fault.strikes(SYSTOLIC_FAULT_DESCRIPTOR, true)) ||
            ((port == WEIGHTS || port == PARAMETERS) && fault.strikes(SYSTOLIC_FAULT_CONSTANTS, true))) {
            uint64_t low;
            std::memcpy(&low, &m.mem_data, 8);
            low ^= mask;
            std::memcpy(&m.mem_data, &low, 8);
        }
    }

    void ask() {
        Vsystolic &m = *model;
        if (!m.mem_request || !m.mem_granted) return;
        if (fault.strikes(SYSTOLIC_FAULT_HANG, false)) granting = false;
        if (m.mem_write) {
            if (m.mem_address <= size - LANES) std::memcpy(memory + m.mem_address, &m.mem_value, LANES);
            return;
        }
        answers[last] = Answer{cycle + latency, m.mem_address, static_cast<uint8_t>(m.mem_tag)};
        last = (last + 1) % answers.size();
    }

    void tick() {
        Vsystolic &m = *model;
        m.clk = 0;
        m.mem_granted = granting;
        answer();
        m.eval();
        ask();
        m.clk = 1;
        m.eval();
        cycle++;
        pin = m.irq;
        if (fault.is(SYSTOLIC_FAULT_LOST_IRQ) && pin) {
            pin = false;
            fault.struck++;
        }
        if (fault.is(SYSTOLIC_FAULT_SPURIOUS)) {
            if (fault.after) fault.after--;
            else if (fault.mask) pin = true, fault.mask--, fault.struck++;
        }
    }
};

systolic_sim *systolic_sim_open_at(uint8_t *memory, uint32_t memory_bytes, uint32_t latency) {
    systolic_sim *sim = new systolic_sim;
    sim->model = std::make_unique<Vsystolic>(&sim->context);
    sim->memory = memory;
    sim->size = memory_bytes;
    sim->latency = latency ? latency : 1;
    sim->model->rst_n = 0;
    for (int i = 0; i < 4; i++) sim->tick();
    sim->model->rst_n = 1;
    return sim;
}

systolic_sim *systolic_sim_open(uint32_t memory_bytes, uint32_t latency) {
    std::vector<uint8_t> own(memory_bytes);
    systolic_sim *sim = systolic_sim_open_at(own.data(), memory_bytes, latency);
    sim->own = std::move(own);
    return sim;
}

void systolic_sim_close(systolic_sim *sim) {
    if (!sim) return;
    sim->model->final();
    delete sim;
}

uint8_t *systolic_sim_memory(systolic_sim *sim) { return sim->memory; }

uint32_t systolic_sim_read(systolic_sim *sim, uint32_t offset) {
    Vsystolic &m = *sim->model;
    m.bus_select = 1;
    m.bus_address = offset;
    m.eval();
    uint32_t value = m.bus_data;
    sim->tick();
    m.bus_select = 0;
    Fault &f = sim->fault;
    if (f.where == offset &&
        (f.strikes(SYSTOLIC_FAULT_REGISTER, true) || f.strikes(SYSTOLIC_FAULT_STUCK, false)))
        value ^= static_cast<uint32_t>(f.mask);
    return value;
}

void systolic_sim_write(systolic_sim *sim, uint32_t offset, uint32_t value) {
    Vsystolic &m = *sim->model;
    m.bus_select = m.bus_write = 1;
    m.bus_address = offset;
    m.bus_value = value;
    sim->tick();
    m.bus_select = m.bus_write = 0;
    if (offset == CTRL && (value & RESET)) {
        sim->granting = true;
        if (sim->fault.is(SYSTOLIC_FAULT_HANG) || sim->fault.is(SYSTOLIC_FAULT_STUCK)) {
            if (sim->fault.struck) sim->fault.kind = SYSTOLIC_FAULT_NONE;
        }
    }
}

uint32_t systolic_sim_step(systolic_sim *sim, uint32_t cycles) {
    uint32_t done = 0;
    while (done < cycles) {
        sim->tick();
        done++;
        if (sim->pin) break;
    }
    return done;
}

int systolic_sim_interrupt(systolic_sim *sim) { return sim->pin; }

uint64_t systolic_sim_cycles(const systolic_sim *sim) { return sim->cycle; }

void systolic_sim_fault(systolic_sim *sim, int kind, uint32_t after, uint32_t where, uint64_t mask) {
    sim->fault = Fault{};
    sim->fault.kind = kind;
    sim->fault.after = after;
    sim->fault.where = where;
    sim->fault.mask = mask;
    sim->granting = true;
}

uint32_t systolic_sim_struck(const systolic_sim *sim) { return sim->fault.struck; }

void systolic_sim_coverage(systolic_sim *sim, const char *path) {
#if VM_COVERAGE
    sim->context.coveragep()->write(path);
#else
    (void)sim;
    (void)path;
#endif
}

void systolic_sim_fault_wished(systolic_sim *sim) {
    const char *wish = std::getenv("NN_SYSTOLIC_FAULT");
    if (!wish) return;
    unsigned long long numbers[4] = {0, 0, 0, 0};
    char *at = const_cast<char *>(wish);
    for (unsigned long long &number : numbers) number = std::strtoull(at, &at, 0);
    systolic_sim_fault(sim, static_cast<int>(numbers[0]), numbers[1], numbers[2], numbers[3]);
}

void systolic_sim_tell(systolic_sim *sim) {
    static const char *const names[] = {"span", "idle", "array", "stall", "mac", "dma", "empty", "cycles", "reads", "writes"};
    const char *name = std::getenv("NN_SYSTOLIC_COUNTERS");
    std::FILE *file = name ? std::fopen(name, "w") : nullptr;
    if (!file) return;
    uint32_t offset = SPAN;
    for (const char *each : names) {
        std::fprintf(file, "%s %u\n", each, systolic_sim_read(sim, offset));
        offset += 4;
    }
    std::fclose(file);
}

// Beside an emulated processor.

static systolic_sim *of(void *device) { return static_cast<systolic_sim *>(device); }

void *nn_simulated_open(uint8_t *memory, uint32_t bytes) {
    systolic_sim *sim = systolic_sim_open_at(memory, bytes, LATENCY);
    systolic_sim_fault_wished(sim);
    return sim;
}

void nn_simulated_close(void *device) {
    systolic_sim_tell(of(device));
    systolic_sim_close(of(device));
}

uint32_t nn_simulated_read(void *device, uint32_t offset) { return systolic_sim_read(of(device), offset); }

void nn_simulated_write(void *device, uint32_t offset, uint32_t value) { systolic_sim_write(of(device), offset, value); }

int nn_simulated_step(void *device, uint32_t cycles) {
    for (uint32_t i = 0; i < cycles; i++) of(device)->tick();
    return of(device)->pin;
}
