package main

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/disdel/disdel/internal/process"
	"github.com/disdel/disdel/service"
)

// attackFor bounds the attacks in time, and attackers their number at once.
const (
	attackFor = 30 * time.Second
	attackers = 24
)

// attacks has one tenant send the largest requests that a server might take, many at once, to a server of its own
// process on this machine, while another tenant submits and lists jobs: the server's peak memory, and what the other
// tenant waits.
func attacks(ctx context.Context) error {
	home, err := os.MkdirTemp("", "disdel-attacks-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	tokens, err := users(ctx, home)
	if err != nil {
		return err
	}
	if err := trainedModel(ctx, home); err != nil {
		return err
	}
	s, err := startServer(home)
	if err != nil {
		return err
	}
	defer s.kill()
	limited, stop := context.WithTimeout(ctx, attackFor)
	defer stop()
	var sent, most atomic.Int64
	var done sync.WaitGroup
	done.Go(func() {
		for limited.Err() == nil {
			if n, ok := process.Resident(s.cmd.Process.Pid); ok {
				most.Store(max(most.Load(), n))
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	all := attackRequests()
	for i := range attackers {
		done.Go(func() {
			for n := i; limited.Err() == nil; n++ {
				a := all[n%len(all)]
				send(limited, s.url, tokens[0], a.method, a.path, a.body)
				sent.Add(1)
			}
		})
	}
	var took []time.Duration
	failed := 0
	request := func(method, path string, body []byte) {
		began := time.Now()
		if ok := send(limited, s.url, tokens[1], method, path, body); ok {
			took = append(took, time.Since(began))
		} else if limited.Err() == nil { // who gets no answer waits for as long as he is measured
			took, failed = append(took, attackFor), failed+1
		}
	}
	for limited.Err() == nil { // one request at a time, as somebody at a terminal
		request("GET", "/api/v1/jobs", nil)
		request("POST", "/api/v1/checks", submissionOf(tiny, nil))
		request("POST", "/api/v1/jobs", submissionOf(tiny, nil))
		time.Sleep(20 * time.Millisecond)
	}
	done.Wait()
	figure("attack_requests", float64(sent.Load()), "requests of one token, 24 at once, in 30 s")
	figure("one_tenant_rss_mb", float64(most.Load())/(1<<20), "MB")
	figure("other_tenant_requests", float64(len(took)), "requests of another tenant meanwhile")
	figure("other_tenant_failed", float64(failed), "of these requests, counted as 30 s each")
	figure("other_tenant_p99_ms", percentile(took, 0.99), "ms")
	return nil
}

// trainedModel has the attacker's tenant train a model to ask.
func trainedModel(ctx context.Context, home string) error {
	s, err := service.Open(ctx, service.Config{Home: home})
	if err != nil {
		return err
	}
	defer s.Close()
	own := s.Tenant("t0")
	req, err := tinyRequest()
	if err != nil {
		return err
	}
	run, err := own.Submit(ctx, req)
	if err == nil {
		_, err = run.Wait(ctx)
	}
	return err
}

// attack is a request of an attacker.
type attack struct {
	method, path string
	body         []byte
}

// attackRequests are large requests of every kind that a token of the role submit may make.
func attackRequests() []attack {
	large := strings.Repeat("x", 7<<20)
	deep := strings.Replace(tiny, "{flatten: {}}, ", "{flatten: {}}, "+strings.Repeat("{dense: {units: 10}}, ", 900), 1)
	numbers := make([]int, 100)
	for i := range numbers {
		numbers[i] = i + 1
	}
	infer := "/api/v1/models/tiny/infer?name="
	return []attack{
		{"POST", infer + "x.csv", bytes.Repeat([]byte("1,"), 4_000_000)},
		{"POST", infer + "x.json", append(append([]byte("["), bytes.Repeat([]byte("1,"), 3_900_000)...), '1', ']')},
		{"GET", "/api/v1/jobs?limit=1000", nil},
		{"POST", "/api/v1/jobs", submissionOf(tiny, map[string]any{"origin": map[string]any{"sets": []string{large}}})},
		{"POST", "/api/v1/estimates", submissionOf(deep, map[string]any{"questions": map[string]any{
			"grid": map[string]any{"workers": numbers[:10], "batchSizes": numbers},
		}})},
		{"POST", "/api/v1/checks", submissionOf(strings.Repeat("a: [", 200_000), nil)},
		{"POST", "/api/v1/checks", submissionOf(tiny, map[string]any{"sets": strings.Split(large[:100_000], "")})},
		{"POST", "/api/v1/jobs", submissionOf(deep, map[string]any{"priority": 1_000_000})},
		{"PUT", "/api/v1/weights/sha256:" + strings.Repeat("0", 64), []byte(large)},
		{"POST", "/api/v1/jobs", submissionOf(tiny, map[string]any{"origin": map[string]any{"sets": largestSets()}})},
		{"GET", "/api/v1/jobs/@last/events", nil},
		{"GET", "/api/v1/jobs/@last/wait?timeout=10s", nil},
		{"POST", infer + "x.png", largestPicture()},
		{"POST", infer + "x.json", append([]byte(`{"rows":[`), bytes.Repeat([]byte("{},"), 2_500_000)...)},
		{"GET", "/api/v1/datasets/digits/sample?" + strings.Repeat("row=1&", 1000), nil},
	}
}

// largestSets is the largest origin that a record may have.
func largestSets() []string {
	return slices.Repeat([]string{strings.Repeat("y", 4000)}, 16)
}

// largestPicture is a small file of 2^24 pixels of 8 bytes each.
func largestPicture() []byte {
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewNRGBA64(image.Rect(0, 0, 1<<12, 1<<12))); err != nil {
		panic(err) // of memory that is written to
	}
	return out.Bytes()
}

// submissionOf is a submission of a job file with other fields beside it.
func submissionOf(file string, more map[string]any) []byte {
	doc := map[string]any{"file": file}
	maps.Copy(doc, more)
	text, err := json.Marshal(doc)
	if err != nil {
		panic(err) // of strings and numbers
	}
	return text
}

// send makes a request, and tells whether it was answered with a success.
func send(ctx context.Context, url, token, method, path string, body []byte) bool {
	r, err := http.NewRequestWithContext(ctx, method, url+path, bytes.NewReader(body))
	if err != nil {
		return false
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	io.Copy(io.Discard, res.Body) //nolint:errcheck // what matters is its status
	return res.StatusCode < http.StatusMultipleChoices
}
