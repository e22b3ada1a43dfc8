package platform

import (
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The values of response.status.
const (
	statusSuccess     = "success"
	statusApplication = "application error"
	statusDeveloper   = "action developer error"
	statusInternal    = "whisk internal error"
)

var statusCodes = map[string]int{statusSuccess: 0, statusApplication: 1, statusDeveloper: 2, statusInternal: 3}

type response struct {
	Result  json.RawMessage `json:"result"`
	Status  string          `json:"status"`
	Success bool            `json:"success"`
	Size    int             `json:"size,omitempty"`
}

// activation is OpenWhisk's record of an activation.
type activation struct {
	Namespace    string     `json:"namespace"`
	Name         string     `json:"name"`
	Version      string     `json:"version"`
	Subject      string     `json:"subject"`
	ActivationID string     `json:"activationId"`
	Cause        string     `json:"cause,omitempty"` // the activation of the sequence it is part of
	Start        int64      `json:"start"`
	End          int64      `json:"end,omitempty"`      // triggers have none
	Duration     *int64     `json:"duration,omitempty"` // init and run, without the wait; triggers have none
	Response     response   `json:"response"`
	Logs         []string   `json:"logs"`
	Annotations  []keyValue `json:"annotations"`
	Publish      bool       `json:"publish"`
	memory       int        // MB, of the action or of a sequence's largest component
	encoded      []byte     // the record as JSON; it must not change once this is set
}

// encode makes the record's JSON, which is stored and answered several times.
func (a *activation) encode() error {
	data, err := json.Marshal(a)
	a.encoded = data
	return err
}

// bytes returns the record's JSON.
func (a *activation) bytes() ([]byte, error) {
	if a.encoded != nil {
		return a.encoded, nil
	}
	return json.Marshal(a)
}

// record makes the record of an ended activation. Three annotations are ours, because OpenWhisk measures nothing:
// peakMemory in bytes, memoryKill if the container's death has a known cause, and sharedWith, the number of other
// activations in the container. A shared container's memory belongs to no single activation, so such records have no
// peakMemory.
func (p *Platform) record(run *running, s *containerSlot, e activationEnd) *activation {
	a := run.action
	if e.start.IsZero() {
		e.start, e.end = run.received, run.received
	}
	rec := &activation{
		Namespace: run.user.Name, Name: a.Name, Version: a.Version, Subject: run.user.Name, ActivationID: run.id,
		Cause: run.cause,
		Start: e.start.UnixMilli(), End: e.end.UnixMilli(), Logs: e.logs, memory: a.Limits.Memory,
		Response: response{Result: e.result, Status: e.status, Success: e.status == statusSuccess},
	}
	duration := rec.End - rec.Start
	rec.Duration = &duration
	if e.text != "" {
		rec.Response.Result, _ = json.Marshal(map[string]string{"error": e.text})
	}
	rec.Response.Size = e.size
	if rec.Logs == nil {
		rec.Logs = []string{}
	}
	rec.Annotations = append(run.annotations(),
		kv("limits", a.Limits), kv("timeout", e.timedOut), kv("waitTime", max(0, e.start.Sub(run.received).Milliseconds())))
	if e.cold {
		rec.Annotations = append(rec.Annotations, kv("initTime", e.initTime.Milliseconds()))
	}
	rec.Annotations = append(rec.Annotations, p.memoryAnnotations(s)...)
	if e.died && p.cfg.tellsOutOfMemory() {
		rec.Annotations = append(rec.Annotations, kv("memoryKill", e.text == textMemoryExhausted))
	}
	return rec
}

// withoutLogs is the record as a body without its logs.
func (a *activation) withoutLogs() any {
	if len(a.Logs) == 0 && a.encoded != nil {
		return jsonBody(a.encoded)
	}
	out := *a
	out.Logs = []string{}
	return &out
}

// summary is an activation in a list.
type summary struct {
	Namespace    string     `json:"namespace"`
	Name         string     `json:"name"`
	Version      string     `json:"version"`
	ActivationID string     `json:"activationId"`
	Cause        string     `json:"cause,omitempty"`
	Start        int64      `json:"start"`
	End          int64      `json:"end,omitempty"`
	Duration     *int64     `json:"duration,omitempty"`
	Annotations  []keyValue `json:"annotations"`
	Publish      bool       `json:"publish"`
	StatusCode   int        `json:"statusCode"`
}

func (a *activation) summary() *summary {
	return &summary{
		Namespace: a.Namespace, Name: a.Name, Version: a.Version, ActivationID: a.ActivationID, Cause: a.Cause,
		Start: a.Start, End: a.End,
		Duration: a.Duration, Annotations: a.Annotations, Publish: a.Publish, StatusCode: statusCodes[a.Response.Status],
	}
}

// hasName tells whether the activation is of an action: NAME outside packages, or PACKAGE/NAME, where a binding's name
// counts too. Activations of triggers have no path and match by their names.
func (s *summary) hasName(name string) bool {
	if name == "" {
		return true
	}
	if !slices.ContainsFunc(s.Annotations, func(a keyValue) bool { return a.Key == "path" }) {
		return name == s.Name
	}
	for _, a := range s.Annotations {
		var path string
		if a.Key != "path" && a.Key != "binding" || json.Unmarshal(a.Value, &path) != nil {
			continue
		}
		if a.Key == "binding" {
			path += "/" + s.Name
		}
		if _, local, _ := strings.Cut(path, "/"); local == name {
			return true
		}
	}
	return false
}

// query has the parameters of a list of activations.
type query struct {
	name                string
	since, upto         int64
	limit, skip         int
	wholeRecords, count bool
}

func readQuery(r *http.Request) (q query, err error) {
	if q.limit, q.skip, err = pageOptions(r, "activations"); err != nil {
		return q, err
	}
	v := r.URL.Query()
	if q.since, err = millis(v.Get("since"), "since", 0); err != nil {
		return q, err
	}
	if q.upto, err = millis(v.Get("upto"), "upto", math.MaxInt64); err != nil {
		return q, err
	}
	q.name, q.wholeRecords, q.count = v.Get("name"), flag(r, "docs"), flag(r, "count")
	if parts := strings.Split(q.name, "/"); len(parts) > 2 {
		return q, errQueryName(q.name)
	}
	if q.count && q.wholeRecords {
		return q, errDocsWithCount
	}
	return q, nil
}

func (p *Platform) listActivations(q *request) (int, any, error) {
	ask, err := readQuery(q.Request)
	if err != nil {
		return 0, nil, err
	}
	if ask.count {
		return p.countActivations(q, &ask)
	}
	out := []any{}
	err = p.viewRecords(q.ns, func(t tx, waiting []*activation) error {
		var failed error
		err := t.newestWith(waiting, q.ns, &ask, func(s *summary, kept *activation) bool {
			if !s.hasName(ask.name) {
				return true
			}
			if ask.skip > 0 {
				ask.skip--
				return true
			}
			var v any = s
			switch {
			case ask.wholeRecords && kept != nil:
				v = kept
			case ask.wholeRecords:
				v, failed = get[activation](t, records, q.ns+"\x00"+s.ActivationID)
			}
			out = append(out, v)
			return failed == nil && len(out) < ask.limit
		})
		if failed != nil {
			return failed
		}
		return err
	})
	return httpDone, out, err
}

// viewRecords calls f with a transaction and with the namespace's records that are not in the store, newest first.
func (p *Platform) viewRecords(ns string, f func(t tx, waiting []*activation) error) error {
	waiting := p.pending.newest(ns) // before the store is read, so that no record is missed
	return p.store.view(func(t tx) error { return f(t, slices.DeleteFunc(waiting, t.hasRecord)) })
}

// newestWith walks a namespace's summaries and its waiting records together, newest first. record is nil for a record
// in the store.
func (t tx) newestWith(
	waiting []*activation, ns string, ask *query, f func(s *summary, record *activation) bool,
) error {
	waiting = slices.DeleteFunc(waiting, func(a *activation) bool { return a.Start < ask.since || a.Start > ask.upto })
	goOn := true
	before := func(start int64) bool { // calls f with the waiting records that started at or after start
		for goOn && len(waiting) > 0 && waiting[0].Start >= start {
			goOn = f(waiting[0].summary(), waiting[0])
			waiting = waiting[1:]
		}
		return goOn
	}
	err := t.newest(ns, ask.since, ask.upto, func(s *summary) bool {
		goOn = before(s.Start) && f(s, nil)
		return goOn
	})
	before(math.MinInt64)
	return err
}

func (p *Platform) countActivations(q *request, ask *query) (int, any, error) {
	n := 0
	err := p.viewRecords(q.ns, func(t tx, waiting []*activation) error {
		if ask.name == "" && ask.since == 0 && ask.upto == math.MaxInt64 {
			n = t.count(q.ns) + len(waiting)
			return nil
		}
		return t.newestWith(waiting, q.ns, ask, func(s *summary, _ *activation) bool {
			if s.hasName(ask.name) {
				n++
			}
			return true
		})
	})
	return httpDone, map[string]int{"activations": max(0, n-ask.skip)}, err
}

func millis(text, name string, otherwise int64) (int64, error) {
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, errQueryTime(name, text)
	}
	return n, nil
}

var activationID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// activation finds the record that a request names. It exists only after the activation's end.
func (p *Platform) activation(q *request) (*activation, error) {
	id := q.PathValue("id")
	if len(id) != 32 {
		return nil, errActivationIDLength(len(id))
	}
	if !activationID.MatchString(id) {
		return nil, errActivationIDBad
	}
	if a := p.pending.find(q.ns, id); a != nil {
		return a, nil
	}
	var a *activation
	err := p.store.view(func(t tx) (err error) {
		a, err = mustGet[activation](t, records, q.ns+"\x00"+id)
		return err
	})
	return a, err
}

func (p *Platform) getActivation(q *request) (int, any, error) {
	a, err := p.activation(q)
	return httpDone, a, err
}

func (p *Platform) getActivationLogs(q *request) (int, any, error) {
	a, err := p.activation(q)
	if err != nil {
		return 0, nil, err
	}
	return httpDone, map[string][]string{"logs": a.Logs}, nil
}

func (p *Platform) getActivationResult(q *request) (int, any, error) {
	a, err := p.activation(q)
	if err != nil {
		return 0, nil, err
	}
	return httpDone, a.Response, nil
}
