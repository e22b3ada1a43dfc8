package jobfile

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// unitFields lists the paths of all fields of a job file that have a unit, with their types. Those below model are
// measured by disdel, and no job file has them.
func unitFields(t reflect.Type, path string, found map[string]reflect.Type) {
	switch {
	case t == reflect.TypeFor[disdel.Bytes]() || t == reflect.TypeFor[disdel.Duration]():
		found[strings.TrimPrefix(path, ".")] = t
	case t.Kind() == reflect.Pointer:
		unitFields(t.Elem(), path, found)
	case t.Kind() == reflect.Struct:
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.IsExported() && !slices.Contains([]string{"", "-", "model"}, name) {
				unitFields(f.Type, path+"."+name, found)
			}
		}
	}
}

// spellingsOfSize writes one size in every unit that the job file takes. Powers of two keep every digit.
func spellingsOfSize(b disdel.Bytes) []string {
	out := []string{fmt.Sprintf("%dB", b)}
	for scale, units := range map[disdel.Bytes][]string{
		disdel.KB: {"KB", "Ki", " KiB"}, disdel.MB: {"MB", " Mi", "", "mib"}, disdel.GB: {"GB", "Gi", " GiB", "g"},
	} {
		for _, unit := range units {
			out = append(out, strconv.FormatFloat(float64(b)/float64(scale), 'f', -1, 64)+unit)
		}
	}
	return out
}

// spellingsOfTime writes one time in several ways.
func spellingsOfTime(ms int64) []string {
	d := time.Duration(ms) * time.Millisecond
	return []string{
		d.String(), fmt.Sprintf("%dms", ms), fmt.Sprintf("%d.%03ds", ms/1000, ms%1000), fmt.Sprintf("%dns", d),
		fmt.Sprintf("%dm%dms", ms/60_000, ms%60_000), fmt.Sprintf("%dus", d.Microseconds()),
	}
}

// A job is the same in whatever unit its sizes, times and costs are written. The type of a job tells which fields have
// a unit.
func TestUnitsOfAJobFileMeanTheSame(t *testing.T) {
	fields := map[string]reflect.Type{}
	unitFields(reflect.TypeFor[disdel.Job](), "", fields)
	if len(fields) < 8 {
		t.Fatalf("fields with a unit: %v", fields)
	}
	beside := map[string][]string{ // what a field cannot stand without
		"training.goal.within": {"training.goal.accuracy=0.9"},
		"resources.gpu.memory": {"resources.device=gpu"},
	}
	for path, kind := range fields {
		t.Run(path, func(t *testing.T) {
			taken := 0
			rapid.Check(t, func(r *rapid.T) {
				var ways []string
				if kind == reflect.TypeFor[disdel.Bytes]() {
					ways = spellingsOfSize(disdel.Bytes(rapid.Int64Range(1, 1<<38).Draw(r, "bytes")))
				} else {
					ways = spellingsOfTime(rapid.Int64Range(1, 10*3600_000).Draw(r, "ms"))
				}
				taken += sameInAllWays(r, path, ways, beside[path])
			})
			if taken == 0 {
				t.Error("no value was taken")
			}
		})
	}
	for path, with := range map[string][]string{
		"resources.maxCost": nil, "training.goal.cost": {"training.goal.accuracy=0.9"},
	} {
		t.Run(path, rapid.MakeCheck(func(r *rapid.T) {
			cost := strconv.FormatFloat(rapid.Float64Range(0.001, 1e6).Draw(r, "cost"), 'f', -1, 64)
			if sameInAllWays(r, path, []string{cost + "GB-s", cost + " GB-s"}, with) == 0 {
				r.Error("no cost was taken")
			}
		}))
	}
}

// sameInAllWays parses a job with one field written in several ways, and returns 1 if they are taken.
func sameInAllWays(r *rapid.T, path string, ways, beside []string) (taken int) {
	read := func(text string) (disdel.Job, error) {
		file, err := Parse("job.yaml", []byte(smallest), append([]string{fmt.Sprintf("%s=%q", path, text)}, beside...))
		if err != nil {
			return disdel.Job{}, err
		}
		return file.Job, nil
	}
	first, err := read(ways[0])
	for _, way := range ways[1:] {
		other, otherErr := read(way)
		if (err == nil) != (otherErr == nil) {
			r.Fatalf("%s: %s gives %v, %s gives %v", path, ways[0], err, way, otherErr)
		}
		if diff := cmp.Diff(first, other); diff != "" {
			r.Fatalf("%s: %s is not %s:\n%s", path, way, ways[0], diff)
		}
	}
	if err == nil {
		return 1
	}
	return 0
}
