package web

import (
	"bytes"
	_ "embed" // of the pages, their style and their script
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service/tenant"
)

//go:embed pages.gohtml
var pagesText string

//go:embed app.js
var script string

//go:embed icon.svg
var icon string

//go:embed style.css
var ownStyle string

// style is the report's style sheet, whose plots and tables the page shows, with the page's own rules.
func style() string { return report.Style() + ownStyle }

var pages = sync.OnceValue(func() *template.Template { return parse(pagesText) })

// parse reads templates that use the functions of the pages.
func parse(text string) *template.Template {
	return template.Must(template.New("pages").Funcs(template.FuncMap{
		"job": jobAddress, "model": modelAddress, "figure": figure, "when": when, "number": number, "cut": cut,
		"list": strings.Join, "dict": dict, "clock": clock, "sentence": report.Sentence,
		"label": report.Label, "hint": report.Hint,
		"meanings": func(page template.HTML) template.HTML { return report.Meanings(string(page)) },
	}).Parse(text))
}

// view is the data of every page.
type view struct {
	Title string
	Here  string // the part of the page that it belongs to, for the navigation
	Live  string // path of the page's events; "": there are none
	Body  any
}

// frame is the data of the layout.
type frame struct {
	view
	Content  template.HTML
	SignedIn bool
	May      bool // submit, and stop jobs
	Parts    []part
	Done     string // what the user's last action did; "": nothing to tell
}

// part is a link of the navigation.
type part struct{ Name, Path string }

var parts = []part{
	{"Home", Root},
	{"Jobs", Root + "jobs"},
	{"Models", Root + "models"},
	{"Data sets", Root + "datasets"},
	{"Pool", Root + "pool"},
}

// write writes a page.
func (v *visit) write(status int, name string, what view) {
	f := frame{
		view: what, SignedIn: v.s != nil, May: v.role.Allows(tenant.RoleSubmit), Parts: parts, Done: v.outcome(),
	}
	if v.role.Allows(tenant.RoleAdmin) {
		f.Parts = append(slices.Clip(parts), part{"Admin", Root + "admin"})
	}
	page, err := f.render(pages(), name)
	if err != nil {
		http.Error(v.w, "the page could not be written", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	v.w.Write([]byte(page)) //nolint:errcheck // the browser went away
}

// render renders all of a page before any of it is sent, so that an error never leaves half a page.
func (f frame) render(by *template.Template, name string) (string, error) {
	var content, page bytes.Buffer
	err := by.ExecuteTemplate(&content, name, struct {
		view
		May bool
	}{f.view, f.May})
	if err != nil {
		return "", err
	}
	f.Content = template.HTML(content.String()) //nolint:gosec // a template wrote it, which escapes
	err = by.ExecuteTemplate(&page, "layout", f)
	return terminal.Clean(page.String()), err
}

// doneCookie has the key of what the user's last action did, until the next page tells it.
const doneCookie = "disdel_done"

// outcomes are what actions did, as the next page tells it.
var outcomes = map[string]string{
	"pause":   "The job was asked to pause. It keeps its newest checkpoint.",
	"cancel":  "The job was asked to stop. It keeps its newest checkpoint.",
	"submit":  "The job was submitted.",
	"resume":  "The job continues.",
	"promote": "The tag now means this version.",
}

// done redirects to the page that follows an action, which tells what was done.
func (v *visit) done(outcome, address string) {
	http.SetCookie(v.w, v.doneCookie(outcome, 60))
	http.Redirect(v.w, v.Request, address, http.StatusSeeOther)
}

func (v *visit) doneCookie(value string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: doneCookie, Value: value, Path: Root, MaxAge: seconds, HttpOnly: true, Secure: v.TLS != nil,
		SameSite: http.SameSiteStrictMode,
	}
}

// outcome is what the user's last action did. It is told once.
func (v *visit) outcome() string {
	c, err := v.Cookie(doneCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(v.w, v.doneCookie("", -1))
	return outcomes[c.Value]
}

func jobAddress(id disdel.JobID) string { return Root + "jobs/" + url.PathEscape(string(id)) }

// figure is a plot as HTML.
func figure(f report.Figure) (template.HTML, error) {
	var out bytes.Buffer
	err := report.WriteFigure(&out, f)
	return template.HTML(out.String()), err //nolint:gosec // a template wrote it, which escapes
}

// when is a time in the server's time zone.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04")
}

// clock is the time of a line of a log.
func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// number is a figure as text, "" if it is unknown.
func number(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.4f", *v)
}

// dict returns a map of names and values, the arguments in turn, for the data of another template.
func dict(pairs ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return out
}

// mostText bounds the length of a value in a table.
const mostText = 60

func cut(text string) string {
	if r := []rune(text); len(r) > mostText {
		return string(r[:mostText-1]) + "…"
	}
	return text
}
