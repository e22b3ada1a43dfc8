package disdel

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"
)

// Integers that no float64 holds stay what they are.
func TestATreeKeepsIntegers(t *testing.T) {
	for _, seed := range []uint64{math.MaxInt64, math.MaxInt64 - 1, 1<<53 + 1} {
		var j Job
		j.Training.Seed = int64(seed)
		training := j.Tree().(map[string]any)["training"].(map[string]any)
		if got := training["seed"]; got != json.Number(strconv.FormatUint(seed, 10)) {
			t.Errorf("%d became %v", seed, got)
		}
	}
}
