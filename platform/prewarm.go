package platform

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// Prewarm asks for Count started, not yet initialised containers of a kind (stemCells in OpenWhisk's manifest). An
// action takes one only if its kind and memory are exactly these. They are never evicted, and they count against the
// pool.
type Prewarm struct {
	Kind   string
	Memory disdel.Bytes
	Count  int
}

func (p Prewarm) size() size { return size{p.Kind, p.Memory} }

// validateContainers is the part of validate that is about containers.
func (c *Config) validateContainers() error {
	err := errors.Join(c.validatePrewarm(), c.CPU.check(), c.checkDevices())
	if err == nil && (c.Idle < 0 || c.PauseGrace < 0 || c.FolderMB < 0) {
		err = errors.New("the idle time, the pause grace and the bound on folders cannot be negative")
	}
	if err != nil {
		return &disdel.Error{Kind: disdel.Invalid, Op: "configure platform", Err: err}
	}
	return nil
}

func (c *Config) validatePrewarm() error {
	var sum disdel.Bytes
	seen := map[size]bool{}
	for _, w := range c.Prewarm {
		_, known := c.Kinds[w.Kind]
		switch {
		case !known:
			return fmt.Errorf("prewarmed containers of the kind %q, which is not configured", w.Kind)
		case seen[w.size()]:
			return fmt.Errorf("prewarmed containers of %s and %v are asked for twice", w.Kind, w.Memory)
		case w.Count < 0 || w.Memory < c.Limits.Memory.Min || w.Memory > c.Limits.Memory.Max:
			return fmt.Errorf("%d prewarmed containers of %v: no action has such", w.Count, w.Memory)
		}
		seen[w.size()] = true
		sum += disdel.Bytes(w.Count) * w.Memory
	}
	if sum > c.PoolMemory {
		return fmt.Errorf("prewarmed containers of %v do not fit the pool of %v", sum, c.PoolMemory)
	}
	return nil
}

// open starts the prewarmed containers.
func (p *pool) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refill()
}

// refill starts prewarmed containers that are missing, with memory that nobody uses or waits for; the caller holds the
// lock.
func (p *pool) refill() {
	if p.closed || p.barred || len(p.queue) > 0 {
		return
	}
	for _, w := range p.stock {
		have := p.coming[w.size()]
		for _, c := range p.prewarmed {
			if c.size == w.size() {
				have++
			}
		}
		for ; have < w.Count && p.used+w.Memory <= p.total; have++ {
			p.used += w.Memory
			p.coming[w.size()]++
			p.done.Go(func() { p.prewarm(w.size()) })
		}
	}
}

func (p *pool) prewarm(s size) {
	c, err := p.begin(s)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.coming[s]--
	switch {
	case err != nil:
		p.used -= s.memory
		p.barred = true
	case p.closed:
		p.remove(c)
	default:
		p.prewarmed = append(p.prewarmed, c)
		p.dispatch()
	}
}

// ParsePrewarm reads KIND@MEMORY=COUNT, such as nodejs:20@256MB=2; a count of 1 may be left out.
func ParsePrewarm(text string) (Prewarm, error) {
	bad := func() error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "prewarm", Msg: fmt.Sprintf("%q is not KIND@MEMORY=COUNT", text),
			Hint: "write it as nodejs:20@256MB=2",
		}
	}
	kind, rest, ok := strings.Cut(text, "@")
	memory, count, counted := strings.Cut(rest, "=")
	out := Prewarm{Kind: kind, Count: 1}
	var err error
	if counted {
		if out.Count, err = strconv.Atoi(count); err != nil || out.Count < 1 {
			return out, bad()
		}
	}
	if out.Memory, err = disdel.ParseBytes(memory); err != nil || !ok || kind == "" {
		return out, bad()
	}
	return out, nil
}
