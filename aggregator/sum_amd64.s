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
