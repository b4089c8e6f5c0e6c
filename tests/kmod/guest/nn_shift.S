/* long nn_call_shifted(long (*function)(void *, unsigned), void *first, unsigned second, unsigned long shift):
 * calls with a stack pointer that is `shift` modulo 64. */
#include <linux/linkage.h>

SYM_FUNC_START(nn_call_shifted)
    push %rbp
    mov %rsp, %rbp
    and $-64, %rsp
    sub $64, %rsp
    add %rcx, %rsp
    mov %rdi, %rax
    mov %rsi, %rdi
    mov %edx, %esi
    call *%rax
    mov %rbp, %rsp
    pop %rbp
    RET
SYM_FUNC_END(nn_call_shifted)
