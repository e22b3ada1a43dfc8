package platform

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
)

// onDevice is an action of a package that asks for so many MB of a device, and for so many devices at most.
func onDevice(bundle string, mb, most int) *action {
	a := sized(128)
	a.Namespace, a.Name = "guest/"+bundle, fmt.Sprint("train", mb)
	for key, n := range map[string]int{disdel.AnnotationGPUMemory: mb, disdel.AnnotationGPUCount: most} {
		a.Annotations = append(a.Annotations, keyValue{Key: key, Value: json.RawMessage(fmt.Sprint(n))})
	}
	return a
}

// devicePool is a pool with two devices of 1,000 MB and room for all else.
func devicePool(t *testing.T) *pool {
	cfg := DefaultConfig()
	cfg.PoolMemory = 100 * disdel.GB
	cfg.Devices = []Device{{"a", 1000 * disdel.MB}, {"b", 1000 * disdel.MB}}
	p := newPool(&cfg, nil)
	t.Cleanup(func() { p.close(); p.drain() })
	return p
}

// Parts of one device are given where most is free, several of one device, and what does not fit waits for its turn.
func TestPartsOfDevicesAreGivenOut(t *testing.T) {
	p := devicePool(t)
	var seats []*containerSlot
	for i, want := range []int{0, 1, 0, 1} {
		s, err := p.acquire(t.Context(), onDevice("a", 400, 0))
		if err != nil || s.device.device != want || s.device.memory != 400*disdel.MB {
			t.Fatalf("%d: %+v, %v", i, s.device, err)
		}
		seats = append(seats, s)
	}
	got := make(chan *containerSlot, 1)
	go func() {
		s, _ := p.acquire(t.Context(), onDevice("a", 400, 0))
		got <- s
	}()
	wait.Until(t, "it waits", func() bool { return p.status().Queued == 1 })
	p.discardSlot(seats[3])
	if s := <-got; s.device.device != 1 {
		t.Errorf("what was given back is not given again: %+v", s.device)
	}
	s, err := p.acquire(t.Context(), sized(128))
	if err != nil || s.device.memory != 0 {
		t.Errorf("an action that asks for none got %+v, %v", s.device, err)
	}
	if s, err := p.acquire(t.Context(), onDevice("a", 1001, 0)); err != nil || s.device.memory != 0 {
		t.Errorf("one that no device is large enough for waits, or got %+v, %v", s.device, err)
	}
	status := p.status().Devices
	if len(status) != 2 || status[0].Used != 800*disdel.MB || status[1].Containers != 2 {
		t.Errorf("%+v", status)
	}
}

// The actions of a package lie on no more devices than they ask for, whatever another package's do.
func TestAPackageKeepsToItsDevices(t *testing.T) {
	p := devicePool(t)
	for i := range 3 {
		if s, err := p.acquire(t.Context(), onDevice("one", 300, 1)); err != nil || s.device.device != 0 {
			t.Fatalf("%d: %+v, %v", i, s.device, err)
		}
	}
	if s, err := p.acquire(t.Context(), onDevice("other", 300, 1)); err != nil || s.device.device != 1 {
		t.Fatalf("%+v, %v", s.device, err)
	}
	go p.acquire(t.Context(), onDevice("one", 300, 1)) //nolint:errcheck // its place is never free
	wait.Until(t, "it waits", func() bool { return p.status().Queued == 1 })
}

// A container sees the device that it has a part of, alone, and keeps it while it is warm; another action's takes its
// place where the device has no room. One that asks for none sees none.
func TestAContainerSeesItsDevice(t *testing.T) {
	p := start(t, func(c *Config) { c.Devices = []Device{{"GPU-x", disdel.GB}} })
	put := func(name, annotations string) {
		body := fmt.Sprintf(`{"exec":{"kind":%q,"code":"x","main":"echo"},"limits":{"memory":128},"annotations":%s}`,
			disdel.RuntimeKind, annotations)
		if status, got := call(t, p, "PUT", ns+"/actions/"+name+"?overwrite=true", body); status != 200 {
			t.Fatal(status, got)
		}
	}
	seen := func(name string) (visible string, pid float64) {
		_, got := call(t, p, "POST", ns+"/actions/"+name+"?blocking=true", `{}`)
		_, result := responseOf(got)
		m, _ := result.(map[string]any)
		pid, _ = m["pid"].(float64)
		environment, _ := m["env"].([]any)
		found := false
		for _, v := range environment {
			if text, ok := strings.CutPrefix(fmt.Sprint(v), "CUDA_VISIBLE_DEVICES="); ok {
				visible, found = text, true
			}
		}
		if pid == 0 || !found {
			t.Errorf("%s: %v", name, got)
		}
		return visible, pid
	}
	part := fmt.Sprintf(`[{"key":%q,"value":700}]`, disdel.AnnotationGPUMemory)
	put("one", part)
	put("two", part)
	put("none", "[]")
	first, pid := seen("one")
	if again, same := seen("one"); first != "GPU-x" || again != first || same != pid {
		t.Errorf("%q in process %v, and warm %q in %v", first, pid, again, same)
	}
	if visible, _ := seen("none"); visible != "" {
		t.Errorf("an action that asks for none sees %q", visible)
	}
	if visible, _ := seen("two"); visible != "GPU-x" {
		t.Errorf("another action sees %q", visible)
	}
	if d := p.Status().Devices; len(d) != 1 || d[0].Used != 700*disdel.MB || d[0].Containers != 1 {
		t.Errorf("the first one's container was to go: %+v", d)
	}
}

func TestDevicesThatCannotBeAreRefused(t *testing.T) {
	for _, list := range [][]Device{{{"a", disdel.GB}, {"a", disdel.GB}}, {{"", disdel.GB}}, {{"a", 0}}} {
		cfg := DefaultConfig()
		cfg.Kinds, cfg.Devices = map[string]Kind{disdel.RuntimeKind: {}}, list
		if _, err := New(cfg); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%v: %v", list, err)
		}
	}
}
