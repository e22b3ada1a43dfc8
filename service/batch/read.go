package batch

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/service"
)

// File is a job file: one job, several documents, or a matrix.
type File struct {
	Name string // as messages call it
	Text []byte
	Open func(file string) ([]byte, error) // reads a file that a job names; nil: none can
	Err  error                             // why it could not be read; nil: it was
}

// Read makes the jobs of files, in their order. Each set is PATH=VALUE and changes every job. Requests are copies of
// like, with their own job and source. faults has an error for each file with faults; its jobs are returned too, so
// that Check finds their other faults.
func Read(files []File, sets []string, like service.Request) (jobs []Job, faults []error) {
	for _, f := range files {
		if f.Err != nil {
			faults = append(faults, f.Err)
			continue
		}
		list, err := jobfile.ParseMany(f.Name, f.Text, sets, f.Open)
		if err != nil {
			faults = append(faults, err)
		}
		for _, one := range list {
			j := Job{Request: like, Choices: one.Choices}
			one.Job.Model.Description = like.Job.Model.Description
			j.Request.Job = one.Job
			j.Request.Source = service.Source{Name: f.Name, Locate: one.Locate, Faults: one.Faults}
			j.Request.Origin = originOf(like.Origin, f.Name, len(list) == 1 && len(one.Choices) == 0)
			jobs = append(jobs, j)
		}
	}
	return jobs, faults
}

// originOf returns the origin with which a job can be submitted again. A job of a file with several jobs has no file of
// its own.
func originOf(like *disdel.Origin, file string, alone bool) *disdel.Origin {
	if like == nil {
		return nil
	}
	o := *like
	o.Command, o.File = "submit", ""
	if alone && file != "-" {
		if path, err := filepath.Abs(file); err == nil {
			o.File = path
		}
	}
	return &o
}

// Group gives the jobs one value of the label disdel.BatchLabel, by which lists show them together, and returns it. Jobs
// that have the label keep theirs.
func Group(jobs []Job) (id string) {
	id = "batch-" + strings.ToLower(rand.Text()[:idLetters])
	for i := range jobs {
		m := &jobs[i].Request.Job.Metadata
		if m.Labels[disdel.BatchLabel] == "" {
			labels := map[string]string{disdel.BatchLabel: id}
			maps.Copy(labels, m.Labels)
			m.Labels = labels
		}
	}
	return id
}

// idLetters is the number of random letters of the id of a batch, 5 bits each.
const idLetters = 8

// Check returns all faults of the jobs before any of them runs, with those that Read found: an error for each file, and
// one for each job that cannot be planned or would be refused. If a file has faults, it uses only the data sets.
func Check(ctx context.Context, at Place, jobs []Job, faults ...error) []error {
	c := checking{files: map[string]*disdel.Faults{}, seen: map[string]bool{}}
	for _, err := range faults {
		c.add(err)
	}
	for i := range jobs {
		c.add(at.Check(ctx, jobs[i].Request))
	}
	if len(c.list) > 0 {
		return c.list
	}
	for i := range jobs {
		_, err := at.Estimate(ctx, jobs[i].withSiblings(len(jobs)-1), service.Questions{Admit: true})
		switch disdel.KindOf(err) {
		case disdel.Unavailable, disdel.Denied, disdel.Canceled: // of every job
			return append(c.list, err)
		}
		c.add(named(err, jobs[i].Request.Job.Metadata.Name))
	}
	return c.list
}

// named adds the name of the job to an error of its plan.
func named(err error, job string) error {
	var e *disdel.Error
	if !errors.As(err, &e) {
		return err
	}
	out := *e
	out.Op, out.Job = "plan "+job, ""
	return &out
}

// checking collects errors, each once.
type checking struct {
	files map[string]*disdel.Faults
	seen  map[string]bool
	list  []error
}

func (c *checking) add(err error) {
	var found *disdel.Faults
	switch {
	case err == nil:
	case errors.As(err, &found):
		c.addFaults(found)
	case !c.seen[err.Error()]:
		c.seen[err.Error()] = true
		c.list = append(c.list, err)
	}
}

// addFaults adds new faults of a file, in the order of its lines.
func (c *checking) addFaults(found *disdel.Faults) {
	all := c.files[found.File]
	if all == nil {
		all = &disdel.Faults{File: found.File}
		c.files[found.File], c.list = all, append(c.list, all)
	}
	for _, f := range found.Faults {
		if !slices.Contains(all.Faults, f) {
			all.Faults = append(all.Faults, f)
		}
	}
	slices.SortStableFunc(all.Faults, func(a, b disdel.Fault) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
}
