package main

// Fields of rowArgs.
const (
	rowRows         = 0
	rowGradients    = 8
	rowStep         = 16
	rowGradientStep = 24
	rowN            = 32
	rowWidth        = 40
	rowValues       = 48 // and the moments behind them
	rowScalars      = 72
)

// rowPlaces has the places of the current weights, their gradient and the moments.
type rowPlaces struct {
	w, g    place
	moments []place
}

// eachRow calls body for the spans of each row that has a gradient. Constants have the scalars.
func eachRow(m machine, name string, scalars, moments int, body func(n arithmetic, p rowPlaces)) {
	m.function(name, "*rowArgs", func(args register) {
		rows, gradients := m.field(args, rowRows), m.field(args, rowGradients)
		steps, gradientSteps := m.field(args, rowStep), m.field(args, rowGradientStep)
		n, width := m.field(args, rowN), m.field(args, rowWidth)
		var arrays []register
		for i := range 1 + moments {
			arrays = append(arrays, m.field(args, rowValues+8*i))
		}
		var constants []vector
		for i := range scalars {
			constants = append(constants, m.constant(i))
		}
		m.broadcastEach(args, rowScalars, constants...)
		m.loop(n, 1, func() {
			row := m.loadInt32(m.at(rows, 0))
			m.times(width, row)
			values := m.placesAt(row, arrays...)
			g := m.placesAt(nil, gradients)[0]
			m.eachSpan(width, []int{8, 4, 1}, append([]place{g}, values...), func(n arithmetic) {
				body(n, rowPlaces{values[0], g, values[1:]})
			})
			m.plus(steps, rows)
			m.plus(gradientSteps, gradients)
		})
	})
}

// rowOptimizers update rows. Scalars: 0 rate, 1 scale, 2 decay, 3 momentum or beta1, 4 1-beta1, 5 beta2, 6 1-beta2,
// 7 unbias, 8 epsilon, 9 keep.
func rowOptimizers(m machine) {
	w, g, x, y, z, s := m.v(0), m.v(1), m.v(2), m.v(3), m.v(4), m.constant
	slope := func(n arithmetic, p rowPlaces) { // the gradient, scaled and with decay
		n.load(p.w, w)
		n.load(p.g, g)
		n.mul(g, g, s(1))
		n.mul(x, w, s(2))
		n.add(g, g, x)
	}
	step := func(n arithmetic, p rowPlaces, by vector) {
		n.mul(by, by, s(0))
		n.sub(w, w, by)
		n.store(w, p.w)
	}
	velocity := func(n arithmetic, p rowPlaces) {
		slope(n, p)
		n.load(p.moments[0], x)
		n.mul(x, x, s(3))
		n.add(x, x, g)
		n.store(x, p.moments[0])
	}
	eachRow(m, "rowsPlain", 3, 0, func(n arithmetic, p rowPlaces) {
		slope(n, p)
		step(n, p, g)
	})
	eachRow(m, "rowsMomentum", 4, 1, func(n arithmetic, p rowPlaces) {
		velocity(n, p)
		step(n, p, x)
	})
	eachRow(m, "rowsNesterov", 4, 1, func(n arithmetic, p rowPlaces) {
		velocity(n, p)
		n.mul(x, x, s(3))
		n.add(x, x, g)
		step(n, p, x)
	})
	eachRow(m, "rowsAdam", 10, 2, func(n arithmetic, p rowPlaces) {
		slope(n, p)
		n.load(p.moments[0], x)
		n.mul(x, x, s(3))
		n.mul(y, g, s(4))
		n.add(x, x, y) // mean
		n.store(x, p.moments[0])
		n.load(p.moments[1], y)
		n.mul(y, y, s(5))
		n.mul(z, g, s(6))
		n.mul(z, z, g)
		n.add(y, y, z) // mean square
		n.store(y, p.moments[1])
		n.mul(y, y, s(7))
		n.sqrt(y, y)
		n.add(y, y, s(8))
		n.mul(x, x, s(0))
		n.div(x, x, y)
		n.mul(w, w, s(9))
		n.sub(w, w, x)
		n.store(w, p.w)
	})
}
