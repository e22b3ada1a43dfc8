package history

import (
	"context"
	"reflect"

	"github.com/disdel/disdel"
)

// A plan reads at most so many jobs, or so many bytes of them once there are enough jobs. The record of a job with many
// rounds is long, and the thirtieth similar job adds almost no information.
const (
	similarLimit  = 100
	enoughJobs    = 20
	enoughSimilar = 1 << 17
	enoughRecent  = 1 << 19
	mostBytes     = 1 << 21 // with large records, fewer jobs must do
)

// recordSample collects records until there are enough.
type recordSample struct {
	records []disdel.Record
	limit   int
	enough  int // bytes
	size    int
}

// add adds a record and returns how many more are probably enough.
func (l *recordSample) add(r disdel.Record, size int) (more int) {
	l.compact(&r)
	l.records, l.size = append(l.records, r), l.size+size
	n := len(l.records)
	each := max(1, l.size/n)
	if l.size+each > mostBytes {
		return 0
	}
	return max(0, min(l.limit-n, max(enoughJobs-n, (l.enough-l.size+each-1)/each)))
}

// compact shrinks a record of a deep network. It shares equal layers with the previous record and sums up the work of
// the layers in estimates, because plans need only the sum.
func (l *recordSample) compact(r *disdel.Record) {
	if n := len(l.records); n > 0 {
		if same := l.records[n-1].Job.Model.Layers; reflect.DeepEqual(same, r.Job.Model.Layers) {
			r.Job.Model.Layers = same
		}
	}
	for i := range r.Plan.Actions {
		e := &r.Plan.Actions[i].Estimate
		if len(e.Layers) == 0 {
			continue
		}
		var work int64
		for _, layer := range e.Layers {
			work += layer.MACs
		}
		e.Layers = []disdel.LayerEstimate{{Name: "all layers", MACs: work}}
	}
}

// Similar returns the newest records with the same network, data set, batch size and backend, newest first. Durations
// of one backend say nothing about another. The records may lack what plans do not need: logs, evidence, transitions,
// decisions, heartbeats of successful activations, and the layers of estimates.
func (s *Store) Similar(ctx context.Context, job disdel.Job) ([]disdel.Record, error) {
	m := job.Model
	batch := job.Training.JobBatch()
	alike := search{
		// All Python programs have one key; isSameKind tells them apart.
		key: []any{"kind", s.scope(), job.Data.Source, batch, job.Training.Backend, m.Name, m.Custom, len(m.Layers)},
		by:  order{sourceField, batchField},
		selector: map[string]any{
			sourceField: equals(job.Data.Source), batchField: equals(batch),
			backendField: optionalField(job.Training.Backend, job.Training.Backend == ""),
			networkField: optionalField(m.Name, m.Name == ""), customField: optionalField(m.Custom, m.Custom == ""),
			layersField: optionalField(m.Layers, len(m.Layers) == 0),
		},
	}
	l := recordSample{limit: similarLimit, enough: enoughSimilar}
	more := enoughJobs
	err := s.each(ctx, alike, enoughJobs, func(r disdel.Record, size int) int {
		if isSameKind(&r.Job, &job) {
			more = l.add(r, size)
		}
		return more
	})
	return l.records, err
}

// isSameKind is the condition of Similar on records in memory.
func isSameKind(a, b *disdel.Job) bool {
	return a.Data.Source == b.Data.Source && a.Data.Resize == b.Data.Resize &&
		a.Data.Augment == b.Data.Augment &&
		(a.Data.Keep == disdel.KeepDisk) == (b.Data.Keep == disdel.KeepDisk) &&
		a.Training.SameBatch(b.Training) && a.Training.Backend == b.Training.Backend &&
		a.Model.SameNetwork(&b.Model)
}

// Recent returns the newest records of all jobs, newest first. Estimates and forecasts use them if there is no similar
// job. They lack the layers of estimates, as in Similar.
func (s *Store) Recent(ctx context.Context, limit int) ([]disdel.Record, error) {
	l := recordSample{limit: limit, enough: enoughRecent}
	err := s.each(ctx, s.searchFor(&Query{}), min(limit, enoughJobs), l.add)
	return l.records, err
}
