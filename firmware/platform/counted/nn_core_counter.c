/* A plugin for QEMU's system mode: counts the instructions of every core, phase by phase, in a shared file.
 *
 *     counts=PATH,mark=ADDRESS,from=ADDRESS,to=ADDRESS,copy=ADDRESS,copied=ADDRESS
 *
 * A core's phase ends when it calls the function at `mark`. Code from `from` to `to` waits for others, and is counted
 * separately; code from `copy` to `copied` copies, and is counted as work and separately. Each core has its own row: the
 * number of its phase, then three counts, work, waiting and copying, for the last PHASES phases. QEMU's header is not
 * installed everywhere, so the used part of it is declared here. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CORES  64u
#define PHASES 8192u
#define KINDS  3u /* of counts */
#define ROW    (1u + KINDS * PHASES)
#define SHOWN  __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum registers { NO_REGISTERS };
typedef void (*translated)(plugin_id id, struct qemu_plugin_tb *block);
typedef void (*executed)(unsigned core, void *told);

void     qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, translated callback);
size_t   qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
void     qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, executed callback, enum registers use,
                                              void *told);

SHOWN int qemu_plugin_version = 1;
SHOWN int qemu_plugin_install(plugin_id id, const void *machine, int count, char **arguments);

static uint64_t *rows;
static uint64_t  mark;
static uint64_t  from;
static uint64_t  to;
static uint64_t  copy;
static uint64_t  copied;

static uint64_t *counts_of(unsigned core)
{
    uint64_t *row = rows + (size_t)core * ROW;

    return row + 1 + KINDS * (row[0] % PHASES);
}

static void work(unsigned core, void *told)
{
    counts_of(core)[0] += (uintptr_t)told;
}

static void waiting(unsigned core, void *told)
{
    counts_of(core)[1] += (uintptr_t)told;
}

static void copying(unsigned core, void *told)
{
    counts_of(core)[0] += (uintptr_t)told;
    counts_of(core)[2] += (uintptr_t)told;
}

static void ended(unsigned core, void *told)
{
    uint64_t *row = rows + (size_t)core * ROW;
    uint64_t  next = (row[0] + 1) % PHASES;

    work(core, told);
    memset(row + 1 + KINDS * next, 0, KINDS * sizeof *row);
    __atomic_store_n(row, row[0] + 1, __ATOMIC_RELEASE);
}

/* Each of these functions starts a block of code, which ends before the next one. */
static void count_block(plugin_id id, struct qemu_plugin_tb *block)
{
    uint64_t at = qemu_plugin_tb_vaddr(block);
    void    *instructions = (void *)(uintptr_t)qemu_plugin_tb_n_insns(block);

    (void)id;
    qemu_plugin_register_vcpu_tb_exec_cb(block,
                                         at == mark ? ended : at >= from && at < to ? waiting : at >= copy && at < copied ? copying : work,
                                         NO_REGISTERS, instructions);
}

static int take(const char *argument, const char *name, const char **value)
{
    size_t length = strlen(name);

    *value = argument + length;
    return strncmp(argument, name, length) == 0;
}

int qemu_plugin_install(plugin_id id, const void *machine, int count, char **arguments)
{
    size_t      bytes = (size_t)CORES * ROW * sizeof *rows;
    const char *value;
    int         file = -1;

    (void)machine;
    for (int i = 0; i < count; i++) {
        if (take(arguments[i], "counts=", &value)) {
            file = open(value, O_RDWR);
        } else if (take(arguments[i], "mark=", &value)) {
            mark = strtoull(value, 0, 0);
        } else if (take(arguments[i], "from=", &value)) {
            from = strtoull(value, 0, 0);
        } else if (take(arguments[i], "to=", &value)) {
            to = strtoull(value, 0, 0);
        } else if (take(arguments[i], "copy=", &value)) {
            copy = strtoull(value, 0, 0);
        } else if (take(arguments[i], "copied=", &value)) {
            copied = strtoull(value, 0, 0);
        } else {
            return 1;
        }
    }
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0) {
        return 1;
    }
    rows = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (rows == MAP_FAILED) {
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, count_block);
    return 0;
}
