package kernel

import "unsafe"

// What follows computes with few rows of a batch, which lie one behind the other: [row][height][width][depth], see
// plan.Image. Filters are the vector, and a tile's rows are pixels, of an image's row or column or of the same place in
// several rows of the batch. Sums have the terms and the order of the batch's lanes, and so the same bits.

// axis is one way to go from output to output: how many there are, and how many values lie between two of them in x and
// in y.
type axis struct{ n, x, y int }

// patch is a set of outputs that the same taps of the kernel reach.
type patch struct {
	b0, b1         int  // rows of the batch
	i0, i1, j0, j1 int  // rows and columns of the output
	r0, r1, q0, q1 int  // taps
	done           bool // of the blocks of filters at work
}

// same finds the end of the outputs from o on that the same taps reach.
func same(o, end, stride, dilation, pad, kernel, size int) (from, to, next int) {
	from, to = window(o, stride, dilation, pad, kernel, size)
	if from == 0 && to == kernel { // and so on until one leaves the image
		return from, to, min(end, (size-1+pad-(kernel-1)*dilation)/stride+1)
	}
	for next = o + 1; next < end; next++ {
		if f, t := window(next, stride, dilation, pad, kernel, size); f != from || t != to {
			break
		}
	}
	return from, to, next
}

// RowsForward is Forward for rows of the batch, each an image of c.In and of out.
func (w *Worker) RowsForward(c *Conv, out Image, rows int, x, weights, bias, y []float32) {
	blocks := c.Groups * c.Blocks()
	k0, k1 := 0, blocks
	first, last := 0, rows*c.OH // of the outputs' rows, all rows of the batch behind each other
	if c.Groups == 1 && (blocks >= 2*w.N || last < w.N) {
		k0, k1 = w.share(blocks)
	} else {
		first, last = w.share(last)
	}
	l := rowsProduct{c: c, out: out, x: x, weights: weights, bias: bias, y: y, k0: k0, k1: k1}
	switch {
	case k0 == k1 || first == last:
	case first == 0 && last == rows*c.OH: // all rows of the batch at once
		w.patches(&l, 0, rows, 0, c.OH)
	default:
		for b := first / c.OH; b*c.OH < last; b++ {
			w.patches(&l, b, b+1, max(first-b*c.OH, 0), min(last-b*c.OH, c.OH))
		}
	}
	w.Sync()
}

// rowsProduct is one worker's part of a product of rows: some blocks of 16 filters.
type rowsProduct struct {
	c                   *Conv
	out                 Image
	x, weights, bias, y []float32
	k0, k1              int
}

// patches computes output rows from i0 (included) to i1 (not), some blocks of filters of all patches after the others:
// there may be more weights than a cache holds, and every patch reads those of its taps.
func (w *Worker) patches(l *rowsProduct, b0, b1, i0, i1 int) {
	c := l.c
	w.cutPatches(c, b0, b1, i0, i1)
	for k := l.k0; k < l.k1; k += lineBlocks {
		end := min(k+lineBlocks, l.k1)
		for n := range w.parts {
			s := &w.parts[n]
			s.done = end == k+lineBlocks && w.single(l, s, k)
		}
		for block := k; block < end; block++ {
			for n := range w.parts {
				if s := &w.parts[n]; !s.done {
					w.patch(l, s, block/c.Blocks(), block%c.Blocks())
				}
			}
		}
	}
	if w.after != nil {
		for n := range w.parts {
			w.patchAfter(l, &w.parts[n])
		}
	}
}

// cutPatches cuts output rows from i0 (included) to i1 (not) into patches.
func (w *Worker) cutPatches(c *Conv, b0, b1, i0, i1 int) {
	w.parts = w.parts[:0]
	s := patch{b0: b0, b1: b1}
	for s.i0 = i0; s.i0 < i1; s.i0 = s.i1 {
		s.r0, s.r1, s.i1 = same(s.i0, i1, c.SH, c.DH, c.Top, c.KH, c.In.H)
		for s.j0 = 0; s.j0 < c.OW; s.j0 = s.j1 {
			s.q0, s.q1, s.j1 = same(s.j0, c.OW, c.SW, c.DW, c.Left, c.KW, c.In.W)
			w.parts = append(w.parts, s)
		}
	}
}

