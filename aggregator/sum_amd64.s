#include "textflag.h"

// func addAVX2(s *float64, b *byte, n int, weight float64) uint32
TEXT ·addAVX2(SB), NOSPLIT, $0-36
	MOVQ         s+0(FP), DI
	MOVQ         b+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSD weight+24(FP), Y15
	VPCMPEQD     Y14, Y14, Y14
	VPSRLD       $24, Y14, Y14
	VPSLLD       $23, Y14, Y14
	VPXOR        Y13, Y13, Y13

loop:
	VMOVDQU   (SI), Y0
	VMOVDQU   32(SI), Y1
	VPAND     Y14, Y0, Y2
	VPAND     Y14, Y1, Y3
	VPCMPEQD  Y14, Y2, Y2
	VPCMPEQD  Y14, Y3, Y3
	VPOR      Y2, Y13, Y13
	VPOR      Y3, Y13, Y13
	VCVTPS2PD (SI), Y4
	VCVTPS2PD 16(SI), Y5
	VCVTPS2PD 32(SI), Y6
	VCVTPS2PD 48(SI), Y7
	VMULPD    Y15, Y4, Y4
	VMULPD    Y15, Y5, Y5
	VMULPD    Y15, Y6, Y6
	VMULPD    Y15, Y7, Y7
	VADDPD    (DI), Y4, Y4
	VADDPD    32(DI), Y5, Y5
	VADDPD    64(DI), Y6, Y6
	VADDPD    96(DI), Y7, Y7
	VMOVUPD   Y4, (DI)
	VMOVUPD   Y5, 32(DI)
	VMOVUPD   Y6, 64(DI)
	VMOVUPD   Y7, 96(DI)
	ADDQ      $64, SI
	ADDQ      $128, DI
	SUBQ      $16, CX
	JNE       loop

	VPMOVMSKB Y13, AX
	VZEROUPPER
	MOVL      AX, ret+32(FP)
	RET

// func meanAVX2(dst *float32, s *float64, n int, total float64) uint32
TEXT ·meanAVX2(SB), NOSPLIT, $0-36
	MOVQ         dst+0(FP), DI
	MOVQ         s+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSD total+24(FP), Y15
	VPCMPEQD     Y14, Y14, Y14
	VPSRLD       $24, Y14, Y14
	VPSLLD       $23, Y14, Y14
	VPXOR        Y13, Y13, Y13

loop:
	VMOVUPD     (SI), Y0
	VMOVUPD     32(SI), Y1
	VDIVPD      Y15, Y0, Y0
	VDIVPD      Y15, Y1, Y1
	VCVTPD2PSY  Y0, X0
	VCVTPD2PSY  Y1, X1
	VINSERTF128 $1, X1, Y0, Y0
	VMOVUPS     Y0, (DI)
	VPAND       Y14, Y0, Y2
	VPCMPEQD    Y14, Y2, Y2
	VPOR        Y2, Y13, Y13
	ADDQ        $64, SI
	ADDQ        $32, DI
	SUBQ        $8, CX
	JNE         loop

	VPMOVMSKB Y13, AX
	VZEROUPPER
	MOVL      AX, ret+32(FP)
	RET

// func setAVX2(s *float64, b *byte, n int, weight float64) uint32
TEXT ·setAVX2(SB), NOSPLIT, $0-36
	MOVQ         s+0(FP), DI
	MOVQ         b+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSD weight+24(FP), Y15
	VPCMPEQD     Y14, Y14, Y14
	VPSRLD       $24, Y14, Y14
	VPSLLD       $23, Y14, Y14
	VPXOR        Y13, Y13, Y13
	VPXOR        Y12, Y12, Y12

