package main

// The kernels here have the same bits on every path: a product and a sum are two instructions, never one, and sums have
// an order that does not depend on the vectors. They take arrays of any length, so that the last values go four at a
// time, and one by one. Rows are short: there is no wider form of them.

func exact(m machine) {
	pairProducts(m)
	pairSlopes(m)
	rowOptimizers(m)
}

// Fields of pairArgs.
const (
	pairUsers         = 0
	pairItems         = 8
	pairUserGradients = 16
	pairItemGradients = 24
	pairIndex         = 32
	pairPlaces        = 40
	pairValues        = 48
	pairN             = 56
	pairRow           = 64
	pairFirst         = 72
	pairOffset        = 80
)

// rowAt is the address of a row that an int32 in memory has the number of, first less than it says.
func rowAt(m machine, args register, number place, table int, first bool) register {
	r := m.number(number)
	m.scope(func() {
		if first {
			m.minus(m.held(args, pairFirst), r)
		}
		m.times(m.held(args, pairRow), r)
		m.plus(m.held(args, table), r)
	})
	return r
}

// pair is one at work: the addresses of its rows, the list of its numbers in gradients, and its value.
type pair struct{ args, u, v, places, values, bytes register }

// eachPair walks pairs; bytes are those of a row's factors. The body moves on to the next value.
func eachPair(m machine, name string, gradients bool, body func(p pair)) {
	m.function(name, "*pairArgs", func(args register) {
		index, values := m.field(args, pairIndex), m.field(args, pairValues)
		n, bytes := m.field(args, pairN), m.field(args, pairRow)
		m.minus(4, bytes)
		lists := []register{index}
		if gradients {
			lists = append(lists, m.field(args, pairPlaces))
		}
		m.loop(n, 1, func() {
			u := rowAt(m, args, m.at(index, 0), pairUsers, false)
			v := rowAt(m, args, m.at(index, 4), pairItems, true)
			body(pair{args, u, v, lists[len(lists)-1], values, bytes})
			m.plus(8, lists...)
		})
	})
}

// pairProducts writes offset + both biases + the product of factors, in four sums, for every pair.
func pairProducts(m machine) {
	eachPair(m, "pairProducts", false, func(p pair) {
		one, value := m.span(1), m.v(1)
		rows, _ := m.moving(p.u, p.v)
		product := m.dot(rows[0], rows[1], p.bytes)
		one.load(m.at(p.args, pairOffset), value)
		for _, bias := range rows {
			one.add(value, value, one.source(bias, m.v(3)))
		}
		one.add(value, value, product)
		one.store(value, m.at(p.values, 0))
		m.plus(4, p.values)
	})
}

// pairSlopes adds every pair's slope times its factors to gradients.
func pairSlopes(m machine) {
	eachPair(m, "pairSlopes", true, func(p pair) {
		slope := m.constant(0)
		u := rowAt(m, p.args, m.at(p.places, 0), pairUserGradients, false)
		v := rowAt(m, p.args, m.at(p.places, 4), pairItemGradients, false)
		m.next(p.values, slope)
		rows, _ := m.moving(p.v, p.u, u, v)
		gradients := rows[2:]
		m.spans(p.bytes, []int{8, 4, 1}, rows, func(n lanes) {
			for i, g := range gradients {
				n.load(rows[i], m.v(i))
				n.mul(m.v(i), m.v(i), slope)
				n.add(m.v(i), m.v(i), n.source(g, m.v(2+i)))
			}
			for i, g := range gradients {
				n.store(m.v(i), g)
			}
		})
		one := m.span(1)
		for i, bias := range gradients {
			one.load(bias, m.v(i))
			one.add(m.v(i), m.v(i), slope)
			one.store(m.v(i), bias)
		}
	})
}
