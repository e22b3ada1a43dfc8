package transcripts

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Replayer sends exchanges to a platform, in their order.
type Replayer struct {
	URL string
	Key string // of the namespace guest

	ids map[string]string // of the activations that answers were about, by the exchange's name
}

// replied is what came back.
type replied struct {
	status int
	header http.Header
	body   string
}

// recordWait bounds the wait for a record that the recorder had waited for, too.
const recordWait = 20 * time.Second

// apart is how long two requests lie apart, as the recorder's did: lists are sorted by the millisecond of a change.
const apart = 2 * time.Millisecond

// Send sends one exchange's request and tells how the answer differs from the recorded one, "" for not at all. The
// error is that of a request which could not be sent.
func (r *Replayer) Send(ctx context.Context, one *Exchange) (difference string, err error) {
	if one.Name == firstInvoked {
		if err := r.prepare(ctx); err != nil {
			return "", err
		}
	}
	time.Sleep(apart)
	got, err := r.send(ctx, one)
	late := strings.Contains(one.Path, "/activations/") && one.Answer.Status == http.StatusOK
	for end := time.Now().Add(recordWait); late && err == nil && got.status == http.StatusNotFound &&
		time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
		got, err = r.send(ctx, one)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", one.Name, err)
	}
	r.learn(one.Name, got)
	return compare(one, got), nil
}

// learn keeps which activation an exchange's answer was about.
func (r *Replayer) learn(name string, got *replied) {
	var about struct{ ActivationID string }
	if json.Unmarshal([]byte(got.body), &about) != nil || about.ActivationID == "" {
		return
	}
	if r.ids == nil {
		r.ids = map[string]string{}
	}
	r.ids[name] = about.ActivationID
}

// named is the name of an exchange in a path.
var named = regexp.MustCompile(`\{[^}]*\}`)

func (r *Replayer) send(ctx context.Context, one *Exchange) (*replied, error) {
	path := named.ReplaceAllStringFunc(one.Path, func(name string) string { return r.ids[strings.Trim(name, "{}")] })
	body, err := one.bodyToSend()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, one.Method, r.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.authorize(req, one.Key)
	for k, v := range one.Headers {
		req.Header.Set(k, v)
	}
	client := &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}, Timeout: 2 * time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return &replied{res.StatusCode, res.Header, string(data)}, err
}

// authorize sends a key; one without a colon is sent without one.
func (r *Replayer) authorize(req *http.Request, key string) {
	if key == "guest" {
		key = r.Key
	}
	if key == "" {
		return
	}
	name, secret, found := strings.Cut(key, ":")
	req.SetBasicAuth(name, secret)
	if !found {
		req.Header.Set("Authorization", "Basic "+encoded(key))
	}
}

// largePattern is a body that was left out of the record, for its size.
var largePattern = regexp.MustCompile(`^<(\d+) bytes>$`)

// bodyToSend is the body, with one of the right size in the place of one that was left out.
func (e *Exchange) bodyToSend() (string, error) {
	if !largePattern.MatchString(e.Body) {
		return e.Body, nil
	}
	var size int
	if _, err := fmt.Sscanf(e.Body, "<%d bytes>", &size); err != nil {
		return "", err
	}
	for _, field := range []string{"parameters", "annotations"} {
		if strings.Contains(e.Name, field[:5]) {
			return `{"exec":{"kind":"python:3","code":"x"},"` + field + `":[{"key":"big","value":"` +
				strings.Repeat("x", 1<<20-2) + `"}]}`, nil
		}
	}
	return `{"a":"` + strings.Repeat("x", size-len(`{"a":""}`)) + `"}`, nil
}

// heard are the headers that clients go by.
var heard = []string{"Content-Type", "Www-Authenticate", "Allow", "Location"}

func compare(one *Exchange, got *replied) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if got.status != one.Answer.Status {
		add("  status %d, there %d", got.status, one.Answer.Status)
	}
	for _, name := range heard {
		if ours, theirs := plainType(got.header.Get(name)), one.Answer.Headers[name]; ours != theirs {
			add("  header %s is %q, there %q", name, ours, theirs)
		}
	}
	if text := one.Answer.Text; text != nil && got.body != *text {
		add("  text %.200q, there %.200q", got.body, *text)
	}
	if diff := compareJSON(&one.Answer, got.body); diff != "" {
		out = append(out, diff)
	}
	return strings.Join(out, "\n")
}

func compareJSON(there *Answer, body string) string {
	if there.Text != nil || there.JSON == nil && there.Keys == nil {
		return ""
	}
	var theirs, ours any
	if json.Unmarshal([]byte(body), &ours) != nil {
		return fmt.Sprintf("  body %.200q, there %.200s", body, there.JSON)
	}
	if there.Keys != nil {
		fields, _ := ours.(map[string]any)
		return said(there.Keys, slices.Sorted(maps.Keys(fields)))
	}
	if err := json.Unmarshal(there.JSON, &theirs); err != nil {
		return err.Error()
	}
	return said(theirs, settled("", ours))
}

func said(theirs, ours any) string {
	if diff := cmp.Diff(theirs, ours); diff != "" {
		return "  (-there +here)\n" + diff
	}
	return ""
}

// plainType is a content type without blanks and the character set, which JSON does not need.
func plainType(v string) string {
	v, _, _ = strings.Cut(v, ";")
	return strings.TrimSpace(v)
}

// encoded is a text as basic authorization has it.
func encoded(text string) string {
	req := &http.Request{Header: http.Header{}}
	req.SetBasicAuth(text, "")
	return strings.TrimPrefix(req.Header.Get("Authorization"), "Basic ")
}
