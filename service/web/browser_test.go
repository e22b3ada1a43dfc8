package web

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	browserpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/disdel/disdel"
)

// chromium is a browser without a window, with everything that it complains of.
type chromium struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string // guarded by mu
}

func newChromium(t *testing.T) *chromium {
	t.Helper()
	path := os.Getenv("DISDEL_TEST_CHROMIUM")
	if path == "" {
		t.Skip("DISDEL_TEST_CHROMIUM names no browser")
	}
	// A browser of a busy machine may take its time. It is ended in order, which the end of the test's own context is not.
	limited, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.WSURLReadTimeout(2*time.Minute), chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
			cmd.WaitDelay = 10 * time.Second // processes of a killed browser may keep its output open
		}))
	all, end := chromedp.NewExecAllocator(limited, options...)
	ctx, quit := chromedp.NewContext(all)
	c := &chromium{t: t, ctx: ctx}
	t.Cleanup(func() {
		c.end(stop, func() error {
			defer end()
			defer quit()
			return chromedp.Cancel(ctx)
		})
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.complaints) > 0 {
			t.Errorf("the browser complains: %q", c.complaints)
		}
	})
	if err := chromedp.Listen(ctx, c.hear); err != nil {
		t.Fatal(err)
	}
	return c
}

// end closes the browser in order. A browser that does not end within a minute is killed, and the test goes on without it.
func (c *chromium) end(kill func(), inOrder func() error) {
	defer kill()
	ended := make(chan error, 1)
	go func() { ended <- inOrder() }()
	select {
	case err := <-ended:
		if err != nil {
			c.t.Error(err)
		}
	case <-time.After(time.Minute):
		c.t.Log("the browser did not close within a minute: it is killed")
	}
}

// hear notes what no page may do: errors of scripts, what the policy forbids, dialogs.
func (c *chromium) hear(event any) {
	said := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		said = fmt.Sprintf("%s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			said = e.Entry.Text
		}
	case *browserpage.EventJavascriptDialogOpening:
		said = "a dialog: " + e.Message
	}
	if said != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.complaints = append(c.complaints, said)
	}
}

func (c *chromium) do(actions ...chromedp.Action[chromedp.Void]) {
	c.t.Helper()
	if err := chromedp.Do(c.ctx, actions...); err != nil {
		c.t.Fatal(err)
	}
}

// is tells what an expression comes to.
func (c *chromium) is(expression string) bool {
	c.t.Helper()
	yes, err := chromedp.Run(c.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
	if err != nil {
		c.t.Fatalf("%s: %v", expression, err)
	}
	return yes
}

// until waits for an expression to be true: the page looks with every frame, and says when it is. A navigation ends the
// look, which then begins anew on the page that comes.
func (c *chromium) until(expression string) {
	c.t.Helper()
	ctx, stop := context.WithTimeout(c.ctx, time.Minute)
	defer stop()
	look := "new Promise((found, fail) => { const look = () => { try { (" + expression +
		") ? found(true) : requestAnimationFrame(look) } catch (thrown) { fail(thrown) } }; look() })"
	for {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](look, chromedp.EvalAwaitPromise))
		if err == nil {
			return
		}
		if _, thrown := errors.AsType[*chromedp.ExceptionError](err); thrown || ctx.Err() != nil {
			text, _ := chromedp.Run(c.ctx, chromedp.Evaluate[string]("document.body.innerText"))
			c.t.Fatalf("never %s: %v\n%s", expression, err, text)
		}
	}
}

// prefers has the browser say that its user prefers light or dark.
func (c *chromium) prefers(scheme string) {
	c.t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
	if _, err := chromedp.Call(c.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		c.t.Fatal(err)
	}
}

// axe is what axe-core finds that keeps people from a page. DevTools put its script in, whatever the page's policy
// says.
func (c *chromium) axe() []string {
	c.t.Helper()
	file := os.Getenv("DISDEL_TEST_AXE")
	if file == "" {
		return nil
	}
	script, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	found, err := chromedp.Run(c.ctx, chromedp.Evaluate[[]string](string(script)+`;
		axe.run(document, { resultTypes: ["violations"] }).then((found) => found.violations
			.map((v) => v.id + ": " + v.help + ": " + v.nodes[0].html.slice(0, 200)))`, chromedp.EvalAwaitPromise))
	if err != nil {
		c.t.Fatal(err)
	}
	return found
}

// photograph stores pictures of a view by its number, as wide as a desk and as a phone, in DISDEL_TEST_PICTURES.
func (c *chromium) photograph(view int, scheme string) {
	c.t.Helper()
	folder := os.Getenv("DISDEL_TEST_PICTURES")
	if folder == "" {
		return
	}
	for _, width := range []int64{1440, 400} {
		c.do(chromedp.EmulateViewport(width, 900))
		png, err := chromedp.Run(c.ctx, chromedp.FullScreenshot(100))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, fmt.Sprintf("%02d-%s-%d.png", view, scheme, width)), png, 0o644)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

