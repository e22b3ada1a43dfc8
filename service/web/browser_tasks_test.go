package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	downloads "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/service"
)

// user does a task in a browser, and counts the clicks. After the first error the rest of the task is left out.
type user struct {
	*chromium
	home   string
	clicks int
	err    error
}

// mostClicks bounds the clicks of a task, from the page Home on.
const mostClicks = 4

// try runs actions that end within a minute.
func (u *user) try(actions ...chromedp.Action[chromedp.Void]) {
	if u.err != nil {
		return
	}
	ctx, stop := context.WithTimeout(u.ctx, time.Minute)
	defer stop()
	u.err = chromedp.Do(ctx, actions...)
}

// click clicks on what an XPath or a CSS selector finds.
func (u *user) click(what string) {
	u.clicks++
	if u.try(chromedp.Click(what)); u.err != nil {
		u.err = fmt.Errorf("click %s: %w", what, u.err)
	}
}

// link clicks on a link or a button by its text.
func (u *user) link(text string) {
	u.click(fmt.Sprintf(`//main//*[self::a or self::button][normalize-space()=%q]`, text))
}

// part clicks on a part of the navigation.
func (u *user) part(name string) { u.click(fmt.Sprintf(`//header//a[text()=%q]`, name)) }

// job clicks on the link of a job, and on one of its sections.
func (u *user) job(r *disdel.Record, section string) {
	u.click(fmt.Sprintf(`a[href^=%q]`, jobAddress(r.ID)))
	if section != "" {
		u.click(fmt.Sprintf(`//nav[@aria-label="Sections of the job"]//a[text()=%q]`, section))
	}
}

// until asks for a minute whether something holds. No event of the browser tells it. missing says what it waited for.
func (u *user) until(holds func() bool, missing func() error) {
	for end := time.Now().Add(time.Minute); u.err == nil && !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			u.err = missing()
		}
	}
}

