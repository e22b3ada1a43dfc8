package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// machine says what this runs on.
func machine() string {
	model := "unknown processor"
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s/%s, %s, %d processors", runtime.GOOS, runtime.GOARCH, model, threads())
}

// clocks are the processors' time so far: all there was, what anybody used of it, and what this program and those that
// it has waited for used.
type clocks struct{ all, busy, own time.Duration }

// readClocks reads them; all are 0 where the machine does not tell.
func readClocks() (c clocks) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return c
	}
	line, _, _ := strings.Cut(string(data), "\n")
	for i, text := range strings.Fields(strings.TrimPrefix(line, "cpu ")) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || i > 7 { // what comes after steal is part of the others
			break
		}
		took := time.Duration(n) * tick
		if c.all += took; i != 3 && i != 4 { // neither idle nor waiting
			c.busy += took
		}
	}
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil {
			c.own += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return c
}

// tick is what the kernel counts processors' time in, for programs.
const tick = 10 * time.Millisecond

// others is the share of the processors' time since before that other programs used.
func (c clocks) others(before clocks) float64 {
	all := c.all - before.all
	if all <= 0 {
		return 0
	}
	return max(0, float64(c.busy-before.busy-(c.own-before.own))/float64(all))
}

// started is a sitting that goes on.
type started struct {
	sitting
	clocks clocks
}

// begin begins a sitting.
func (b *bench) begin() started {
	return started{sitting{
		Began: time.Now().UTC(), Machine: machine(), Threads: threads(), Command: b.command, Scale: b.size, Jobs: b.jobs,
	}, readClocks()}
}

// end ends it. All processes of it are over by now, and their time is known.
func (b *bench) end(s started) sitting {
	s.Ended, s.Others = time.Now().UTC(), readClocks().others(s.clocks)
	return s.sitting
}

// busyShare is the share of the processors' time from which a machine is called busy: below it, it is the system.
const busyShare = 0.03

// String is a line of the page.
func (s sitting) String() string {
	text := fmt.Sprintf("%s, %.1f min, scale %.4g, on %s", s.Began.Format(time.DateTime+" MST"),
		s.Ended.Sub(s.Began).Minutes(), float64(s.Scale), s.Machine)
	if s.Jobs != "" {
		text += ", jobs " + s.Jobs
	}
	if s.Not != "" {
		return text + ": not run: " + s.Not
	}
	if s.Others >= busyShare {
		text += fmt.Sprintf("; **machine busy**: other programs used %.0f %% of the processors' time", 100*s.Others)
	}
	return text
}
