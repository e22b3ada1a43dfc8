package report_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// element is one element of a page: its name, attributes and place.
type element struct {
	name   string
	attr   map[string]string
	within []string
}

// elements reads a page strictly: every element that is opened is closed where it should be.
func elements(t *testing.T, page string) []element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.AutoClose = []string{"meta"}
	d.Entity = xml.HTMLEntity
	d.Strict = true
	var out []element
	var open []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
		switch v := token.(type) {
		case xml.StartElement:
			e := element{v.Name.Local, map[string]string{}, append([]string(nil), open...)}
			for _, a := range v.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			out = append(out, e)
			open = append(open, v.Name.Local)
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
}

// strictly makes what HTML allows and XML does not into the same in XML.
func strictly(page string) string {
	page = strings.Replace(page, "<!DOCTYPE html>", "", 1)
	return regexp.MustCompile(`(<meta [^>]*)>`).ReplaceAllString(page, "$1/>")
}

var allowedElements = strings.Fields(`html head meta title style body header main section h1 h2 h3 p span dl div dt dd small ul li figure figcaption
	svg g path rect line circle text pre table caption thead tbody tr th td details summary button b`)

// Names, labels, log lines, evidence and ids of the hostile record hold markup; the page has none but its own.
func TestHostileTextMakesNoMarkup(t *testing.T) {
	r := load(t, "hostile")
	r.Activations[0].Task = "<script>alert(10)</script>"                      // a name in a plot
	r.Activations[len(r.Activations)-1].Task = `"><script>alert(11)</script>` // and in its text alternative
	page := html(t, r)
	for _, e := range elements(t, strictly(page)) {
		if !strings.Contains(" "+strings.Join(allowedElements, " ")+" ", " "+e.name+" ") {
			t.Errorf("element %s in %v", e.name, e.within)
		}
		for name := range e.attr {
			if strings.HasPrefix(name, "on") || name == "style" {
				t.Errorf("attribute %s of %s", name, e.name)
			}
		}
	}
	for _, alert := range []int{1, 2, 3, 4, 6, 9, 10, 11} {
		if !strings.Contains(page, fmt.Sprintf("alert(%d)", alert)) {
			t.Errorf("the text with alert(%d) is not shown at all", alert)
		}
	}
	for name, out := range map[string]string{
		"page": page, "text": text(t, load(t, "hostile")),
		"markdown": markdown(t, load(t, "hostile")),
	} {
		for _, c := range out {
			if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f && c < 0xa0 || c == '\u202e' {
				t.Errorf("%s: control character %U", name, c)
			}
		}
		if strings.Contains(out, "[31m") && !strings.Contains(out, `\e[31m`) || strings.Contains(out, "[2J") ||
			strings.Contains(out, "owned") {
			t.Errorf("%s: a rest of a terminal sequence", name)
		}
	}
	if md := markdown(t, load(t, "hostile")); strings.Contains(regexp.MustCompile("(?s)````.*?````").ReplaceAllString(md,
		""), "<script") {
		t.Errorf("markdown has markup:\n%s", md)
	}
}

// The page is one file: it asks for nothing else, and its policy would not let it.
func TestPageAsksForNothingElse(t *testing.T) {
	asks := regexp.MustCompile(`(?i)https?:|\burl\(|@import|\b(src|href|srcset|poster|action|data)=`)
	for _, name := range names {
		page := html(t, load(t, name))
		if name == "hostile" {
			page = strings.ReplaceAll(page, "&lt;img src=", "")
		}
		if found := asks.FindString(page); found != "" {
			t.Errorf("%s: %q", name, found)
		}
		if !strings.Contains(page, `content="default-src 'none'; style-src 'unsafe-inline'"`) {
			t.Errorf("%s: no policy", name)
		}
	}
}

