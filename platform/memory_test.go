package platform

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/race"
)

// touch brings what the limits count for this process to params.mb megabytes: by the group's own count where there is
// one, else by resident memory. Then it frees it again, so that the next run starts from little.
func touch(params map[string]any) (int, string) {
	target := disdel.Bytes(params["mb"].(float64) * float64(disdel.MB))
	const step = 256 << 10 // coarse enough to be quick, far below the 5 % that the test is about
	var held [][]byte
	counted := counter()
	for counted() < target-step {
		b, err := syscall.Mmap(-1, 0, step, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			return 500, fmt.Sprintf(`{"error":%q}`, err)
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		held = append(held, b)
	}
	if params["hold"] == true {
		select {} // until the watch kills this process
	}
	time.Sleep(3 * watchInterval) // the watch may look several times, and must find nothing
	for _, b := range held {
		syscall.Munmap(b)
	}
	return 200, `{}`
}

func counter() func() disdel.Bytes {
	data, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(data)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 || !strings.Contains(part[2], "/disdel-") {
			continue
		}
		for _, file := range []string{"/sys/fs/cgroup" + part[2] + "/memory.current", "/sys/fs/cgroup/memory" + part[2] +
			"/memory.usage_in_bytes"} {
			if n := numbersIn(file); len(n) == 1 {
				return func() disdel.Bytes { n := numbersIn(file); return disdel.Bytes(n[0]) }
			}
		}
	}
	return func() disdel.Bytes { resident, _ := residentMemory(os.Getpid()); return resident }
}

// Up to 95 % of its memory an action lives, beyond 105 % it dies within a second, and its neighbour notices nothing: by
// whatever this machine offers, and by the watch alone.
func TestMemoryLimitsAreKeptToTheFivePercent(t *testing.T) {
	race.SkipMemory(t)
	t.Run("best", func(t *testing.T) {
		p := start(t, nil)
		if _, ok := p.limiter.(cgroups); !ok {
			t.Skip("no control group can be had here: " + p.Enforcement())
		}
		fivePercent(t, p)
	})
	t.Run("watch", func(t *testing.T) {
		p := start(t, nil)
		p.limiter.close()
		p.limiter = rlimits{}
		fivePercent(t, p)
	})
}

func fivePercent(t *testing.T, p *Platform) {
	const times = 10
	late, slowest := 0, 0.0 // slowest: milliseconds that this machine takes to touch what is allowed
	newTestAction(t, p, "touch", 60000, 128)
	newTestAction(t, p, "echo", 60000, 128)
	neighbour, _ := pidOf(t, p, "echo")
	for i := range times {
		_, got := call(t, p, "POST", ns+"/actions/touch?blocking=true", `{"mb":121.6}`)
		if status, result := responseOf(got); status != statusSuccess {
			t.Fatalf("95 %%, time %d: %s %v", i, status, result)
		}
		if peak, _ := annotation(got, "peakMemory").(float64); peak < 0.98*121*(1<<20) || peak > 128<<20 {
			t.Errorf("95 %%, time %d: the record's peak is %.1f MB", i, peak/(1<<20))
		}
		slowest = max(slowest, got["duration"].(float64))
	}
	for i := range times {
		_, got := call(t, p, "POST", ns+"/actions/touch?blocking=true", `{"mb":134.4,"hold":true}`)
		if _, result := responseOf(got); fmt.Sprint(result) != "map[error:"+textMemoryExhausted+"]" {
			t.Fatalf("105 %%, time %d: %v", i, result)
		}
		if got["duration"].(float64) > 1000+slowest {
			late++
		}
	}
	if late > times/2 { // others may keep this machine busy now and then, not always
		t.Errorf("105 %%: %d of %d were killed more than a second too late", late, times)
	}
	if pid, warm := pidOf(t, p, "echo"); pid != neighbour || !warm {
		t.Errorf("the neighbour is process %d (warm %v), was %d", pid, warm, neighbour)
	}
}

func TestTheRecordsPeakIsTheKernels(t *testing.T) {
	race.SkipMemory(t)
	p := start(t, nil)
	g, ok := p.limiter.(cgroups)
	if !ok {
		t.Skip(p.Enforcement())
	}
	newTestAction(t, p, "touch", 60000, 128)
	for _, mb := range []int{30, 60, 100} {
		_, got := call(t, p, "POST", ns+"/actions/touch?blocking=true", fmt.Sprintf(`{"mb":%d}`, mb))
		reply, _ := annotation(got, "peakMemory").(float64)
		files, _ := filepath.Glob(filepath.Join(g.bases[0], "c-*", g.peakFile))
		if len(files) != 1 {
			t.Fatalf("groups: %v", files)
		}
		counted := float64(numbersIn(files[0])[0])
		if reply < 0.98*counted || reply > 1.02*counted || reply < 0.98*float64(mb<<20) {
			t.Errorf("%d MB: the record says %.2f MB, the kernel counted %.2f MB", mb, reply/(1<<20), counted/(1<<20))
		}
	}
}
