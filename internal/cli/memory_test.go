package cli

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// moreMemory matches what is said after a kill for memory. A timeout that was too short on a busy machine is told with
// seconds instead.
var moreMemory = regexp.MustCompile(`needed more than [0-9.]+ [KMG]?B`)

// A network of more than ten million weights answers within the limit that its infer action was given, and its job is
// taken up without a kill: each reads a file of weights, which then is all that is there beside the engine.
func TestLargeNetworksAreReadWithinTheirLimits(t *testing.T) {
	d := build(t)
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	idx := func(sides []int, data []byte) []byte {
		out := []byte{0, 0, 8, byte(len(sides))}
		for _, n := range sides {
			out = binary.BigEndian.AppendUint32(out, uint32(n))
		}
		return append(out, data...)
	}
	must := func(code int, args ...string) string {
		t.Helper()
		out, errs, got := d.run(args...)
		if got != code {
			t.Fatalf("disdel %s: code %d, not %d\n%s%s", strings.Join(args, " "), got, code, out, errs)
		}
		if strings.Contains(out+errs, "outOfMemory") || moreMemory.MatchString(errs) {
			t.Errorf("disdel %s: something needed more memory than it had\n%s%s", strings.Join(args, " "), out, errs)
		}
		return out
	}
	images, labels := make([]byte, 24*4), make([]byte, 24)
	for i := range labels {
		labels[i] = byte(i % 2)
		images[4*i] = 200 * labels[i]
	}
	must(0, "dataset", "add", "few", "--format", "idx", "--images", write("x", idx([]int{24, 2, 2}, images)), "--labels",
		write("y", idx([]int{24}, labels)))
	job := write("large.yaml", []byte(`apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: large}
model:
  layers:
    - dense: {units: 3400, activation: relu}
    - dense: {units: 3400, activation: relu}
    - dense: {units: 2, activation: softmax}
data: {source: "dataset://few"}
training: {epochs: 500, batchSize: 12, validateEvery: 0, optimizer: {sgd: {learningRate: 0.001}}}
distribution: {workers: 1}
reliability: {deadline: 12s}
`))
	if _, _, code := d.run("submit", job, "-q"); code == 0 {
		t.Fatal("500 rounds took less than 12 s")
	}
	must(0, "resume", "@last", "--set", "reliability.deadline=10m", "--set",
		"training.earlyStop={metric: loss, target: 1000}", "-o", "json")
	if out := must(0, "infer", "large", "--input", write("in.json", []byte("[[0, 0, 0, 0]]")), "-o",
		"json"); !strings.Contains(out, `"classes"`) {
		t.Errorf("no answer: %s", out)
	}
}
