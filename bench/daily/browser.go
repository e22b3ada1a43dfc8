package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/disdel/disdel/history"
)

// browser is a headless Chromium that has signed in.
type browser struct {
	ctx context.Context
	end func()
	at  string
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
	b := &browser{ctx: tab, at: s.url, end: func() {
		chromedp.Cancel(tab) //nolint:errcheck // it ends in any case
		quit()
		end()
		stop()
	}}
	err = chromedp.Do(tab, chromedp.Navigate(s.url+"/ui/"), chromedp.WaitVisible("#token"),
		chromedp.SendKeys("#token", s.token+"\r"), chromedp.WaitVisible("#jobs"))
	if err != nil {
		b.end()
		return nil, err
	}
	return b, nil
}

// painted is two frames after a page is there: what was on its way to the screen with the first has come.
const painted = `new Promise((done) => {
	const last = () => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
	if (document.readyState === "complete") last(); else addEventListener("load", last);
})`

// show goes to a page and says how long it took to its last paint, ms.
func (b *browser) show(path string) (float64, error) {
	if err := chromedp.Do(b.ctx, chromedp.Navigate(b.at+path)); err != nil {
		return 0, err
	}
	return chromedp.Run(b.ctx, chromedp.Evaluate[float64](painted, chromedp.EvalAwaitPromise))
}

// shows measures a page: the first time, when nothing is known of what it shows, and the median of the times after it.
func (b *browser) shows(path string, times int) (first, again float64, err error) {
	if first, err = b.show(path); err != nil {
		return 0, 0, err
	}
	var took []float64
	for range times {
		ms, err := b.show(path)
		if err != nil {
			return 0, 0, err
		}
		took = append(took, ms)
	}
	return first, median(took), nil
}

// has says an error unless an expression is true on the page.
func (b *browser) has(expression string) error {
	ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
	if err == nil && !ok {
		err = fmt.Errorf("the page has not: %s", expression)
	}
	return err
}
