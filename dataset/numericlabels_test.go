package dataset

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// tallied is how many rows each of the labels has.
func tallied(labels []string) (list []ClassRows) {
	at := map[string]int{}
	for _, text := range labels {
		k, ok := at[text]
		if !ok {
			k = len(list)
			at[text], list = k, append(list, ClassRows{Name: text})
		}
		list[k].Rows++
	}
	return list
}

// Drawn prices, ratios and counts are numbers to predict. Drawn ids of classes with enough rows are classes.
func TestNumbersToPredictAreTold(t *testing.T) {
	for seed := range uint64(40) {
		lot := rand.New(rand.NewPCG(seed, 31))
		draw := func(rows int, label func(row int) string) []ClassRows {
			list := make([]string, rows)
			for i := range list {
				list[i] = label(i)
			}
			return tallied(list)
		}
		rows := 150 + lot.IntN(1000)
		for name, labels := range map[string][]ClassRows{
			"fractions": draw(rows, func(int) string { return strconv.FormatFloat(lot.NormFloat64(), 'g', -1, 64) }),
			"prices":    draw(rows, func(int) string { return strconv.Itoa(50_000 + lot.IntN(900_000)) }),
			"row ids":   draw(rows, strconv.Itoa),
			"few rows":  draw(12, func(int) string { return fmt.Sprintf("%.3f", lot.Float64()) }),
			"halves":    draw(100*rows, func(int) string { return fmt.Sprintf("%d.5", lot.IntN(40)) }),
			"percent":   draw(rows, func(int) string { return fmt.Sprintf("%.2f%%", 100*lot.Float64()) }),
			"commas":    draw(rows, func(int) string { return fmt.Sprintf("$%d,%03d", lot.IntN(900), lot.IntN(1000)) }),
			"counts":    draw(20*rows, func(i int) string { return strconv.Itoa(1 + i%rows + i%rows/7) }),
			"gaps":      draw(5000, func(i int) string { return strconv.Itoa(7 * (i % (101 + lot.IntN(100)))) }),
			"one text":  append(draw(rows, func(int) string { return fmt.Sprint(lot.Float64()) }), ClassRows{"unknown", 1}),
		} {
			if NumericTarget(labels) == "" {
				t.Errorf("seed %d: %s: %d different numbers are taken for classes", seed, name, len(labels))
			}
		}
		classes, from := 2+lot.IntN(1000), lot.IntN(2)
		for name, labels := range map[string][]ClassRows{
			"ids":          draw(2*classes, func(i int) string { return strconv.Itoa(from + i%classes) }),
			"ids with gap": draw(1000, func(i int) string { return strconv.Itoa(7 * (i % (2 + classes%99))) }),
			"few codes":    draw(40, func(int) string { return strconv.Itoa(400 + lot.IntN(20)) }),
			"stars":        draw(1000, func(int) string { return fmt.Sprint(float64(1+lot.IntN(10)) / 2) }),
			"signs":        draw(10, func(i int) string { return strconv.Itoa(2*(i%2) - 1) }),
			"texts":        draw(rows, func(i int) string { return "name" + strconv.Itoa(i) }),
		} {
			if why := NumericTarget(labels); why != "" {
				t.Errorf("seed %d: %s: %s", seed, name, why)
			}
			note, many := NumericClasses(labels), len(labels) > 20 && name != "texts"
			if many != strings.HasPrefix(note, fmt.Sprintf("%d numbers are taken for classes", len(labels))) ||
				!many && note != "" {
				t.Errorf("seed %d: %s: %d labels: %q", seed, name, len(labels), note)
			}
		}
	}
}

// A program that calls Add gives class numbers. They are never taken for numbers to predict, however few rows a class
// has.
func TestClassesOfAProgramAreClasses(t *testing.T) {
	ctx := t.Context()
	store, err := OpenStore(ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	samples := Samples{Shape: []int{1, 1, 1}, U8: make([]byte, 106), Labels: make([]int32, 106)}
	for i := range samples.Labels {
		samples.Labels[i] = int32(i % 100)
	}
	names := make([]string, 100)
	for k := range names {
		names[k] = strconv.Itoa(1000 + 7*k)
	}
	for name, in := range map[string]Input{"drawn": {}, "named": {ClassNames: names}} {
		in.Name, in.Classes, in.Scale, in.Train = name, 100, 1, samples
		if _, err := store.Add(ctx, in, false); err != nil {
			t.Fatal(err)
		}
		m, err := store.Manifest(ctx, name)
		if why := m.NumericTarget(); err != nil || why != "" {
			t.Errorf("%s: %q, %v", name, why, err)
		}
	}
}