loop:
	VMOVDQU   (SI), Y0
	VMOVDQU   32(SI), Y1
	VPAND     Y14, Y0, Y2
	VPAND     Y14, Y1, Y3
	VPCMPEQD  Y14, Y2, Y2
	VPCMPEQD  Y14, Y3, Y3
	VPOR      Y2, Y13, Y13
	VPOR      Y3, Y13, Y13
	VCVTPS2PD (SI), Y4
	VCVTPS2PD 16(SI), Y5
	VCVTPS2PD 32(SI), Y6
	VCVTPS2PD 48(SI), Y7
	VMULPD    Y15, Y4, Y4
	VMULPD    Y15, Y5, Y5
	VMULPD    Y15, Y6, Y6
	VMULPD    Y15, Y7, Y7
	VADDPD    Y12, Y4, Y4
	VADDPD    Y12, Y5, Y5
	VADDPD    Y12, Y6, Y6
	VADDPD    Y12, Y7, Y7
	VMOVUPD   Y4, (DI)
	VMOVUPD   Y5, 32(DI)
	VMOVUPD   Y6, 64(DI)
	VMOVUPD   Y7, 96(DI)
	ADDQ      $64, SI
	ADDQ      $128, DI
	SUBQ      $16, CX
	JNE       loop

	VPMOVMSKB Y13, AX
	VZEROUPPER
	MOVL      AX, ret+32(FP)
	RET

// func lastAVX2(dst *float32, s *float64, b *byte, n int, weight, total float64) (values, means uint32)
TEXT ·lastAVX2(SB), NOSPLIT, $0-56
	MOVQ         dst+0(FP), DI
	MOVQ         s+8(FP), DX
	MOVQ         b+16(FP), SI
	MOVQ         n+24(FP), CX
	VBROADCASTSD weight+32(FP), Y15
	VBROADCASTSD total+40(FP), Y11
	VPCMPEQD     Y14, Y14, Y14
	VPSRLD       $24, Y14, Y14
	VPSLLD       $23, Y14, Y14
	VPXOR        Y13, Y13, Y13
	VPXOR        Y12, Y12, Y12

loop:
	VMOVDQU     (SI), Y0
	VPAND       Y14, Y0, Y2
	VPCMPEQD    Y14, Y2, Y2
	VPOR        Y2, Y13, Y13
	VCVTPS2PD   (SI), Y4
	VCVTPS2PD   16(SI), Y5
	VMULPD      Y15, Y4, Y4
	VMULPD      Y15, Y5, Y5
	VADDPD      (DX), Y4, Y4
	VADDPD      32(DX), Y5, Y5
	VDIVPD      Y11, Y4, Y4
	VDIVPD      Y11, Y5, Y5
	VCVTPD2PSY  Y4, X4
	VCVTPD2PSY  Y5, X5
	VINSERTF128 $1, X5, Y4, Y4
	VMOVUPS     Y4, (DI)
	VPAND       Y14, Y4, Y2
	VPCMPEQD    Y14, Y2, Y2
	VPOR        Y2, Y12, Y12
	ADDQ        $32, SI
	ADDQ        $64, DX
	ADDQ        $32, DI
	SUBQ        $8, CX
	JNE         loop

	VPMOVMSKB Y13, AX
	VPMOVMSKB Y12, BX
	VZEROUPPER
	MOVL      AX, values+48(FP)
	MOVL      BX, means+52(FP)
	RET

// func addTwoAVX2(s *float64, a, b *byte, n int, weightA, weightB float64) uint32
TEXT ·addTwoAVX2(SB), NOSPLIT, $0-52
	MOVQ         s+0(FP), DI
	MOVQ         a+8(FP), SI
	MOVQ         b+16(FP), DX
	MOVQ         n+24(FP), CX
	VBROADCASTSD weightA+32(FP), Y15
	VBROADCASTSD weightB+40(FP), Y11
	VPCMPEQD     Y14, Y14, Y14
	VPSRLD       $24, Y14, Y14
	VPSLLD       $23, Y14, Y14
	VPXOR        Y13, Y13, Y13

