package dataset

import (
	"strings"
	"testing"
)

// What is allowed and yet probably not meant is said: a wrong label, channels last, nothing to hold out.
func TestDoubtsAboutADataSet(t *testing.T) {
	labels := func(n int, more ...int32) (out []int32) {
		for i := range n {
			out = append(out, int32(i%3))
		}
		return append(out, more...)
	}
	for want, c := range map[string]struct {
		labels      []int32
		classes     int
		sample      []int
		layoutGiven bool
	}{
		"": {labels(600), 3, []int{3, 16, 16}, false},
		"class 200 has 1 row; classes 3 to 199 have none; labels are whole numbers from 0, and the largest makes 201 " +
			"classes": {labels(600, 200), 201, []int{1, 8, 8}, false},
		"class 1 has none; labels are whole numbers from 0, and the largest makes 3 " +
			"classes": {[]int32{0, 0, 2, 2, 0, 2, 2}, 3, []int{1, 8, 8}, false},
		"images are read as 16 channels of 16x3 pixels; if they are 16x16 pixels of 3 channels, add --layout hwc " +
			"--overwrite": {labels(600), 3, []int{16, 16, 3}, false},
		"none of its rows will be held out, so that no accuracy will be " +
			"known": {[]int32{0}, 1, []int{1, 8, 8}, false},
	} {
		in := Input{Train: Samples{Labels: c.labels}}
		m := Manifest{Classes: c.classes, Sample: c.sample, DType: "U8", Train: Part{Rows: len(c.labels)}}
		if got := strings.Join(Warnings(&in, &m, c.layoutGiven), "\n"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if got := ranges([]int{1, 3, 5, 7, 9, 11, 12}); got != "classes 1, 3, 5, 7, 9 and 1 more ranges have" {
		t.Error(got)
	}
}
