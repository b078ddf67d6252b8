/* Two of these differ in one thing, so that one may be loaded where the other was: in the length of a frame, and how far behind
 * the beginning of its table's entry that stands; or in how many other functions have entries. */
int data = 1; /* at a fixed place, for all are to be of one length */

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
/* Others, of four bytes each, with entries or without. */
#if HM_OTHERS
#define OTHERS                                                                                                    \
  ".rept 3000\n .cfi_startproc\n nop\n .cfi_adjust_cfa_offset 8\n nop\n .cfi_adjust_cfa_offset -8\n nop\n nop\n " \
  ".cfi_endproc\n .endr\n"
#else
#define OTHERS ".skip 12000, 0x90\n"
#endif

/* void* call_from_a_frame(void* (*call)(void*), void* argument) */
__asm__(".pushsection .text\n" OTHERS
        ".globl call_from_a_frame\n"
        ".type call_from_a_frame, @function\n"
        "call_from_a_frame:\n"
        ".cfi_startproc\n"
        ".rept " TEXT(HM_STATES) "\n .cfi_remember_state\n .cfi_restore_state\n .endr\n"
        "subq $" TEXT(HM_FRAME) ", %rsp\n"
        ".cfi_adjust_cfa_offset " TEXT(HM_FRAME) "\n"
        "movq %rdi, %rax\n"
        "movq %rsi, %rdi\n"
        "call *%rax\n"
        "addq $" TEXT(HM_FRAME) ", %rsp\n"
        ".cfi_adjust_cfa_offset -" TEXT(HM_FRAME) "\n"
        "ret\n"
        ".cfi_endproc\n"
        ".popsection\n");
