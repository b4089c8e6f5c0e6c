/* A plugin for QEMU's user mode: counts the instructions of the program it runs, where the program itself can read
 * them. An anonymous file of one page holds the count; the program, which shares our open files, maps it by the number
 * that counter=NUMBER gives. QEMU's header is not installed everywhere, so the used part of it is declared here. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define SHOWN __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum operation { ADD_U64 };
typedef void (*translated)(plugin_id id, struct qemu_plugin_tb *block);

void   qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, translated callback);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *instruction, enum operation operation,
                                                void *number, uint64_t by);

SHOWN int qemu_plugin_version = 1;
SHOWN int qemu_plugin_install(plugin_id id, const void *machine, int count, char **arguments);

static uint64_t *counter;

static void count_all(plugin_id id, struct qemu_plugin_tb *block)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        qemu_plugin_register_vcpu_insn_exec_inline(qemu_plugin_tb_get_insn(block, i), ADD_U64, counter, 1);
    }
}

int qemu_plugin_install(plugin_id id, const void *machine, int count, char **arguments)
{
    static const char name[] = "counter=";
    int               file = memfd_create("nn_counter", 0);

    (void)machine;
    if (count != 1 || strncmp(arguments[0], name, sizeof name - 1) != 0 || file < 0 || ftruncate(file, PAGE) != 0) {
        return 1;
    }
    counter = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (counter == MAP_FAILED || dup2(file, atoi(arguments[0] + sizeof name - 1)) < 0) {
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, count_all);
    return 0;
}
