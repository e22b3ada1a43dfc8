package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/internal/terminal"
)

// unitErrors is what the reader of each unit says of a text that it cannot read, by the placeholder of flags.
var unitErrors = map[string]string{
	"SIZE": "is not a size", "COST": "is not a cost", "TIME": "is not a duration",
}

// Every flag of a size, a time or a cost is read by the reader of that unit. No flag takes a bare number of a unit.
func TestEveryFlagOfAUnitIsReadWithItsUnit(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	t.Setenv("WSK_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, []byte(smallJob), 0o600); err != nil {
		t.Fatal(err)
	}
	app := newApp(terminal.New(nil, nil, nil))
	flags := map[string][]cli.Flag{"estimate": app.Flags} // which reads all that are global
	for path, c := range allCommands() {
		flags[path] = slices.Concat(flags[path], c.Flags)
	}
	found := map[string]int{}
	for path, list := range flags {
		for _, f := range list {
			name, usage := f.Names()[0], f.(cli.DocGenerationFlag).GetUsage()
			switch f.(type) {
			case *cli.DurationFlag:
				found["TIME"]++
				continue // Go's durations, as the job file has them
			case *cli.IntFlag, *cli.Int64Flag, *cli.Float64Flag:
				for _, unit := range []string{"`SIZE`", "`COST`", "`TIME`", "GB-S", "megabytes", "seconds", "`MB`"} {
					if strings.Contains(usage, unit) {
						t.Errorf("disdel %s --%s takes a bare number: %s", path, name, usage)
					}
				}
				continue
			}
			for unit, says := range unitErrors {
				if !strings.Contains(usage, "`"+unit+"`") {
					continue
				}
				found[unit]++
				if !refusesUnit(t, path, name, file, says) {
					t.Errorf("disdel %s --%s is not read as a %s", path, name, unit)
				}
			}
		}
	}
	if found["SIZE"] < 8 || found["COST"] < 1 || found["TIME"] < 8 {
		t.Errorf("flags of units: %v", found)
	}
}

// refusesUnit reports whether a command says of a flag's value what the reader of the unit says, with any number of
// operands.
func refusesUnit(t *testing.T, path, flag, file, says string) bool {
	t.Helper()
	for _, more := range [][]string{
		nil,
		{file},
		{file, file},
		{"--apihost", "http://127.0.0.1:1"},
		{"--gpus", "1", file},
		{"--gpus", "1"},
		{"--share", "1GB"},
		{"--train-memory", "1GB"},
	} {
		args := slices.Concat(strings.Fields(path), []string{"--" + flag, "5parsecs"}, more)
		_, errs, code := typed(t, args...)
		if code != 0 && strings.Contains(errs, says) {
			return true
		}
	}
	return false
}

// A flag takes what the job file takes, with the same meaning.
func TestFlagsTakeWhatTheJobFileTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.SampledFrom([]string{"%d", "%d.5", "0.%d", "%de1"}).Draw(t, "form")
		text := fmt.Sprintf(number, rapid.IntRange(1, 400).Draw(t, "number"))
		unit := rapid.SampledFrom([]string{
			"", "MB", "Mi", " MB", "G", "Gi", "KB", "GB-s", " GB-s", "s", "m", "ms", "h", "gb-s", "B",
		}).Draw(t, "unit")
		text += unit
		read := func(field string) (disdel.Job, error) {
			parsed, err := jobfile.Parse("job.yaml", []byte(smallJob), []string{"resources." + field + "=" + text})
			return parsed.Job, err
		}
		if job, err := read("maxCost"); err == nil {
			if cost, err := disdel.ParseCost(text); err != nil || cost != job.Resources.MaxCost {
				t.Errorf("a cost of %q: %v, %v; the job file: %v", text, cost, err, job.Resources.MaxCost)
			}
		} else if cost, err := disdel.ParseCost(text); err == nil && unit != "" && unit != " GB-s" && unit != "GB-s" {
			t.Errorf("a cost of %q is %v, and none in a job file", text, cost)
		}
		if job, err := read("memory"); err == nil {
			if size, err := disdel.ParseBytes(text); err != nil || size != job.Resources.Memory {
				t.Errorf("a size of %q: %v, %v; the job file: %v", text, size, err, job.Resources.Memory)
			}
		}
		if job, err := read("timeout"); err == nil {
			if d, err := time.ParseDuration(text); err != nil || d != time.Duration(job.Resources.Timeout) {
				t.Errorf("a time of %q: %v, %v; the job file: %v", text, d, err, job.Resources.Timeout)
			}
		}
	})
}
