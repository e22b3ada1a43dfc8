package kernel

import "github.com/disdel/disdel/runtime/engine/native/plan"

// reduce runs a reduction over all pixels for this worker's channels; sums values a channel go to out,
// [channels][sums][16]. p may be nil.
func (w *Worker) reduce(f [2]func(*channelArgs), im Image, active int, x, y, z, perChannel, mask, out []float32,
	sums int,
) {
	from, to := w.share((im.C + 7) / 8)
	from, to = from*8, min(to*8, im.C)
	if from >= to {
		return
	}
	clear(out[from*sums*lanes : to*sums*lanes])
	a := &w.chn
	a.row, a.lanes, a.pixels = int64(4*im.Lanes), int64(4*active), int64(im.H*im.W)
	a.xPixel, a.yPixel = int64(4*im.Pixel()), int64(4*im.Pixel())
	if mask != nil {
		a.mask = p(mask, 0)
	}
	for c := from; c < to; {
		n, kernel := w.block, f[0]
		if c+n > to {
			n, kernel = 1, f[1]
		}
		a.x, a.out = p(x, c*im.Lanes), p(out, c*sums*lanes)
		a.y, a.z = a.x, a.x
		if y != nil {
			a.y = p(y, c*im.Lanes)
		}
		if z != nil {
			a.z = p(z, c*im.Lanes)
		}
		if perChannel != nil {
			a.p = p(perChannel, c)
		}
		kernel(a)
		c += n
	}
}

// RowSums sums x over pixels and active lanes for every channel into 16 partial sums each, [C][16].
func (w *Worker) RowSums(im Image, active int, x, out []float32) {
	w.reduce(w.f.rowSums, im, active, x, nil, nil, nil, nil, out, 1)
}

// ChannelSums sums x over pixels and active lanes for every channel; sums is scratch of [C][16].
func (w *Worker) ChannelSums(im Image, active int, x, out, sums []float32) {
	w.RowSums(im, active, x, sums)
	from, to := w.channels(im.C) // whose sums are its own
	for c := from; c < to; c++ {
		out[c] = float32(total(sums[16*c:][:16]))
	}
	if w.ID == 0 {
		clear(out[im.C:])
	}
}

// Norm is a batch norm over channels (Ioffe 2015).
type Norm struct {
	Image
	Eps, Momentum float64
	Rows          int // of the batch: the others are padding
	ReLU          bool
}

// NormState is what a batch norm keeps, each an array of a value a channel but for Sums, [C][2][16], and Mask, [lanes],
// which is 1 for lanes that hold rows.
type NormState struct {
	Gamma, Beta, Mean, Var, Shift []float32 // Gamma and Beta may be nil: 1 and 0
	Scale, Offset                 []float32 // y = Scale x + Offset
	Third                         []float32
	Sums, Mask                    []float32
}

// channels is this worker's part of the channels, as reduce shares them.
func (w *Worker) channels(n int) (from, to int) {
	from, to = w.share((n + 7) / 8)
	return min(from*8, n), min(to*8, n)
}

func at(v []float32, i int, otherwise float64) float64 {
	if v == nil {
		return otherwise
	}
	return float64(v[i])
}

// NormForward computes y = gamma (x - mean) / sqrt(var + eps) + beta, with the batch's mean and variance, and moves the
// running ones. Mean and Var get the batch's mean and 1/sqrt(var + eps), which NormBack needs. The sums are of x less
// its first value, so that a large mean costs no digits.
func (w *Worker) NormForward(n *Norm, s *NormState, running [2][]float32, x, y []float32) {
	from, to := w.channels(n.C)
	for c := from; c < to; c++ {
		s.Shift[c] = x[c*n.Lanes]
	}
	w.reduce(w.f.moments, n.Image, plan.Padded(n.Rows), x, nil, nil, s.Shift, s.Mask, s.Sums, 2)
	count := float64(n.H*n.W) * float64(n.Rows)
	for c := from; c < to; c++ {
		sum, square := total(s.Sums[c*32:][:16])/count, total(s.Sums[c*32+16:][:16])/count
		mean, variance := float64(s.Shift[c])+sum, max(square-sum*sum, 0)
		inv := 1 / sqrt(variance+n.Eps)
		s.Mean[c], s.Var[c] = float32(mean), float32(inv)
		unbiased := variance
		if count > 1 {
			unbiased *= count / (count - 1)
		}
		running[0][c] += float32(n.Momentum * (mean - float64(running[0][c])))
		running[1][c] += float32(n.Momentum * (unbiased - float64(running[1][c])))
		s.Scale[c] = float32(at(s.Gamma, c, 1) * inv)
		s.Offset[c] = float32(at(s.Beta, c, 0) - mean*at(s.Gamma, c, 1)*inv)
	}
	if w.apart(n) {
		f := w.f.affine
		if n.ReLU {
			f = w.f.affineRelu
		}
		w.ownRows(n, s, x, y, f)
	} else {
		w.Sync()
		w.affine(n, s, x, y)
	}
}