// patch computes 16 filters of a group at a patch.
func (w *Worker) patch(l *rowsProduct, s *patch, group, block int) {
	c := l.c
	pixel, line := c.In.Pixel(), c.In.W*c.In.Pixel()
	filter := group*c.Outer() + block*16
	bias := unsafe.Pointer(nil)
	if l.bias != nil {
		bias = p(l.bias, (group*c.Blocks()+block)*16)
	}
	filters := min(16, c.Outer()-block*16)
	if w.byPixels(c, s, filters) {
		w.pixels(l, s, block, filters)
		return
	}
	if c.Groups == 1 {
		filters = 16 // what pads them may be written
	}
	ways := [3]axis{
		{s.j1 - s.j0, c.SW * pixel, l.out.Pixel()},
		{s.i1 - s.i0, c.SH * line, l.out.W * l.out.Pixel()},
		{s.b1 - s.b0, c.In.Row(), l.out.Row()},
	}
	join(&ways)
	from := s.b0*c.In.Row() + (s.i0*c.SH-c.Top+s.r0*c.DH)*line + (s.j0*c.SW-c.Left+s.q0*c.DW)*pixel + group*c.Inner()
	to := s.b0*l.out.Row() + (s.i0*l.out.W+s.j0)*l.out.Pixel() + filter
	empty := s.r0 == s.r1 || s.q0 == s.q1
	if !empty {
		w.reduction(c, s, bias, p(l.weights, group*c.GroupLen()+block*c.BlockLen()+(s.r0*c.KW+s.q0)*c.Inner()*16))
	}
	w.cutLine(ways[0])
	for m := range ways[1].n {
		for n := range ways[2].n {
			x, y := from+m*ways[1].x+n*ways[2].x, to+m*ways[1].y+n*ways[2].y
			if empty {
				w.biasAlone(l, ways[0], y, filters, bias)
				continue
			}
			w.line(l, ways[0], x, y, filters)
		}
	}
}

// lineBlocks is how many blocks of 16 filters a line takes.
const lineBlocks = 4

// single computes lineBlocks blocks of filters of a patch that is one output, from block on, and says whether it is.
func (w *Worker) single(l *rowsProduct, s *patch, block int) bool {
	c := l.c
	if c.Groups > 1 || (s.b1-s.b0)*(s.i1-s.i0)*(s.j1-s.j0) != 1 || s.r0 == s.r1 || s.q0 == s.q1 {
		return false
	}
	bias := unsafe.Pointer(nil)
	if l.bias != nil {
		bias = p(l.bias, block*16)
	}
	w.reduction(c, s, bias, p(l.weights, block*c.BlockLen()+(s.r0*c.KW+s.q0)*c.Inner()*16))
	a := &w.prod
	a.c2 = int64(4 * c.BlockLen())
	a.a = p(l.x, s.b0*c.In.Row()+((s.i0*c.SH-c.Top+s.r0*c.DH)*c.In.W+s.j0*c.SW-c.Left+s.q0*c.DW)*c.In.Pixel())
	a.c = p(l.y, s.b0*l.out.Row()+(s.i0*l.out.W+s.j0)*l.out.Pixel()+block*16)
	w.f.line(a)
	return true
}

// reduction sets up the sum over taps and channels.
func (w *Worker) reduction(c *Conv, s *patch, bias, weights unsafe.Pointer) {
	a := &w.prod
	inner, columns, pixel := int64(c.Inner()), int64(s.q1-s.q0), int64(4*c.In.Pixel())
	a.b, a.ks, a.ldb, a.c2 = weights, 4, 64, 64
	if w.square == 8 {
		a.c2 = 32
	}
	a.k, a.middle, a.am, a.bm = inner, columns, int64(c.DW)*pixel-4*inner, 0
	if 4*inner == pixel && c.DW == 1 {
		a.k, a.middle, a.am = inner*columns, 1, 0
	}
	a.outer = int64(s.r1 - s.r0)
	a.ao = int64(c.DH*c.In.W)*pixel - a.middle*(4*a.k+a.am)
	a.bo = (int64(c.KW)*inner - a.middle*a.k) * 64
	if a.mode = fromZero; bias != nil {
		a.mode, a.bias = fromVector, bias
	}
	if a.relu = 0; c.ReLU {
		a.relu = 1
	}
}

// biasAlone is for outputs that no tap reaches.
func (w *Worker) biasAlone(l *rowsProduct, way axis, y, filters int, bias unsafe.Pointer) {
	for n := range way.n {
		to := l.y[y+n*way.y:][:filters]
		clear(to)
		if bias != nil {
			copy(to, vector(bias, 0)[:])
		}
		for i, v := range to {
			if l.c.ReLU && v < 0 {
				to[i] = 0
			}
		}
	}
}

