package winograd_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

// run interprets a program.
func run(p winograd.Program, x []float64) []float64 {
	r := make([]float64, p.Registers)
	copy(r, x)
	for _, s := range p.Steps {
		var n float64
		if s.Op >= winograd.Mul {
			n = float64(p.Numbers[s.Number])
		}
		switch s.Op {
		case winograd.Copy:
			r[s.To] = r[s.A]
		case winograd.Add:
			r[s.To] = r[s.A] + r[s.B]
		case winograd.Sub:
			r[s.To] = r[s.A] - r[s.B]
		case winograd.Mul:
			r[s.To] = n * r[s.A]
		case winograd.AddMul:
			r[s.To] += n * r[s.A]
		case winograd.SubMul:
			r[s.To] -= n * r[s.A]
		}
	}
	var out []float64
	for _, at := range p.Out {
		out = append(out, r[at])
	}
	return out
}

// matrices are all that transforms go by, and their transposed.
func matrices() (out []winograd.Matrix) {
	for _, t := range winograd.Tiles() {
		side, _ := t.Side()
		m := side.Matrices()
		for _, x := range []winograd.Matrix{m.Input, m.Kernel, m.Output} {
			out = append(out, x, x.Transposed())
		}
	}
	return out
}

// A program comes to the product with its matrix, in the registers that AVX2 has beside what a transform needs and one
// for its numbers.
func TestProgramsAreTheirMatrices(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	check := func(m winograd.Matrix) winograd.Program {
		p, x := m.Program(), drawn(rng, len(m[0]))
		got, want := run(p, x), times(m, x)
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-6*(1+math.Abs(want[i])) { // numbers are singles
				t.Fatalf("element %d of %v times %v is %v, not %v", i, m, x, got[i], want[i])
			}
		}
		return p
	}
	for _, m := range matrices() {
		if p := check(m); p.Registers > 15 {
			t.Errorf("%v takes %d registers", m, p.Registers)
		}
	}
	for side := range winograd.Sides() { // outputs have a bias and a zero beside them
		if p := side.Matrices().Output.Program(); p.Registers > 13 {
			t.Errorf("the outputs of %s take %d registers", side.Name(), p.Registers)
		}
	}
	for range 500 { // and so it does for whatever else there may be
		m := make(winograd.Matrix, 1+rng.IntN(7))
		columns := 1 + rng.IntN(7)
		for i := range m {
			for range columns {
				m[i] = append(m[i], []float64{0, 1, -1, 2, -2, 1. / 3}[rng.IntN(6)])
			}
			if i > 0 && rng.IntN(3) == 0 {
				for j := range m[i] {
					m[i][j] = m[i-1][j] * float64(1-2*rng.IntN(2))
				}
			}
			m[i][rng.IntN(columns)] = 1
		}
		check(m)
	}
}

// Two rows of a number and its negative take sums that they share.
func TestProgramsShareSums(t *testing.T) {
	m := winograd.Short(4, 3).Matrices()
	if p := m.Input.Program(); len(p.Steps) > 16 { // rows
		t.Errorf("a side of F(4, 3)'s image takes %d operations", len(p.Steps))
	}
	if p := m.Output.Program(); len(p.Steps) > 11 { // columns
		t.Errorf("a side of F(4, 3)'s output takes %d operations", len(p.Steps))
	}
}

func ExampleMatrix_Program() {
	p := winograd.Matrix{{1, 2}, {1, -2}}.Program()
	fmt.Println(len(p.Steps), "steps,", p.Registers, "registers, numbers", p.Numbers)
	// Output: 3 steps, 3 registers, numbers [2]
}
