package addresses

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel"
)

// ways has addresses of each flag. All addresses in one list lead to the same part.
var ways = map[string][][]string{
	"apihost": {
		{""},
		{"http://h:1", "h:1", "http://H:1"},
		{"https://h", "https://h:443"},
		{"http://127.0.0.1:2", "http://localhost:2"},
	},
	"storage": {{""}, {"file:///a", "file:///a/"}, {"s3://bucket?region=r"}},
	"redis": {
		{""},
		{"redis://h:6379/0", "redis://h", "redis://user@h/0"},
		{"redis://h/1"},
		{"rediss://h"},
		{"redis://h:1,redis://h:2", "redis://h:1/0, redis://h:2"},
		{"redis://h:2,redis://h:1"},
		{"redis-sentinel://h,g:1/m", "redis-sentinel://user@h:26379,g:1/m", "redis-sentinel://h/m,redis-sentinel://g:1/m"},
		{"redis-sentinel://h,g:1/n"},
	},
	"redis-prefix": {{"", "disdel"}, {"mine"}},
}

// Two places are the same if each of their addresses leads to the same part, however it is written; otherwise they
// differ.
func TestPlacesDifferInAnyAddress(t *testing.T) {
	draw := rand.New(rand.NewPCG(31, 1))
	for range 500 {
		var was []disdel.Option
		now, differing := map[string]string{}, []string{}
		for _, flag := range ComparedFlags {
			a, b := draw.IntN(len(ways[flag])), draw.IntN(len(ways[flag]))
			if draw.IntN(2) == 0 {
				b = a
			}
			pick := func(list []string) string { return list[draw.IntN(len(list))] }
			if v := pick(ways[flag][a]); v != "" || draw.IntN(2) == 0 {
				was = append(was, disdel.Option{Name: flag, Value: v})
			}
			if draw.IntN(4) > 0 {
				if now[flag] = pick(ways[flag][b]); a != b {
					differing = append(differing, flag)
				}
			}
		}
		d, differs := FirstDifference(was, func(flag string) (string, bool) { v, ok := now[flag]; return v, ok })
		if differs != (len(differing) > 0) || differs && !slices.Contains(differing, d.Flag) {
			t.Fatalf("%v and %v: %+v, want a difference in %v", was, now, d, differing)
		}
	}
}
