package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/batch"
)

// The largest action of the batches' platform, and its pool, which is to it as the paper's 190 GB are to 70.
const (
	largest = disdel.GB
	pool    = 190 * largest / 70
)

// way is how a batch is run.
type way struct {
	name      string
	admission string
	pool      disdel.Bytes
	sets      []string
	slot      int // thousandths of a processor that a container has at most; 0: as many as there are
	apart     int // so many jobs at a time, in the order of the list; 0: all
}

// plain is OpenWhisk without disdel's planning: a job is one container with the largest memory that there is, all its
// epochs are one activation, and every job is sent at once.
func plain() way {
	return way{name: "plain", admission: "greedy", pool: pool, sets: []string{
		"distribution.workers=1", "distribution.sync=end", fmt.Sprintf("resources.memory=%dMB", largest.MB()),
	}}
}

// planned is as disdel does it where nobody says otherwise.
func planned() way { return way{name: "disdel", admission: "gang", pool: pool} }

// measured is what a batch came to.
type measured struct {
	*batch.Summary
	cpu time.Duration // of processors, by this process and all containers
}

// run runs jobs in a way, in a home of their own.
func (w way) run(ctx context.Context, list []task) (out measured, err error) {
	before := everybody()
	home, err := os.MkdirTemp("", "disdel-bench-")
	if err != nil {
		return out, err
	}
	defer os.RemoveAll(home)
	if w.slot > 0 {
		s := openSlots(w.slot)
		defer func() {
			if bad := s.close(); err == nil {
				err = bad
			}
		}()
	}
	log := logrus.New()
	log.SetLevel(logrus.ErrorLevel)
	s, err := service.Open(ctx, service.Config{
		Home: home, Pool: w.pool, ActionMemory: largest, Admission: w.admission, Log: log,
		ActionMillicores: w.slot,
	})
	if err != nil {
		return out, err
	}
	err = w.runOn(ctx, s, list, &out)
	err = errors.Join(err, s.Close())
	out.cpu = everybody() - before
	return out, err
}

func (w way) runOn(ctx context.Context, s *service.Service, list []task, out *measured) (err error) {
	data, err := s.Datasets(ctx)
	if err != nil {
		return err
	}
	var files []batch.File
	for _, t := range list {
		if _, err := data.Add(ctx, t.data(), false); err != nil {
			return err
		}
		files = append(files, batch.File{Name: t.name, Text: []byte(t.file())})
	}
	jobs, faults := batch.Read(files, w.sets, service.Request{})
	if wrong := batch.Check(ctx, batch.In(s), jobs, faults...); len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	if w.apart == 0 {
		out.Summary, err = batch.Start(ctx, batch.In(s), batch.Config{Jobs: jobs})
		return err
	}
	for i := range jobs {
		jobs[i].Request.Siblings = len(jobs) - 1 // planned as in the batch: the work is to be the same
	}
	for some := range slices.Chunk(jobs, w.apart) {
		if _, err := batch.Start(ctx, batch.In(s), batch.Config{Jobs: some}); err != nil {
			return err
		}
	}
	return nil
}

