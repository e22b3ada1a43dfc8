package main

// The operands of instructions. Each machine has its own types for them.
type (
	// register is a general register of 8 bytes, or a result of fieldOperand.
	register interface{ Asm() string }
	// vector is a vector register, or a result of memoryOperand or factors.
	vector interface{ Asm() string }
	// place is an address of values in memory.
	place interface{ Asm() string }
)

// machine writes the instructions of one processor. Kernels are written once, with the methods of a machine.
// avx implements it for AVX-512 and AVX2, neon for arm64.
type machine interface {
	general
	control
	arithmetic // of full vectors
	vectors
	arrays
	tileParts
	halfInstructions

	// function writes a function. Its argument is a pointer to a type of package kernel.
	function(name, arguments string, body func(args register))
}

// arithmetic has the instructions that exist for vectors of several lengths.
type arithmetic interface {
	load(from place, to vector)
	store(v vector, to place)
	// memoryOperand makes values in memory the operand of the next instruction. amd64 reads them in that instruction,
	// arm64 loads them into spare now.
	memoryOperand(from place, spare vector) vector
	add(to, x, y vector)
	sub(to, x, y vector) // to = x - y
	mul(to, x, y vector)
	div(to, x, y vector) // to = x / y
	sqrt(to, x vector)
}

// vectors has the instructions that exist for full vectors only, and the numbers of vector registers. The values of a
// repeated vector are all the same: arm64 needs one register for it, and two for another vector.
type vectors interface {
	size() int             // bytes of a vector: 64 or 32
	v(i int) vector        // vector i, of at least 16
	constant(i int) vector // repeated vector i, counted from the last register that every machine has
	block() int            // channels whose sums fit into vectors

	repeatedVectors(n int) []vector  // all repeated vectors behind the first n vectors
	vectorAfter(n, repeated int) int // number of the vector behind n vectors and so many repeated ones

	zero(v vector)
	copy(to, from vector)
	// max and min are NaN where x is NaN; y is a limit. Only where y is in memory, a NaN of y counts as well.
	max(to, x, y vector)
	min(to, x, y vector)
	fma(to, x, y vector)                 // to += x y, rounded once
	fms(to, x, y vector)                 // to -= x y, rounded once
	affine(x, p, q, spare vector) vector // returns p x + q, rounded once; overwrites x or spare
	// selectWhere sets to = from where x compares to y, else 0. It overwrites spare.
	selectWhere(c comparison, to, from, x, y, spare vector)

	// toPower turns the lowest bits of each value into its exponent: of n + 127 it makes 2 to the power of n.
	toPower(v vector)

	// broadcastEach loads consecutive values, each into all lanes of one vector.
	broadcastEach(base register, offset int, to ...vector)
	// broadcastNext loads the value at a pointer into all lanes, and advances the pointer by it.
	broadcastNext(pointer register, to vector)
	// transposeSquare transposes the values in vectors 0 and up. It returns the number of the vector with the first
	// row.
	transposeSquare() int
	// factors returns the n values at a pointer as vectors, which only fma takes, as its y.
	factors(pointer register, n int, spare vector) func(i int) vector
}

// general has the instructions of general registers, and addresses.
type general interface {
	register() register                       // a free one
	scope(body func())                        // frees the registers that body takes
	field(args register, offset int) register // loads 8 bytes of the arguments
	// fieldOperand is a field that instructions only read. amd64 reads it in them, arm64 loads it now.
	fieldOperand(args register, offset int) register
	copyRegister(r register) register
	sumOf(x, y register) register
	clear(r register)
	plus(by any, to ...register) // by is an int or a register
	minus(by any, to register)
	times(by, to register)
	difference(x, y, to register)      // to = x - y
	loadInt32(from place) register     // keeps the sign
	nextOffset(list register) register // loads 8 bytes, and advances the list by them

	at(base register, bytes int) place
	offset(p place, bytes int) place
	indexed(base, offset register) place
	atListedOffset(base, list register, i int) place // base + list[i]
	// rows returns a function that calls f with each of n rows; by is the distance in bytes. It may change base.
	rows(by register, n int) func(base register, f func(p place, i int))
}

// control has labels and branches.
type control interface {
	loop(counter register, step int, body func()) // until counter, which is above 0, is 0
	label(name string) string                     // a unique one
	mark(label string)                            // the label is here
	jump(label string)
	compare(x register, y any) // y is an int or a register
	branch(c condition, label string)
	branchIfZero(r register, label string)
}

// A comparison is of values; with NaN it is false. A condition is of integers without a sign.
type (
	comparison int
	condition  int
)

const (
	equal comparison = iota
	less
	greater
)

const (
	below condition = iota
	notBelow
	above
	notAbove
	equals
)

// arrays has loops over arrays. amd64 advances an index, arm64 advances pointers.
type arrays interface {
	// eachElement calls body for each vector of the arrays of an elementKernel.
	eachElement(e elementKernel, body func(p places, i int))
	// placesAt returns places in arrays: the offset, or 0 for nil, is in bytes. Only advance changes them.
	placesAt(offset register, arrays ...register) []place
	// placesOf is placesAt of pointers that may change with the places. The returned function brings the pointers
	// there.
	placesOf(pointers ...register) (p []place, advancePointers func())
	advance(bytes int, p ...place)
	// eachSpan calls body until no bytes are left, with the largest of the lengths that fits, and advances places.
	eachSpan(bytes register, lengths []int, places []place, body func(n arithmetic))
	span(length int) arithmetic // on 8, 4 or 1 values
	// dotProduct adds the products of x and y in four sums a, b, c, d, and returns (a + b) + (c + d).
	dotProduct(x, y place, bytes register) vector
}