// NormAgain computes the y of the last NormForward again, of the same x and by the Scale and Offset that it left.
func (w *Worker) NormAgain(n *Norm, s *NormState, x, y []float32) { w.affine(n, s, x, y) }

// NormEval is NormForward with the running statistics, as evaluation uses them.
func (w *Worker) NormEval(n *Norm, s *NormState, running [2][]float32, x, y []float32) {
	w.NormScale(n, s, running)
	w.Sync()
	w.affine(n, s, x, y)
}

// NormEvalBack turns dy, the gradient of NormEval's y, into that of x, in place. That of a ReLU has been passed before.
func (w *Worker) NormEvalBack(n *Norm, s *NormState, running [2][]float32, dy []float32) {
	w.NormScale(n, s, running)
	w.Sync()
	plain, slopes := *n, *s
	plain.ReLU, slopes.Offset = false, s.Third
	from, to := w.channels(n.C)
	clear(slopes.Offset[from:to])
	w.Sync()
	w.affine(&plain, &slopes, dy, dy)
}

// NormScale sets Scale and Offset by the running statistics; y = Scale x + Offset then.
func (w *Worker) NormScale(n *Norm, s *NormState, running [2][]float32) {
	from, to := w.channels(n.C)
	for c := from; c < to; c++ {
		inv := at(s.Gamma, c, 1) / sqrt(float64(running[1][c])+n.Eps)
		s.Scale[c] = float32(inv)
		s.Offset[c] = float32(at(s.Beta, c, 0) - float64(running[0][c])*inv)
	}
}

// rowwise sets up a kernel that walks this worker's pixels.
func (w *Worker) rowwise(n *Norm, s *NormState, x, y []float32) bool {
	from, to := w.share(n.H * n.W)
	if from == to {
		return false
	}
	a := &w.chn
	a.x, a.y, a.p, a.q, a.mask = p(x, from*n.Pixel()), p(y, from*n.Pixel()), p(s.Scale, 0), p(s.Offset, 0), nil
	a.channels, a.row, a.pixels = int64(n.C), int64(4*n.Lanes), int64(to-from)
	return true
}

func (w *Worker) affine(n *Norm, s *NormState, x, y []float32) {
	if w.rowwise(n, s, x, y) {
		if n.ReLU {
			w.f.affineRelu(&w.chn)
		} else {
			w.f.affine(&w.chn)
		}
	}
	w.Sync()
}

// Bias adds a value a channel; ones is an array of ones, one a channel.
func (w *Worker) Bias(im Image, y, bias, ones []float32) {
	n, s := Norm{Image: im}, NormState{Scale: ones, Offset: bias}
	w.affine(&n, &s, y, y)
}

// NormBack turns dy, the gradient of y, into that of x, in place, and computes those of gamma and beta (nil where there
// are none). x and y are what NormForward took and gave. It overwrites Scale and Offset.
func (w *Worker) NormBack(n *Norm, s *NormState, x, y, dy, dGamma, dBeta []float32) {
	f := w.f.normSums
	if n.ReLU {
		f = w.f.normSumsRelu
	}
	w.reduce(f, n.Image, plan.Padded(n.Rows), x, dy, y, s.Mean, nil, s.Sums, 2)
	w.slopes(n, s, dGamma, dBeta)
	if w.apart(n) {
		w.ownRows(n, s, x, dy, w.f.normBack)
		return
	}
	w.Sync()
	if w.rowwise(n, s, x, dy) {
		w.chn.r, w.chn.mask = p(s.Third, 0), p(s.Mask, 0)
		w.f.normBack(&w.chn)
	}
	w.Sync()
}

// ownValues is the least part of a pixel that is worth a call of its own.
const ownValues = 4096

// apart tells whether workers continue with the channels that they have summed, and wait for nobody: where these are
// equal shares, and long ones.
func (w *Worker) apart(n *Norm) bool {
	return w.N > 1 && n.C%(8*w.N) == 0 && n.Pixel() >= ownValues*w.N
}

// ownRows runs a kernel that walks pixels on this worker's channels of each.
func (w *Worker) ownRows(n *Norm, s *NormState, x, y []float32, f func(*channelArgs)) {
	from, to := w.channels(n.C)
	a := &w.chn
	a.p, a.q, a.mask = p(s.Scale, from), p(s.Offset, from), p(s.Mask, 0)
	if s.Third != nil {
		a.r = p(s.Third, from)
	}
	a.channels, a.row, a.pixels = int64(to-from), int64(4*n.Lanes), 1
	for at := from * n.Lanes; at < n.H*n.W*n.Pixel(); at += n.Pixel() {
		a.x, a.y = p(x, at), p(y, at)
		f(a)
	}
	w.Sync()
}

