package main

import (
	"fmt"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
)

// task is a job of an experiment.
type task struct {
	id, network string
	data        string // a set of data.go
	resize      int
	rows        int
	epochs      int
	batch       int
	workers     int // 0: the planner's
}

// pairs are the paper's eight pairs of a network and a data set (Fig. 7 and 8), of sizes that take half a minute of one
// core each.
func pairs() []task {
	return []task{
		{id: "J1", network: "inceptionv3", data: "mnist", resize: 75, rows: 1024, epochs: 2, batch: 64},
		{id: "J2", network: "inceptionv3", data: "cifar", resize: 75, rows: 1024, epochs: 2, batch: 64},
		{id: "J3", network: "resnet50", data: "mnist", resize: 32, rows: 2048, epochs: 3, batch: 64},
		{id: "J4", network: "resnet50", data: "cifar", rows: 2048, epochs: 3, batch: 64},
		{id: "J5", network: "resnet152", data: "mnist", resize: 32, rows: 1024, epochs: 2, batch: 64},
		{id: "J6", network: "resnet152", data: "cifar", rows: 1024, epochs: 2, batch: 64},
		{id: "J7", network: "vgg16-cifar", data: "mnist", resize: 32, rows: 1024, epochs: 2, batch: 64},
		{id: "J8", network: "vgg16-cifar", data: "cifar", rows: 1024, epochs: 2, batch: 64},
	}
}

// chosen is the pairs whose names contain what -jobs says, of the scale's size.
func (b *bench) chosen() (out []task) {
	for _, t := range pairs() {
		if strings.Contains(t.id, b.jobs) {
			out = append(out, b.size.task(t))
		}
	}
	return out
}

// mobile is the motivation's network (Fig. 1 to 3).
func mobile(batch, epochs int) task {
	return task{
		id: fmt.Sprintf("J9-b%d-e%d", batch, epochs), network: "mobilenetv1", data: "cifar", rows: 8192, epochs: epochs,
		batch: batch,
	}
}

// wide is the job of Fig. 11: four actions, each of which needs almost half of the smaller pool.
func wide() task {
	return task{id: "J10", network: "resnet152", data: "dmlab", rows: 512, epochs: 1, batch: 64, workers: 4}
}

// accurate are the jobs of Fig. 10.
func accurate() []task {
	return []task{
		{id: "J11-lenet5", network: "lenet5", data: "mnist", rows: 60000, epochs: 10, batch: 64},
		{id: "J11-resnet20", network: "resnet20-cifar", data: "cifar", rows: 4096, epochs: 8, batch: 64},
	}
}

// dataName is the data set of a task's rows.
func (t task) dataName() string { return fmt.Sprintf("%s-%d", t.data, t.rows) }

// file is the task as a job file. Batches are the job's, of which every worker takes its share: DiSDeL's batch
// splitting.
func (t task) file(seed int64, sync disdel.Sync) string {
	workers, resize := "", ""
	if t.workers > 0 {
		workers = fmt.Sprintf(", workers: %d", t.workers)
	}
	if t.resize > 0 {
		resize = fmt.Sprintf(", resize: %d", t.resize)
	}
	return fmt.Sprintf(`apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: %q}
model: {name: %s, init: {seed: %d}}
data: {source: "dataset://%s"%s}
training: {epochs: %d, batch: {size: %d, of: job}, optimizer: {adam: {learningRate: 0.001}}, validateEvery: 0}
distribution: {sync: %s%s}
resources: {maxMemory: %dMB}
output: {keep: 1}
`, lower(t.id), t.network, seed, t.dataName(), resize, t.epochs, t.batch, sync, workers, largestAction.MB())
}

// lower is an id as the name of a job.
func lower(id string) string {
	out := []byte(id)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return string(out)
}

// parse is the task as a job.
func (t task) parse(seed int64, sync disdel.Sync) (disdel.Job, error) {
	file, err := jobfile.Parse(t.id, []byte(t.file(seed, sync)), nil)
	return file.Job, err
}
