package scheduler

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/disdel/disdel"
)

// CapacityOf is what a platform has by its limits. What they do not tell is unbounded. A caller that lets jobs share
// processors multiplies Millicores by ProcessorShare: actions wait for each other, too.
func CapacityOf(p disdel.PlatformLimits) Capacity {
	known := func(n int) int { return cmp.Or(max(0, n), Unbounded) }
	c := Capacity{
		Memory: p.Pool, Millicores: known(1000 * p.Processors), Concurrent: known(p.Concurrent),
		PerMinute: known(p.PerMinute), Devices: p.Accelerators(),
	}
	c.Device = disdel.Bytes(c.Devices) * p.MaxDevice
	if p.Pool <= 0 {
		c.Memory = Unbounded
	}
	return c
}

// Plus is both together.
func (c Capacity) Plus(d Capacity) Capacity {
	c.Memory += d.Memory
	c.Device += d.Device
	c.Millicores += d.Millicores
	c.Devices += d.Devices
	c.Concurrent += d.Concurrent
	c.PerMinute += d.PerMinute
	return c
}

// Minus is what is left of c without d. Parts are below zero where more was taken than there is.
func (c Capacity) Minus(d Capacity) Capacity { return c.Plus(d.Times(-1)) }

// Times is n of it.
func (c Capacity) Times(n int) Capacity {
	return Capacity{
		Memory: disdel.Bytes(n) * c.Memory, Device: disdel.Bytes(n) * c.Device, Millicores: n * c.Millicores,
		Devices: n * c.Devices, Concurrent: n * c.Concurrent, PerMinute: n * c.PerMinute,
	}
}

// Holds tells whether there is room for d.
func (c Capacity) Holds(d Capacity) bool {
	return c.Memory >= d.Memory && c.Device >= d.Device && c.Millicores >= d.Millicores && c.Devices >= d.Devices &&
		c.Concurrent >= d.Concurrent && c.PerMinute >= d.PerMinute
}

// Lacks says what there is too little of for d, with both figures; "" where there is room.
func (c Capacity) Lacks(d Capacity) string {
	var out []string
	bytes := func(what string, has, needs disdel.Bytes) {
		if needs > has {
			out = append(out, fmt.Sprintf("%v of %s, and there are %v", needs.Beside(has), what, has.Beside(needs)))
		}
	}
	count := func(what string, has, needs int) {
		if needs > has {
			out = append(out, fmt.Sprintf("%d %s, and there are %d", needs, what, has))
		}
	}
	bytes("memory", c.Memory, d.Memory)
	bytes("accelerators' memory", c.Device, d.Device)
	if d.Millicores > c.Millicores {
		out = append(out, fmt.Sprintf("%.3g processors, and there are %.3g", float64(d.Millicores)/1000,
			float64(c.Millicores)/1000))
	}
	count("accelerators", c.Devices, d.Devices)
	count("concurrent invocations", c.Concurrent, d.Concurrent)
	count("invocations a minute", c.PerMinute, d.PerMinute)
	return strings.Join(out, "; ")
}

// share is the largest part that d is of any bounded kind of c: what a tenant with d has of the platform.
func (c Capacity) share(d Capacity) float64 {
	most := 0.0
	part := func(of, taken float64) {
		if of > 0 && of < Unbounded/2 {
			most = max(most, taken/of)
		}
	}
	part(float64(c.Memory), float64(d.Memory))
	part(float64(c.Device), float64(d.Device))
	part(float64(c.Millicores), float64(d.Millicores))
	part(float64(c.Devices), float64(d.Devices))
	part(float64(c.Concurrent), float64(d.Concurrent))
	part(float64(c.PerMinute), float64(d.PerMinute))
	return most
}

// Room is what all of a gang takes up.
func (g Gang) Room() Capacity {
	var c Capacity
	for _, m := range g {
		c = c.Plus(m.Each.Times(m.Count))
	}
	return c
}

// Size is how many containers a gang is.
func (g Gang) Size() int {
	n := 0
	for _, m := range g {
		n += m.Count
	}
	return n
}

// String is the arithmetic of a gang: "4 train of 512 MB and 1 aggregate of 128 MB, 2.12 GB in all".
func (g Gang) String() string {
	var parts []string
	for _, m := range g {
		parts = append(parts, fmt.Sprintf("%d %s of %v", m.Count, m.Task, m.Each.Memory))
	}
	text := strings.Join(parts, ", ")
	if n := len(parts); n > 1 {
		text = strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return fmt.Sprintf("%s, %v in all", text, g.Room().Memory)
}
