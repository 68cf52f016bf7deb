	.text
	.globl	bare
	.type	bare, @function
bare:
	lea	1(%rdi), %eax
	nop
	nop
	ret
	.size	bare, .-bare
	.section .note.GNU-stack,"",@progbits
