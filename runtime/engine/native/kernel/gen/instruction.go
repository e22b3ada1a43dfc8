package main

import "fmt"

// instruction is one that Go's assembler has no name for: its word (Arm Architecture Reference Manual, DDI 0487, C7.2),
// and how Arm writes it. Vectors are of four float32, in registers 0 to 31.
type instruction struct {
	word uint32
	text string
}

// checked is a register's number, which a word has five bits for.
func checked(v int) uint32 {
	if v < 0 || v > 31 {
		panic(fmt.Sprintf("there is no vector register %d", v))
	}
	return uint32(v)
}

// three is an instruction of three vectors: to = x and y, as the base of its word and its name say.
func three(base uint32, name string, to, x, y int) instruction {
	return instruction{
		base | checked(y)<<16 | checked(x)<<5 | checked(to),
		fmt.Sprintf("%s v%d.4s, v%d.4s, v%d.4s", name, to, x, y),
	}
}

// fadd is to = x + y.
func fadd(to, x, y int) instruction { return three(0x4e20d400, "fadd", to, x, y) }

// fsub is to = x - y.
func fsub(to, x, y int) instruction { return three(0x4ea0d400, "fsub", to, x, y) }

// fmul is to = x y.
func fmul(to, x, y int) instruction { return three(0x6e20dc00, "fmul", to, x, y) }

// fdiv is to = x / y.
func fdiv(to, x, y int) instruction { return three(0x6e20fc00, "fdiv", to, x, y) }

// fmax is the larger of x and y, and NaN where one of them is.
func fmax(to, x, y int) instruction { return three(0x4e20f400, "fmax", to, x, y) }

// fmin is the smaller of x and y, and NaN where one of them is.
func fmin(to, x, y int) instruction { return three(0x4ea0f400, "fmin", to, x, y) }

// fcmeq is all bits where x = y, else none.
func fcmeq(to, x, y int) instruction { return three(0x4e20e400, "fcmeq", to, x, y) }

// fcmgt is all bits where x > y, else none.
func fcmgt(to, x, y int) instruction { return three(0x6ea0e400, "fcmgt", to, x, y) }

// fsqrt is the root of x.
func fsqrt(to, x int) instruction {
	return instruction{0x6ea1f800 | checked(x)<<5 | checked(to), fmt.Sprintf("fsqrt v%d.4s, v%d.4s", to, x)}
}

// fmlaElement is to += x times value number lane, 0 to 3, of y, rounded once.
func fmlaElement(to, x, y, lane int) instruction {
	if lane < 0 || lane > 3 {
		panic(fmt.Sprintf("a vector has no value %d", lane))
	}
	low, high := uint32(lane)&1, uint32(lane)>>1
	return instruction{
		0x4f801000 | low<<21 | checked(y)<<16 | high<<11 | checked(x)<<5 | checked(to),
		fmt.Sprintf("fmla v%d.4s, v%d.4s, v%d.s[%d]", to, x, y, lane),
	}
}