// slopes works out, of the sums of this worker's channels, the gradients of gamma and beta, and what NormBack
// multiplies and adds.
func (w *Worker) slopes(n *Norm, s *NormState, dGamma, dBeta []float32) {
	count := float64(n.H*n.W) * float64(n.Rows)
	from, to := w.channels(n.C)
	for c := from; c < to; c++ {
		sum, dot := total(s.Sums[c*32:][:16]), total(s.Sums[c*32+16:][:16])
		inv, mean := float64(s.Var[c]), float64(s.Mean[c])
		if dGamma != nil {
			dGamma[c] = float32(dot * inv)
		}
		if dBeta != nil {
			dBeta[c] = float32(sum)
		}
		gamma := at(s.Gamma, c, 1)
		slope := -gamma * inv * inv * inv * dot / count
		s.Scale[c], s.Offset[c] = float32(gamma*inv), float32(slope)
		s.Third[c] = float32(-gamma*inv*sum/count - slope*mean)
	}
}

// GroupNorm is a normalisation over the pixels of each group of channels (Wu 2018). Kept is [groups][2][Lanes].
type GroupNorm struct {
	LayerNorm
	Groups int
}

// each calls f for this worker's share of groups and vectors of 16 lanes.
func (n *GroupNorm) each(w *Worker, f func(group, l int)) {
	blocks := n.active() / lanes
	from, to := w.share(n.Groups * blocks)
	for i := from; i < to; i++ {
		f(i/blocks, i%blocks*lanes)
	}
}

// group calls a kernel on 16 lanes of a group in each pixel. Sums go on from pixel to pixel.
func (w *Worker) group(f func(*channelArgs), n *GroupNorm, x, y []float32, group, l int) {
	size := n.C / n.Groups
	for t := range n.H * n.W {
		w.eachChannel(f, &n.LayerNorm, x, y, t*n.Pixel()+group*size*n.Lanes+l, group*size, size)
	}
}

// GroupNorm computes y = gamma (x - mean) / sqrt(variance + eps) + beta, with the moments of each group.
func (w *Worker) GroupNorm(n *GroupNorm, x, y []float32) {
	n.each(w, func(group, l int) {
		w.groupMoments(n, x, group, l)
		if n.Kept != nil {
			mean, inverse := n.kept(group, l)
			*mean, *inverse = w.lane.moments[0], w.lane.moments[1]
		}
		w.group(w.f.layerNorm, n, x, y, group, l)
	})
}

// groupMoments computes w.lane's moments of a group.
func (w *Worker) groupMoments(n *GroupNorm, x []float32, group, l int) {
	size, s := n.C/n.Groups, &w.lane
	count := 1 / float32(size*n.H*n.W)
	*s = laneSums{}
	w.part = filled(1)
	for t := range n.H * n.W {
		at := t*n.Pixel() + group*size*n.Lanes + l
		w.eachRow(w.f.dotRows, w.part[:], 0, x[at:], n.Lanes, nil, &s.moments[0], size)
	}
	for i := range s.moments[0] {
		s.moments[0][i] *= count
	}
	w.group(w.f.layerSquares, n, x, x, group, l)
	for i, v := range s.sums[0] {
		s.moments[1][i] = float32(1 / sqrt(float64(v*count)+n.Eps))
	}
}

// GroupNormSums adds the gradients of gamma and beta to arrays of zeros, each worker for some channels.
func (w *Worker) GroupNormSums(n *GroupNorm, x, dy, dGamma, dBeta []float32) {
	from, to := w.share(n.C)
	for c := from; c < to; c++ {
		for l := 0; l < n.active(); l += lanes {
			mean, inverse := n.kept(c*n.Groups/n.C, l)
			for t := range n.H * n.W {
				var dot, sum float32
				in, d := n.at(x, t, c, l), n.at(dy, t, c, l)
				for i := range d { // lanes without rows have gradients of 0
					dot += d[i] * (in[i] - mean[i]) * inverse[i]
					sum += d[i]
				}
				dGamma[c], dBeta[c] = dGamma[c]+dot, dBeta[c]+sum
			}
		}
	}
}

// GroupNormBack turns dy, the gradient of y, into that of x, in place.
func (w *Worker) GroupNormBack(n *GroupNorm, x, dy []float32) {
	count, s := float32(n.Groups)/float32(n.C*n.H*n.W), &w.lane
	n.each(w, func(group, l int) {
		mean, inverse := n.kept(group, l)
		*s = laneSums{moments: [2][lanes]float32{*mean, *inverse}}
		w.group(w.f.layerSums, n, x, dy, group, l)
		for i := range s.sums[0] {
			s.sums[0][i] *= count
			s.sums[1][i] *= count
		}
		w.group(w.f.layerBack, n, x, dy, group, l)
	})
}
