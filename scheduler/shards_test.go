package scheduler

import (
	"testing"

	"pgregory.net/rapid"
)

// Every row is in exactly one shard, and shards differ by at most a row.
func TestShardsCoverEveryRowOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, workers := rapid.IntRange(0, 500).Draw(t, "rows"), rapid.IntRange(1, 40).Draw(t, "workers")
		at, least, most := 0, rows, 0
		for _, r := range Shards(rows, workers) {
			if r.Start != at {
				t.Fatalf("a shard starts at %d, not %d", r.Start, at)
			}
			at = r.End
			least, most = min(least, r.Len()), max(most, r.Len())
		}
		if at != rows || most-least > 1 {
			t.Fatalf("%d of %d rows, sizes %d to %d", at, rows, least, most)
		}
	})
}
