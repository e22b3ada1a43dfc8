package platform

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
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

// activation is OpenWhisk's record.
type activation struct {
	Namespace    string     `json:"namespace"`
	Name         string     `json:"name"`
	Version      string     `json:"version"`
	Subject      string     `json:"subject"`
	ActivationID string     `json:"activationId"`
	Start        int64      `json:"start"`
	End          int64      `json:"end"`
	Duration     int64      `json:"duration"` // init and run, without the wait
	Response     response   `json:"response"`
	Logs         []string   `json:"logs"`
	Annotations  []keyValue `json:"annotations"`
	Publish      bool       `json:"publish"`
	path         string
}

// record makes the record of an ended activation. Two annotations are ours: peakMemory, in bytes, since OpenWhisk measures
// nothing, and memoryKill, whether the container died for memory, which OpenWhisk on Docker alone tells, by its text.
func (p *Platform) record(run *running, c *container, e ending) *activation {
	a := run.action
	if e.start.IsZero() {
		e.start, e.end = run.received, run.received
	}
	rec := &activation{
		Namespace: p.cfg.Namespace, Name: a.Name, Version: a.Version, Subject: p.cfg.Namespace, ActivationID: run.id,
		Start: e.start.UnixMilli(), End: e.end.UnixMilli(), Logs: e.logs, path: strings.TrimPrefix(a.path(), p.cfg.Namespace+"/"),
		Response: response{Result: e.result, Status: e.status, Success: e.status == statusSuccess},
	}
	rec.Duration = rec.End - rec.Start
	if e.text != "" {
		rec.Response.Result, _ = json.Marshal(map[string]string{"error": e.text})
	}
	rec.Response.Size = len(rec.Response.Result)
	if rec.Logs == nil {
		rec.Logs = []string{}
	}
	rec.Annotations = []keyValue{
		kv("path", a.path()), kv("kind", a.Exec.Kind), kv("limits", a.Limits), kv("timeout", e.timedOut),
		kv("waitTime", max(0, e.start.Sub(run.received).Milliseconds())),
	}
	if e.cold {
		rec.Annotations = append(rec.Annotations, kv("initTime", e.initTime.Milliseconds()))
	}
	if c != nil {
		rec.Annotations = append(rec.Annotations, kv("peakMemory", c.peak()))
	}
	if e.died && p.cfg.OOM == OOMAsDocker {
		rec.Annotations = append(rec.Annotations, kv("memoryKill", e.text == textMemoryExhausted))
	}
	return rec
}

func (a *activation) withoutLogs() *activation {
	out := *a
	out.Logs = []string{}
	return &out
}

func (p *Platform) listActivations(r *http.Request) (int, any, error) {
	limit, skip, err := page(r)
	if err != nil {
		return 0, nil, err
	}
	q := r.URL.Query()
	since, err := millis(q.Get("since"), 0)
	if err != nil {
		return 0, nil, err
	}
	upto, err := millis(q.Get("upto"), 1<<62)
	if err != nil {
		return 0, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list := []*activation{}
	for i := len(p.order) - 1; i >= 0; i-- {
		a := p.activations[p.order[i]]
		if name := q.Get("name"); (name == "" || name == a.Name || name == a.path) && a.Start >= since && a.Start <= upto {
			list = append(list, a)
		}
	}
	if flag(r, "count") {
		if flag(r, "docs") {
			return 0, nil, problem{400, "The parameters 'count' and 'docs' can not be used together."}
		}
		return 200, map[string]int{"activations": len(list)}, nil
	}
	list = cut(list, limit, skip)
	if flag(r, "docs") {
		return 200, list, nil
	}
	out := []map[string]any{}
	for _, a := range list {
		out = append(out, map[string]any{
			"namespace": a.Namespace, "name": a.Name, "version": a.Version, "activationId": a.ActivationID, "start": a.Start, "end": a.End,
			"duration": a.Duration, "annotations": a.Annotations, "publish": false, "statusCode": statusCodes[a.Response.Status],
		})
	}
	return 200, out, nil
}

func millis(text string, otherwise int64) (int64, error) {
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, problem{400, fmt.Sprintf("The query parameter was malformed:\n'%s' is not a valid instant", text)}
	}
	return n, nil
}

var activationID = regexp.MustCompile(`^[0-9a-f]{32}$`)

func (p *Platform) getActivation(r *http.Request) (int, any, error) {
	id := r.PathValue("id")
	if len(id) != 32 {
		return 0, nil, problem{400, textActivationID(len(id))}
	}
	if !activationID.MatchString(id) {
		return 0, nil, problem{400, "The activation id is not valid."}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := p.activations[id]
	if !ok {
		return 0, nil, problem{404, textNoEntity} // also while it runs: there is no record before its end
	}
	switch part := r.PathValue("part"); part {
	case "":
		return 200, a, nil
	case "logs":
		return 200, map[string][]string{"logs": a.Logs}, nil
	case "result":
		return 200, a.Response, nil
	default:
		return 0, nil, problem{404, textNoRoute}
	}
}