loop:
	VMOVDQU   (SI), Y0
	VMOVDQU   32(SI), Y1
	VPAND     Y14, Y0, Y2
	VPAND     Y14, Y1, Y3
	VPCMPEQD  Y14, Y2, Y2
	VPCMPEQD  Y14, Y3, Y3
	VPOR      Y2, Y13, Y13
	VPOR      Y3, Y13, Y13
	VMOVDQU   (DX), Y0
	VMOVDQU   32(DX), Y1
	VPAND     Y14, Y0, Y2
	VPAND     Y14, Y1, Y3
	VPCMPEQD  Y14, Y2, Y2
	VPCMPEQD  Y14, Y3, Y3
	VPOR      Y2, Y13, Y13
	VPOR      Y3, Y13, Y13
	VCVTPS2PD (SI), Y4
	VCVTPS2PD 16(SI), Y5
	VCVTPS2PD 32(SI), Y6
	VCVTPS2PD 48(SI), Y7
	VMULPD    Y15, Y4, Y4
	VMULPD    Y15, Y5, Y5
	VMULPD    Y15, Y6, Y6
	VMULPD    Y15, Y7, Y7
	VADDPD    (DI), Y4, Y4
	VADDPD    32(DI), Y5, Y5
	VADDPD    64(DI), Y6, Y6
	VADDPD    96(DI), Y7, Y7
	VCVTPS2PD (DX), Y0
	VCVTPS2PD 16(DX), Y1
	VCVTPS2PD 32(DX), Y2
	VCVTPS2PD 48(DX), Y3
	VMULPD    Y11, Y0, Y0
	VMULPD    Y11, Y1, Y1
	VMULPD    Y11, Y2, Y2
	VMULPD    Y11, Y3, Y3
	VADDPD    Y0, Y4, Y4
	VADDPD    Y1, Y5, Y5
	VADDPD    Y2, Y6, Y6
	VADDPD    Y3, Y7, Y7
	VMOVUPD   Y4, (DI)
	VMOVUPD   Y5, 32(DI)
	VMOVUPD   Y6, 64(DI)
	VMOVUPD   Y7, 96(DI)
	ADDQ      $64, SI
	ADDQ      $64, DX
	ADDQ      $128, DI
	SUBQ      $16, CX
	JNE       loop

	VPMOVMSKB Y13, AX
	VZEROUPPER
	MOVL      AX, ret+48(FP)
	RET

// func setTwoAVX2(s *float64, a, b *byte, n int, weightA, weightB float64) uint32
TEXT ·setTwoAVX2(SB), NOSPLIT, $0-52
	MOVQ         s+0(FP), DI
	MOVQ         a+8(FP), SI
	MOVQ         b+16(FP), DX
	MOVQ         n+24(FP), CX
	VBROADCASTSD weightA+32(FP), Y15
	VBROADCASTSD weightB+40(FP), Y11
	VPCMPEQD     Y14, Y14, Y14
	VPSRLD       $24, Y14, Y14
	VPSLLD       $23, Y14, Y14
	VPXOR        Y13, Y13, Y13
	VPXOR        Y12, Y12, Y12

