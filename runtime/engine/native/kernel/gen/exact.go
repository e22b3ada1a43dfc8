package main

// The kernels of exact have the same bits on every path: a product and a sum are two instructions, and the order of a
// sum does not depend on the vectors. Arrays have any length: the last values are computed by four, then one by one.
// Rows are short, so that AVX-512 would not help.

// exact writes the kernels of models of sparse rows.
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

// rowAt returns the address of a row of a table. Its number is an int32 in memory; first is what that counts from.
func rowAt(m machine, args register, number place, table int, first bool) register {
	r := m.loadInt32(number)
	m.scope(func() {
		if first {
			m.minus(m.fieldOperand(args, pairFirst), r)
		}
		m.times(m.fieldOperand(args, pairRow), r)
		m.plus(m.fieldOperand(args, table), r)
	})
	return r
}

// pair has the addresses of two rows, the list of their numbers in gradients, and the address of the value of the pair.
type pair struct{ args, u, v, places, values, bytes register }

// eachPair calls body for each pair; bytes is the size of the factors of a row. body advances values.
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

// pairProducts writes offset + both biases + the product of the factors of each pair.
func pairProducts(m machine) {
	eachPair(m, "pairProducts", false, func(p pair) {
		one, value := m.span(1), m.v(1)
		rows, _ := m.placesOf(p.u, p.v)
		product := m.dotProduct(rows[0], rows[1], p.bytes)
		one.load(m.at(p.args, pairOffset), value)
		for _, bias := range rows {
			one.add(value, value, one.memoryOperand(bias, m.v(3)))
		}
		one.add(value, value, product)
		one.store(value, m.at(p.values, 0))
		m.plus(4, p.values)
	})
}

// pairSlopes adds the slope of each pair times its factors to the gradients.
func pairSlopes(m machine) {
	eachPair(m, "pairSlopes", true, func(p pair) {
		slope := m.constant(0)
		u := rowAt(m, p.args, m.at(p.places, 0), pairUserGradients, false)
		v := rowAt(m, p.args, m.at(p.places, 4), pairItemGradients, false)
		m.broadcastNext(p.values, slope)
		rows, _ := m.placesOf(p.v, p.u, u, v)
		gradients := rows[2:]
		m.eachSpan(p.bytes, []int{8, 4, 1}, rows, func(n arithmetic) {
			for i, g := range gradients {
				n.load(rows[i], m.v(i))
				n.mul(m.v(i), m.v(i), slope)
				n.add(m.v(i), m.v(i), n.memoryOperand(g, m.v(2+i)))
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
