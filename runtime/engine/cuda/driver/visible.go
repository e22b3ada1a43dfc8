package driver

import (
	"slices"
	"strconv"
	"strings"
)

// Visible are the devices of those with these ids that a list leaves to a process, in the list's order, as CUDA reads
// its variable CUDA_VISIBLE_DEVICES: numbers, or ids or the beginnings of one, separated by commas. What stands behind
// an entry that is no device, or that names one a second time, is not read. An empty list leaves none.
func Visible(list string, ids []string) []int {
	out := []int{}
	for entry := range strings.SplitSeq(list, ",") {
		i := named(strings.TrimSpace(entry), ids)
		if i < 0 || slices.Contains(out, i) {
			break
		}
		out = append(out, i)
	}
	return out
}

// named is the device that an entry names, -1 where it names none, or several.
func named(entry string, ids []string) int {
	if n, err := strconv.Atoi(entry); err == nil {
		if n < 0 || n >= len(ids) {
			return -1
		}
		return n
	}
	found := -1
	for i, id := range ids {
		switch {
		case entry == "" || !strings.HasPrefix(id, entry):
		case found >= 0:
			return -1
		default:
			found = i
		}
	}
	return found
}
