package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
)

// commands writes the ways to run a job with changes: on from where it stopped, anew as it was submitted, and anew from
// its record. Each has what the command line said the first time.
func (r *Report) commands(sets []string) []Command {
	id := string(r.ID)
	var out []Command
	if r.resumable(sets) {
		out = append(out, Command{
			When:  r.whence(),
			Lines: []string{r.command(slices.Concat([]string{"resume", id}, r.own(), settings(sets))...)},
		})
	}
	if line := r.asSubmitted(sets); line != "" {
		when := "with the job's file"
		if r.record.Origin.File == "" {
			when = "as it was"
		}
		out = append(out, Command{When: when, Lines: []string{line}})
	}
	return append(out, Command{When: "from its record", Lines: []string{
		r.command("report", id, "--spec") + " > job.yaml",
		r.command(append([]string{"submit", "job.yaml"}, r.own()...)...),
	}})
}

// command is a command line that works at the report's place.
func (r *Report) command(words ...string) string { return r.at.Command("disdel", words...) }

// asSubmitted is the command that the job was submitted with and its changes; "" where nobody knows, or where its file
// came from a pipe.
func (r *Report) asSubmitted(sets []string) string {
	o := r.record.Origin
	if o == nil || o.Command == "submit" && o.File == "" || !slices.Contains(Submitting, o.Command) {
		return ""
	}
	words := []string{o.Command}
	if o.File != "" {
		words = append(words, o.File)
		if strings.HasPrefix(o.File, "-") {
			return ""
		}
	}
	return r.command(slices.Concat(words, r.own(), settings(overriding(o.Sets, sets)))...)
}

// Submitting are the commands that a record may say its job was submitted with.
var Submitting = []string{"submit", "quickstart", "batch", "resume", "verify", "lab"}

// overriding is settings and those behind them, without those of the same field that come before.
func overriding(before, after []string) []string {
	out := slices.Concat(before, after)
	for i := 0; i < len(out); {
		path, _, _ := strings.Cut(out[i], "=")
		again := slices.ContainsFunc(out[i+1:], func(s string) bool { return strings.HasPrefix(s, path+"=") })
		if !again {
			i++
			continue
		}
		out = slices.Delete(out, i, i+1)
	}
	return out
}

func settings(sets []string) []string {
	var out []string
	for _, s := range sets {
		out = append(out, "--set", s)
	}
	return out
}

// OwnOptions are the flags beside the place's that a record keeps of the command that submitted its job.
var OwnOptions = []string{"action", "estimator", "risk"}

// own is the OwnOptions that the job was submitted with. For records without them, it is the options that the job
// itself tells.
func (r *Report) own() []string {
	o := r.record.Origin
	if o == nil {
		o = &disdel.Origin{}
	}
	var out []string
	for _, v := range o.Options {
		stranger := v.Name == "action" && r.record.Tenant != "" // whose program nobody is to run
		if slices.Contains(OwnOptions, v.Name) && !stranger {
			out = append(out, "--"+v.Name, v.Value)
		}
	}
	if r.Job.Model.Custom != "" && !addresses.HasFlag(out, "action") {
		out = append(out, "--action", "ACTION")
	}
	return out
}

// resumable says whether the job can be resumed with changes. What divides its work otherwise does not fit the
// rounds that are done, and without a checkpoint it would begin anew.
func (r *Report) resumable(sets []string) bool {
	return r.Status != disdel.StatusSucceeded && r.record.Checkpoint != nil &&
		!slices.ContainsFunc(sets, func(s string) bool {
			return strings.HasPrefix(s, "distribution.workers=") || strings.HasPrefix(s, "distribution.sync=") ||
				strings.HasPrefix(s, "training.batchSize=") && r.record.Plan.Batches > 0
		})
}

// whence says where a resumed job goes on.
func (r *Report) whence() string {
	return fmt.Sprintf("on from round %d of %d", r.record.Checkpoint.Round+1, r.record.Plan.Rounds)
}
