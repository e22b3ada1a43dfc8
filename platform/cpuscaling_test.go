package platform

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// The numbers are those of WhiskPodBuilder.calculateCpu with OpenWhisk's example of kubernetes.cpu-scaling: whole
// units of
// memory, at least one of them, and no more than the most.
func ExampleParseCPUScaling() {
	s, err := ParseCPUScaling("300/256MB:4000")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, memory := range []disdel.Bytes{128, 256, 511, 512, 2048, 8192} {
		fmt.Print(s.millicores(memory*disdel.MB), " ")
	}
	_, err = ParseCPUScaling("300")
	fmt.Println(disdel.KindOf(err))
	// Output: 300 300 300 600 2400 4000 invalid
}

func TestAQuotaThatCannotBeIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "300", "/256MB", "x/256MB", "300/x", "300/256MB:x", "300/256MB:200", "9/256MB",
		"300/1KB", "-1/256MB",
	} {
		if s, err := ParseCPUScaling(text); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%q is %+v, %v", text, s, err)
		}
	}
	if s, err := ParseCPUScaling("5000/1GB"); err != nil || s.Max != 5000 {
		t.Errorf("%+v, %v: the most is below what one unit has", s, err)
	}
	cfg := DefaultConfig()
	cfg.Kinds = map[string]Kind{"x": {Command: []string{"true"}}}
	cfg.CPU = CPUScaling{Millicpus: 1}
	if _, err := New(cfg); disdel.KindOf(err) != disdel.Invalid {
		t.Errorf("a platform was made of it: %v", err)
	}
}

// A container's quota is what the kernel has of it, whichever version of control groups there is.
func TestContainersHaveQuotasOfProcessors(t *testing.T) {
	probe := start(t, nil)
	if !quotasWork(probe.limiter) {
		t.Skip("no quota of processors can be had here: " + probe.Enforcement())
	}
	p := start(t, func(c *Config) { c.CPU = CPUScaling{Millicpus: 250, Memory: 128 * disdel.MB, Max: 1000} })
	c, err := p.startContainer(size{disdel.RuntimeKind, 256 * disdel.MB})
	if err != nil {
		t.Fatal(err)
	}
	defer c.kill()
	g, _ := p.limiter.(cgroups)
	quotas := g.quotas(500)
	name, want := quotas[len(quotas)-1][0], 50_000
	if n := numbersIn(filepath.Join(g.bases[len(g.bases)-1], filepath.Base(c.dir), name)); len(n) == 0 || n[0] != want {
		t.Errorf("%s of two units is %v, want %d", name, n, want)
	}
}

// What the pool holds is told at once and again, until nobody listens; containers that are there hold memory.
func TestThePoolIsFollowed(t *testing.T) {
	p := start(t, nil)
	c, err := p.startContainer(size{disdel.RuntimeKind, 256 * disdel.MB})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var last Sample
	n := 0
	p.Follow(ctx, time.Millisecond, func(s Sample) {
		if last = s; s.Resident > 0 {
			n++
		}
		if n == 3 {
			stop()
		}
	})
	if last.Resident <= 0 || last.Memory != p.cfg.PoolMemory || last.At.IsZero() {
		t.Errorf("%+v", last)
	}
	c.kill()
	if s := p.Status(); s.Resident != 0 {
		t.Errorf("containers that are gone hold %v", s.Resident)
	}
}