// patchAfter finishes this worker's filters of a patch.
func (w *Worker) patchAfter(l *rowsProduct, s *patch) {
	if w.after == nil {
		return
	}
	first, n := l.k0*16, (l.k1-l.k0)*16
	if l.c.Groups > 1 { // whose filters fill no vectors: all of them are this worker's
		first, n = 0, l.out.Pixel()
	}
	for b := s.b0; b < s.b1; b++ {
		for i := s.i0; i < s.i1; i++ {
			for j := s.j0; j < s.j1; j++ {
				w.rowAfter(l.y[b*l.out.Row()+(i*l.out.W+j)*l.out.Pixel()+first:], first, n)
			}
		}
	}
}

// RowsImport writes rows of samples, [rows][C][H][W], into images by rows, within a border that is zero and stays so.
func (w *Worker) RowsImport(dst []float32, im Image, b Border, x []float32, rows int) {
	plane, around := im.H*im.W, b.Around(im)
	from, to := w.share(rows * im.H)
	for n := from; n < to; n++ {
		r, h := n/im.H, n%im.H
		src := x[r*im.C*plane+h*im.W:]
		line := dst[r*around.Row()+((h+b.Top)*around.W+b.Left)*im.Depth:]
		if im.C == 1 && im.Depth == 1 {
			copy(line[:im.W], src)
			continue
		}
		w.Transpose(line, im.Depth, src, plane, im.C, im.W)
	}
	w.tr = transposeArgs{} // the rows, which it would keep alive until the next call
}

// RowsExport writes images by rows as rows of samples, [rows][C][H][W].
func (w *Worker) RowsExport(dst, x []float32, im Image, rows int) {
	plane := im.H * im.W
	for r := range rows {
		if plane == 1 {
			copy(dst[r*im.C:][:im.C], x[r*im.Row():])
			continue
		}
		w.Transpose(dst[r*im.C*plane:], plane, x[r*im.Row():], im.Depth, plane, im.C)
	}
	w.tr = transposeArgs{}
}

// RowsFlatten makes vectors of images: channels before pixels, as PyTorch has them, or pixels before channels.
func (w *Worker) RowsFlatten(dst []float32, out Image, x []float32, im Image, rows int, permuted bool) {
	plane := im.H * im.W
	from, to := w.share(rows)
	for r := from; r < to; r++ {
		d, s := dst[r*out.Row():], x[r*im.Row():]
		if !permuted {
			w.Transpose(d, plane, s, im.Depth, plane, im.C)
			continue
		}
		for px := range plane {
			copy(d[px*im.C:][:im.C], s[px*im.Depth:])
		}
	}
}

// RowsJoin copies the channels of every pixel of x to those from first on of a wider image.
func (w *Worker) RowsJoin(dst []float32, out Image, x []float32, im Image, rows, first int) {
	from, to := w.share(rows * im.H * im.W)
	for px := from; px < to; px++ {
		copy(dst[px*out.Depth+first:][:im.C], x[px*im.Depth:])
	}
}

// RowsSubsample is Subsample.
func (w *Worker) RowsSubsample(dst []float32, out Image, x []float32, in Image, rows, stride int) {
	plane, first := out.H*out.W, (out.C-in.C)/2
	from, to := w.share(rows * plane)
	for n := from; n < to; n++ {
		r, px := n/plane, n%plane
		d := dst[n*out.Depth:][:out.Depth]
		clear(d)
		copy(d[first:][:in.C], x[r*in.Row()+(px/out.W*in.W+px%out.W)*stride*in.Depth:])
	}
}

// RowsAffine is y = scale x + offset a channel, through max(0, y) with relu.
func (w *Worker) RowsAffine(im Image, rows int, x, y, scale, offset []float32, relu bool) {
	f := w.f.affineEach
	if relu {
		f = w.f.affineEachRelu
	}
	from, to := w.share(rows * im.H * im.W)
	e := &w.elem
	e.n = int64(4 * im.Depth)
	for px := from; px < to; px++ {
		e.dst, e.a, e.b, e.c = p(y, px*im.Depth), p(x, px*im.Depth), p(scale, 0), p(offset, 0)
		f(e)
	}
	w.Sync()
}