// views looks at a page in both themes: it fits a phone, and axe finds nothing. The pictures have the number.
func (c *chromium) views(address string, number int) {
	c.t.Helper()
	c.do(chromedp.EmulateViewport(400, 800), chromedp.Navigate(address), chromedp.WaitReady("#main"))
	if strings.HasSuffix(address, "#all") { // with all that opens
		c.is(`document.querySelectorAll("details").forEach((part) => { part.open = true })`)
	}
	if !c.is("document.documentElement.scrollWidth <= 400") {
		c.t.Errorf("%s is wider than a phone", address)
	}
	for scheme, light := range map[string]bool{"light": true, "dark": false} {
		c.prefers(scheme)
		if got := c.is(`getComputedStyle(document.body).backgroundColor === "rgb(246, 247, 249)"`); got != light {
			c.t.Errorf("%s in %s: it has the light ground: %v", address, scheme, got)
		}
		for _, found := range c.axe() {
			c.t.Errorf("%s in %s: axe finds %s", address, scheme, found)
		}
		c.photograph(number, scheme)
	}
}

// A chart tells the values of all its lines where the pointer is and where the arrow keys come to. A drag shows a part
// of the axis, and the button shows all of it again.
func TestAChartTellsItsValues(t *testing.T) {
	h := newHouse(t)
	c := newChromium(t)
	r := job("ann", "small", 1)
	h.save(r)
	c.signIn(h, "ann submit")
	c.do(chromedp.Navigate(h.URL+jobAddress(r.ID)+"?section=curves"), chromedp.WaitVisible("#job"))
	const chart = `document.querySelector("svg[data-zoom]")`
	point := func(kind string, share float64) {
		c.t.Helper()
		c.is(fmt.Sprintf(`(() => { const svg = %s, box = svg.getBoundingClientRect();
			svg.dispatchEvent(new PointerEvent(%q, { bubbles: true, clientY: box.top + 50,
				clientX: box.left + box.width * (60 + 408 * %g) / 480 })) })()`, chart, kind, share))
	}
	tip := `document.getElementById("tip").textContent`
	point("pointermove", 0.55)
	c.until(tip + ` === "round 2 training loss0.5 held-out loss0.5"`)
	c.is(chart + `.focus()`)
	c.do(chromedp.KeyEvent(kb.ArrowRight))
	c.until(tip + ` === "round 3 training loss0.3333 held-out loss0.3333"`)
	c.do(chromedp.KeyEvent(kb.Escape))
	c.until(`document.getElementById("tip").hidden`)

	point("pointerdown", 0.4)
	point("pointermove", 1)
	c.photograph(90, "light")
	point("pointerup", 1)
	c.until(`location.search.includes("from=1.8&to=3") && ` + chart + `?.dataset.axis.endsWith(" 1.8 3")`)
	if !c.is(chart + `.querySelector("path").dataset.at === "2 0.5,3 0.3333"`) {
		t.Error("the chart does not show the part that was chosen")
	}
	c.do(chromedp.Click(`#zoom a.button`))
	c.until(`!location.search.includes("from=") && ` + chart + `?.dataset.axis.endsWith(" 1 3")`)
}

