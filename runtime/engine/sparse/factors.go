package sparse

import "github.com/disdel/disdel/dataset"

// factors is pass for ratings: a prediction is the offset, the biases of user and item, and the product of their
// factors.
func (e *Engine) factors(b *dataset.Batch, gradient bool) (loss float64) {
	users, items := &e.tables[0], &e.tables[1]
	in, targets := &b.Input, b.Target.Values
	rank, firstItem := e.net.Rank, int32(e.net.Users)
	scale := 1 / float64(in.Rows)
	for r := range in.Rows {
		user, item := in.Index[2*r], in.Index[2*r+1]-firstItem
		u, v := users.row(user), items.row(item)
		sum := float64(e.offset + u[rank] + v[rank] + dot(u[:rank], v[:rank]))
		if !gradient {
			e.out[r] = e.predicted(sum)
		}
		if targets == nil {
			continue
		}
		l, slope := e.loss(sum, targets[r])
		loss += l
		if gradient {
			s := float32(slope * scale)
			addBoth(users.touch(user), items.touch(item), u, v, s)
		}
	}
	return loss
}

// dot is the product of two vectors of one length, in four sums that do not wait for each other.
func dot(x, y []float32) float32 {
	y = y[:len(x)]
	var a, b, c, d float32
	k := 0
	for ; k+4 <= len(x); k += 4 {
		x4, y4 := x[k:k+4:k+4], y[k:k+4:k+4]
		a += x4[0] * y4[0]
		b += x4[1] * y4[1]
		c += x4[2] * y4[2]
		d += x4[3] * y4[3]
	}
	for ; k < len(x); k++ {
		a += x[k] * y[k]
	}
	return (a + b) + (c + d)
}

// addBoth adds a rating's slope times the item's factors to the gradient gu of a user, and times the user's to that of
// the item, gv; the last of each is the bias.
func addBoth(gu, gv, u, v []float32, slope float32) {
	last := len(u) - 1
	gu, gv, v = gu[:len(u)], gv[:len(u)], v[:len(u)]
	for k := range last {
		gu[k] += slope * v[k]
		gv[k] += slope * u[k]
	}
	gu[last] += slope
	gv[last] += slope
}
