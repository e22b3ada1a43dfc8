package actions

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/aggregator/embedded"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// blow is what becomes of an attempt at one of the commands that it gives the store.
type blow struct {
	command int // from 1, of all its connections
	how     fate
}

// fate is how an attempt ends.
type fate int

const (
	unsent     fate = iota // it is killed: the command does not come to the store
	unanswered             // it is killed: the command does, and what is answered does not come back
	held                   // it stands still while the next attempt begins, and then goes on
	fates
)

func (b blow) String() string {
	return fmt.Sprintf("%s at command %d", [...]string{"killed before", "killed after", "held"}[b.how], b.command)
}

// lifeline is the way of one process to the servers of its store. It counts commands, and deals one blow.
type lifeline struct {
	blow     blow
	store    disdel.Store
	struck   chan struct{} // closed when the blow was dealt
	released chan struct{} // closed when what is held may go on

	flows sync.WaitGroup
	mu    sync.Mutex
	seen  int
	dead  bool
	open  []io.Closer
}

// newLifeline is one to the servers of a store.
func newLifeline(t *testing.T, to disdel.Store, b blow) *lifeline {
	t.Helper()
	l := &lifeline{blow: b, store: to, struck: make(chan struct{}), released: make(chan struct{})}
	l.store.URLs = nil
	for _, text := range to.URLs {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		door, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.kept(door) // who lost another one by this number may come before the next is there
		target := u.Host
		u.Host = door.Addr().String()
		l.store.URLs = append(l.store.URLs, u.String())
		l.flows.Go(func() {
			for {
				c, err := door.Accept()
				if err != nil {
					return
				}
				l.flows.Go(func() { l.carry(c, target) })
			}
		})
	}
	return l
}

// kept notes what is to be closed when the process dies; false: it is dead.
func (l *lifeline) kept(c io.Closer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		c.Close()
		return false
	}
	l.open = append(l.open, c)
	return true
}

// kill ends all that goes through, and lets nothing through any more.
func (l *lifeline) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	for _, c := range l.open {
		c.Close()
	}
	l.open = nil
}

// close ends it when its process has ended.
func (l *lifeline) close() {
	l.kill()
	l.flows.Wait()
}

// next counts a command. deal: it is the one that the blow is dealt at.
func (l *lifeline) next() (deal bool) {
	l.mu.Lock()
	l.seen++
	n := l.seen
	l.mu.Unlock()
	if n > l.blow.command && l.blow.how == held && l.blow.command > 0 {
		<-l.released // all of the process stands still
	}
	return n == l.blow.command
}

// carry takes commands to a server, one by one, and answers back.
func (l *lifeline) carry(client net.Conn, target string) {
	defer client.Close()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	if !l.kept(client) || !l.kept(server) {
		return
	}
	answers := &gate{to: client}
	var back sync.WaitGroup
	back.Go(func() {
		io.Copy(answers, server) //nolint:errcheck // one of them has ended
		client.Close()
	})
	defer back.Wait()
	defer server.Close()
	for in := bufio.NewReader(client); ; {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		if l.next() {
			switch l.blow.how {
			case unsent:
				l.kill()
				close(l.struck)
				return
			case unanswered:
				answers.shut()
				server.Write(command)              //nolint:errcheck // as if it had come too late
				server.(*net.TCPConn).CloseWrite() //nolint:errcheck // the server is gone then
				back.Wait()                        // all that was sent is done
				l.kill()
				close(l.struck)
				return
			case held:
				close(l.struck)
				<-l.released
			}
		}
		if _, err := server.Write(command); err != nil {
			return
		}
	}
}

// gate is a connection that answers go back on until it is shut.
type gate struct {
	to io.Writer
	mu sync.Mutex
	no bool
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.no = true
}

func (g *gate) Write(data []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.no {
		return len(data), nil
	}
	return g.to.Write(data)
}

// readCommand is the bytes of the next command, as Redis' protocol has them: an array of texts.
func readCommand(in *bufio.Reader) ([]byte, error) {
	var out bytes.Buffer
	number := func(kind byte) (n int, err error) {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		out.Write(line)
		if line[0] != kind {
			return 0, fmt.Errorf("%q is no command", line)
		}
		return strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	}
	count, err := number('*')
	for range count {
		var size int
		if size, err = number('$'); err != nil {
			break
		}
		if _, err = io.CopyN(&out, in, int64(size)+2); err != nil {
			break
		}
	}
	return out.Bytes(), err
}

// struck runs the members at once, deals each its blows, one an attempt, and returns what each delivered, and how many
// commands the one gave that gave most.
func (b *bench) struck(
	all []disdel.TrainRequest, blows [][]blow, pause time.Duration,
) (out []disdel.Weights, most int) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.t.Context(), time.Minute)
	defer stop()
	like := engine.InitWeights(mustBuild(b.t, b.net), b.net.Init)
	out = make([]disdel.Weights, len(all))
	var members, attempts sync.WaitGroup
	var mu sync.Mutex
	for _, req := range all {
		var mine []blow
		if blows != nil {
			mine = blows[req.Worker]
		}
		members.Go(func() {
			for {
				var next blow
				if len(mine) > 0 {
					next, mine = mine[0], mine[1:]
				}
				line := newLifeline(b.t, b.store, next)
				done := make(chan error, 1)
				attempt, kill := context.WithCancel(ctx)
				own := req
				own.Store = line.store
				attempts.Go(func() {
					defer line.close()
					defer kill()
					done <- askAlone(attempt, own)
				})
				select {
				case err := <-done:
					mu.Lock()
					most = max(most, line.seen)
					mu.Unlock()
					if err != nil {
						b.t.Errorf("member %d, attempt %d: %v", req.Worker, req.Attempt, err)
						stop()
						return
					}
					out[req.Worker] = b.delivered(req, like)
					return
				case <-line.struck:
				}
				if next.how == held {
					attempts.Go(func() {
						time.Sleep(pause)
						close(line.released)
					})
				} else {
					kill()
				}
				req.Attempt++
			}
		})
	}
	members.Wait()
	attempts.Wait()
	return out, most
}

