package clients

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files; sections of steps that were left out are kept")

// masks are what differs from run to run.
var masks = []struct {
	pattern *regexp.Regexp
	to      string
}{
	{regexp.MustCompile(`\b[0-9a-f]{32}([0-9a-f]{8})?\b`), "ID"}, // or a hash
	{regexp.MustCompile(`\b[0-9A-Za-z]{32}\b`), "ID"},            // of transactions
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( UTC|Z| [+-]\d{4} \w+)?`), "TIME"},
	{regexp.MustCompile(`\b1[6-9]\d{11}\b`), "MS"},
	{regexp.MustCompile(`\b127\.0\.0\.1:\d+`), "HOST"},
	{regexp.MustCompile(`("(?:duration|peakMemory)": )\d+`), "${1}N"},
	{regexp.MustCompile(`("key": "(?:waitTime|initTime|peakMemory)",\s+"value": )\d+`), "${1}N"},
	{regexp.MustCompile(` +(\d+(\.\d+)?(ms|µs|s|m))+ +`), " DURATION "},
	{regexp.MustCompile(`(\S) {2,}`), "$1 "},
	{regexp.MustCompile(`(?m)[ \t]+$`), ""},
}

func mask(text string) string {
	text = canonical(text)
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.to)
	}
	return text
}

// canonical rewrites the JSON that begins at the start of a line: sorted where the clients' Go maps leave the order to
// chance.
func canonical(text string) string {
	var out strings.Builder
	for text != "" {
		line, _, _ := strings.Cut(text, "\n")
		if strings.HasPrefix(line, "{") || strings.HasPrefix(line, "[") {
			d := json.NewDecoder(strings.NewReader(text))
			d.UseNumber()
			var v any
			if err := d.Decode(&v); err == nil {
				order(v)
				e := json.NewEncoder(&out)
				e.SetEscapeHTML(false)
				e.SetIndent("", " ")
				e.Encode(v)
				text = strings.TrimPrefix(text[d.InputOffset():], "\n")
				continue
			}
		}
		n := min(len(line)+1, len(text))
		out.WriteString(text[:n])
		text = text[n:]
	}
	return out.String()
}

// order sorts lists of keys and values, and a package's actions.
func order(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, w := range v {
			order(w)
			if list, ok := w.([]any); ok && name == "actions" {
				sortBy(list, "name")
			}
		}
	case []any:
		for _, w := range v {
			order(w)
		}
		sortBy(v, "key")
	}
}

// sortBy sorts objects by a field, where all of them have it.
func sortBy(list []any, field string) {
	key := func(v any) string {
		m, _ := v.(map[string]any)
		s, _ := m[field].(string)
		return s
	}
	if !slices.ContainsFunc(list, func(v any) bool { return key(v) == "" }) {
		slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(key(a), key(b)) })
	}
}

const prompt = "$ "

// golden compares steps with testdata/name.golden, step by step.
func golden(t *testing.T, name string, steps []step) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	data, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want, header := map[string]string{}, ""
	var order []string
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, prompt); ok {
			header = strings.TrimSuffix(rest, "\n")
			for n, base := 2, header; slices.Contains(order, header); n++ {
				header = fmt.Sprintf("%s #%d", base, n)
			}
			order = append(order, header)
			continue
		}
		want[header] += line
	}
	var text bytes.Buffer
	var got []string
	for _, s := range steps {
		header := s.header()
		for n, base := 2, header; slices.Contains(got, header); n++ {
			header = fmt.Sprintf("%s #%d", base, n)
		}
		got = append(got, header)
		out := mask(s.out)
		if out != "" && !strings.HasSuffix(out, "\n") {
			out += "\n"
		}
		if s.skipped() {
			out = want[header]
		} else if why, known := deviations[name+": "+header]; known {
			if out == want[header] {
				t.Errorf("%s: is as OpenWhisk's now: take it from the deviations", header)
			}
			t.Logf("%s deviates: %s", header, why)
			out = want[header]
		} else if diff := cmp.Diff(want[header], out); diff != "" && !*update {
			t.Errorf("%s (-golden +now):\n%s", header, diff)
		}
		fmt.Fprintf(&text, "%s%s\n%s", prompt, s.header(), out)
	}
	if *update {
		if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(order, got); diff != "" {
		t.Errorf("the steps are not those of %s: run with -update (-golden +now):\n%s", file, diff)
	}
}
