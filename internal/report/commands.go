package report

import (
	"regexp"
	"strings"
)

// commands writes the two ways to submit a job with changes: from its file, and from its record.
func (r *Report) commands(sets []string) []Command {
	action := ""
	if r.Job.Model.Custom != "" {
		action = " --action ACTION"
	}
	var line strings.Builder
	line.WriteString("disdel submit FILE" + action)
	for _, s := range sets {
		line.WriteString(" --set " + quote(s))
	}
	return []Command{
		{When: "with the job's file", Lines: []string{line.String()}},
		{When: "without it", Lines: []string{"disdel report " + quote(string(r.ID)) + " --spec > job.yaml", "disdel submit job.yaml" + action}},
	}
}

var shellSafe = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quote makes one word of a POSIX shell of any text.
func quote(s string) string {
	if shellSafe.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
