package plan

import (
	"sort"

	"github.com/disdel/disdel"
)

// buffer is a piece of the slab with a lifetime, both ends included.
type buffer struct {
	category Category
	node     int
	size     int
	from, to int
	offset   int
	regions  []func() *Region // that are told where it went
}

// live stretches a buffer's lifetime to time t.
func (b *buffer) live(t int) { b.from, b.to = min(b.from, t), max(b.to, t) }

// add makes a buffer.
func (p *planner) add(c Category, node, size, from, to int) *buffer {
	b := &buffer{category: c, node: node, size: Padded(size), from: from, to: to}
	p.buffers = append(p.buffers, b)
	return b
}

// later makes a buffer whose region is found when all is placed.
func (p *planner) later(region func() *Region, c Category, node, size, from, to int) {
	b := p.add(c, node, size, from, to)
	b.regions = append(b.regions, region)
}

// place lays the buffers out: the largest first, each at the lowest offset that is free for its whole lifetime. Greedy by
// size is within a few percent of the bound on every network here (Pisarchyk and Lee 2020, "Efficient Memory Management for
// Deep Neural Net Inference", which compares such strategies).
func (p *planner) place() {
	order := append([]*buffer(nil), p.buffers...)
	sort.SliceStable(order, func(i, j int) bool {
		a, b := order[i], order[j]
		if fa, fb := a.to-a.from > len(p.g.Nodes)*2, b.to-b.from > len(p.g.Nodes)*2; fa != fb {
			return fa // what lives forever goes to the bottom
		}
		return a.size > b.size
	})
	var placed []*buffer // by offset
	for _, b := range order {
		at := 0
		for _, q := range placed {
			if q.to < b.from || b.to < q.from {
				continue
			}
			if at+b.size <= q.offset {
				break
			}
			at = max(at, q.offset+q.size)
		}
		b.offset = at
		p.Len = max(p.Len, at+b.size)
		k := sort.Search(len(placed), func(i int) bool { return placed[i].offset > at })
		placed = append(placed, nil)
		copy(placed[k+1:], placed[k:])
		placed[k] = b
		for _, r := range b.regions {
			*r() = Region{Offset: at, Len: b.size}
		}
	}
	p.Len += Slack * p.Lanes / vector // read, never used, behind the last image by a tile that has more rows than it has channels
}

// ByCategory is how many bytes the plan's peak holds of each kind: at the time when most are alive. Their sum is at most
// Bytes; the difference, Gaps, is what the layout cannot use.
func (p *Plan) ByCategory() (peak map[Category]disdel.Bytes, gaps disdel.Bytes) {
	best, at := disdel.Bytes(-1), 0
	for t := 0; t <= 2*len(p.Nodes); t++ {
		var sum disdel.Bytes
		for _, b := range p.buffers {
			if b.from <= t && t <= b.to {
				sum += disdel.Bytes(b.size) * 4
			}
		}
		if sum > best {
			best, at = sum, t
		}
	}
	peak = map[Category]disdel.Bytes{}
	for _, b := range p.buffers {
		if b.from <= at && at <= b.to {
			peak[b.category] += disdel.Bytes(b.size) * 4
		}
	}
	return peak, p.Bytes() - best
}

// ByNode is how many bytes the plan holds for each node, by kind, whenever they are alive.
func (p *Plan) ByNode() []map[Category]disdel.Bytes {
	out := make([]map[Category]disdel.Bytes, len(p.Nodes))
	for i := range out {
		out[i] = map[Category]disdel.Bytes{}
	}
	for _, b := range p.buffers {
		out[b.node][b.category] += disdel.Bytes(b.size) * 4
	}
	return out
}