// RowsDepthwise is DepthwiseForward; channels is how many there are, g.In a row as vectors.
func (w *Worker) RowsDepthwise(g *Pool, channels, rows int, x, weights, y []float32) {
	pixel, plane := g.In.Pixel(), g.OH*g.OW
	from, to := w.share(rows * plane)
	a := &w.tap
	a.bytes, a.w = int64(4*pixel), p(weights, 0)
	for n := from; n < to; {
		r, px := n/plane, n%plane
		taps, pixels := w.run(g, px, min(plane, px+to-n))
		if taps == 0 {
			clear(y[n*pixel:][:pixels*pixel])
		} else {
			for t := range taps { // weights are not padded as pixels are
				w.woffs[t] = w.woffs[t] / int64(g.In.C) * int64(channels)
			}
			a.x, a.y = p(x, r*g.In.H*g.In.W*pixel), p(y, n*pixel)
			w.f.weighted(a)
		}
		for range pixels {
			w.rowAfter(y[n*pixel:], 0, pixel)
			n++
		}
	}
	w.Sync()
}

// Lines of outputs, and the tiles that they are cut into.

// join makes one way of two if the second begins where the first ends. All pixels of an image become one way for a
// kernel of one tap. The longest way comes first.
func join(ways *[3]axis) {
	for i := range 2 {
		a, b := &ways[i], &ways[i+1]
		if a.n == 1 {
			*a, *b = *b, *a
		}
		if b.n > 1 && b.x == a.n*a.x && b.y == a.n*a.y {
			*a, *b = axis{a.n * b.n, a.x, a.y}, axis{n: 1}
		}
	}
	if a := &ways[0]; ways[1].n > 1 && ways[1].x == a.n*a.x && ways[1].y == a.n*a.y { // what the second two have become
		*a, ways[1] = axis{a.n * ways[1].n, a.x, a.y}, axis{n: 1}
	}
	longest := 0
	for i := range ways {
		if ways[i].n > ways[longest].n {
			longest = i
		}
	}
	ways[0], ways[longest] = ways[longest], ways[0]
}

// piece is a tile of a line. x and y are the distances of its first row from the line's first output. rs is the
// distance of neighbouring rows in x, in bytes, and rows is how many are stored.
type piece struct {
	x, y     int
	rs, rows int64
	run      func(*productArgs)
}

// cutLine cuts a line into tiles. The last begins earlier where it would be longer than what is left: what it computes
// twice is the same both times.
func (w *Worker) cutLine(way axis) {
	w.pieces = w.pieces[:0]
	for at := 0; at < way.n; {
		remaining := way.n - at
		rows, rs := w.nextTile(remaining, way.n), 4*way.x
		stored := rows
		switch {
		case rows == 0: // a single output: the tile's rows are all the same
			rows, rs, stored = w.Set.line[len(w.Set.line)-1], 0, 1
		case rows > remaining:
			at = way.n - rows
		}
		w.pieces = append(w.pieces, piece{
			x: at * way.x, y: at * way.y, rs: int64(rs), rows: int64(stored), run: w.f.product[rows][1],
		})
		at += stored
	}
}

// leastRows are the rows of a tile below which it takes no less time: each sum waits for its last multiply-add.
const leastRows = 4

// nextTile is how many rows the next tile has where left outputs of a line of all are not computed: the largest tile's,
// until one or two tiles hold the rest, which are those that cost least. 0: all are fewer than any tile has.
func (w *Worker) nextTile(remaining, all int) (best int) {
	if remaining > 2*w.Set.line[0] {
		return w.Set.line[0]
	}
	minimum := 0
	for _, first := range w.Set.line {
		price := max(first, leastRows)
		if first < remaining {
			second := w.holds(remaining-first, all)
			if second == 0 {
				continue
			}
			price += max(second, leastRows)
		}
		if first <= all && (best == 0 || price < minimum) {
			best, minimum = first, price
		}
	}
	return best
}

// holds is the smallest tile for n outputs of a line of all.
func (w *Worker) holds(n, all int) (rows int) {
	for _, t := range w.Set.line {
		if t >= n && t <= all {
			rows = t
		}
	}
	return rows
}

// line computes the outputs of one way, as cutLine has cut it, and puts their filters where they belong.
func (w *Worker) line(l *rowsProduct, way axis, x, y, filters int) {
	a := &w.prod
	for i := range w.pieces {
		t := &w.pieces[i]
		a.a, a.rs, a.rows = p(l.x, x+t.x), t.rs, t.rows
		if filters == 16 {
			a.c, a.ldc = p(l.y, y+t.y), int64(4*way.y)
			t.run(a)
			continue
		}
		a.c, a.ldc = unsafe.Pointer(&w.edge), 64
		t.run(a)
		for r := range int(t.rows) {
			copy(l.y[y+t.y+r*way.y:][:filters], w.edge[r*16:])
		}
	}
}

