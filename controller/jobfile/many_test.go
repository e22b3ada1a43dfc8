package jobfile

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

func ExampleParseMany() {
	files, err := ParseMany("jobs.yaml", []byte(smallest+`
matrix:
  training.batchSize: [32, 64]
  training.optimizer: [{adam: {learningRate: 0.01}}, {sgd: {learningRate: 0.1}}]
---
`+strings.Replace(smallest, "name: digits", "name: alone", 1)), nil, nil)
	for _, f := range files {
		fmt.Print(f.Job.Metadata.Name)
		for _, c := range f.Choices {
			fmt.Printf(" %s=%s", c.Path, c.Value)
		}
		fmt.Println()
	}
	fmt.Println(err)
	// Output:
	// digits-1 training.batchSize=32 training.optimizer={adam: {learningRate: 0.01}}
	// digits-2 training.batchSize=32 training.optimizer={sgd: {learningRate: 0.1}}
	// digits-3 training.batchSize=64 training.optimizer={adam: {learningRate: 0.01}}
	// digits-4 training.batchSize=64 training.optimizer={sgd: {learningRate: 0.1}}
	// alone
	// <nil>
}

func parseMany(t *testing.T, text string, sets ...string) []File {
	t.Helper()
	files, err := ParseMany("jobs.yaml", []byte(text), sets, nil)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A job of a matrix is the one that a file with its values is.
func TestAMatrixMeansWhatItsValuesMean(t *testing.T) {
	got := parseMany(t, smallest+
		"matrix: {training.epochs: [1, 7], distribution.sync.every: [4], model.init: [{seed: 3}]}\n")
	if len(got) != 2 {
		t.Fatalf("%d jobs", len(got))
	}
	for i, epochs := range []string{"1", "7"} {
		want := mustParse(t, smallest, "training.epochs="+epochs, "distribution.sync.every=4", "model.init={seed: 3}",
			fmt.Sprintf("metadata.name=digits-%d", i+1)).Job
		if diff := cmp.Diff(want, got[i].Job); diff != "" {
			t.Error(diff)
		}
	}
}

// A file without a matrix is read as Parse reads it, faults and places included.
func TestAFileOfOneJobIsReadAsEver(t *testing.T) {
	for _, text := range []string{
		smallest, "---\n" + smallest, "", "a", "[", "training: {}", strings.Repeat("[", 100),
		strings.Replace(smallest, "3", "none", 1), smallest + "resources: {memroy: 1}\n",
	} {
		want, wantErr := Parse("job.yaml", []byte(text), []string{"training.batchSize=8"})
		got, err := ParseMany("job.yaml", []byte(text), []string{"training.batchSize=8"}, nil)
		if diff := cmp.Diff(wantErr, err); diff != "" {
			t.Errorf("%.40q: %s", text, diff)
		}
		if wantErr == nil && (len(got) != 1 || !cmp.Equal(want.Job, got[0].Job)) {
			t.Errorf("%.40q: %d jobs", text, len(got))
		}
	}
}

func TestSetsChangeEveryJob(t *testing.T) {
	text := smallest + "matrix: {training.epochs: [1, 2]}\n---\n" + smallest
	for set, want := range map[string]string{
		"training.batchSize=8":                "digits-1 1 8, digits-2 2 8, digits 3 8, ",
		"matrix=null":                         "digits 3 64, digits 3 64, ",
		"matrix={training.batchSize: [1, 2]}": "digits-1 3 1, digits-2 3 2, digits-1 3 1, digits-2 3 2, ",
	} {
		var got strings.Builder
		for _, f := range parseMany(t, text, set) {
			fmt.Fprintf(&got, "%s %d %d, ", f.Job.Metadata.Name, f.Job.Training.Epochs, f.Job.Training.BatchSize)
		}
		if got.String() != want {
			t.Errorf("%s: %s", set, &got)
		}
	}
}

// A null of a matrix is a field that is not given, and names of the matrix's own stay as they are.
func TestAMatrixNamesAndLeavesOut(t *testing.T) {
	got := parseMany(t, smallest+"matrix: {metadata.name: [a, b], training.epochs: [2], training.batchSize: [8, null]}\n")
	var text strings.Builder
	for _, f := range got {
		fmt.Fprintf(&text, "%s %d %s; ", f.Job.Metadata.Name, f.Job.Training.BatchSize, f.Choices[2].Value)
	}
	if want := "a 8 8; a 64 null; b 8 8; b 64 null; "; text.String() != want {
		t.Errorf("%s, want %s", &text, want)
	}
}

// Faults of all jobs are told at once, each once, at its own place: a value's in the matrix.
func TestFaultsOfManyJobs(t *testing.T) {
	text := `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: digits}
model: {name: lenet5}
data: {source: dataset://digits}
training: {epochs: 3, batchsize: 1}
matrix:
  training.epochs: [1, none, 0]
  training.bachSize: [1, 2]
---
apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: digits}
model: {name: lenet5}
data: {source: dataset://digits}
training: {epochs: 3}
matrix: {training.epochs: 3, "a b[": [1], training.epochs: []}
`
	_, err := ParseMany("jobs.yaml", []byte(text), []string{"training=3=4"}, nil)
	var faults *disdel.Faults
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	_, err = ParseMany("jobs.yaml", []byte(text), nil, nil)
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	var got []string
	for _, f := range faults.Faults {
		got = append(got, fmt.Sprintf("%d:%d %s: %s", f.Line, f.Column, f.Path, f.Msg))
	}
	want := []string{
		`6:23 training.batchsize: unknown field`,
		`8:24 training.epochs: expected an integer, found text "none"`,
		`8:30 training.epochs: must be at least 1`,
		`9:3 training.bachSize: unknown field`,
		`17:10 matrix.training.epochs: expected a list of values, found the integer 3`,
		`17:30 a b[: "a b[" is no field`,
		`17:43 matrix.training.epochs: needs at least one value`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if testing.Verbose() {
		terminal.PrintFaults(faults, []byte(text), os.Stderr)
	}
}

// No file makes more jobs than somebody could look at, by whatever means.
func TestAFileMakesNotTooManyJobs(t *testing.T) {
	long := strings.Repeat("1, ", 99) + "1"
	for _, text := range []string{
		smallest + "matrix: {training.epochs: [" + long + "], training.batchSize: [" + long + "]}\n",
		strings.Repeat("---\n"+smallest, 60) + strings.Repeat("---\n"+smallest+"matrix: {training.epochs: ["+long+"]}\n", 10),
	} {
		files, err := ParseMany("jobs.yaml", []byte(text), nil, nil)
		if err == nil || !strings.Contains(err.Error(), "more than 1000 jobs") || len(files) > 1 {
			t.Errorf("%d jobs, %v", len(files), err)
		}
	}
	most := smallest + "matrix: {training.epochs: [" + long + "], training.batchSize: [1,2,3,4,5,6,7,8,9,10]}\n"
	if n := len(parseMany(t, most)); n != 1000 {
		t.Errorf("%d jobs", n)
	}
}

// A file with a matrix is no job by itself; the hint says what takes it.
func TestAMatrixIsForBatch(t *testing.T) {
	_, err := Parse("job.yaml", []byte(smallest+"matrix: {training.epochs: [1]}\n"), nil)
	var faults *disdel.Faults
	if !errors.As(err, &faults) || faults.Faults[0].Hint != "disdel batch runs a job for each of its values" {
		t.Error(err)
	}
}