// A drag and + show a part of a timeline, in which the bars tell their values; 0 and the button show all of it again.
func TestATimelineInABrowser(t *testing.T) {
	h := newHouse(t)
	c := newChromium(t)
	r := job("ann", "small", 1)
	first := &r.Activations[0]
	first.Outcome, first.Cold, first.InitTime = disdel.OutcomeTimeout, true, disdel.Millis(300*time.Millisecond)
	r.Activations[1].Attempt, r.Activations[1].WaitTime = 2, disdel.Millis(200*time.Millisecond)
	h.save(r)
	c.signIn(h, "ann submit")
	c.do(chromedp.Navigate(h.URL+jobAddress(r.ID)+"?section=timeline"), chromedp.WaitVisible("#job"))
	const chart = `document.querySelector("svg[data-zoom]")`
	for _, want := range []string{"queue 0.20 s", "cold start 0.30 s", "attempt 2"} {
		if !c.is(fmt.Sprintf(`%s.textContent.includes(%q)`, chart, want)) {
			t.Errorf("no bar tells %q", want)
		}
	}
	const marks = chart + `.querySelectorAll("rect.cap, path.cross").length === `
	if !c.is(marks + "2") {
		t.Error("a retry and a failure are not marked")
	}
	point := func(kind string, share float64) {
		c.t.Helper()
		c.is(fmt.Sprintf(`(() => { const svg = %s, box = svg.getBoundingClientRect();
			const [left, right] = svg.dataset.axis.split(" ").map(Number), wide = svg.viewBox.baseVal.width;
			svg.dispatchEvent(new PointerEvent(%q, { bubbles: true, clientY: box.top + 20,
				clientX: box.left + box.width * (left + (right - left) * %g) / wide })) })()`, chart, kind, share))
	}
	point("pointerdown", 0.5)
	point("pointermove", 1)
	point("pointerup", 1)
	c.until(`location.search.includes("section=timeline") && location.search.includes("from=1.5&to=3") && ` +
		chart + `?.dataset.axis.endsWith(" 1.5 3") && ` + chart + `.tabIndex === 0`)
	c.photograph(95, "light")
	if c.is(chart+`.textContent.includes("in round 1,")`) || !c.is(marks+"0") {
		t.Error("the part shows what began or ended before it")
	}
	c.is(chart + `.focus()`)
	c.do(chromedp.KeyEvent("+"))
	c.until(`document.readyState === "complete" && location.search.includes("from=1.875&to=2.625") && ` +
		chart + `?.dataset.axis.endsWith(" 1.875 2.625") && ` + chart + `.tabIndex === 0`)
	c.is(chart + `.focus()`)
	c.do(chromedp.KeyEvent("0"))
	c.until(`!location.search.includes("from=1") && ` + chart + `?.dataset.axis.endsWith(" 0 3")`)
}

// A sweep tells of a job where the pointer is and where the keyboard comes to, and its axes are chosen. Curves of a
// comparison are cut and smoothed.
func TestASweepInABrowser(t *testing.T) {
	h := newHouse(t)
	c := newChromium(t)
	var query strings.Builder
	query.WriteString("/ui/compare?")
	for i, rate := range []float64{0.1, 0.01, 0.001, 0.003} {
		r := job("ann", fmt.Sprintf("sweep-%d", i+1), i+1)
		h.complete(r, rate)
		r.Job.Training.BatchSize = 32 << (i % 2)
		r.Rounds[2].Accuracy = new(0.9 - 0.05*float64(i))
		r.CostGBs = float64(1 + i)
		h.save(r)
		query.WriteString("&job=" + string(r.ID))
	}
	c.signIn(h, "ann submit")
	c.do(chromedp.Navigate(h.URL+query.String()), chromedp.WaitVisible(".sweep"))
	tip := `document.getElementById("tip").textContent`
	if c.is(`document.querySelectorAll(".sweep").length !== 2 || document.querySelectorAll(".sweep a").length !== 8`) {
		t.Error("not every job is in both charts")
	}
	c.is(`document.querySelectorAll(".sweep a")[2].dispatchEvent(new PointerEvent("pointerover", { bubbles: true }))`)
	c.until(tip + `.startsWith("3 sweep-3")`)
	c.is(`document.querySelectorAll(".sweep a")[0].focus()`)
	c.do(chromedp.KeyEvent(kb.Tab))
	c.until(tip + `.startsWith("2 sweep-2")`)
	c.is(`document.activeElement.blur()`)
	c.until(`document.getElementById("tip").hidden`)
	c.is(`(() => { const y = document.getElementById("y"); y.value = "cost"; y.dispatchEvent(new Event("change")) })()`)
	c.until(`document.querySelector("figcaption")?.textContent.startsWith("Cost in GB-s by ")`)
	c.is(`(() => { document.getElementById("from").value = "2"; document.getElementById("to").value = "3";
		document.getElementById("smooth").value = "0.5"; document.getElementById("zoom").requestSubmit() })()`)
	c.until(`location.search.includes("from=2&to=3") && location.search.includes("y=cost") &&
		document.querySelector("svg[data-zoom]")?.dataset.axis.endsWith(" 2 3")`)
	c.do(chromedp.Navigate(h.URL+query.String()), chromedp.WaitVisible(".sweep"))
	for _, scheme := range []string{"light", "dark"} {
		c.prefers(scheme)
		c.do(chromedp.EmulateViewport(400, 800))
		if !c.is("document.documentElement.scrollWidth <= 400") {
			t.Error("the sweep is wider than a phone")
		}
		for _, found := range c.axe() {
			t.Errorf("the sweep in %s: axe finds %s", scheme, found)
		}
		c.photograph(91, scheme)
	}
}

// signIn enters with a token.
func (c *chromium) signIn(h *house, token string) {
	c.t.Helper()
	c.do(
		chromedp.Navigate(h.URL+"/ui/"), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", token+"\r"),
		chromedp.WaitVisible("main[data-live]"),
	)
}