// Few filters leave most of a vector of 16 empty. Where pixels of a single channel lie side by side, the vector is 16
// pixels of a line instead, and filters are the rows of a tile. The result is then transposed. Terms and their order
// are the same, and so are the bits.

// transposeCost is the cost of transposing 16 pixels, in multiply-adds of a vector. tileCost is the cost of beginning
// and ending a tile, for each of its rows. Both were measured on one core of Zen 4.
const (
	transposeCost = 90
	tileCost      = 6
)

// byPixels tells whether a patch of so many filters costs less with pixels as the vector.
func (w *Worker) byPixels(c *Conv, s *patch, filters int) bool {
	n, taps := s.j1-s.j0, (s.r1-s.r0)*(s.q1-s.q0)
	if c.Groups > 1 || c.SW > 1 || c.In.Pixel() > 1 || n < lanes || taps == 0 {
		return false
	}
	vectors := (n + lanes - 1) / lanes
	return vectors*(max(filters, leastRows)*(taps+tileCost)+transposeCost) < n*(taps+tileCost)
}

// pixels computes a block of filters at a patch, one or two vectors of pixels of a line at a time. The last vector
// begins earlier where it would be longer than what is left.
func (w *Worker) pixels(l *rowsProduct, s *patch, block, filters int) {
	c, a := l.c, &w.prod
	columns, line, pixel := int64(s.q1-s.q0), c.In.W, l.out.Pixel()
	a.rs, a.ks, a.ldb, a.ldc, a.c2 = 4, 64, int64(4*c.DW), 4*2*lanes, 4*lanes
	if w.square == 8 {
		a.c2 = 32
	}
	a.k, a.middle, a.am, a.bm, a.outer = columns, 1, 0, 0, int64(s.r1-s.r0)
	a.ao, a.bo = (int64(c.KW)-columns)*64, int64(4*c.DH*line)-columns*a.ldb
	if a.relu = 0; c.ReLU {
		a.relu = 1
	}
	weights := block*c.BlockLen() + (s.r0*c.KW+s.q0)*16
	reach := (s.r1-s.r0-1)*c.DH*line + (s.q1-s.q0-1)*c.DW // from the first value of a sum to its last
	for n := range (s.b1 - s.b0) * (s.i1 - s.i0) {
		b, i := s.b0+n/(s.i1-s.i0), s.i0+n%(s.i1-s.i0)
		x := b*c.In.Row() + (i*c.SH-c.Top+s.r0*c.DH)*line + s.q0*c.DW - c.Left
		y := b*l.out.Row() + i*l.out.W*pixel + block*16
		for j := s.j0; j < s.j1; j += lanes {
			j = min(j, s.j1-lanes)
			a.b = p(l.x, x+j)
			if w.vectors == 1 || j+lanes == s.j1 || x+j+reach+2*lanes > len(l.x) {
				w.filters(l, weights, block*16, filters, 1)
				w.turnPixels(l.y[y+j*pixel:], pixel, 0, filters)
				continue
			}
			w.filters(l, weights, block*16, filters, 2) // which may reach beyond the line: that is not used
			w.turnPixels(l.y[y+j*pixel:], pixel, 0, filters)
			second := min(j+lanes, s.j1-lanes)
			w.turnPixels(l.y[y+second*pixel:], pixel, second-j, filters)
			j = second
		}
	}
}

// turnPixels puts filters of 16 pixels, the first of them at from, where these belong.
func (w *Worker) turnPixels(y []float32, pixel, from, filters int) {
	a, f, side := &w.tr, w.f.transpose, w.square
	if filters <= 8 {
		f, side = w.f.transpose8, 8
	}
	_ = y[(lanes-1)*pixel : (lanes-1)*pixel+(filters+side-1)/side*side]
	a.ds, a.ss = int64(4*pixel), 4*2*lanes
	for k := 0; k < filters; k += side {
		for n := 0; n < lanes; n += side {
			a.dst, a.src = p(y, n*pixel+k), p(w.edge[:], k*2*lanes+from+n)
			f(a)
		}
	}
}

// filters computes filters of vectors of pixels into the worker's edge, [filters][2][16].
func (w *Worker) filters(l *rowsProduct, weights, bias, filters, vectors int) {
	a := &w.prod
	for k := 0; k < filters; {
		rows := w.Set.tile(filters - k)
		a.rows = int64(min(rows, filters-k))
		a.a, a.c = p(l.weights, weights+k), unsafe.Pointer(&w.edge[k*2*lanes])
		w.mode(a, true, l.bias, bias+k)
		w.f.product[rows][vectors](a)
		k += int(a.rows)
	}
}
