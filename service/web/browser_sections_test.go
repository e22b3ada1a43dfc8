package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/disdel/disdel"
)

// staged is a job whose network trains in two stages, two rounds of two activations each.
func staged(tenant string, number int) *disdel.Record {
	r := job(tenant, "staged", number)
	r.Plan.Stages = []disdel.PlannedStage{
		{First: "conv1", Last: "pool1", Memory: 170 * disdel.MB, Weights: 2 * disdel.MB, Passes: 4096},
		{First: "fc", Last: "softmax", Memory: 150 * disdel.MB, Weights: disdel.MB},
	}
	first := r.Activations[0]
	r.Activations = nil
	for i := range 4 {
		a := first
		a.Round, a.Member = i/2, i%2
		a.ID, a.Invocation.ID = disdel.ActivationID(fmt.Sprintf("%032x", i)), fmt.Sprintf("round %d/train/%d", i/2, i%2)
		a.Start = r.Created.Add(time.Duration(i/2) * time.Second)
		a.End, a.WaitTime = a.Start.Add(time.Second), disdel.Millis(100*time.Millisecond)
		a.Peak -= disdel.Bytes(20*a.Member) * disdel.MB
		a.Phases = map[string]disdel.Millis{
			"load": disdel.Millis(50 * time.Millisecond), "compute": disdel.Millis(700 * time.Millisecond),
			"push": disdel.Millis(150 * time.Millisecond),
		}
		r.Activations = append(r.Activations, a)
	}
	return r
}

// The section of stages is a link among those of the job: the address names it, and the back button leads to the
// section before it. Its bars tell their values. Axe finds nothing in the sections, and a phone shows them.
func TestStagesInABrowser(t *testing.T) {
	h := newHouse(t)
	c := newChromium(t)
	r := staged("ann", 1)
	h.save(r)
	c.signIn(h, "ann submit")
	address := h.URL + jobAddress(r.ID)
	c.do(chromedp.Navigate(address), chromedp.WaitVisible("#job"))
	c.do(chromedp.Click(`//nav[@aria-label="Sections of the job"]//a[text()="Stages"]`))
	c.until(`location.search === "?section=stages" && document.querySelectorAll("figure").length === 2`)
	for _, want := range []string{"conv1 to pool1", "180 MB", "160 MB", "1.40 s"} {
		if !c.is(fmt.Sprintf(`document.querySelector("table").innerText.includes(%q)`, want)) {
			t.Errorf("the table of stages has no %q", want)
		}
	}
	c.do(chromedp.Click(`//nav[@aria-label="Sections of the job"]//a[text()="Timeline"]`))
	c.until(`location.search === "?section=timeline"`)
	c.is(`history.back()`)
	c.until(`location.search === "?section=stages" && document.querySelectorAll("figure").length === 2`)
	for i, section := range []string{"stages", "timeline", "memory"} {
		c.views(address+"?section="+section, 70+i)
	}
}

// A bar tells what it is in the page's own tip, at the pointer and by the arrow keys: in a picture with an axis that
// can be zoomed and in one without. Its letters are not larger than the headings of the page.
func TestBarsTellWhatTheyAre(t *testing.T) {
	h := newHouse(t)
	c := newChromium(t)
	r := staged("ann", 1)
	r.Activations[1].Outcome = disdel.OutcomeTimeout
	h.save(r)
	c.signIn(h, "ann submit")
	const tip = `document.getElementById("tip").innerText.replaceAll("\n", " ")`
	for section, want := range map[string][2]string{
		"timeline": {"train action of worker 0 in round 1, attempt 1 success, queue 0.10 s", "run 1.00 s"},
		"memory":   {"train 0 highest peak 180 MB", "train 0 limit 256 MB"},
		"stages":   {"stage 1 highest peak 180 MB", "stage 1 estimate 170 MB"},
	} {
		c.do(chromedp.EmulateViewport(1440, 900), chromedp.Navigate(h.URL+jobAddress(r.ID)+"?section="+section),
			chromedp.WaitVisible("figure > svg[tabindex]"))
		if !c.is(`document.querySelector("figure > svg text").getBoundingClientRect().height < 24`) {
			t.Errorf("%s: the letters of the picture are as large as a title", section)
		}
		c.is(`(() => { const box = document.querySelector("figure > svg rect").getBoundingClientRect();
			document.elementFromPoint(box.left + box.width / 3, box.top + box.height / 2)
				.dispatchEvent(new PointerEvent("pointerover", { bubbles: true, clientX: box.left, clientY: box.top })) })()`)
		c.until(fmt.Sprintf(`!document.getElementById("tip").hidden && %s === %q`, tip, want[0]))
		if c.is(`document.querySelector("figure > svg rect").querySelector("title")`) {
			t.Errorf("%s: the browser shows the title of the bar too", section)
		}
		c.is(`document.querySelector("figure > svg").focus()`)
		c.do(chromedp.KeyEvent(kb.ArrowRight))
		c.until(fmt.Sprintf(`document.querySelectorAll(".read").length === 1 && %s === %q`, tip, want[0]))
		c.do(chromedp.KeyEvent(kb.ArrowRight))
		c.until(fmt.Sprintf(`%s.includes(%q)`, tip, want[1]))
		for _, found := range c.axe() {
			t.Errorf("%s: axe finds %s", section, found)
		}
		c.photograph(75, "light-"+section)
		c.do(chromedp.KeyEvent(kb.Escape))
		c.until(`document.getElementById("tip").hidden && !document.querySelector(".read")`)
	}
}

