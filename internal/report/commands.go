package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// commands writes the ways to run a job with changes: on from where it stopped, anew from its file, and anew from its record.
func (r *Report) commands(sets []string) []Command {
	action := ""
	if r.Job.Model.Custom != "" {
		action = " --action ACTION"
	}
	var options strings.Builder
	options.WriteString(action)
	for _, s := range sets {
		options.WriteString(" --set " + quote(s))
	}
	id := quote(string(r.ID))
	anew := []Command{
		{When: "with the job's file", Lines: []string{"disdel submit FILE" + options.String()}},
		{When: "without it", Lines: []string{"disdel report " + id + " --spec > job.yaml", "disdel submit job.yaml" + action}},
	}
	if !r.resumable(sets) {
		return anew
	}
	return append([]Command{{When: r.whence(), Lines: []string{"disdel resume " + id + options.String()}}}, anew...)
}

// resumable says whether the job can be taken up again with changes. What divides its work otherwise does not fit the rounds
// that are done, and without a checkpoint it would begin anew.
func (r *Report) resumable(sets []string) bool {
	return r.Status != disdel.StatusSucceeded && r.record.Checkpoint != nil && !slices.ContainsFunc(sets, func(s string) bool {
		return strings.HasPrefix(s, "distribution.workers=") || strings.HasPrefix(s, "distribution.sync=") ||
			strings.HasPrefix(s, "training.batchSize=") && r.record.Plan.Batches > 0
	})
}

// whence says where a job that is taken up again goes on.
func (r *Report) whence() string {
	return fmt.Sprintf("on from round %d of %d", r.record.Checkpoint.Round+1, r.record.Plan.Rounds)
}

var shellSafe = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quote makes one word of a POSIX shell of any text.
func quote(s string) string {
	if shellSafe.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
