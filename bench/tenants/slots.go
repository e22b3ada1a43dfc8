package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// slots limits every container of this process's platforms to a part of a processor, as a container of a cluster is
// limited to its host. It looks for groups of containers as long as it is open.
type slots struct {
	stop chan struct{}
	done sync.WaitGroup
	seen map[string]bool
}

// slotPeriod is how often a container gets its part, in microseconds: short enough that an action of a few milliseconds
// feels it evenly.
const slotPeriod = 20_000

// slotFiles are the bounds of a container's group, by the folder that platforms' groups are in, for control groups of
// version 1 and 2.
func slotFiles(millicores int) map[string][]string {
	quota, period := strconv.Itoa(slotPeriod*millicores/1000), strconv.Itoa(slotPeriod)
	return map[string][]string{
		"/sys/fs/cgroup/cpu": {"cpu.cfs_period_us", period, "cpu.cfs_quota_us", quota},
		"/sys/fs/cgroup":     {"cpu.max", quota + " " + period},
	}
}

// errNoSlots says that this machine does not let processors be divided.
var errNoSlots = errors.New("control groups of processors cannot be written here")

// openSlots begins to look.
func openSlots(millicores int) *slots {
	s := &slots{stop: make(chan struct{}), seen: map[string]bool{}}
	files, groups := slotFiles(millicores), map[string][]string{}
	s.done.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			for folder, write := range files {
				if len(groups[folder]) == 0 { // the pattern is well-formed
					groups[folder], _ = filepath.Glob(filepath.Join(folder, "disdel-"+strconv.Itoa(os.Getpid())+"-*"))
				}
				for _, group := range groups[folder] {
					s.bound(group, write)
				}
			}
			select {
			case <-s.stop:
				return
			case <-tick.C:
			}
		}
	})
	return s
}

// bound bounds the containers of a platform that are new.
func (s *slots) bound(group string, write []string) {
	list, _ := os.ReadDir(group) // one that is gone has none
	for _, e := range list {
		dir := filepath.Join(group, e.Name())
		if !e.IsDir() || s.seen[dir] {
			continue
		}
		for i := 0; i < len(write); i += 2 {
			s.seen[dir] = os.WriteFile(filepath.Join(dir, write[i]), []byte(write[i+1]), 0) == nil
		}
	}
}

// close ends it, and returns errNoSlots if no container was bounded.
func (s *slots) close() error {
	close(s.stop)
	s.done.Wait()
	for _, ok := range s.seen {
		if ok {
			return nil
		}
	}
	return errNoSlots
}
