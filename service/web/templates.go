package web

import (
	"bytes"
	_ "embed" // of the pages, their style and their script
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/internal/terminal"
)

//go:embed pages.gohtml
var pagesText string

//go:embed app.js
var script string

//go:embed icon.svg
var icon string

//go:embed style.css
var ownStyle string

// style is the report's style sheet, since the page shows its plots and tables, and what the page has besides.
func style() string { return report.Style() + ownStyle }

var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("pages").Funcs(template.FuncMap{
		"job": jobAddress, "figure": figure, "when": when, "number": number, "cut": cut, "list": strings.Join,
		"dict": dict,
	}).Parse(pagesText))
})

// view is what every page has.
type view struct {
	Title string
	Here  string // the part of the page that it belongs to, for the navigation
	Live  string // where what happens is told; "": nothing does
	Body  any
}

// frame is a view as the layout takes it.
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
	{"Jobs", Root + "jobs"}, {"Models", Root + "models"}, {"Data sets", Root + "datasets"}, {"Pool", Root + "pool"},
}

// write writes a page. It is whole before anything is sent: what cannot be written is an error, not half a page.
func (v *visit) write(status int, name string, what view) {
	var content, whole bytes.Buffer
	f := frame{view: what, SignedIn: v.s != nil, May: v.role.Allows("submit"), Parts: parts}
	err := pages().ExecuteTemplate(&content, name, struct {
		view
		May bool
	}{what, f.May})
	if err == nil {
		f.Content = template.HTML(content.String()) //nolint:gosec // a template wrote it, which escapes
		err = pages().ExecuteTemplate(&whole, "layout", f)
	}
	if err != nil {
		http.Error(v.w, "the page could not be written", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	v.w.Write([]byte(terminal.Clean(whole.String()))) //nolint:errcheck // the browser went away
}

func jobAddress(id disdel.JobID) string { return Root + "jobs/" + url.PathEscape(string(id)) }

// figure is a plot as HTML.
func figure(f report.Figure) (template.HTML, error) {
	var out bytes.Buffer
	err := report.WriteFigure(&out, f)
	return template.HTML(out.String()), err //nolint:gosec // a template wrote it, which escapes
}

// when is a moment as everybody's clock reads it who looks at the same server.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04")
}

// number is a figure, "" where it is not known.
func number(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.4f", *v)
}

// dict is what a template gives to another one: names and values, one after the other.
func dict(pairs ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return out
}

// mostText is how much of a value a table shows.
const mostText = 60

func cut(text string) string {
	if r := []rune(text); len(r) > mostText {
		return string(r[:mostText-1]) + "…"
	}
	return text
}