// askAlone is a train action in a process of its own.
func askAlone(ctx context.Context, req disdel.TrainRequest) error {
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	params, err := json.Marshal(req)
	if err == nil {
		_, err = h.Handlers()[disdel.TaskTrain](ctx, params)
	}
	return err
}

// someBlows are drawn for each of so many members: up to three, at any of so many commands.
func someBlows(rng *rand.Rand, members, commands int) [][]blow {
	all := make([][]blow, members)
	for m := range all {
		for range rng.IntN(4) {
			all[m] = append(all[m], blow{1 + rng.IntN(commands), fate(rng.IntN(int(fates)))})
		}
	}
	return all
}

// Whatever command of whichever member is the last one that the store sees, or is the first one that it sees late,
// after another attempt has taken over: members end with the bits of an undisturbed run, also where deltas lie on two
// servers or beside the news, and where states are stored on the way. Eager ones end equal, and each batch of a queue
// counts once.
func TestMembersComeToTheSameBitsWhateverCommandIsTheirLast(t *testing.T) {
	aggregator.SilenceRedis() // of what is killed go-redis says that it comes to nobody
	const members, rows = 3, 203
	for name, c := range map[string]struct {
		exchange disdel.Exchange
		servers  int
		rank     int
		batch    int
	}{
		"BSP":                {disdel.Exchange{Combine: disdel.CombineMean}, 1, 4, 8},
		"ISP":                {disdel.Exchange{Threshold: 0.7, Combine: disdel.CombineSum}, 1, 4, 8},
		"SSP":                {disdel.Exchange{Slack: 2, Threshold: 0.3, Combine: disdel.CombineMean}, 1, 4, 8},
		"BSP on two servers": {disdel.Exchange{Combine: disdel.CombineMean}, 2, 40, 8},
		"SSP of int8 on two": {
			disdel.Exchange{Slack: 1, Values: disdel.WireInt8, Combine: disdel.CombineSum},
			2, 40, 8,
		},
		"ISP of more than the news": {disdel.Exchange{Threshold: 0.1, Combine: disdel.CombineMean}, 1, 900, 40},
		"eager": {
			disdel.Exchange{Slack: 2, Order: disdel.OrderEager, Combine: disdel.CombineMean},
			1, 4, 8,
		},
		"queue": {
			disdel.Exchange{Batches: disdel.BatchesQueue, Order: disdel.OrderEager, Slack: 4},
			1, 4, 8,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setUp(t)
			req := b.ratings(c.rank)
			req.BatchSize = c.batch
			for len(b.store.URLs) < c.servers {
				redis, err := embedded.Start()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { redis.Close() })
				b.store.URLs = append(b.store.URLs, redis.URL())
			}
			b.reopen()
			req.Store = b.store
			all := gang(req, members, c.exchange)
			if c.exchange.Queued() {
				all = queued(req, members, rows)
			}
			want, commands := b.struck(all, nil, 0)
			seeds := 2
			if os.Getenv("DISDEL_TEST_EVERY_CALL") != "" {
				seeds = 40
			}
			for seed := range seeds {
				b.forget()
				rng := rand.New(rand.NewPCG(uint64(seed), 23))
				for m := range all {
					all[m].SaveEvery = disdel.Millis(time.Duration(seed%2) * time.Millisecond) // of every second seed
					all[m].Attempt += 10                                                       // above those of the seed before
				}
				blows := someBlows(rng, members, commands)
				got, _ := b.struck(all, blows, time.Duration(rng.IntN(60))*time.Millisecond)
				samples := 0
				for m, w := range got {
					if c.exchange.Order != disdel.OrderEager && !equal(w, want[m]) {
						t.Errorf("seed %d, %v: member %d delivers other weights than undisturbed", seed, blows, m)
					}
					if !equal(w, got[0]) {
						t.Errorf("seed %d, %v: member %d delivers other weights than member 0", seed, blows, m)
					}
					samples += b.result(all[m]).Samples
				}
				if c.exchange.Queued() && samples != rows {
					t.Errorf("seed %d, %v: %d rows of %d count", seed, blows, samples, rows)
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

// A round that is begun anew is one without the deltas of its first try: a state that was made of those is of no use
// then, whoever's it is, and what came from the round before is there still.
func TestARoundThatIsBegunAnewGoesByNoStateOfBefore(t *testing.T) {
	b := setUp(t)
	req := b.films()
	req.SaveEvery = disdel.Millis(time.Millisecond)
	for name, c := range map[string]struct{ first, second []disdel.TrainRequest }{
		"lock-step": {gang(req, 3, disdel.Exchange{}), gang(req, 3, disdel.Exchange{})},
		"queue":     {queued(req, 3, 203), queued(req, 2, 203)},
	} {
		want, _ := b.struck(c.first, nil, 0)
		b.forget()
		for m := range c.second {
			c.second[m].Attempt = 2
		}
		again, _ := b.struck(c.second, nil, 0)
		for m, w := range again {
			if !equal(w, again[0]) || name == "lock-step" && !equal(w, want[m]) {
				t.Errorf("%s: member %d delivers other weights", name, m)
			}
		}
		b.forget()
	}
}
