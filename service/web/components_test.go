package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"golang.org/x/net/html"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/report"
)

// components is the sheet with every part of the pages, as a page of its own.
func components(t *testing.T) string {
	t.Helper()
	sheet, err := os.ReadFile("testdata/components.gohtml")
	if err != nil {
		t.Fatal(err)
	}
	compared := report.Compare([]disdel.Record{*job("ann", "small", 1), *job("ann", "large", 2)})
	figures := compared.Figures(report.CurveOptions{})
	f := frame{SignedIn: true, May: true, Parts: parts, view: view{Title: "Components", Body: struct {
		Figures []report.Figure
		States  []string
	}{figures, []string{"succeeded", "running", "queued", "doubtful", "failed", "paused"}}}}
	page, err := f.render(parse(pagesText+string(sheet)), "components")
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// The sheet has a section for every part that the design names, so that no part is drawn without being looked at.
func TestTheSheetHasEveryPart(t *testing.T) {
	doc, err := html.Parse(strings.NewReader(components(t)))
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	each(doc, func(n *html.Node) {
		if n.Data == "h2" {
			shown[words(n)] = true
		}
	})
	design, err := os.ReadFile("../../docs/explanation/page.md")
	if err != nil {
		t.Fatal(err)
	}
	_, design, _ = cutAll(design, "\n## Parts\n", "\n## Views\n")
	named := regexp.MustCompile(`(?m)^- \*\*([^*]+)\*\*:`).FindAllSubmatch(design, -1)
	if len(named) < 8 {
		t.Errorf("the design names only %d parts", len(named))
	}
	for _, m := range named {
		if !shown[string(m[1])] {
			t.Errorf("the sheet lacks the part %q: %v", m[1], shown)
		}
	}
}

// cutAll cuts a text at two marks.
func cutAll(text []byte, first, second string) (before, between, after []byte) {
	a, rest, _ := strings.Cut(string(text), first)
	b, c, _ := strings.Cut(rest, second)
	return []byte(a), []byte(b), []byte(c)
}

// The sheet in a browser: axe finds nothing in it, also while a dialog is open.
func TestTheSheetInABrowser(t *testing.T) {
	c := newChromium(t)
	mux := http.NewServeMux()
	mux.Handle("/", Handler(Config{}))
	mux.HandleFunc("/ui/components", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Write([]byte(components(t))) //nolint:errcheck // the browser went away
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	c.views(s.URL+"/ui/components", 50)
	c.do(chromedp.KeyEvent("?"))
	c.until(`document.getElementById("go").open`)
	for _, found := range c.axe() {
		t.Errorf("axe finds %s in the dialog", found)
	}
	c.photograph(51, "light")
}

// A label shows its meaning to the keyboard and to a tap, and to the pointer over it.
func TestALabelShowsItsMeaning(t *testing.T) {
	h := newHouse(t)
	c := newChromium(t)
	r := job("ann", "small", 1)
	h.save(r)
	c.signIn(h, "ann submit")
	c.do(chromedp.Navigate(h.URL+jobAddress(r.ID)+"?section=memory"), chromedp.WaitVisible(".what"))
	const shown = `document.querySelector(".meaning:popover-open")?.textContent.includes("OpenWhisk ends the action")`
	c.is(`document.querySelector('[popovertarget="what-timeout"]').focus()`)
	c.do(chromedp.KeyEvent(kb.Enter))
	c.until(shown)
	c.photograph(53, "light")
	c.do(chromedp.KeyEvent(kb.Escape))
	c.until(`!document.querySelector(".meaning:popover-open")`)
	c.is(`document.querySelector('[popovertarget="what-timeout"]')
		.dispatchEvent(new PointerEvent("pointerover", { bubbles: true, pointerType: "mouse" }))`)
	c.until(shown)
	for _, found := range c.axe() {
		t.Errorf("axe finds %s", found)
	}
	c.is(`document.querySelector("h1").dispatchEvent(` +
		`new PointerEvent("pointerover", { bubbles: true, pointerType: "mouse" }))`)
	c.until(`!document.querySelector(".meaning:popover-open")`)
}

// The page after an action tells what was done, once; the words come from the server, whatever the cookie says.
func TestAnActionIsTold(t *testing.T) {
	h := newHouse(t)
	r := job("ann", "small", 1)
	r.Status = disdel.StatusRunning
	h.save(r)
	b := h.signedIn("ann submit")
	res, _ := b.send("POST", jobAddress(r.ID)+"/pause", url.Values{})
	i := slices.IndexFunc(res.Cookies(), func(c *http.Cookie) bool { return c.Name == doneCookie })
	if res.StatusCode != http.StatusSeeOther || i < 0 || !res.Cookies()[i].HttpOnly {
		t.Fatalf("%d %v", res.StatusCode, res.Cookies())
	}
	b.extra = doneCookie + "=" + res.Cookies()[i].Value
	res, text := b.send("GET", res.Header.Get("Location"), nil)
	if doc := b.sound("the page after", text); !strings.Contains(words(doc), outcomes["pause"]) {
		t.Errorf("the page does not tell what was done: %s", words(doc))
	}
	if i := slices.IndexFunc(res.Cookies(), func(c *http.Cookie) bool { return c.Name == doneCookie }); i < 0 ||
		res.Cookies()[i].MaxAge >= 0 {
		t.Errorf("the message is told again: %v", res.Cookies())
	}
	b.extra = doneCookie + "=You+won"
	if _, text := b.page(Root); strings.Contains(text, "won") || strings.Contains(text, `class="toast"`) {
		t.Error("a cookie chooses the words of a message")
	}
}

// With the script an action leaves the place as it is: the section, and where it is scrolled.
func TestAnActionKeepsThePlace(t *testing.T) {
	h := newHouse(t)
	c := newChromium(t)
	r := job("ann", "small", 1)
	r.Status = disdel.StatusRunning
	h.save(r)
	c.signIn(h, "ann submit")
	c.do(chromedp.Navigate(h.URL+jobAddress(r.ID)+"?section=memory"), chromedp.WaitVisible(".danger, summary"))
	c.is(`(() => { const form = document.querySelector('form[action$="/cancel"]');
		form.action = "/ui/jobs/none/cancel"; form.querySelector("button").click() })()`)
	c.until(`document.querySelector("#done.wrong")?.textContent.includes("none")`)
	c.is(`(window.same = true, document.querySelector('form[action$="/pause"] button').click())`)
	c.until(`document.getElementById("done").className.includes("toast")`)
	c.until(`document.getElementById("done").textContent.includes("asked to pause")`)
	if !c.is(`window.same && location.search === "?section=memory"`) {
		t.Error("the action left its place")
	}
	c.photograph(52, "light")
	c.is(`document.querySelector("#done .close").click()`)
	c.until(`getComputedStyle(document.getElementById("done")).display === "none"`)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.complaints = slices.DeleteFunc(c.complaints, func(s string) bool { return strings.Contains(s, "404") })
}

// labelled checks that every head of a column, tile and field has a label that shows its meaning. Names of users are no
// labels: of jobs, classes and fields of the job file.
func labelled(t *testing.T, path string, doc *html.Node) {
	t.Helper()
	hints, ids, marks := []string{}, map[string]bool{}, map[string]bool{}
	each(doc, func(n *html.Node) {
		ids[attribute(n, "id")] = true
		if to := attribute(n, "popovertarget"); to != "" {
			hints = append(hints, to)
			if before := n.PrevSibling; before != nil && before.PrevSibling != nil && before.PrevSibling.Data == "label" {
				marks[attribute(before.PrevSibling, "for")] = true
			}
		}
	})
	for _, to := range hints {
		if !ids[to] {
			t.Errorf("%s: the label %s has no meaning on the page", path, to)
		}
	}
	each(doc, func(n *html.Node) {
		head := n.Data == "th" && attribute(n, "scope") == "col" && attribute(n, "title") == ""
		tile := n.Data == "dt" && n.Parent.Parent != nil && attribute(n.Parent.Parent, "class") == "tiles"
		field := n.Data == "label" && attribute(n, "for") != "" && !slices.Contains(unlabelled, words(n))
		if field && !marks[attribute(n, "for")] || (head || tile) && !hasLabel(n) {
			t.Errorf("%s: no meaning for the label %q", path, words(n))
		}
	})
}

// unlabelled are fields that mean what they say.
var unlabelled = []string{"Token", "to", "or rows, one a line", "Name"}

// hasLabel tells whether a head has a label, or needs none.
func hasLabel(n *html.Node) (ok bool) {
	each(n, func(in *html.Node) {
		ok = ok || attribute(in, "popovertarget") != "" || strings.HasPrefix(attribute(in, "href"), "/ui/jobs/")
	})
	for up := n.Parent; up != nil; up = up.Parent {
		ok = ok || attribute(up, "class") == "matrix" || attribute(up, "data-names") != "" || up.Data == "template"
	}
	return ok || words(n) == ""
}
