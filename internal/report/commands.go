package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// commands writes the ways to run a job with changes: on from where it stopped, anew as it was submitted, and anew from
// its record. Each has what the command line said the first time.
func (r *Report) commands(sets []string) []Command {
	id := Quote(string(r.ID))
	var out []Command
	if r.resumable(sets) {
		out = append(out, Command{
			When:  r.whence(),
			Lines: []string{"disdel resume " + id + r.options(everyOption) + settings(sets)},
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
		"disdel report " + id + r.options(ofHistory) + " --spec > job.yaml", "disdel submit job.yaml" +
			r.options(everyOption),
	}})
}

// asSubmitted is the command that the job was submitted with and its changes; "" where nobody knows, or where its file
// came from a pipe.
func (r *Report) asSubmitted(sets []string) string {
	o := r.record.Origin
	switch {
	case o == nil || o.Command == "submit" && o.File == "":
		return ""
	case o.File != "":
		return "disdel " + o.Command + " " + Quote(o.File) + r.options(everyOption) + settings(overriding(o.Sets, sets))
	default:
		return "disdel " + o.Command + r.options(everyOption) + settings(overriding(o.Sets, sets))
	}
}

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

func settings(sets []string) string {
	var out strings.Builder
	for _, s := range sets {
		out.WriteString(" --set " + Quote(s))
	}
	return out.String()
}

func everyOption(string) bool { return true }

// ofHistory are the options that say where records are.
func ofHistory(name string) bool { return name == "home" || name == "couchdb" }

// options are the flags that the job was submitted with. Those of records that keep none are as far as the job itself
// tells.
func (r *Report) options(which func(name string) bool) string {
	o := r.record.Origin
	if o == nil {
		o = &disdel.Origin{}
		if r.Job.Model.Custom != "" && which("action") {
			return " --action ACTION"
		}
	}
	var out strings.Builder
	for _, v := range o.Options {
		if which(v.Name) {
			out.WriteString(" --" + v.Name + " " + Quote(v.Value))
		}
	}
	return out.String()
}

// resumable says whether the job can be taken up again with changes. What divides its work otherwise does not fit the
// rounds that are done, and without a checkpoint it would begin anew.
func (r *Report) resumable(sets []string) bool {
	return r.Status != disdel.StatusSucceeded && r.record.Checkpoint != nil &&
		!slices.ContainsFunc(sets, func(s string) bool {
			return strings.HasPrefix(s, "distribution.workers=") || strings.HasPrefix(s, "distribution.sync=") ||
				strings.HasPrefix(s, "training.batchSize=") && r.record.Plan.Batches > 0
		})
}

// whence says where a job that is taken up again goes on.
func (r *Report) whence() string {
	return fmt.Sprintf("on from round %d of %d", r.record.Checkpoint.Round+1, r.record.Plan.Rounds)
}

var shellSafe = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Quote makes one word of a POSIX shell of any text.
func Quote(s string) string {
	if shellSafe.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
