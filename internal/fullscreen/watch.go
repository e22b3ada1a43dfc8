package fullscreen

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

// How often the list is read anew, how often the screen is drawn at most, and how many jobs the list has.
const (
	readEvery = 2 * time.Second
	drawEvery = 100 * time.Millisecond
	mostJobs  = 50
)

// Watch shows jobs on the whole terminal until somebody quits: one by its name, or "" the list of all. It returns
// Invalid where the input or the output is no terminal, and NotFound for a job that is not there.
func Watch(ctx context.Context, u *terminal.UI, at client.Client, job string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := &watcher{at: at, screen: NewScreen(), news: make(chan happening), out: u.Err, size: u.Size}
	w.screen.complete = u.Place.Complete
	if job != "" {
		run, err := at.Jobs.Watch(ctx, job)
		if err != nil {
			return err
		}
		w.screen.Opened(run.ID(), true)
		w.look(ctx, run)
	}
	restore, err := u.FullScreen()
	if err != nil {
		return err
	}
	defer restore()
	return w.loop(ctx, pressed(ctx, u.In))
}

// watcher is a screen in time.
type watcher struct {
	at     client.Client
	screen *Screen
	news   chan happening
	away   context.CancelFunc // ends the look at the job; nil: none is looked at
	out    io.Writer
	size   func() (columns, rows int)
}

// happening is an event of the job that is looked at.
type happening struct {
	service.Event
	job *Job
}

// look follows a job until another one is looked at, or none.
func (w *watcher) look(ctx context.Context, run client.Run) {
	ctx, w.away = context.WithCancel(ctx)
	job := w.screen.job
	go func() {
		for e := range run.EventsAfter(ctx, 0) {
			select {
			case w.news <- happening{e, job}:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// loop shows what happens and does what keys ask for.
func (w *watcher) loop(ctx context.Context, keys <-chan string) error {
	read, draw := time.NewTimer(0), time.NewTicker(drawEvery)
	defer read.Stop()
	defer draw.Stop()
	stale := true
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case key, ok := <-keys:
			if !ok || w.do(ctx, w.screen.Key(key)) {
				return nil
			}
			w.draw()
		case h := <-w.news:
			h.job.Happened(h.Event)
			stale = true
		case <-read.C:
			if w.screen.job == nil {
				w.screen.Listed(w.at.Records.List(ctx, history.Query{Limit: mostJobs}))
			}
			stale = true
			read.Reset(readEvery)
		case <-draw.C:
			if stale {
				w.draw()
				stale = false
			}
		}
	}
}

// do does what a key asks for, and says whether it is the end.
func (w *watcher) do(ctx context.Context, wish Wish) (over bool) {
	switch wish.Kind {
	case Nothing:
	case Quit:
		return true
	case Open:
		run, err := w.at.Jobs.Watch(ctx, string(wish.Job))
		if err != nil {
			w.screen.leave()
			w.screen.Answered(err.Error())
			return false
		}
		w.look(ctx, run)
	case Close:
		w.away()
	case Ask:
		if err := w.at.Jobs.RequestStop(ctx, string(wish.Job), wish.To, "asked for with disdel jobs watch"); err != nil {
			w.screen.Answered(err.Error())
		} else {
			w.screen.Answered(fmt.Sprintf("%s is asked to become %s", wish.Job, wish.To))
		}
	}
	return false
}

// draw writes the screen over the one before.
func (w *watcher) draw() {
	columns, rows := w.size()
	if columns <= 0 || rows <= 0 {
		columns, rows = 80, 24
	}
	var out strings.Builder
	out.WriteString("\x1b[H")
	for i, line := range w.screen.Lines(columns, rows, time.Now()) {
		if i > 0 {
			out.WriteString("\r\n")
		}
		out.WriteString(line + "\x1b[K")
	}
	out.WriteString("\x1b[J")
	io.WriteString(w.out, out.String()) //nolint:errcheck // nobody is there to see it
}

// pressed is the keys that are pressed, closed at the input's end. A read of a terminal ends with the program alone.
func pressed(ctx context.Context, in io.Reader) <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		chunk := make([]byte, 64)
		for {
			n, err := in.Read(chunk)
			for _, key := range keysOf(string(chunk[:n])) {
				select {
				case out <- key:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}

// sequences are what terminals send for keys that are no characters.
var sequences = []struct{ text, key string }{
	{"\x1b[A", keyUp},
	{"\x1bOA", keyUp},
	{"\x1b[B", keyDown},
	{"\x1bOB", keyDown},
	{"\r", keyEnter},
	{"\n", keyEnter},
	{"\x7f", keyBack},
	{"\b", keyBack},
	{"\x03", keyInterrupt},
	{"\x04", keyInterrupt},
}

// keysOf takes apart what a terminal sent at once.
func keysOf(text string) (out []string) {
next:
	for text != "" {
		for _, s := range sequences {
			if rest, ok := strings.CutPrefix(text, s.text); ok {
				out, text = append(out, s.key), rest
				continue next
			}
		}
		if text[0] == '\x1b' && len(text) > 1 && (text[1] == '[' || text[1] == 'O') { // of a key that has no meaning here
			return out
		}
		_, size := utf8.DecodeRuneInString(text)
		switch key := text[:size]; {
		case key == "\x1b":
			out = append(out, keyEscape)
		case key >= " ":
			out = append(out, key)
		}
		text = text[size:]
	}
	return out
}
