package transcripts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	logTime  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z *`)
	deadline = regexp.MustCompile(`\d{13}`)
)

// unsteady are annotations that do not say the same each time, or only here: whether a container was cold, what its
// memory peaked at, and whether it was killed for it.
var unsteady = map[string]bool{"initTime": true, "peakMemory": true, "memoryKill": true}

// settled is a body with a word in the place of what differs from run to run. Settling twice changes nothing.
func settled(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		return settledObject(v)
	case []any:
		return settledList(key, v)
	case float64:
		switch key {
		case "start", "end", "updated", "duration":
			return "some"
		}
	case string:
		if key == "code" && len(v) == 32 || key == "activationId" || key == "cause" {
			return "some"
		}
		v = logTime.ReplaceAllString(v, "TIME ")
		v = activationPattern.ReplaceAllString(v, "ID")
		return deadline.ReplaceAllString(v, "MILLISECONDS")
	}
	return v
}

func settledObject(v map[string]any) any {
	out := map[string]any{}
	for k, x := range v {
		out[k] = settled(k, x)
	}
	if key := out["key"]; key == "waitTime" || key == "initTime" {
		out["value"] = "some"
	}
	if result, ok := out["result"].(map[string]any); ok && result["__OW_API_HOST"] != nil {
		result["__OW_API_HOST"], out["size"] = "some", "some" // it has the port in it
	}
	return out
}

// settledList sorts annotations, which are a set, and logs: lines of two streams, between which there is no order.
func settledList(key string, v []any) any {
	out := make([]any, 0, len(v))
	for _, x := range v {
		if note, ok := x.(map[string]any); ok && unsteady[fmt.Sprint(note["key"])] {
			continue
		}
		out = append(out, settled(key, x))
	}
	if key == "annotations" || key == "logs" {
		slices.SortFunc(out, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return out
}
