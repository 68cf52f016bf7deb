#include "textflag.h"

// func askAVX2() bool
//
// A virtual machine may have AVX, but no leaf 7.
TEXT ·askAVX2(SB), NOSPLIT, $0-1
	MOVB $0, ret+0(FP)
	XORL AX, AX
	XORL CX, CX
	CPUID
	CMPL AX, $7
	JLT  no
	MOVL $1, AX
	XORL CX, CX
	CPUID
	ANDL $0x18800000, CX  // AVX, OSXSAVE, POPCNT
	CMPL CX, $0x18800000
	JNE  no
	XORL CX, CX
	XGETBV
	ANDL $6, AX  // the system keeps the registers of SSE and AVX
	CMPL AX, $6
	JNE  no
	MOVL $7, AX
	XORL CX, CX
	CPUID
	SHRL $5, BX  // AVX2
	ANDL $1, BX
	MOVB BX, ret+0(FP)

no:
	RET

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

// CANDIDATES sets the bytes of ok whose offset is a candidate to a non-zero
// value, and those of ends that are line ends to -1, for the 32 offsets from
// off(SI)(AX*1) on. VPSHUFB looks up the low four bits of a byte, and gives 0
// for a byte that is not ASCII. Only the third index needs a mask, since the
// shift brings bits of the next byte to its top.
#define CANDIDATES(off, ok, ends) \
	VMOVDQU off(SI)(AX*1), Y8              \
	VMOVDQU (off+2)(SI)(AX*1), Y10         \
	VPAVGB (off+1)(SI)(AX*1), Y4, Y13      \
	VPAVGB Y8, Y10, Y12                    \
	VPSRLW $2, Y12, Y12                    \
	VPAND Y7, Y12, Y12                     \
	VPSHUFB Y8, Y0, ok                     \
	VPSHUFB Y10, Y1, Y10                   \
	VPSHUFB Y12, Y2, Y12                   \
	VPSHUFB Y13, Y3, Y13                   \
	VPAND Y10, ok, ok                      \
	VPAND Y12, Y13, Y13                    \
	VPAND Y13, ok, ok                      \
	VPCMPEQB Y8, Y6, ends

// func listMarksAVX2(b []byte, t *markTables, list *markList) (at, lines, n int)
//
// Each step writes an entry of the list, but only those with candidates are kept: a jump would be
// guessed wrong at nearly each candidate, which takes longer than three steps.
TEXT ·listMarksAVX2(SB), NOSPLIT, $0-64
	MOVQ b_base+0(FP), SI
	MOVQ b_len+8(FP), CX
	MOVQ t+24(FP), DI
	MOVQ list+32(FP), R11
	XORQ AX, AX  // at
	XORQ R12, R12  // offset in the list
	VBROADCASTI128 (DI), Y0
	VBROADCASTI128 16(DI), Y1
	VBROADCASTI128 32(DI), Y2
	VBROADCASTI128 48(DI), Y3
	VBROADCASTI128 64(DI), Y7  // 15
	VBROADCASTI128 80(DI), Y6  // '\n'
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5  // line ends; 127 steps would overflow a byte
	SUBQ $66, CX  // the last offset that 66 bytes can be read from
	MOVQ $(63*64), BX  // of the last step that the list has an entry for
	CMPQ BX, CX
	CMOVQGT CX, BX

	PCALIGN $32
list:
	CMPQ AX, BX
	JGT  listed
	CANDIDATES(0, Y14, Y9)
	CANDIDATES(32, Y15, Y8)
	VPSUBB Y9, Y5, Y5
	VPSUBB Y8, Y5, Y5
	VPCMPEQB Y4, Y14, Y14
	VPCMPEQB Y4, Y15, Y15
	VPMOVMSKB Y14, R8
	VPMOVMSKB Y15, R10
	SHLQ $32, R10
	ORQ  R10, R8
	MOVQ AX, (R11)(R12*1)
	XORL R9, R9
	XORQ $-1, R8
	SETNE R9
	MOVQ R8, 8(R11)(R12*1)
	SHLQ $4, R9
	ADDQ R9, R12
	ADDQ $64, AX
	JMP  list

listed:
	VPSADBW Y4, Y5, Y5
	VEXTRACTI128 $1, Y5, X10
	VPADDQ X10, X5, X5
	VPEXTRQ $1, X5, R10
	VMOVQ X5, DX
	ADDQ R10, DX
	VZEROUPPER
	SHRQ $4, R12
	MOVQ AX, at+40(FP)
	MOVQ DX, lines+48(FP)
	MOVQ R12, n+56(FP)
	RET
