package service

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
)

const (
	ofImages = "{conv: {filters: 4, kernel: 3, padding: same}}, %s, {flatten: {}}, "
	ofTokens = "{flatten: {}}, {embedding: {vocabulary: 17, width: 8}}, %s, {takePosition: {take: last}}, "
)

// drawnJob is a job of one kind of layer, and its lines.
func drawnJob(draw *rand.Rand) []string {
	kinds := map[string][]string{
		ofImages: {
			"{batchNorm: {}}", "{groupNorm: {groups: 2}}", "{maxPool: {kernel: 2}}", "{upsample: {size: 2}}",
			"{convTranspose: {filters: 4, kernel: 2, stride: 2}}", "{spaceToDepth: {size: 2}}", "{hardSwish: {}}",
			"{depthwiseConv: {kernel: 3}}", "{dropout: {rate: 0.5}}", "{gelu: {}}", "{layerNorm: {}}",
		},
		ofTokens: {
			"{gru: {units: 8}}", "{lstm: {units: 8}}", "{multiHeadAttention: {heads: 2}}", "{positions: {}}",
			"{layerNorm: {}}",
			"{rmsNorm: {}}", "{dense: {units: 8}}",
		},
	}
	of := []string{ofImages, ofTokens}[draw.IntN(2)]
	pick := func(from []string) string { return from[draw.IntN(len(from))] }
	lines := []string{
		"model: {layers: [" + fmt.Sprintf(of, pick(kinds[of])) + "{dense: {units: 10, activation: softmax}}]}",
		"  backend: " + pick([]string{"native", "native", "gorgonia"}),
	}
	for _, line := range []string{
		"  precision: bf16", "  optimizerState: int8", "  optimizerState: paged", "  microBatch: 4",
		"  recompute: auto",
		"  optimizer: {" + pick([]string{"lamb", "adam", "adagrad"}) + ": {learningRate: 0.01}}", "  exact: true",
		"  labelSmoothing: 0.1", "  clipNorm: 1",
	} {
		if draw.IntN(4) == 0 && !strings.Contains(strings.Join(lines, ""), strings.Split(line, ":")[0]+":") {
			lines = append(lines, line)
		}
	}
	if draw.IntN(5) == 0 {
		lines = append(lines, "distribution: {stages: 3, workers: 1}")
	}
	return lines
}

// What an estimate refuses for the job's sake is a fault of the file with its line, which a check tells, too.
func TestACheckRefusesWhatAnEstimateRefuses(t *testing.T) {
	s := opened(t, t.TempDir())
	draw, refused, taken := rand.New(rand.NewPCG(3621, 1)), map[string]int{}, 0
	for range 400 {
		lines := drawnJob(draw)
		text := "apiVersion: disdel/v1\nkind: TrainingJob\nmetadata: {name: a}\ndata: {source: dataset://digits}\n" +
			lines[0] + "\ntraining:\n  epochs: 1\n  batchSize: 16\n" + strings.Join(lines[1:], "\n") + "\n"
		file, err := jobfile.Parse("a.yaml", []byte(text), nil)
		if err != nil {
			continue // the check of the file alone has found it
		}
		req := Request{Job: file.Job, Source: Source{Name: "a.yaml", Locate: file.Locate}}
		_, checked := s.Check(t.Context(), req)
		_, estimated := s.Estimate(t.Context(), req, Questions{})
		if disdel.KindOf(estimated) == disdel.OverLimit {
			continue
		}
		if fmt.Sprint(checked) != fmt.Sprint(estimated) {
			t.Errorf("%s\nthe check says %v, the estimate %v", text, checked, estimated)
		}
		if estimated == nil {
			taken++
			continue
		}
		var all *disdel.Faults
		if !errors.As(checked, &all) {
			t.Errorf("%s\n%v", text, checked)
			continue
		}
		for _, f := range all.Faults {
			refused[f.Path]++
			if f.Line == 0 {
				t.Errorf("%s\nwithout a line: %+v", text, f)
			}
		}
	}
	for _, path := range []string{"training.backend", "training.precision", "distribution.stages"} {
		if refused[path] == 0 || taken == 0 {
			t.Errorf("%s is never refused, %d jobs are taken", path, taken)
		}
	}
}
