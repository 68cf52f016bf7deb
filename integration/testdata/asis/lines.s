# Line tables that compilers seldom write, for the cases in cases.txt.
        .file 1 "/build" "lines.c"
        .file 2 "/build/include" "deep.h"
        .text
        .globl _start
        .type _start,@function
_start:
        .loc 1 10 3
        nop
        .loc 1 0 0
        nop
        nop
        .loc 2 7 9 discriminator 4
        nop
        .loc 1 12 0
        nop
        nop
        .size _start, .-_start
        .type unsized,@function
unsized:
        .loc 1 0 0
        nop
        .loc 1 0 0
        nop
        nop
        .globl second_name
        .type second_name,@function
        .type first_name,@function
second_name:
first_name:
        .loc 1 20 1
        nop
        ret
        .size first_name, .-first_name
        .size second_name, 1
label:
        nop
        .loc 1 30 2
inner:
        ret
        .section .text.bare,"ax",@progbits
        .type bare,@function
bare:
        nop
        ret
        .size bare, .-bare
        .section .data,"aw",@progbits
        .type value,@object
value:
        .long 1, 2
        .size value, 8
        .type nosize,@object
nosize:
        .long 3