loop:
	VMOVDQU   (SI), Y0
	VMOVDQU   32(SI), Y1
	VPAND     Y14, Y0, Y2
	VPAND     Y14, Y1, Y3
	VPCMPEQD  Y14, Y2, Y2
	VPCMPEQD  Y14, Y3, Y3
	VPOR      Y2, Y13, Y13
	VPOR      Y3, Y13, Y13
	VMOVDQU   (DX), Y0
	VMOVDQU   32(DX), Y1
	VPAND     Y14, Y0, Y2
	VPAND     Y14, Y1, Y3
	VPCMPEQD  Y14, Y2, Y2
	VPCMPEQD  Y14, Y3, Y3
	VPOR      Y2, Y13, Y13
	VPOR      Y3, Y13, Y13
	VCVTPS2PD (SI), Y4
	VCVTPS2PD 16(SI), Y5
	VCVTPS2PD 32(SI), Y6
	VCVTPS2PD 48(SI), Y7
	VMULPD    Y15, Y4, Y4
	VMULPD    Y15, Y5, Y5
	VMULPD    Y15, Y6, Y6
	VMULPD    Y15, Y7, Y7
	VADDPD    Y12, Y4, Y4
	VADDPD    Y12, Y5, Y5
	VADDPD    Y12, Y6, Y6
	VADDPD    Y12, Y7, Y7
	VCVTPS2PD (DX), Y0
	VCVTPS2PD 16(DX), Y1
	VCVTPS2PD 32(DX), Y2
	VCVTPS2PD 48(DX), Y3
	VMULPD    Y11, Y0, Y0
	VMULPD    Y11, Y1, Y1
	VMULPD    Y11, Y2, Y2
	VMULPD    Y11, Y3, Y3
	VADDPD    Y0, Y4, Y4
	VADDPD    Y1, Y5, Y5
	VADDPD    Y2, Y6, Y6
	VADDPD    Y3, Y7, Y7
	VMOVUPD   Y4, (DI)
	VMOVUPD   Y5, 32(DI)
	VMOVUPD   Y6, 64(DI)
	VMOVUPD   Y7, 96(DI)
	ADDQ      $64, SI
	ADDQ      $64, DX
	ADDQ      $128, DI
	SUBQ      $16, CX
	JNE       loop

	VPMOVMSKB Y13, AX
	VZEROUPPER
	MOVL      AX, ret+48(FP)
	RET

// func lastTwoAVX2(dst *float32, s *float64, a, b *byte, n int, weightA, weightB, total float64) (values, means uint32)
TEXT ·lastTwoAVX2(SB), NOSPLIT, $0-72
	MOVQ         dst+0(FP), DI
	MOVQ         s+8(FP), R8
	MOVQ         a+16(FP), SI
	MOVQ         b+24(FP), DX
	MOVQ         n+32(FP), CX
	VBROADCASTSD weightA+40(FP), Y15
	VBROADCASTSD weightB+48(FP), Y10
	VBROADCASTSD total+56(FP), Y11
	VPCMPEQD     Y14, Y14, Y14
	VPSRLD       $24, Y14, Y14
	VPSLLD       $23, Y14, Y14
	VPXOR        Y13, Y13, Y13
	VPXOR        Y12, Y12, Y12

loop:
	VMOVDQU     (SI), Y0
	VPAND       Y14, Y0, Y2
	VPCMPEQD    Y14, Y2, Y2
	VPOR        Y2, Y13, Y13
	VMOVDQU     (DX), Y1
	VPAND       Y14, Y1, Y3
	VPCMPEQD    Y14, Y3, Y3
	VPOR        Y3, Y13, Y13
	VCVTPS2PD   (SI), Y4
	VCVTPS2PD   16(SI), Y5
	VCVTPS2PD   (DX), Y6
	VCVTPS2PD   16(DX), Y7
	VMULPD      Y15, Y4, Y4
	VMULPD      Y15, Y5, Y5
	VMULPD      Y10, Y6, Y6
	VMULPD      Y10, Y7, Y7
	VADDPD      (R8), Y4, Y4
	VADDPD      32(R8), Y5, Y5
	VADDPD      Y6, Y4, Y4
	VADDPD      Y7, Y5, Y5
	VDIVPD      Y11, Y4, Y4
	VDIVPD      Y11, Y5, Y5
	VCVTPD2PSY  Y4, X4
	VCVTPD2PSY  Y5, X5
	VINSERTF128 $1, X5, Y4, Y4
	VMOVUPS     Y4, (DI)
	VPAND       Y14, Y4, Y2
	VPCMPEQD    Y14, Y2, Y2
	VPOR        Y2, Y12, Y12
	ADDQ        $32, SI
	ADDQ        $32, DX
	ADDQ        $64, R8
	ADDQ        $32, DI
	SUBQ        $8, CX
	JNE         loop

	VPMOVMSKB Y13, AX
	VPMOVMSKB Y12, BX
	VZEROUPPER
	MOVL      AX, values+64(FP)
	MOVL      BX, means+68(FP)
	RET