// Jobs that predict numbers are compared by their RMSE by round, in both themes. A value of a job file is shown as its
// author wrote it.
func TestACompareOfNumbersInABrowser(t *testing.T) {
	h := newHouse(t)
	c := newChromium(t)
	var address strings.Builder
	address.WriteString(h.URL + "/ui/compare?")
	for i := range 2 {
		r := job("ann", fmt.Sprintf("prices-%d", i+1), i+1)
		r.Job.Metadata.Labels = map[string]string{"study": []string{"a->b", "a&b"}[i]}
		r.Job.Training.BatchSize, r.Data.Targets = 32<<i, []disdel.Target{{Name: "price", Deviation: 1}}
		for k := range r.Rounds {
			r.Rounds[k].Accuracy = nil
			r.Rounds[k].RMSE, r.Rounds[k].R2 = float64(10*(3-k)+i), new(0.5)
		}
		r.Scores = r.Rounds[2].Scores
		h.save(r)
		address.WriteString("&job=" + string(r.ID))
	}
	c.signIn(h, "ann submit")
	c.do(chromedp.Navigate(address.String()), chromedp.WaitVisible("svg[data-axis]"))
	const chart = `[...document.querySelectorAll("figure")].find((one) => one.innerText.startsWith("RMSE by round"))`
	if !c.is(chart + `?.querySelectorAll("path.line[data-at]").length === 2`) {
		t.Error("no chart has the RMSE of both jobs by round")
	}
	if c.is(`document.body.innerText.includes("Accuracy by round") || document.body.innerText.includes("u003e")`) ||
		!c.is(`document.body.innerText.includes("a->b") && document.body.innerText.includes("a&b")`) {
		t.Error("the page shows an accuracy of numbers, or a value other than it was written")
	}
	if !c.is(`document.getElementById("best").innerText.endsWith("has the lowest RMSE: 10.")`) {
		t.Error("numbers are not judged by their RMSE")
	}
	c.is(chart + `.querySelector("svg").focus()`)
	c.do(chromedp.KeyEvent(kb.End))
	c.until(`document.getElementById("tip").innerText.includes("prices-2") &&
		document.querySelector("#tip table").rows[1].cells[1].innerText === "11"`)
	c.views(address.String(), 77)
}

// A job file offers the fields that fit at the cursor, and the values of a field. The keyboard puts the first one in.
func TestAJobFileIsCompleted(t *testing.T) {
	h := newHouse(t)
	c := newChromium(t)
	c.signIn(h, "ann submit")
	c.do(chromedp.Navigate(h.URL+"/ui/submit"), chromedp.WaitVisible("#file"))
	typed := func(text string) {
		c.is(fmt.Sprintf(`(() => { const file = document.getElementById("file"); file.value = %q; file.focus();
			file.setSelectionRange(file.value.length, file.value.length); file.dispatchEvent(new Event("input")) })()`, text))
	}
	const shown = `[...document.querySelectorAll("#offered button")].map((one) => one.textContent).join(" ")`
	typed("training:\n  batch: {size: 4}\n  epo")
	c.until(shown + ` === "epochs"`)
	c.do(chromedp.KeyEvent(kb.Tab))
	c.until(`document.activeElement.textContent === "epochs"`)
	c.until(`document.getElementById("tip").innerText.includes("Passes over the training rows.")`)
	c.is(`document.getElementById("file").focus()`)
	c.is(`document.getElementById("file").dispatchEvent(
		new KeyboardEvent("keydown", { key: " ", ctrlKey: true, bubbles: true }))`)
	c.until(`document.getElementById("file").value.endsWith("\n  epochs: ")`)
	typed("training:\n  earlyStop:\n    keep: ")
	c.until(shown + `.split(" ").length > 1 && document.querySelector("#offered button").dataset.tip.includes("; ")`)
	typed("training: {batchSize: 4, optimizer: {adam: {learn")
	c.until(shown + ` === "learningRate"`)
	c.is(`document.querySelector("#offered button").click()`)
	c.until(`document.getElementById("file").value.endsWith("{adam: {learningRate: ")`)
	typed("data: {source: dataset://digits}")
	c.until(`!document.querySelector("#offered button")`)
	typed("training: {earlyStop: {patience: 2}, earlyStop: {keep: ")
	c.until(shown + `.split(" ").length > 1`)
	typed("training: {earlyStop: {patience: 2}, epo")
	c.until(shown + ` === "epochs"`)
	typed("da")
	c.until(shown + ` === "data"`)
	typed("data:\n  ")
	c.until(shown + `.includes("source")`)
	for _, scheme := range []string{"light", "dark"} {
		c.prefers(scheme)
		for _, found := range c.axe() {
			t.Errorf("%s: axe finds %s", scheme, found)
		}
		c.photograph(78, scheme)
	}
	typed("")
	c.until(shown + `.includes("training")`)
	typed("nothing:\n  ")
	c.until(`!document.querySelector("#offered button")`)
}
