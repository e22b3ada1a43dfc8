package kernel

import "unsafe"

// Lines of outputs, and the tiles that they are cut into.

// join makes one way of two where the second goes on where the first ends, as all pixels of an image do for a kernel of
// one tap, and puts the longest first.
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

// piece is a tile of a line: how far its first row is from the line's first output in x and in y, how far each row is
// from the one before in x, in bytes, and how many are stored.
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
		left := way.n - at
		rows, rs := w.nextTile(left, way.n), 4*way.x
		stored := rows
		switch {
		case rows == 0: // a single output: the tile's rows are all the same
			rows, rs, stored = w.Set.line[len(w.Set.line)-1], 0, 1
		case rows > left:
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
func (w *Worker) nextTile(left, all int) (best int) {
	if left > 2*w.Set.line[0] {
		return w.Set.line[0]
	}
	least := 0
	for _, first := range w.Set.line {
		price := max(first, leastRows)
		if first < left {
			second := w.holds(left-first, all)
			if second == 0 {
				continue
			}
			price += max(second, leastRows)
		}
		if first <= all && (best == 0 || price < least) {
			best, least = first, price
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
