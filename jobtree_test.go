package disdel

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"
)

// Integers that no float64 holds stay what they are.
func TestATreeKeepsIntegers(t *testing.T) {
	for _, seed := range []int64{math.MaxInt64, math.MaxInt64 - 1, 1<<53 + 1} {
		var j Job
		j.Data.Split.Seed = seed
		data, _ := j.Tree().(map[string]any)["data"].(map[string]any)
		split, _ := data["split"].(map[string]any)
		if got := split["seed"]; got != json.Number(strconv.FormatInt(seed, 10)) {
			t.Errorf("%d became %v", seed, got)
		}
	}
}
