package kernel

import (
	"unsafe"

	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Sequence is an image with a pixel for each position, or with a Fold for several, [H][C][Lanes], and the rows of the
// batch that it holds.
type Sequence struct {
	Image
	Rows int
}

// positions are this worker's pixels.
func (s *Sequence) positions(w *Worker) (from, to int) { return w.share(s.H * s.W) }

// active is how many lanes are computed.
func (s *Sequence) active() int {
	if s.Fold > 0 {
		return s.Lanes
	}
	return min(s.Lanes, plan.Padded(s.Rows))
}

// holds tells whether a lane has a row of the batch.
func (s *Sequence) holds(lane int) bool { return lane%s.Span() < s.Rows }

// Lane is where the first row of a position is among the values of a channel: the pixel and the lane.
func (s *Sequence) Lane(position int) (pixel, lane int) {
	if s.Fold == 0 {
		return position, 0
	}
	return position / s.Fold, position % s.Fold * s.Span()
}

// Index is where a channel of a position of a row is.
func (s *Sequence) Index(position, channel, row int) int {
	pixel, lane := s.Lane(position)
	return (pixel*s.C+channel)*s.Lanes + lane + row
}

// at is the vector of 16 lanes from lane l on, of a channel of a pixel.
func (s *Sequence) at(x []float32, position, channel, l int) *[lanes]float32 {
	return (*[lanes]float32)(x[(position*s.C+channel)*s.Lanes+l:])
}

// Tokens says which positions of a row are padding, [positions][Lanes]: those with token 0. nil: none is.
type Tokens []float32

func (t Tokens) isPadding(s *Sequence, position, row int) bool {
	if t == nil {
		return false
	}
	pixel, lane := s.Lane(position)
	return t[pixel*s.Lanes+lane+row] == 0
}

// Table is the weight of an embedding, [vocabulary][C]. Packed, it lies as products read it: [vocabulary/16][C][16].
type Table struct {
	Values []float32
	Packed bool
}

// row is where the values of a token begin, and how far apart they are.
func (t *Table) row(token, channels int) (values []float32, stride int) {
	if t.Packed {
		return t.Values[token/lanes*channels*lanes+token%lanes:], lanes
	}
	return t.Values[token*channels:], 1
}

// Embed writes the row of table for each token, y [positions][C][Lanes].
func (w *Worker) Embed(s Sequence, tokens []float32, table Table, y []float32) {
	from, to := s.positions(w)
	for t := from; t < to; t++ {
		for l := 0; l < s.active(); l += lanes {
			var rows [lanes][]float32
			stride := 1
			for i := range rows {
				rows[i], stride = table.row(int(tokens[t*s.Lanes+l+i]), s.C)
			}
			for c := range s.C {
				for i, v := 0, s.at(y, t, c, l); i < lanes; i++ {
					v[i] = rows[i][c*stride]
				}
			}
		}
	}
}

// EmbedBack adds dy to the gradient of the rows of the table that Embed took; with padded set, token 0 gets none. Each
// worker adds up some channels, in the order of positions and rows.
func (w *Worker) EmbedBack(s Sequence, tokens, dy []float32, dTable Table, padded bool) {
	from, to := w.share(s.C)
	for t := range s.H * s.W {
		for r := range s.active() {
			token := int(tokens[t*s.Lanes+r])
			if !s.holds(r) || padded && token == 0 {
				continue
			}
			row, stride := dTable.row(token, s.C)
			for c := from; c < to; c++ {
				row[c*stride] += dy[(t*s.C+c)*s.Lanes+r]
			}
		}
	}
}

// AddPositions is y = x + table, a vector of the channels for each position.
func (w *Worker) AddPositions(s Sequence, x, table, y []float32) {
	from, to := s.positions(w)
	span := min(s.Span(), s.active())
	for k := from * s.C; k < to*s.C; k++ {
		for f := range max(1, s.Fold) {
			add, at := table[s.entry(k, f)], k*s.Lanes+f*span
			in, out := x[at:][:span], y[at:][:span]
			for i, v := range in {
				out[i] = v + add
			}
		}
	}
}

// entry is where the table of positions has channel k, counted over all pixels, of position f of its pixel.
func (s *Sequence) entry(k, f int) int { return (k/s.C*max(1, s.Fold)+f)*s.C + k%s.C }

// PositionsBack is the gradient of the table of AddPositions: the sums of dy over the rows.
func (w *Worker) PositionsBack(s Sequence, dy, dTable []float32) {
	from, to := s.positions(w)
	for k := from * s.C; k < to*s.C; k++ {
		for f := range max(1, s.Fold) {
			var sum float32
			for _, v := range dy[k*s.Lanes+f*s.Span():][:s.Rows] {
				sum += v
			}
			dTable[s.entry(k, f)] = sum
		}
	}
	if w.ID == 0 {
		clear(dTable[s.Positions()*s.C:])
	}
}

// Spread writes a vector of the channels to the first position of all rows.
func (w *Worker) Spread(s Sequence, x, y []float32) {
	from, to := w.share(s.C)
	for c := from; c < to; c++ {
		for l := range s.Lanes {
			y[c*s.Lanes+l] = x[c]
		}
	}
}

// SpreadBack is the gradient of x of Spread: the sums of the first position over the rows.
func (w *Worker) SpreadBack(s Sequence, dy, dx []float32) {
	s.H, s.W = 1, 1
	w.PositionsBack(s, dy, dx)
}

// LayerNorm is a normalisation over the channels of each position (Ba 2016), or with Centered false by their root mean
// square (Zhang 2019).
type LayerNorm struct {
	Sequence
	Eps         float64
	Centered    bool
	Gamma, Beta []float32 // Beta may be nil: 0
	Kept        []float32 // [positions][2][Lanes], mean and 1/sqrt(variance + eps), for the way back; nil: not kept
}

// kept are the mean and the inverse deviation that lanes of a position had.
func (n *LayerNorm) kept(t, l int) (mean, inverse *[lanes]float32) {
	return (*[lanes]float32)(n.Kept[2*t*n.Lanes+l:]), (*[lanes]float32)(n.Kept[(2*t+1)*n.Lanes+l:])
}

// LayerNorm computes y = gamma (x - mean) / sqrt(variance + eps) + beta.
func (w *Worker) LayerNorm(n *LayerNorm, x, y []float32) {
	from, to := n.positions(w)
	f := w.f.layerNorm
	if n.Beta == nil {
		f = w.f.layerScale
	}
	for t := from; t < to; t++ {
		for l := 0; l < n.active(); l += lanes {
			w.layerMoments(n, x, t, l)
			if n.Kept != nil {
				mean, inverse := n.kept(t, l)
				*mean, *inverse = w.lane.moments[0], w.lane.moments[1]
			}
			w.layer(f, n, x, y, t, l)
		}
	}
}

// laneSums are of 16 lanes of a pixel: a mean and 1/sqrt(variance + eps), and sums over the channels.
type laneSums struct{ moments, sums [2][lanes]float32 }

// layer calls a kernel on 16 lanes of the channels of a pixel, whose moments and sums are w.lane's.
func (w *Worker) layer(f func(*channelArgs), n *LayerNorm, x, y []float32, t, l int) {
	w.eachChannel(f, n, x, y, t*n.Pixel()+l, 0, n.C)
}

// eachChannel calls a kernel on 16 lanes of count channels from the first on, whose values begin at a place.
func (w *Worker) eachChannel(f func(*channelArgs), n *LayerNorm, x, y []float32, at, first, count int) {
	a := &w.chn
	a.x, a.y, a.p, a.q = p(x, at), p(y, at), p(n.Gamma, first), p(n.Gamma, first)
	if n.Beta != nil {
		a.q = p(n.Beta, first)
	}
	a.z, a.out = unsafe.Pointer(&w.lane.moments), unsafe.Pointer(&w.lane.sums)
	a.channels, a.row = int64(count), int64(4*n.Lanes)
	f(a)
}

// layerMoments computes w.lane's moments; the mean is 0 unless Centered.
func (w *Worker) layerMoments(n *LayerNorm, x []float32, t, l int) {
	count, s := 1/float32(n.C), &w.lane
	*s = laneSums{}
	if n.Centered {
		w.part = filled(1)
		w.eachRow(w.f.dotRows, w.part[:], 0, x[t*n.Pixel()+l:], n.Lanes, nil, &s.moments[0], n.C)
		for i := range s.moments[0] {
			s.moments[0][i] *= count
		}
	}
	w.layer(w.f.layerSquares, n, x, x, t, l)
	for i, v := range s.sums[0] {
		s.moments[1][i] = float32(1 / sqrt(float64(v*count)+n.Eps))
	}
}

// LayerNormSums adds the gradients of gamma and beta (nil: there is none) to arrays of zeros, each worker for some
// channels. Lanes without rows have gradients of 0.
func (w *Worker) LayerNormSums(n *LayerNorm, x, dy, dGamma, dBeta []float32) {
	from, to := w.share(n.C)
	for first := from; first < to; first += len(w.grads) {
		count := min(len(w.grads), to-first)
		clear(w.grads[:count])
		for t := range n.H * n.W {
			for l := 0; l < n.active(); l += lanes {
				mean, inverse := n.kept(t, l)
				w.lane.moments = [2][lanes]float32{*mean, *inverse}
				at, a := (t*n.C+first)*n.Lanes+l, &w.chn
				a.x, a.y, a.z, a.out = p(x, at), p(dy, at), unsafe.Pointer(&w.lane.moments), unsafe.Pointer(&w.grads)
				a.channels, a.row = int64(count), int64(4*n.Lanes)
				w.f.layerGradients(a)
			}
		}
		for c := range count {
			for l := range lanes {
				dGamma[first+c] += w.grads[c][1][l]
				if dBeta != nil {
					dBeta[first+c] += w.grads[c][0][l]
				}
			}
		}
	}
}

// LayerNormBack turns dy, the gradient of y, into that of x, in place.
func (w *Worker) LayerNormBack(n *LayerNorm, x, dy []float32) {
	from, to := n.positions(w)
	count, s := 1/float32(n.C), &w.lane
	for t := from; t < to; t++ {
		for l := 0; l < n.active(); l += lanes {
			mean, inverse := n.kept(t, l)
			*s = laneSums{moments: [2][lanes]float32{*mean, *inverse}}
			w.layer(w.f.layerSums, n, x, dy, t, l)
			for i := range s.sums[0] {
				if s.sums[0][i] *= count; !n.Centered {
					s.sums[0][i] = 0
				}
				s.sums[1][i] *= count
			}
			w.layer(w.f.layerBack, n, x, dy, t, l)
		}
	}
}

// layerNorms are the kernels of layer norms in plain Go.
func layerNorms(f *functions) {
	each := func(value func(x, inverse float32, y, sum, dot *float32, gamma, beta float32)) func(*channelArgs) {
		return func(a *channelArgs) {
			moments, sums := (*[2][lanes]float32)(a.z), (*[2][lanes]float32)(a.out)
			for c := range a.channels {
				gamma, beta := *(*float32)(ptr(a.p, 4*c)), *(*float32)(ptr(a.q, 4*c))
				x, y := vec(ptr(a.x, c*a.row)), vec(ptr(a.y, c*a.row))
				for l := range x {
					value(x[l]-moments[0][l], moments[1][l], &y[l], &sums[0][l], &sums[1][l], gamma, beta)
				}
			}
		}
	}
	f.layerSquares = each(func(x, _ float32, _, sum, _ *float32, _, _ float32) { *sum += x * x })
	f.layerNorm = each(func(x, inverse float32, y, _, _ *float32, gamma, beta float32) { *y = x*inverse*gamma + beta })
	f.layerScale = each(func(x, inverse float32, y, _, _ *float32, gamma, _ float32) { *y = x * inverse * gamma })
	f.layerSums = each(func(x, inverse float32, y, sum, dot *float32, gamma, _ float32) {
		*sum += gamma * *y
		*dot += gamma * *y * x * inverse
	})
	f.layerBack = each(func(x, inverse float32, y, sum, dot *float32, gamma, _ float32) {
		*y = inverse * (gamma**y - *sum - x*inverse**dot)
	})
	f.layerGradients = func(a *channelArgs) {
		moments := (*[2][lanes]float32)(a.z)
		for c := range a.channels {
			x, y := vec(ptr(a.x, c*a.row)), vec(ptr(a.y, c*a.row))
			sums := (*[2][lanes]float32)(ptr(a.out, c*2*64))
			for l := range x {
				sums[0][l] += y[l]
				sums[1][l] += (x[l] - moments[0][l]) * moments[1][l] * y[l]
			}
		}
	}
}

// Take says which position TakePosition takes.
type Take string

// The values of Take.
const (
	TakeMean  Take = "mean"
	TakeFirst Take = "first"
	TakeLast  Take = "last"
	TakeEnds  Take = "ends" // the last position of the first half of the channels, and the first of the second half
)

// Reverse writes the positions of each row in reverse order; padding stays where it is. With add it adds them to y. It
// undoes itself, and so it is its own way back.
func (w *Worker) Reverse(s Sequence, tokens Tokens, x, y []float32, add bool) {
	from, to := w.share(s.C)
	for r := range s.Lanes {
		for first, last := 0, s.H-1; first <= last; {
			switch {
			case tokens.isPadding(&s, first, r):
				s.exchange(first, first, r, from, to, x, y, add)
				first++
			case tokens.isPadding(&s, last, r):
				s.exchange(last, last, r, from, to, x, y, add)
				last--
			default:
				s.exchange(first, last, r, from, to, x, y, add)
				first, last = first+1, last-1
			}
		}
	}
}

// exchange is Reverse for two positions of a row, which may be the same one.
func (s *Sequence) exchange(a, b, r, from, to int, x, y []float32, add bool) {
	for c := from; c < to; c++ {
		i, k := (a*s.C+c)*s.Lanes+r, (b*s.C+c)*s.Lanes+r
		switch {
		case !add:
			y[i], y[k] = x[k], x[i]
		case a == b:
			y[i] += x[i]
		default:
			y[i], y[k] = y[i]+x[k], y[k]+x[i]
		}
	}
}

// takenOf is the position that some channels take.
type takenOf struct {
	take     Take
	from, to int // channels
}

// takes splits channels by the position that they take: the halves of TakeEnds have one each.
func (s *Sequence) takes(take Take, from, to int) [2]takenOf {
	if take != TakeEnds {
		return [2]takenOf{{take, from, to}}
	}
	half := max(from, min(to, s.C/2))
	return [2]takenOf{{TakeLast, from, half}, {TakeFirst, half, to}}
}

// TakePosition writes one position of each row, or the mean of all, as a vector y of the channels. Padding does not
// count; a row of nothing else has its first position.
func (w *Worker) TakePosition(s Sequence, take Take, tokens Tokens, x, y []float32) {
	from, to := w.share(s.C)
	for _, part := range s.takes(take, from, to) {
		for r := range s.Rows {
			first, end, scale := s.taken(part.take, tokens, r)
			for c := part.from; c < part.to; c++ {
				var sum float32
				for t := first; t < end; t++ {
					if take != TakeMean || !tokens.isPadding(&s, t, r) {
						sum += x[s.Index(t, c, r)]
					}
				}
				y[c*s.Lanes+r] = sum * scale
			}
		}
	}
	for c := from; c < to; c++ {
		clear(y[c*s.Lanes+s.Rows : (c+1)*s.Lanes])
	}
}

// TakePositionBack adds the gradient of x to dx.
func (w *Worker) TakePositionBack(s Sequence, take Take, tokens Tokens, dy, dx []float32) {
	from, to := w.share(s.C)
	for _, part := range s.takes(take, from, to) {
		for r := range s.Rows {
			first, end, scale := s.taken(part.take, tokens, r)
			for t := first; t < end; t++ {
				if take == TakeMean && tokens.isPadding(&s, t, r) {
					continue
				}
				for c := part.from; c < part.to; c++ {
					dx[s.Index(t, c, r)] += scale * dy[c*s.Lanes+r]
				}
			}
		}
	}
}

// taken are the positions of a row that count, from first to end, and what each counts for.
func (s *Sequence) taken(take Take, tokens Tokens, r int) (first, end int, scale float32) {
	count, last := 0, 0
	for t := range s.Positions() {
		if !tokens.isPadding(s, t, r) {
			count, last = count+1, t
		}
	}
	switch {
	case take == TakeFirst || count == 0:
		return 0, 1, 1
	case take == TakeLast:
		return last, last + 1, 1
	default:
		return 0, s.Positions(), 1 / float32(count)
	}
}
