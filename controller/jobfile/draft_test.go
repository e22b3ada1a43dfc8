package jobfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

func ExampleDraft() {
	text := Draft{Name: "flowers", Dataset: "flowers", Sample: []int{1, 1, 4}, Classes: 3, Rows: 150}.Text()
	file, err := Parse("flowers.yaml", text, nil)
	fmt.Println(len(file.Job.Model.Layers), file.Job.Training.BatchSize, err)
	// Output: 2 4 <nil>
}

// drafts are data of all kinds and of very different sizes.
func drafts() map[string]Draft {
	return map[string]Draft{
		"one row":      {Sample: []int{1, 1, 1}, Classes: 2, Rows: 1},
		"few rows":     {Sample: []int{1, 1, 4}, Classes: 2, Rows: 12},
		"many classes": {Sample: []int{1, 1, 8}, Classes: 900, Rows: 20_000},
		"wide":         {Sample: []int{1, 1, 30_000}, Classes: 2, Rows: 60},
		"many rows":    {Sample: []int{1, 1, 40}, Classes: 7, Rows: 5_000_000},
		"held out":     {Sample: []int{1, 1, 40}, Classes: 7, Rows: 500, HeldOut: 100},
		"digits":       {Sample: []int{1, 8, 8}, Classes: 10, Rows: 1797},
		"pictures":     {Sample: []int{3, 32, 32}, Classes: 100, Rows: 50_000, HeldOut: 10_000},
		"photographs":  {Sample: []int{3, 480, 640}, Classes: 5, Rows: 300},
		"wide image":   {Sample: []int{1, 6, 90}, Classes: 5, Rows: 300},
		"reviews":      {Sample: []int{1, 1, 128}, Classes: 2, Rows: 900, Tokens: 8000},
		"texts":        {Sample: []int{1, 1, 64}, Classes: 512, Rows: 636, NextToken: true},
		"ratings":      {Sample: []int{2600}, Rows: 100_000, Sparse: &disdel.SparseData{Users: 900, Items: 1700}},
		"clicks":       {Sample: []int{100_000}, Classes: 2, Rows: 100_000, Sparse: &disdel.SparseData{}},
		"numbers":      {Sample: []int{10}, Rows: 400, Sparse: &disdel.SparseData{}},
	}
}

// Every draft is a valid job file whose lines all have a comment, and whose batch fits a worker's shard.
func TestEveryDraftIsAJobFile(t *testing.T) {
	for name, d := range drafts() {
		d.Name, d.Dataset = "mine", "data"
		text := d.Text()
		file, err := Parse("mine.yaml", text, nil)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
			continue
		}
		job := file.Job
		if job.Data.Source != "dataset://data" || job.Metadata.Name != "mine" || job.Training.BatchSize > max(1, d.Rows/2) {
			t.Errorf("%s:\n%s", name, text)
		}
		commented := false
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			comment := strings.HasPrefix(line, "#")
			if len(line) > commentWidth || !comment && !commented && !strings.HasSuffix(line, ":") {
				t.Errorf("%s: no comment above %q", name, line)
			}
			commented = comment
		}
	}
}

// More rows mean larger batches and fewer epochs; images get convolutions, tables do not.
func TestDraftsSuitTheData(t *testing.T) {
	all := drafts()
	few, many := all["few rows"], all["many rows"]
	if few.batchSize() >= many.batchSize() || few.epochs() <= many.epochs() {
		t.Errorf("batches %d and %d, epochs %d and %d", few.batchSize(), many.batchSize(), few.epochs(), many.epochs())
	}
	for name, want := range map[string]int{
		"few rows": 0, "wide": 0, "digits": 1, "wide image": 0, "pictures": 3, "photographs": 4,
	} {
		if n := strings.Count(string(all[name].Text()), "conv:"); n != want {
			t.Errorf("%s: %d convolutions, want %d\n%s", name, n, want, all[name].Text())
		}
	}
	keras := all["digits"]
	keras.Keras = `my "net".json`
	text := string(keras.Text())
	if !strings.Contains(text, `keras: "my \"net\".json"`) || strings.Contains(text, "layers:") {
		t.Error(text)
	}
}

// A name that YAML reads as a number, a date or a truth value stays a name.
func TestADraftKeepsAnyName(t *testing.T) {
	for _, name := range []string{"123", "1e5", "0x1f", "2026-11-27", "true", "no", "null", "off", "1-2", "plain"} {
		text := Draft{Name: name, Dataset: name, Sample: []int{1, 1, 4}, Classes: 3, Rows: 150}.Text()
		file, err := Parse("mine.yaml", text, nil)
		if err != nil || file.Job.Metadata.Name != name || file.Job.Data.Source != "dataset://"+name {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}