// sees waits for an expression to be true on a page.
func (u *user) sees(expression string) {
	var err error
	u.until(func() (yes bool) {
		yes, err = chromedp.Run(u.ctx, chromedp.Evaluate[bool]("Boolean(document.body && ("+expression+"))"))
		return err == nil && yes
	}, func() error {
		text, _ := chromedp.Run(u.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		return fmt.Errorf("never %s, %v: %s", expression, err, text)
	})
}

// reads waits for a text on a page.
func (u *user) reads(texts ...string) {
	for _, text := range texts {
		u.sees(fmt.Sprintf("document.body.innerText.includes(%q)", text))
	}
}

// fixtures are jobs of all kinds that the tasks are about.
type fixtures struct{ good, failed, blind *disdel.Record }

// fill saves the jobs: three of a sweep, one that ran out of memory, and one that did not learn.
func (h *house) fill() (f fixtures) {
	for i, rate := range []float64{0.1, 0.01, 0.001} {
		r := job("ann", fmt.Sprintf("sweep-%d", i+1), i+1)
		r.Accuracy = 0.7 + 0.1*float64(i)
		r.Rounds[2].Accuracy = &r.Accuracy
		h.complete(r, rate)
		r.Job.Metadata.Labels = map[string]string{"study": "lenet"}
		f.good = r
		if i == 0 {
			r.Created, r.Ended = time.Now().Add(-50*time.Hour), time.Now().Add(-49*time.Hour)
		}
		h.save(r)
		if i < 2 { // an old one and that of last week
			h.tag(r, "paper")
		}
	}
	f.failed, f.blind = job("ann", "wrong", 4), job("ann", "blind", 5)
	h.complete(f.failed, 0.01)
	h.complete(f.blind, 0.01)
	f.failed.Status, f.failed.Model = disdel.StatusFailed, nil
	f.failed.Failure = &disdel.Error{Kind: disdel.OOM, Msg: "it broke", Invocation: f.failed.Activations[2].Invocation.ID}
	last := &f.failed.Activations[2]
	last.Outcome, last.Peak = disdel.OutcomeOutOfMemory, 256*disdel.MB
	f.blind.Learned = new(bool)
	h.save(f.failed, f.blind)
	return f
}

// tag gives a job a tag.
func (h *house) tag(r *disdel.Record, tag string) {
	h.t.Helper()
	store, err := h.s.Tenant(r.Tenant).History(h.t.Context())
	if err == nil {
		err = store.SetRemark(h.t.Context(), r.ID, history.Remark{Tags: []string{tag}})
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// complete gives a record the job file that it could have run from.
func (h *house) complete(r *disdel.Record, rate float64) {
	req, err := readJob(small)
	if err != nil {
		h.t.Fatal(err)
	}
	name := r.Job.Metadata.Name
	r.Job = req.Job
	r.Job.Metadata.Name = name
	r.Job.Training.Optimizer = disdel.Optimizer{Adam: &disdel.Adam{LearningRate: rate}}
}

// Twelve tasks of a user take at most four clicks each, from the page Home on.
func TestTwelveTasks(t *testing.T) {
	h := newHouseOf(t, service.Config{Pool: 700 * disdel.MB})
	c := newChromium(t)
	own := h.s.Tenant("ann")
	if err := own.AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := h.fill()
	folder := t.TempDir()
	picture, table := filepath.Join(folder, "seven.png"), filepath.Join(folder, "flowers.csv")
	h.write(picture, drawnSeven(t))
	h.write(table, flowers())
	c.signIn(h, "ann submit")
	b := h.signedIn("ann submit")
	submitted := func(name string, epochs int) string {
		file := strings.NewReplacer("name: digits\nmodel", "name: "+name+"\nmodel", "epochs: 1",
			fmt.Sprintf("epochs: %d", epochs)).Replace(small)
		res, text := b.send("POST", "/ui/submit", map[string][]string{"file": {file}})
		if res.StatusCode != 303 {
			t.Fatalf("%d %s", res.StatusCode, text)
		}
		return strings.TrimPrefix(res.Header.Get("Location"), "/ui/jobs/")
	}
	real := h.wait("ann", submitted("real", 1))
	u := &user{chromium: c, home: h.URL}
	failed := 0
	for _, task := range []struct {
		name string
		do   func()
	}{
		{"which of three runs is best and what differs", func() {
			u.part("Jobs")
			u.try(chromedp.SendKeys("#q", "label.study = lenet"))
			u.link("Compare the 3 shown")
			u.reads("sweep-3", "has the highest accuracy: 0.9", "training.optimizer.adam.learningRate")
		}},
		{"how near an action was to its limit", func() {
			u.job(f.good, "Memory")
			u.reads("came nearest to its limit: 180 MB of 256 MB")
		}},
		{"start a failed job again with the advised memory", func() {
			u.link("Start again as advised")
			u.sees(`/memory: \d+/.test(document.getElementById("file")?.value)`)
			u.click("#submit .primary")
			u.sees(`document.querySelector("h1").innerText.startsWith("wrong")`)
		}},
		{"start a finished one with half the rate", func() {
			u.job(f.good, "")
			u.link("Clone")
			u.link("Half the rate")
			u.sees(`document.getElementById("file")?.value.includes("learningRate: 0.0005")`)
			u.click("#submit .primary")
			u.sees(`document.querySelector("h1").innerText.startsWith("sweep-3")`)
		}},
		{"find last week's run by tag", func() {
			u.part("Jobs")
			u.link("Last 7 days")
			u.link("tag paper")
			u.sees(`document.querySelectorAll("#jobs tbody tr:not([hidden])").length === 1`)
			u.reads("sweep-1")
		}},
		{"see why a run did not learn", func() {
			u.click(fmt.Sprintf(`a[href=%q]`, jobAddress(f.blind.ID)))
			u.reads("Likely cause", "did not learn")
		}},
		{"download a model as ONNX", func() {
			u.click(fmt.Sprintf(`a[href=%q]`, modelAddress("digits:v1")))
			u.stores(folder)
			u.link("Download as ONNX")
			u.arrives(filepath.Join(folder, "digits.onnx"))
		}},
		{"try a model on a picture", func() {
			u.click(fmt.Sprintf(`a[href=%q]`, modelAddress("digits:v1")))
			u.try(chromedp.SetUploadFiles("#tried", []string{picture}))
			u.link("Ask")
			u.sees(`document.querySelectorAll("#answers tbody tr").length === 1`)
		}},
		{"submit an own CSV", func() {
			u.part("Data sets")
			u.try(chromedp.SetUploadFiles("#table", []string{table}), chromedp.SendKeys("#name", "flowers"),
				chromedp.SendKeys("#label", "species"))
			u.link("Add")
			u.reads("petal", "What is done")
			u.link("Train on it")
			u.click("#submit .primary")
			u.sees(`document.querySelector("h1").innerText.startsWith("flowers")`)
		}},
		{"follow one worker's log", func() {
			u.job(&real, "Logs")
			u.link("train 0")
			u.sees(`[...document.querySelectorAll("#log tbody td:nth-child(2)")].every((cell) => cell.innerText === "train 0")`)
		}},
		{"see who uses the pool", func() {
			submitted("long", 1000)
			u.part("Pool")
			u.sees(`/Memory of the pool by tenant: ann/.test(document.querySelector(".pool")?.ariaLabel)`)
		}},
		{"why a job waits and until when", func() {
			submitted("second", 1000)
			submitted("third", 1000)
			submitted("fourth", 1000)
			u.reads("Waiting", "It needs", "ends next")
		}},
	} {
		u.clicks, u.err = 0, nil
		u.try(chromedp.Navigate(h.URL+"/ui/"), chromedp.WaitVisible("#main"))
		task.do()
		if u.err == nil && u.clicks > mostClicks {
			u.err = fmt.Errorf("it takes %d clicks", u.clicks)
		}
		if u.err != nil {
			failed++
			t.Errorf("%s: %v", task.name, u.err)
			continue
		}
		t.Logf("%s: %d clicks", task.name, u.clicks)
		for _, found := range c.axe() {
			t.Errorf("%s: axe finds %s", task.name, found)
		}
		c.photograph(40+u.clicks, "light-"+strings.ReplaceAll(task.name, " ", "-"))
	}
	t.Logf("figure page_tasks_failed %d tasks", failed)

	// A drawing is a picture to ask about. The key ? opens a list of links.
	u.clicks, u.err = 0, nil
	u.try(chromedp.Navigate(h.URL+modelAddress("digits:v1")), chromedp.WaitVisible("#draw"))
	u.sees(`["pointerdown", "pointermove", "pointerup"].every((kind, i) => {
		const canvas = document.getElementById("draw"), box = canvas.getBoundingClientRect();
		return canvas.dispatchEvent(new PointerEvent(kind, { bubbles: true, buttons: 1,
			clientX: box.left + 90 + i, clientY: box.top + 20 + 120 * i / 2 })) || true })`)
	u.sees(`document.getElementById("tried").files.length === 1`)
	for _, scheme := range []string{"light", "dark"} {
		c.prefers(scheme)
		c.photograph(61, scheme+"-model")
	}
	u.link("Ask")
	u.sees(`document.querySelectorAll("#answers tbody tr").length === 1`)
	u.sees(`document.readyState === "complete"`) // the script of the page hears keys
	u.try(chromedp.KeyEvent("?"))
	if u.sees(`document.getElementById("go").open`); u.err != nil {
		t.Fatal(u.err)
	}
	for _, scheme := range []string{"light", "dark"} {
		c.prefers(scheme)
		for _, found := range c.axe() {
			t.Errorf("the list of links in %s: axe finds %s", scheme, found)
		}
		c.photograph(62, scheme+"-links")
	}
	u.try(chromedp.KeyEvent("Data s\r"))
	if u.sees(`document.querySelector("h1").innerText === "Data sets"`); u.err != nil {
		t.Fatal(u.err)
	}

	// The estimate beside a job file is as accessible as the rest.
	u.clicks, u.err = 0, nil
	u.try(chromedp.Navigate(h.URL+"/ui/submit"), chromedp.WaitVisible("#file"))
	u.link("Check")
	if u.reads("Estimate", "Cost at most"); u.err != nil {
		t.Fatal(u.err)
	}
	if !c.is(`document.getElementById("file").value.startsWith("apiVersion: disdel/v1\nkind")`) {
		t.Error("the check changed the job file")
	}
	for _, scheme := range []string{"light", "dark"} {
		c.prefers(scheme)
		for _, found := range c.axe() {
			t.Errorf("the estimate in %s: axe finds %s", scheme, found)
		}
		c.photograph(60, scheme+"-estimate")
	}
}

func (h *house) write(file string, data []byte) {
	h.t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// stores has the browser store files in a folder.
func (u *user) stores(folder string) {
	_, err := chromedp.CallBrowser(u.ctx, downloads.SetDownloadBehavior, downloads.SetDownloadBehaviorParams{
		Behavior: downloads.SetDownloadBehaviorBehaviorAllow, DownloadPath: folder,
	})
	u.err = cmp.Or(u.err, err)
}

// arrives waits for a downloaded file.
func (u *user) arrives(file string) {
	u.until(func() bool {
		info, err := os.Stat(file)
		return err == nil && info.Size() > 0
	}, func() error { return errors.New("no file was downloaded") })
}

// drawnSeven is a picture of a seven, of 8 by 8 pixels as those of the data set digits.
func drawnSeven(t *testing.T) []byte {
	img := image.NewGray(image.Rect(0, 0, 8, 8))
	for x := 2; x < 7; x++ {
		img.SetGray(x, 1, color.Gray{Y: 255})
		img.SetGray(7-x+1, x, color.Gray{Y: 255})
	}
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// flowers is a table of 60 rows with two classes.
func flowers() []byte {
	var out strings.Builder
	out.WriteString("petal,sepal,species\n")
	for i := range 60 {
		fmt.Fprintf(&out, "%.1f,%.2f,%s\n", 1+float64(i%2)*3, 2+float64(i)/50, []string{"setosa", "virginica"}[i%2])
	}
	return []byte(out.String())
}