// everybody is the processors' time of this process and of the containers that have ended.
func everybody() (sum time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

// division is how processors are divided among containers.
type division struct {
	name string // of its figures
	slot int    // thousandths of a processor that a container has at most; 0: as many as there are
}

// divisions are the processors of a container. They are half a processor, so that four containers fill a machine of
// two, an eighth of the machine's, and all. One of the paper's eight servers has at most an eighth of the cluster's.
// Two containers of the largest size fit the pool: where each has a quarter of the machine, those who fill it are
// faster by half at the very most, whatever they do.
func divisions() []division {
	return []division{{"batch8_", 500}, {"batch8_eighth_", 1000 * runtime.NumCPU() / 8}, {"batch8_shared_", 0}}
}

// batches measures a real batch of eight mixed jobs in both ways, with processors divided and shared.
func batches(ctx context.Context, shrink int) error {
	rig.Figure("load_average_5m", load(), "before the batch of eight")
	for _, d := range divisions() {
		if err := compare(ctx, mixed(shrink), d); err != nil && !errors.Is(err, errNoSlots) {
			return err
		} else if err != nil {
			fmt.Fprintf(os.Stderr, "bench: no %sratio: %v\n", d.name, err)
		}
	}
	return nil
}

// compare runs the batch of eight in both ways.
func compare(ctx context.Context, list []task, d division) error {
	var by [2]measured
	for i, w := range []way{plain(), planned()} {
		w.slot = d.slot
		if d.slot > 0 { // part of a processor has no use for a second thread
			w.sets = append(w.sets, "resources.threads=1")
		}
		var err error
		if by[i], err = w.run(ctx, list); err != nil {
			return err
		}
		tell(d.name+w.name, by[i])
	}
	greedy, gang := by[0], by[1]
	rig.Figure(d.name+"ratio", gang.Makespan.Seconds()/greedy.Makespan.Seconds(), "of plain OpenWhisk's makespan")
	rig.Figure(d.name+"failures", float64(troubles(gang.Summary)), "jobs and activations")
	rig.Figure(strings.Replace(d.name, "batch8_", "greedy_", 1)+"failures", float64(troubles(greedy.Summary)),
		"jobs and activations")
	return nil
}

// tell prints what a batch came to.
func tell(name string, o measured) {
	rig.Figure(name+"_s", o.Makespan.Seconds(), "s")
	rig.Figure(name+"_cpu_s", o.cpu.Seconds(), "s of processors")
	rig.Figure(name+"_mean_s", (o.Waited + o.Ran).Seconds(), "s from submit to end")
	rig.Figure(name+"_gbs", o.CostGBs+o.Evaluations, "GB-s")
	rig.Figure(name+"_reserved_over_resident", o.Pool.ReservedGBs/max(1e-9, o.Pool.ResidentGBs), "over the whole time")
	rig.Figure(name+"_cold", o.ColdShare(), "of activations")
	for i := range o.Jobs {
		r := &o.Jobs[i]
		fmt.Fprintf(os.Stderr, "bench: %s: %-16s %v, %v from %6.2f to %6.2f s, %d of %d cold\n", name, r.Name, r.Status,
			r.Room, r.Started.Seconds(), r.Ended.Seconds(), r.Cold, r.Activations)
		if r.Failure != nil {
			fmt.Fprintln(os.Stderr, "bench:   ", r.Failure)
		}
	}
}

// troubles is the jobs that did not succeed and the activations that failed.
func troubles(s *batch.Summary) int {
	n := len(s.Jobs) - s.Succeeded
	for i := range s.Jobs {
		n += s.Jobs[i].Failed
	}
	return n
}

// small runs eight small jobs at once in half of the room that their containers take, and then one after another.
func small(ctx context.Context) error {
	list := digits()
	w := way{
		name: "cold", admission: "gang", pool: disdel.Bytes(len(list)) * digitsGang / 2,
		sets: []string{"distribution.workers=2"}, // a batch of so many would have one each on most machines
	}
	at, err := w.run(ctx, list)
	if err != nil {
		return err
	}
	tell("small", at)
	rig.Figure("cold_share", at.ColdShare(), "of activations")
	rig.Figure("cold_failures", float64(troubles(at.Summary)), "jobs and activations")
	w.apart = 1
	alone, err := w.run(ctx, list)
	if err != nil {
		return err
	}
	rig.Figure("small_apart_cpu_s", alone.cpu.Seconds(), "s of processors")
	rig.Figure("small_cpu_ratio", at.cpu.Seconds()/alone.cpu.Seconds(), "of one after another")
	return nil
}

// load is the machine's load of the last five minutes.
func load() float64 {
	data, _ := os.ReadFile("/proc/loadavg") // it is told as 0
	var one, five float64
	fmt.Sscan(string(data), &one, &five) //nolint:errcheck // the same
	return five
}
