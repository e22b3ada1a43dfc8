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

var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("pages").Funcs(template.FuncMap{
		"job": jobAddress, "model": modelAddress, "figure": figure, "when": when, "number": number, "cut": cut,
		"list": strings.Join, "dict": dict, "clock": clock, "sentence": report.Sentence, "meaning": report.Meaning,
	}).Parse(pagesText))
})

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

// write writes a page. It renders all of it first, so that an error never leaves half a page.
func (v *visit) write(status int, name string, what view) {
	var content, page bytes.Buffer
	f := frame{view: what, SignedIn: v.s != nil, May: v.role.Allows(tenant.RoleSubmit), Parts: parts}
	if v.role.Allows(tenant.RoleAdmin) {
		f.Parts = append(slices.Clip(parts), part{"Admin", Root + "admin"})
	}
	err := pages().ExecuteTemplate(&content, name, struct {
		view
		May bool
	}{what, f.May})
	if err == nil {
		f.Content = template.HTML(content.String()) //nolint:gosec // a template wrote it, which escapes
		err = pages().ExecuteTemplate(&page, "layout", f)
	}
	if err != nil {
		http.Error(v.w, "the page could not be written", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	v.w.Write([]byte(terminal.Clean(page.String()))) //nolint:errcheck // the browser went away
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
