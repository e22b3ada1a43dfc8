package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/history"
)

// browser is a headless Chromium that has signed in.
type browser struct {
	ctx context.Context
	end func()
	at  *server
}

// browse serves a home that prepare has filled, and looks at it with a browser.
func browse(ctx context.Context, t *tools, prepare func(records *history.Store) error,
	look func(s *server, b *browser) error,
) (err error) {
	s, err := serve(ctx, t, prepare)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	b, err := open(ctx, t, s)
	if err != nil {
		return err
	}
	defer b.end()
	return look(s, b)
}

func open(ctx context.Context, t *tools, s *server) (*browser, error) {
	path, err := exec.LookPath(t.chromium)
	if err != nil {
		return nil, err
	}
	limited, stop := context.WithTimeout(ctx, 10*time.Minute)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.WindowSize(1280, 900))
	all, end := chromedp.NewExecAllocator(limited, options...)
	tab, quit := chromedp.NewContext(all)
	b := &browser{ctx: tab, at: s, end: func() {
		chromedp.Cancel(tab) //nolint:errcheck // it ends in any case
		quit()
		end()
		stop()
	}}
	_, err = chromedp.Call(tab, performance.Enable, performance.EnableParams{})
	if err == nil {
		_, err = chromedp.Call(tab, page.AddScriptToEvaluateOnNewDocument,
			page.AddScriptToEvaluateOnNewDocumentParams{Source: noted})
	}
	if err != nil {
		b.end()
		return nil, err
	}
	err = chromedp.Do(tab, chromedp.Navigate(s.url+"/ui/"), chromedp.WaitVisible("#token"),
		chromedp.SendKeys("#token", s.token+"\r"), chromedp.WaitVisible("main[data-live]"))
	if err != nil {
		b.end()
		return nil, err
	}
	return b, nil
}

// noted has every page note when its last paint was: two frames after it was loaded, by when what was on its way to the
// screen with the first has come. The page takes the time itself, since a debugger asks late.
const noted = `addEventListener("load", () => {
	requestAnimationFrame(() => requestAnimationFrame(() => { window.lastPaint = performance.now(); }));
});`

// painted is when a page's last paint was, and when its document had come and was taken apart, ms from its beginning.
const painted = `new Promise((done) => {
	const [way] = performance.getEntriesByType("navigation");
	const look = () => window.lastPaint
		? done({ answered: way.responseStart, came: way.responseEnd, parsed: way.domInteractive, painted: window.lastPaint })
		: requestAnimationFrame(look);
	look();
})`

// shown has the times of a page on its way to the screen, in ms from its beginning, and the browser's time for styles,
// for the layout, and for everything.
type shown struct {
	Answered float64 `json:"answered"`
	Came     float64 `json:"came"`
	Parsed   float64 `json:"parsed"`
	Painted  float64 `json:"painted"`
	spent    map[string]float64
}

// parts are the figures of a page's way, in its order.
func (s *shown) parts() []float64 {
	return []float64{
		s.Answered, s.Came, s.Parsed, s.spent["RecalcStyleDuration"], s.spent["LayoutDuration"], s.spent["TaskDuration"],
	}
}

// partNames are those of parts.
var partNames = []string{"answer", "document", "parsed", "style", "layout", "tasks"}

// show goes to a page and says how it came to its last paint.
func (b *browser) show(path string) (out shown, err error) {
	before, err := b.spent()
	if err != nil {
		return out, err
	}
	if err := chromedp.Do(b.ctx, chromedp.Navigate(b.at.url+path)); err != nil {
		return out, err
	}
	if out, err = chromedp.Run(b.ctx, chromedp.Evaluate[shown](painted, chromedp.EvalAwaitPromise)); err != nil {
		return out, err
	}
	if out.spent, err = b.spent(); err != nil {
		return out, err
	}
	for name, earlier := range before {
		if out.spent[name] -= earlier; out.spent[name] < 0 { // another process of the browser, which counts from zero
			out.spent[name] += earlier
		}
	}
	return out, nil
}

// spent is what the browser has spent on the page so far, ms by what for.
func (b *browser) spent() (map[string]float64, error) {
	found, err := chromedp.Call(b.ctx, performance.GetMetrics, cdp.Empty{})
	out := map[string]float64{}
	for _, m := range found.Metrics {
		out[m.Name] = 1000 * m.Value
	}
	return out, err
}

// shows measures how long a page takes. The first look is measured alone, with the server's processor time, since
// the page was never asked for then. It comes a second after the home page, as a person's does: meanwhile the server
// reads ahead. Of the looks after it the median is printed, with its parts.
func (b *browser) shows(path, name string, times int) error {
	time.Sleep(time.Second)
	before, err := b.at.processorMS()
	if err != nil {
		return err
	}
	first, err := b.show(path)
	if err != nil {
		return err
	}
	after, err := b.at.processorMS()
	if err != nil {
		return err
	}
	var took []float64
	parts := make([][]float64, len(partNames))
	for range times {
		one, err := b.show(path)
		if err != nil {
			return err
		}
		took = append(took, one.Painted)
		for i, ms := range one.parts() {
			parts[i] = append(parts[i], ms)
		}
	}
	kind, count, _ := strings.Cut(name, "_")
	rig.Figure(kind+"_ms_"+count, rig.Median(took), "ms")
	rig.Figure(kind+"_first_ms_"+count, first.Painted, "ms")
	rig.Figure(kind+"_first_server_ms_"+count, after-before, "ms of a processor")
	for i, part := range partNames {
		rig.Figure(kind+"_"+part+"_ms_"+count, rig.Median(parts[i]), "ms")
	}
	return nil
}

// has says an error unless an expression is true on the page.
func (b *browser) has(expression string) error {
	ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
	if err == nil && !ok {
		err = fmt.Errorf("the page has not: %s", expression)
	}
	return err
}
