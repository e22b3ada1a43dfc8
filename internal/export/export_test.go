package export

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

func job(id, name string) disdel.Record {
	created := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	r := disdel.Record{
		APIVersion: disdel.APIVersion, ID: disdel.JobID(id), Status: disdel.StatusSucceeded, Created: created,
		Ended: created.Add(time.Minute), CostGBs: 1.5,
	}
	r.Job.Metadata.Name, r.Job.Training.BatchSize, r.Job.Model.Name, r.Data.Name = name, 64, "lenet5", "digits"
	r.Job.Metadata.Labels = map[string]string{"../team": "a\nb"}
	for i := range 2 {
		r.Rounds = append(r.Rounds,
			disdel.Round{Round: i, TrainLoss: 1 / float64(i+1), Duration: disdel.Millis(2 * time.Second)})
	}
	r.Rounds[1].Loss, r.Rounds[1].Accuracy = new(0.25), new(0.75)
	return r
}

// A line for each round, whose cells can be read again, names with commas among them.
func TestCSV(t *testing.T) {
	list := []disdel.Record{job("job-1", `a,"b`), job("job-2", "b")}
	var out bytes.Buffer
	if err := Text(&out, CSV, list); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"job-1", `a,"b`, "succeeded", "lenet5", "digits", "2", "0.5", "0.25", "0.75", "", "2", "", "", "", "", "", "",
	}
	if len(lines) != 5 || !slices.Equal(lines[2], want) {
		t.Errorf("%q", lines)
	}
}

func TestJSONL(t *testing.T) {
	var out bytes.Buffer
	if err := Text(&out, JSONL, []disdel.Record{job("job-1", "a"), job("job-2", "b")}); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var r disdel.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.ID != disdel.JobID(fmt.Sprint("job-", i+1)) {
			t.Errorf("%v %s", err, line)
		}
	}
}

// Event files are what TensorFlow's own reader takes: the sums of every record are right, and the figures are at their
// steps. The reader here knows no more than the format's description.
func TestTensorBoard(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "runs")
	if err := Write(folder, TensorBoard,
		[]disdel.Record{job("job-12345678a", "a"), job("job-12345678b", "../a")}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*", "events.out.tfevents.*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for n := 0; len(data) > 0; n++ {
		length := binary.LittleEndian.Uint64(data)
		if sum(data[:8]) != binary.LittleEndian.Uint32(data[8:]) ||
			sum(data[12:12+length]) != binary.LittleEndian.Uint32(data[12+length:]) {
			t.Fatalf("the sums of record %d are wrong", n)
		}
		event := protoFields(t, data[12:12+length])
		step := uint64(0)
		for _, f := range event {
			switch f.number {
			case 2:
				step = f.value
			case 3:
				told = append(told, string(f.data))
			case 5:
				for _, v := range protoFields(t, f.data) {
					value := protoFields(t, v.data)
					told = append(told, fmt.Sprintf("%d %s %g", step, value[0].data, math.Float32frombits(uint32(value[1].value))))
				}
			}
		}
		data = data[16+length:]
	}
	want := []string{
		"brain.Event:2", "1 loss/train 1", "1 time/seconds 2", "2 loss/train 0.5", "2 loss/held-out 0.25",
		"2 accuracy/held-out 0.75",
		"2 time/seconds 2",
	}
	if !slices.Equal(told, want) {
		t.Errorf("%q", told)
	}
}

func sum(data []byte) uint32 {
	c := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	return (c>>15 | c<<17) + 0xa282ead8
}

// protoField is a field of a message of protocol buffers.
type protoField struct {
	number int
	value  uint64
	data   []byte
}

func protoFields(t *testing.T, data []byte) (out []protoField) {
	t.Helper()
	for len(data) > 0 {
		key, n := binary.Uvarint(data)
		data = data[n:]
		f := protoField{number: int(key >> 3)}
		switch key & 7 {
		case 0:
			f.value, n = binary.Uvarint(data)
			data = data[n:]
		case 1:
			f.value, data = binary.LittleEndian.Uint64(data), data[8:]
		case 2:
			size, n := binary.Uvarint(data)
			f.data, data = data[n:n+int(size)], data[n+int(size):]
		case 5:
			f.value, data = uint64(binary.LittleEndian.Uint32(data)), data[4:]
		default:
			t.Fatalf("wire type %d", key&7)
		}
		out = append(out, f)
	}
	return out
}

// MLflow's folder has what its file store reads: a description of the experiment and of each run, a file for each
// parameter, figure and tag, and nothing outside of it.
func TestMLflow(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "mlruns")
	if err := Write(folder, MLflow, []disdel.Record{job("job-1", "a"), job("job-2", "b")}); err != nil {
		t.Fatal(err)
	}
	runs, err := filepath.Glob(filepath.Join(folder, "1", "*", "meta.yaml"))
	if err != nil || len(runs) != 2 {
		t.Fatalf("%v %v", runs, err)
	}
	if entries, _ := os.ReadDir(root); len(entries) != 1 {
		t.Error("something lies outside")
	}
	run := filepath.Dir(runs[0])
	for name, want := range map[string]string{
		"metrics/train_loss": " 1 1\n", "metrics/accuracy": " 0.75 2\n", "params/training.batchSize": "64",
		"tags/_.._team":      "a\nb",
		"tags/disdel.status": "succeeded", "meta.yaml": `artifact_uri: "file://`, "../meta.yaml": `name: "disdel"`,
	} {
		data, err := os.ReadFile(filepath.Join(run, filepath.FromSlash(name)))
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

// A folder that somebody has is left alone.
func TestNothingIsOverwritten(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "theirs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range []Format{TensorBoard, MLflow} {
		if err := Write(folder, f, []disdel.Record{job("job-1", "a")}); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%s: %v", f, err)
		}
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 1 {
		t.Error("something was written")
	}
	if err := Write(t.TempDir(), CSV, nil); disdel.KindOf(err) != disdel.Invalid {
		t.Errorf("%v", err)
	}
}

func ExampleText() {
	r := job("job-1", "small")
	if err := Text(os.Stdout, CSV, []disdel.Record{r}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// job,name,status,model,dataset,round,train_loss,loss,accuracy,train_accuracy,seconds,rmse,mae,r2,f1,micro_f1,top5
	// job-1,small,succeeded,lenet5,digits,1,1,,,,2,,,,,,
	// job-1,small,succeeded,lenet5,digits,2,0.5,0.25,0.75,,2,,,,,,
}
