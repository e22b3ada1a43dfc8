package jobfile

import (
	"strings"
	"testing"
)

// The short path of the learning rate is that of the file's optimiser, and Adam's in a file without one.
func TestTheShortRateIsThatOfTheOptimizer(t *testing.T) {
	for optimizer, want := range map[string]float64{"": 0, "{sgd: {learningRate: 1}}": 0.25, "{lion: {}}": 0.25} {
		text := smallest
		if optimizer != "" {
			text = strings.Replace(text, "epochs:", "optimizer: "+optimizer+", epochs:", 1)
		}
		file, err := Parse("job.yaml", []byte(text), []string{"training.optimizer.learningRate=0.25"})
		if err != nil {
			t.Errorf("%q: %v", optimizer, err)
			continue
		}
		o := file.Job.Training.Optimizer
		switch {
		case optimizer == "" && (o.Adam == nil || o.Adam.LearningRate != 0.25):
			t.Errorf("without an optimiser: %+v", o)
		case o.SGD != nil && o.SGD.LearningRate != want, o.Lion != nil && o.Lion.LearningRate != want:
			t.Errorf("%q: %+v", optimizer, o)
		}
	}
}
