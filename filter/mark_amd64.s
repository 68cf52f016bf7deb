#include "textflag.h"

// func findOpenAVX2(b []byte) (at, lines int)
//
// Looks at 32 positions at a time: a byte and its two successors are compared
// with '{', the byte with '\n'. It stops at the first "{{{", or where fewer
// than 34 bytes are left, and counts the line ends before that place.
TEXT ·findOpenAVX2(SB), NOSPLIT, $0-40
	MOVQ b_base+0(FP), SI
	MOVQ b_len+8(FP), CX
	XORQ AX, AX  // at
	XORQ DX, DX  // lines
	MOVL $0x7b7b7b7b, R8
	MOVL $0x0a0a0a0a, R9
	VMOVD R8, X0  // not MOVD: switching between SSE and AVX costs more than the search
	VMOVD R9, X1
	VPBROADCASTD X0, Y0  // '{'
	VPBROADCASTD X1, Y1  // '\n'
	SUBQ $34, CX  // the last position that 34 bytes can be read from

loop:
	CMPQ AX, CX
	JGT  done
	VMOVDQU (SI)(AX*1), Y2
	VPCMPEQB Y0, Y2, Y3
	VPCMPEQB Y1, Y2, Y4
	VPCMPEQB 1(SI)(AX*1), Y0, Y5
	VPCMPEQB 2(SI)(AX*1), Y0, Y6
	VPAND Y3, Y5, Y3
	VPAND Y3, Y6, Y3
	VPMOVMSKB Y4, R9  // line ends
	VPMOVMSKB Y3, R8  // openings
	TESTL R8, R8
	JNZ  found
	POPCNTL R9, R9
	ADDQ R9, DX
	ADDQ $32, AX
	JMP  loop

found:
	BSFL R8, CX
	ADDQ CX, AX
	MOVL $1, R8
	SHLL CX, R8
	DECL R8
	ANDL R8, R9  // those before the opening
	POPCNTL R9, R9
	ADDQ R9, DX

done:
	VZEROUPPER
	MOVQ AX, at+24(FP)
	MOVQ DX, lines+32(FP)
	RET
