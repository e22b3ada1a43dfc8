package dataset

import (
	"fmt"
	"strings"

	"github.com/disdel/disdel"
)

// Doubts says what is allowed and yet probably not meant.
func Doubts(in *Input, m *Manifest, layoutGiven bool) (list []string) {
	rows := make([]int, m.Classes)
	for _, y := range in.Train.Labels {
		rows[y]++
	}
	return doubtsOf(rows, m, layoutGiven)
}

// doubtsOf is Doubts of so many rows of each class.
func doubtsOf(rows []int, m *Manifest, layoutGiven bool) (list []string) {
	if w := classDoubts(rows, true); w != "" {
		list = append(list, w)
	}
	c, h, w := m.Sample[0], m.Sample[1], m.Sample[2]
	if !layoutGiven && h > 1 && isChannels(w) && !isChannels(c) {
		list = append(list, fmt.Sprintf("images are read as %d channels of %dx%d pixels; if they are %dx%d pixels of %d "+
			"channels, "+
			"add --layout hwc --overwrite", c, h, w, c, h, w))
	}
	if info := m.Info(usualSplit); info.HeldOut == 0 {
		list = append(list, noneHeldOut)
	}
	return list
}

// usualSplit is the one of a job that says none.
var usualSplit = disdel.Split{Train: 0.8, Validation: 0.2}

const noneHeldOut = "none of its rows will be held out, so that no accuracy will be known"

// isChannels says whether a side is a usual number of channels.
func isChannels(n int) bool { return n == 1 || n == 3 || n == 4 }

// classDoubts says which classes have no row, or only one, by the rows of each class. numbered: the classes are all
// numbers up to the highest label, so one wrong label can make many empty classes.
func classDoubts(rows []int, numbered bool) string {
	all := 0
	for _, n := range rows {
		all += n
	}
	var single, none []int
	for k, n := range rows {
		switch {
		case n == 0:
			none = append(none, k)
		case n == 1 && all > len(rows):
			single = append(single, k)
		}
	}
	var parts []string
	if len(single) > 0 {
		parts = append(parts, ranges(single)+" 1 row")
	}
	if len(none) > 0 {
		parts = append(parts, ranges(none)+" none")
	}
	text := strings.Join(parts, "; ")
	if text == "" {
		return ""
	}
	if len(none) > 0 && numbered {
		text += fmt.Sprintf("; labels are whole numbers from 0, and the largest makes %d classes", len(rows))
	}
	return text
}

// ranges names classes with their verb: "class 3 has", "classes 3 to 199 and 201 have".
func ranges(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		part := fmt.Sprint(list[i])
		if j > i {
			part = fmt.Sprintf("%d to %d", list[i], list[j])
		}
		parts, i = append(parts, part), j+1
	}
	if more := len(parts) - mostRanges; more > 0 {
		parts = append(parts[:mostRanges], fmt.Sprintf("%d more ranges", more))
	}
	last := len(parts) - 1
	text := parts[last]
	if last > 0 {
		text = strings.Join(parts[:last], ", ") + " and " + text
	}
	if len(list) == 1 {
		return "class " + text + " has"
	}
	return "classes " + text + " have"
}

const mostRanges = 5
