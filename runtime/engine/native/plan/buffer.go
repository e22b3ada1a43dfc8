package plan

import (
	"slices"
	"sort"

	"github.com/disdel/disdel"
)

// buffer is a piece of the slab with a lifetime, both ends included.
type buffer struct {
	category Category
	size     int
	offset   int
	node     int32
	from, to int32
	short    int32      // the last time that it takes all of size, and not the first half; 0: always
	region   *Region    // that is told where it went
	others   *[]*Region // and others; few have any, and there are thousands of buffers
}

// live stretches a buffer's lifetime to time t.
func (b *buffer) live(t int) { b.from, b.to = min(b.from, int32(t)), max(b.to, int32(t)) }

// tell has one more region be told where the buffer went.
func (b *buffer) tell(r *Region) {
	if b.region == nil {
		b.region = r
		return
	}
	if b.others == nil {
		b.others = &[]*Region{}
	}
	*b.others = append(*b.others, r)
}

// add makes a buffer.
func (p *planner) add(c Category, node, size, from, to int) *buffer {
	b := &buffer{category: c, node: int32(node), size: Padded(size), from: int32(from), to: int32(to)}
	p.buffers = append(p.buffers, b)
	return b
}

// later makes a buffer whose region is found when all is placed.
func (p *planner) later(region *Region, c Category, node, size, from, to int) {
	p.add(c, node, size, from, to).tell(region)
}

// matrices tells that a buffer is the scratch of Winograd's algorithm, most of which a kernel's matrices are.
func (p *planner) matrices(b *buffer) bool {
	c := &p.Nodes[b.node].Conv
	return b.category == Workspace && (c.Tile.Is() || c.BackTile.Is())
}

// place lays the buffers out: the largest first, each at the lowest offset that is free for its whole lifetime. Greedy
// by size is within a few percent of the bound on every network here (Pisarchyk and Lee 2020, "Efficient Memory
// Management for Deep Neural Net Inference", which compares such strategies).
func (p *planner) place() {
	forever := func(b *buffer) bool { return int(b.to-b.from) > p.end() }
	order := p.buffers
	sort.SliceStable(order, func(i, j int) bool {
		a, b := order[i], order[j]
		if fa, fb := forever(a), forever(b); fa != fb {
			return fa // goes to the bottom
		}
		if fa, fb := p.matrices(a), p.matrices(b); fa != fb {
			return fa // hardly grow with the batch: in an order that does, a larger batch could take less
		}
		return a.size > b.size
	})
	bottom := 0 // the end of what lives forever: that comes first, and leaves no gaps
	first := slices.IndexFunc(order, func(b *buffer) bool { return !forever(b) })
	placed := make([]*buffer, 0, len(order)-max(first, 0)) // the rest, by offset
	for _, b := range order {
		at := p.free(b, placed, bottom)
		b.offset = at
		p.Len = max(p.Len, at+b.size)
		if forever(b) {
			bottom += b.size
		} else {
			k := sort.Search(len(placed), func(i int) bool { return placed[i].offset > at })
			placed = slices.Insert(placed, k, b)
		}
		if b.region != nil {
			*b.region = Region{Offset: at, Len: b.size}
		}
		if b.others != nil {
			for _, r := range *b.others {
				*r = Region{Offset: at, Len: b.size}
			}
		}
	}
	// read, never used, behind the last image by a tile that has more rows than it has channels
	p.Len += Slack * max(p.Lanes, vector) / vector
}

// free is the lowest offset from bottom on that is free for a buffer's whole lifetime.
func (p *planner) free(b *buffer, placed []*buffer, bottom int) int {
	at := bottom
	if p.Spec.Halves {
		return b.freeHalves(placed, bottom)
	}
	for _, q := range placed {
		if q.to < b.from || b.to < q.from {
			continue
		}
		if at+b.size <= q.offset {
			break
		}
		at = max(at, q.offset+q.size)
	}
	return at
}

// freeHalves is free where buffers take less from some time on.
func (b *buffer) freeHalves(placed []*buffer, bottom int) int {
	at := bottom
	for again := true; again; {
		again = false
		for _, q := range placed {
			if q.offset >= at+b.size {
				break // and so are all that follow
			}
			if end := b.meets(q, at); end > at {
				at, again = end, true
			}
		}
	}
	return at
}

// meets returns where q ends that would be in b's way at an offset, at a time when both are alive; 0: nowhere.
func (b *buffer) meets(q *buffer, at int) (end int) {
	for _, x := range b.phases() {
		for _, y := range q.phases() {
			if x.from <= y.to && y.from <= x.to && at < q.offset+y.size && q.offset < at+x.size {
				end = max(end, q.offset+y.size)
			}
		}
	}
	return end
}

// phase is a time with the same size all through.
type phase struct {
	from, to int32
	size     int
}

// phases are a buffer's two; the second is empty, and never, where it keeps its size.
func (b *buffer) phases() [2]phase {
	if b.short == 0 {
		return [2]phase{{b.from, b.to, b.size}, {1, -1, 0}}
	}
	return [2]phase{{b.from, b.short, b.size}, {b.short + 1, b.to, b.half()}}
}

// half is what is left of a buffer once it is halves.
func (b *buffer) half() int { return Padded((b.size + 1) / 2) }

// kept is what a buffer takes for the most of its life.
func (b *buffer) kept() int {
	if b.short == 0 {
		return b.size
	}
	return b.half()
}

// ByCategory is how many bytes the plan's peak holds of each kind: at the time when most are alive. Their sum is at
// most Bytes; the difference, Gaps, is what the layout cannot use.
func (p *Plan) ByCategory() (peak map[Category]disdel.Bytes, gaps disdel.Bytes) {
	change := make([]disdel.Bytes, p.last+3) // of what is alive, from the moment before
	for _, b := range p.buffers {
		for _, x := range b.phases() {
			if x.from <= x.to {
				change[x.from] += disdel.Bytes(x.size) * 4
				change[x.to+1] -= disdel.Bytes(x.size) * 4
			}
		}
	}
	best, at, alive := disdel.Bytes(-1), 0, disdel.Bytes(0)
	for t := 0; t <= p.last; t++ {
		if alive += change[t]; alive > best {
			best, at = alive, t
		}
	}
	peak = map[Category]disdel.Bytes{}
	for _, b := range p.buffers {
		for _, x := range b.phases() {
			if int(x.from) <= at && at <= int(x.to) {
				peak[b.category] += disdel.Bytes(x.size) * 4
			}
		}
	}
	return peak, p.Bytes() - best
}

// ByNode is how many bytes the plan holds for each node, whenever they are alive: for its weights with their moments
// and gradients, and for all else.
func (p *Plan) ByNode() (weights, others []disdel.Bytes) {
	weights, others = make([]disdel.Bytes, len(p.Nodes)), make([]disdel.Bytes, len(p.Nodes))
	for _, b := range p.buffers {
		to := others
		switch b.category {
		case Weights, Moments, Gradients:
			to = weights
		}
		to[b.node] += disdel.Bytes(b.kept()) * 4
	}
	return weights, others
}
