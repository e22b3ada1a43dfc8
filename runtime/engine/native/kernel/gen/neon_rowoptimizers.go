package main

// neonRow is where the values at work lie: weights, their gradient, and the moments.
type neonRow struct {
	w, g    register
	moments []register
}

// eachRow walks rows that have a gradient. Scalars are in registers counted down from 31.
func (a *neon) eachRow(name, doc string, scalars, moments int, body func(n neonSpan, m neonRow)) {
	a.function(name, "*rowArgs", doc, func(args register) {
		f := a.fields(args, rowRows, rowGradients, rowStep, rowGradientStep, rowN, rowWidth)
		rows, gradients, steps, gradientSteps, n, width := f[0], f[1], f[2], f[3], f[4], f[5]
		var arrays []register
		for i := range 1 + moments {
			arrays = append(arrays, a.field(args, rowValues+8*i))
		}
		var constants []int
		for i := range scalars {
			constants = append(constants, constant(i).low)
		}
		a.constants(args, rowScalars, constants...)
		at, left, g := a.register(), a.register(), a.register()
		pointers := []register{g}
		for range arrays {
			pointers = append(pointers, a.register())
		}
		a.loop(n, 1, func() {
			a.put("MOVW (%s), %s", rows, at)
			a.put("MUL %s, %s", width, at)
			for i, array := range arrays {
				a.plus(array, at, pointers[1+i])
			}
			a.move(gradients, g)
			a.move(width, left)
			a.spans(left, []neonSpan{8, 4, 1}, pointers, func(n neonSpan) { body(n, neonRow{pointers[1], g, pointers[2:]}) })
			a.add(steps, rows)
			a.add(gradientSteps, gradients)
		})
	})
}

// constant is the register that has a scalar of rowArgs.
func constant(i int) vec { return same(31 - i) }

// rowOptimizers move rows. Scalars: 0 rate, 1 scale, 2 decay, 3 momentum or beta1, 4 1-beta1, 5 beta2, 6 1-beta2,
// 7 unbias, 8 epsilon, 9 keep.
func (a *neon) rowOptimizers() {
	w, g, x, y, z := wide(0), wide(1), wide(2), wide(3), wide(4)
	slope := func(n neonSpan, m neonRow) {
		a.loadOf(n, m.w, w)
		a.loadOf(n, m.g, g)
		a.productOf(n, g, constant(1), g)
		a.productOf(n, x, constant(2), w)
		a.plusOf(n, g, g, x)
	}
	step := func(n neonSpan, m neonRow, by vec) {
		a.productOf(n, by, constant(0), by)
		a.minusOf(n, w, w, by)
		a.storeOf(n, w, m.w)
	}
	a.eachRow("rowsPlain", "moves rows by their gradients.", 3, 0, func(n neonSpan, m neonRow) {
		slope(n, m)
		step(n, m, g)
	})
	velocity := func(n neonSpan, m neonRow) {
		slope(n, m)
		a.loadOf(n, m.moments[0], x)
		a.productOf(n, x, constant(3), x)
		a.plusOf(n, x, x, g)
		a.storeOf(n, x, m.moments[0])
	}
	a.eachRow("rowsMomentum", "moves rows by their velocities.", 4, 1, func(n neonSpan, m neonRow) {
		velocity(n, m)
		step(n, m, x)
	})
	a.eachRow("rowsNesterov", "moves rows by Nesterov's momentum.", 4, 1, func(n neonSpan, m neonRow) {
		velocity(n, m)
		a.productOf(n, x, constant(3), x)
		a.plusOf(n, x, g, x)
		step(n, m, x)
	})
	a.eachRow("rowsAdam", "moves rows by Adam and AdamW.", 10, 2, func(n neonSpan, m neonRow) {
		slope(n, m)
		a.loadOf(n, m.moments[0], x)
		a.productOf(n, x, constant(3), x)
		a.productOf(n, y, constant(4), g)
		a.plusOf(n, x, x, y) // mean
		a.storeOf(n, x, m.moments[0])
		a.loadOf(n, m.moments[1], y)
		a.productOf(n, y, constant(5), y)
		a.productOf(n, z, constant(6), g)
		a.productOf(n, z, z, g)
		a.plusOf(n, y, y, z) // mean square
		a.storeOf(n, y, m.moments[1])
		a.productOf(n, y, constant(7), y)
		a.rootOf(n, y, y)
		a.plusOf(n, y, y, constant(8))
		a.productOf(n, x, constant(0), x)
		a.shareOf(n, x, x, y)
		a.productOf(n, w, constant(9), w)
		a.minusOf(n, w, w, x)
		a.storeOf(n, w, m.w)
	})
}
