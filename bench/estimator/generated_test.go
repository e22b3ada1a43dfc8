package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// Whatever the seed, every job is one that disdel takes: its file is read, its network built for its data, and its
// memory estimated at some seconds of work and at most a few GB.
func TestEverySeedGivesJobsThatCanRun(t *testing.T) {
	seeds := []uint64{0, 1, 7, 11, 23, 1 << 63}
	if testing.Short() {
		seeds = seeds[:2]
	}
	for _, seed := range seeds {
		all := append(generate(seed, generatedJobs), long(seed)...)
		kinds, names := map[string]int{}, map[string]bool{}
		for _, job := range all {
			_, kind, _ := strings.Cut(job.String(), "-")
			kinds[kind]++
			names[job.dataName()] = true
			file, err := job.parse()
			if err != nil {
				t.Errorf("%v: %v\n%s", job, err, job.job())
				continue
			}
			g, err := job.graph()
			if err != nil {
				t.Errorf("%v: %v\n%s", job, err, job.job())
				continue
			}
			if g.Output().Len() != job.classCount() || g.Input().Len() != length(job.input) {
				t.Errorf("%v: %v to %v, for %v and %d classes", job, g.Input(), g.Output(), job.input, job.classCount())
			}
			if e := estimator.Planned(backends.Standard(nil)).Train(estimator.Input{
				Graph: g, BatchSize: job.batch, Rows: job.rows,
				Optimizer: file.Job.Training.Optimizer,
			}); e.Likely > 4*disdel.GB {
				t.Errorf("%v needs %v", job, e.Likely)
			}
			if train := (disdel.Split{Train: job.share}).Train; train > 0 &&
				int(train*float64(job.rows*job.workers))/job.workers < job.batch {
				t.Errorf("%v: batches of %d rows, of %g of %d", job, job.batch, train, job.rows)
			}
			if n := disdel.Bytes(job.rows * job.workers * length(job.input)); n > 512*disdel.MB || job.rows < 1 ||
				job.batch < 1 {
				t.Errorf("%v: %d rows by %d, %v of data", job, job.rows, job.batch, n)
			}
		}
		if len(all) < 60 || len(kinds) != 18 || len(names) != len(all) {
			t.Errorf("seed %d: %d jobs of %v, %d data sets", seed, len(all), kinds, len(names))
		}
		if again := append(generate(seed, generatedJobs), long(seed)...); !reflect.DeepEqual(all, again) {
			t.Errorf("seed %d draws other jobs the second time", seed)
		}
	}
	if reflect.DeepEqual(generate(1, 3), generate(2, 3)) {
		t.Error("seeds make no difference")
	}
}

// Whatever the seed, jobs of sequences have job files that disdel takes, and networks of their tokens.
func TestEverySeedGivesJobsOfSequences(t *testing.T) {
	layers := map[string]bool{}
	for seed := range uint64(5) {
		for _, job := range generateSequences(seed, sequenceJobs) {
			for _, text := range job.layers {
				kind, _, _ := strings.Cut(text, ":")
				layers[kind] = true
			}
			g, err := job.graph()
			if err != nil {
				t.Errorf("%v: %v\n%s", job, err, job.job())
			} else if len(job.input) == 3 && job.input[1] > 1 {
				continue
			} else if g.Vocabulary() != tokenCount || g.Output().Len() != job.classCount() || !job.tokens {
				t.Errorf("%v: %d tokens to %v", job, g.Vocabulary(), g.Output())
			}
		}
	}
	for _, kind := range []string{
		"groupNorm", "dropPath", "multiHeadAttention", "lstm", "convTranspose", "upsample", "windowAttention",
	} {
		if !layers[kind] {
			t.Errorf("no job has a layer %s", kind)
		}
	}
}

// Whatever the seed, jobs with limits have job files that disdel takes, every kind is drawn, and some give their
// stages.
func TestEverySeedGivesTightJobs(t *testing.T) {
	for seed := range uint64(3) {
		kinds, inStages := map[string]bool{}, 0
		jobs := generateTight(seed, fittedJobs)
		for _, job := range jobs {
			if _, err := job.graph(); err != nil {
				t.Errorf("%v: %v\n%s", job, err, job.job())
			}
			if job.share <= 0 || job.share >= 1 {
				t.Errorf("%v has a limit of %g of its need", job, job.share)
			}
			_, kind, _ := strings.Cut(job.String(), "-")
			kinds[kind] = true
			if job.stages > 1 {
				inStages++
			}
		}
		if len(kinds) != len(fittedKinds()) || inStages != fittedJobs/5 {
			t.Errorf("seed %d: kinds %v, %d jobs with stages", seed, kinds, inStages)
		}
		if !reflect.DeepEqual(jobs, generateTight(seed, fittedJobs)) {
			t.Errorf("seed %d draws other jobs the second time", seed)
		}
	}
}

// A generated job's data set is one: rows of its shape and classes, those for tests its own or drawn.
func TestGeneratedDataSetsAreThoseOfTheirJobs(t *testing.T) {
	r := planRig(t)
	for _, job := range generate(5, 16) {
		if job.rows > 10_000 || length(job.input) > 100_000 {
			continue
		}
		if err := job.addData(t.Context(), r.data); err != nil {
			t.Fatalf("%v: %v", job, err)
		}
		m, err := r.data.Manifest(t.Context(), job.dataName())
		if err != nil {
			t.Fatal(err)
		}
		if m.Train.Rows != job.rows*job.workers || m.Classes > job.classCount() || (m.Test.Rows == 0) != (job.share > 0) {
			t.Errorf("%v: %+v", job, m)
		}
		if info := m.Info(disdel.Split{Train: job.share}); info.Drawn != (job.share > 0) || info.Train < 1 {
			t.Errorf("%v: %+v", job, info)
		}
		if _, err := r.data.Remove(t.Context(), job.dataName()); err != nil {
			t.Error(err)
		}
	}
}