// What only a browser can tell: the policy lets the page's own script and style work, a list and a job change in place
// while somebody filters and marks, hostile texts are texts, and a phone shows every page without scrolling sideways.
func TestInABrowser(t *testing.T) {
	h := newHouse(t)
	c := newChromium(t) // which ends before the server, and with it the streams that it reads
	live, other, bad := job("ann", "live", 1), job("ann", "other", 2), hostileJob("ann", 3)
	live.Status = disdel.StatusRunning
	h.save(live, other, bad)
	c.signIn(h, "ann submit")
	c.do(
		chromedp.Navigate(h.URL+"/ui/jobs"),
		chromedp.WaitVisible("#jobs"),
	)
	c.until(`document.getElementById("state")?.textContent === "live"`)

	// The rows of a list are laid out soon, so that it scrolls without gaps.
	c.until(`getComputedStyle(document.querySelector("#jobs tbody tr")).contentVisibility === "visible"`)

	// Somebody filters and marks; then the job goes on.
	row := fmt.Sprintf("document.querySelector('tr[data-key=%q]')", live.ID)
	c.do(
		chromedp.SendKeys("#q", "live"),
		chromedp.Click(fmt.Sprintf("tr[data-key=%q] input", live.ID)),
	)
	c.is(row + ".same = true")
	c.until(`[...document.querySelectorAll("#jobs tbody tr")].filter((row) => !row.hidden).length === 1`)
	live.Status = disdel.StatusSucceeded
	h.save(live)
	c.until(row + `.textContent.includes("succeeded")`)
	if !c.is(row + `.same && ` + row + `.querySelector("input").checked && document.getElementById("q").value === "live" &&
		[...document.querySelectorAll("#jobs tbody tr")].filter((row) => !row.hidden).length === 1 &&
		location.search === "?q=live"`) {
		t.Error("what was marked, typed or hidden did not stay")
	}

	// Two ticks make a comparison; one makes none.
	if c.is(`!document.querySelector("#chosen .primary").disabled`) {
		t.Error("one ticked job can be compared")
	}
	c.is(`document.getElementById("q").value = "", document.getElementById("q").dispatchEvent(new Event("input"))`)
	c.until(fmt.Sprintf("document.querySelector('tr[data-key=%q]')", other.ID))
	c.is(fmt.Sprintf("document.querySelector('tr[data-key=%q] input').click()", other.ID))
	c.until(`document.getElementById("picked").textContent === "2 ticked"`)
	c.is(`document.querySelector("#chosen .primary").click()`)
	c.until(`document.querySelector("h1")?.textContent === "Comparison of 2 jobs"`)

	// A job's page follows the job to its end.
	live.Status = disdel.StatusRunning
	h.save(live)
	c.do(chromedp.Navigate(h.URL+jobAddress(live.ID)), chromedp.WaitVisible("#job"))
	c.until(`document.getElementById("state")?.textContent === "live"`)
	live.Status = disdel.StatusSucceeded
	h.save(live)
	c.until(`document.querySelector("h1")?.textContent?.includes("succeeded") && !document.querySelector(".danger")`)

	// A job file is checked while it is typed.
	c.do(chromedp.Navigate(h.URL+"/ui/submit?job="+string(live.ID)), chromedp.WaitVisible("#file"),
		chromedp.SendKeys("#file", "\nmistyped: 1\n"))
	c.until(`document.getElementById("checked").textContent.includes("mistyped")`)

	ids := []string{string(live.ID), string(bad.ID)}
	for view, path := range []string{
		"/ui/", "/ui/jobs", "/ui/models", "/ui/datasets", "/ui/pool", "/ui/jobs/" + ids[0], "/ui/jobs/" + ids[1],
		"/ui/jobs/" + ids[0] + "?section=curves&scale=log&smooth=0.5&axis=time", "/ui/jobs/" + ids[0] + "?section=memory",
		"/ui/jobs/" + ids[0] + "?section=timeline", "/ui/jobs/" + ids[0] + "?section=logs",
		"/ui/jobs/" + ids[1] + "?section=report", "/ui/jobs/" + ids[1] + "?section=files",
		"/ui/submit?job=" + ids[0], "/ui/compare?job=" + strings.Join(ids, "&job="),
		"/ui/jobs?group=state&cols=state,workers,training.batchSize,tag&q=not+tag:x#all",
	} {
		c.views(h.URL+path, view)
	}
	// The keyboard comes to the content first.
	c.do(chromedp.Navigate(h.URL+"/ui/jobs"), chromedp.WaitVisible("#jobs"), chromedp.KeyEvent("\t"))
	if !c.is(`document.activeElement.getAttribute("href") === "#main"`) {
		t.Error("the first stop of the keyboard is not the link to the content")
	}
}
