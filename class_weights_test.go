package disdel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

func ExampleClassWeights_For() {
	names, rows := []string{"common", "rare"}, []int{90, 10}
	balanced, err := disdel.BalancedWeights.For(names, rows)
	fmt.Println(balanced, err)
	given, err := disdel.ClassWeights("rare=3").For(names, rows)
	fmt.Println(given, given.Values(), err)
	// Output:
	// common=0.5555556,rare=5 <nil>
	// common=1,rare=3 [1 3] <nil>
}

// All faults of a text are told at once.
func TestWrongClassWeightsAreAllTold(t *testing.T) {
	err := disdel.ClassWeights("a,b=-1,c=x,d=1,d=2,e=Inf").Check()
	for _, want := range []string{`"a" gives no class`, `"b" is "-1"`, `"c" is "x"`, `"d" has two`, `"e" is "Inf"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing: %v", want, err)
		}
	}
	_, err = disdel.ClassWeights("cat=1,cow=2,2=1,#0=4").For([]string{"cat", "dog"}, []int{1, 1})
	for _, want := range []string{`no class "cow"`, `no class "2"`, `"#0" names a class that has a weight`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing: %v", want, err)
		}
	}
	if _, err := disdel.BalancedWeights.For(nil, make([]int, 2000)); err == nil {
		t.Error("2000 classes have weights")
	}
}

// A text for all classes stays as it is when it is read again, whatever the names are. Balanced weights give every
// class with rows the same sum.
func TestClassWeightsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.IntRange(0, 1000), 1, 20).Draw(t, "rows")
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab,=# 0-3]{0,3}`), 0, len(rows), rapid.ID).Draw(t, "names")
		text, err := disdel.BalancedWeights.For(names, rows)
		if err != nil {
			t.Fatal(err)
		}
		again, err := text.For(names, rows)
		if err != nil || again != text || !slices.Equal(again.Values(), text.Values()) || len(text.Values()) != len(rows) {
			t.Fatalf("%s became %s: %v", text, again, err)
		}
		sum := 0
		for _, n := range rows {
			sum += n
		}
		for k, w := range text.Values() {
			want := float64(sum) / float64(len(rows))
			if got := float64(w) * float64(rows[k]); rows[k] > 0 && (got < want*0.999999 || got > want*1.000001) {
				t.Errorf("class %d has the sum %g, want %g", k, got, want)
			}
		}
	})
}