// Plots have titles and text alternatives, axes names, tables captions, and columns and rows heads.
func TestPageCanBeReadWithoutSeeingIt(t *testing.T) {
	for _, name := range names {
		count := map[string]int{}
		for _, e := range elements(t, strictly(html(t, load(t, name)))) {
			parent := ""
			if len(e.within) > 0 {
				parent = e.within[len(e.within)-1]
			}
			count[parent+" "+e.name]++
			count[e.name]++
			if e.name == "svg" && parent == "figure" && (e.attr["role"] != "img" || len(e.attr["aria-label"]) < 20) {
				t.Errorf("%s: a plot without a text alternative: %v", name, e.attr)
			}
			if e.name == "th" && e.attr["scope"] == "" {
				t.Errorf("%s: a head that belongs to nothing", name)
			}
		}
		if count["figure"] == 0 || count["figure"] != count["figure figcaption"] || count["figure"] != count["figure svg"] {
			t.Errorf("%s: figures %v", name, count)
		}
		if count["table"] == 0 || count["table"] != count["table caption"] || count["h1"] != 1 {
			t.Errorf("%s: tables %v", name, count)
		}
	}
}

func TestPageShowsWhatTheRecordHas(t *testing.T) {
	for name, want := range map[string][]string{
		"succeeded": {
			"Loss by round", "Accuracy by round", "Memory of the train actions", "Activations over time",
			"limit: 224 MB", "limit: 336 MB", "estimate, nine of ten: 168 to 231 MB", "seconds since the job began",
			`class="cross"`, "cold start",
		},
		"oom": {
			"Memory of the train action of worker 1 in round 3", "seconds since its invocation",
			"0.77 s before the end", "--set training.batchSize=128", "batchSize: 512",
		},
		"missing": {"without worker 3"},
		"old":     {"ran out of memory at its limit of 128 MB"},
	} {
		page := html(t, load(t, name))
		for _, w := range want {
			if !strings.Contains(page, w) {
				t.Errorf("%s: no %q", name, w)
			}
		}
	}
}

// The page has the memory of each layer, of a very deep network that of its 200 largest, folded.
func TestPageHasTheMemoryOfLayers(t *testing.T) {
	rec := load(t, "succeeded")
	rec.Plan.Actions = []disdel.ActionPlan{{Task: disdel.TaskTrain}}
	layers := &rec.Plan.Actions[0].Estimate.Layers
	for i := range 300 {
		*layers = append(*layers, disdel.LayerEstimate{
			Name: fmt.Sprintf("layer-%03d", i), Op: "dense", ParameterBytes: disdel.Bytes(1+i) * disdel.MB,
			ActivationBytes: disdel.KB,
		})
	}
	all := html(t, rec)
	if n := strings.Count(all, ">layer-"); n != 200 || !strings.Contains(all, "<summary>Memory by layer</summary>") ||
		!strings.Contains(all, "layer-100<") || strings.Contains(all, "layer-099<") || !strings.Contains(all, "of all 300") {
		t.Errorf("%d layers of 300", n)
	}
	*layers = nil
	if strings.Contains(html(t, rec), "Memory by layer") {
		t.Error("a plan without layers has a table of them")
	}
}

// A day of rounds stays a page that a browser opens at once, and a loss that is no number leaves the plot whole.
func TestPageOfALongJob(t *testing.T) {
	r := load(t, "succeeded")
	first := r.Activations[0]
	r.Activations, r.Rounds = nil, nil
	for round := range 1000 {
		for w := range 16 {
			a := first
			a.Round, a.Member = round, w
			a.Start = first.Start.Add(time.Duration(round) * time.Minute)
			a.End = a.Start.Add(50 * time.Second)
			r.Activations = append(r.Activations, a)
		}
		r.Rounds = append(r.Rounds, disdel.Round{Round: round, TrainLoss: 1 / float64(round+1)})
	}
	r.Rounds[500].TrainLoss = math.NaN()
	page := html(t, r)
	if len(page) > 3<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
	for e := range strings.SplitSeq(page, "<path") {
		if d, _, _ := strings.Cut(e, ">"); strings.Contains(d, "NaN") || strings.Contains(d, "Inf") {
			t.Fatalf("a path without a number: %.200s", d)
		}
	}
	if !strings.Contains(page, "hours since the job began") {
		t.Error("16 hours are shown in seconds")
	}
}
