package api

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/golden"
	testwait "github.com/disdel/disdel/internal/test/wait"
)

// A tenant reads the figures of its own jobs, by our names and by KubeML's; the operator everybody's, and the process'.
func TestMetrics(t *testing.T) {
	h := newHouse(t, Config{})
	id := string(h.submitted("training.epochs=100000").ID) // more than it comes to before it is canceled
	run, ok := h.s.Run(disdel.JobID(id))
	if !ok {
		t.Fatal("nobody runs the job")
	}
	wanted := []string{
		`disdel_jobs_running{tenant="ann"} 1`, `disdel_jobs_submitted_total{tenant="ann"} 1`,
		`disdel_job_workers{tenant="ann",job="` + id + `",name="small"} 2`, `kubeml_job_parallelism{jobid="` + id + `"} 2`,
		`kubeml_job_running_total{type="train"} 1`, `kubeml_job_train_loss{jobid="` + id + `"} `,
		`kubeml_job_validation_accuracy{jobid="` + id + `"} `, `kubeml_job_epoch_duration_seconds{jobid="` + id + `"} `,
		`disdel_activations_total{tenant="ann",task="train",outcome="success"} `,
		`disdel_cold_starts_total{tenant="ann",task="train"} `,
		`disdel_job_wait_seconds_count{tenant="ann"} 1`,
	}
	var during []byte
	testwait.Until(t, "answer with "+strings.Join(wanted, "\n"), func() bool {
		_, during = h.ask("ann read", "GET", "/metrics", nil)
		return !slices.ContainsFunc(wanted, func(w string) bool { return !bytes.Contains(during, []byte(w)) })
	})
	run.Cancel(errors.New("enough"))
	<-run.Done()
	_, after := h.ask(operator, "GET", "/metrics", nil)
	_, bobs := h.ask("bob read", "GET", "/metrics", nil)
	line := regexp.MustCompile(`^(# (HELP|TYPE) \S+ .+|[a-z_]+(\{([a-z_]+="([^"\\]|\\.)*",?)*\})? [-+0-9.eInfNa]+)$`)
	for text := range strings.Lines(string(during) + string(after)) {
		if !line.MatchString(strings.TrimSuffix(text, "\n")) {
			t.Errorf("Prometheus cannot read %q", text)
		}
	}
	for _, want := range []string{
		`disdel_jobs_running{tenant="ann"} 0`, `disdel_jobs_ended_total{tenant="ann",status="canceled"} 1`,
		`disdel_http_requests_total{route="POST /api/v1/jobs",code="201"} 1`, `process_resident_memory_bytes `,
		"go_goroutines ", "go_gc_heap_live_bytes ",
	} {
		if !bytes.Contains(after, []byte(want)) {
			t.Errorf("no %s in\n%s", want, after)
		}
	}
	golden.Block(t, "../../docs/reference/server.md", "metrics", metricsTable(string(during)+string(after)), *update)
	if bytes.Contains(after, []byte("jobid=")) {
		t.Error("figures of a job that has ended stay")
	}
	if bytes.Contains(bobs, []byte("ann")) || bytes.Contains(during, []byte("process_")) {
		t.Errorf("a tenant reads what is not its own:\n%s", bobs)
	}
}

// metricsTable describes what /metrics answered, for docs/reference/server.md.
func metricsTable(answer string) string {
	var names []string
	meaning, kind, labels := map[string]string{}, map[string]string{}, map[string][]string{}
	label := regexp.MustCompile(`([a-z]+)="`)
	for line := range strings.Lines(answer) {
		fields := strings.Fields(line)
		switch name, _, _ := strings.Cut(fields[0], "{"); {
		case fields[0] == "#" && fields[1] == "HELP":
			meaning[fields[2]] = strings.Join(fields[3:], " ")
		case fields[0] == "#":
			kind[fields[2]] = fields[3]
			names = append(names, fields[2])
		default:
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				name = strings.TrimSuffix(name, suffix)
			}
			for _, m := range label.FindAllStringSubmatch(line, -1) {
				if m[1] != "le" && !slices.Contains(labels[name], m[1]) {
					labels[name] = append(labels[name], m[1])
				}
			}
		}
	}
	slices.Sort(names)
	var table strings.Builder
	table.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, n := range slices.Compact(names) {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", n, kind[n], strings.Join(labels[n], ", "), meaning[n])
	}
	return table.String()
}

// idx is an IDX file of bytes.
func idx(values []byte, sides ...int) []byte {
	out := []byte{0, 0, 8, byte(len(sides))}
	for _, n := range sides {
		out = binary.BigEndian.AppendUint32(out, uint32(n))
	}
	return append(out, values...)
}

// form is the request that adds a data set of files.
func (h *house) form(name string, fields map[string]string, files map[string][]byte) (int, []byte) {
	h.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for k, v := range fields {
		if err := w.WriteField(k, v); err != nil {
			h.t.Fatal(err)
		}
	}
	for k, v := range files {
		part, err := w.CreateFormFile(k, k)
		if err == nil {
			_, err = part.Write(v)
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
	w.Close()
	r, err := http.NewRequestWithContext(h.t.Context(), "PUT", h.URL+"/api/v1/datasets/"+name, &body)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.tokens["ann admin"])
	r.Header.Set("Content-Type", w.FormDataContentType())
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	h.check("PUT", "/api/v1/datasets/"+name, res, data)
	return res.StatusCode, data
}

// A data set comes as the parts of a form, packed or not, and is bounded as it comes and unpacked.
func TestUploadsAreBounded(t *testing.T) {
	h := newHouse(t, Config{MaxUpload: 20_000})
	labels := make([]byte, 60)
	for i := range labels {
		labels[i] = byte(i % 2)
	}
	images := idx(make([]byte, 60*64), 60, 8, 8)
	packed := func(data []byte) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		z.Write(data)
		z.Close()
		return out.Bytes()
	}
	both := map[string][]byte{"images": packed(images), "labels": idx(labels, 60)}
	status, data := h.form("pets", map[string]string{"classes": "cat,dog"}, both)
	if status != 201 || !bytes.Contains(data, []byte(`"classNames":["cat","dog"]`)) {
		t.Fatalf("%d %s", status, data)
	}
	status, data = h.ask("ann read", "GET", "/api/v1/datasets/pets/sample?row=3&row=1", nil)
	if status != 200 || !bytes.Contains(data, []byte(`"shape":[1,8,8]`)) {
		t.Errorf("%d %.200s", status, data)
	}
	for name, c := range map[string]struct {
		status int
		text   string
		files  map[string][]byte
	}{
		"too large as it comes":   {422, "too large", map[string][]byte{"images": idx(make([]byte, 30_000), 30_000)}},
		"too large when unpacked": {422, "too large", map[string][]byte{"images": packed(idx(make([]byte, 90_000), 90_000))}},
		"no labels":               {400, "go together", map[string][]byte{"images": images}},
		"no IDX":                  {422, "it is text", map[string][]byte{"images": []byte("a,b"), "labels": idx(labels, 60)}},
		"another part":            {400, "no part", map[string][]byte{"pictures": images}},
		"other data": {409, "another data set", map[string][]byte{
			"images": idx(make([]byte, 60*16), 60, 4, 4), "labels": idx(labels, 60),
		}},
	} {
		if status, data := h.form("pets", nil, c.files); status != c.status || !bytes.Contains(data, []byte(c.text)) {
			t.Errorf("%s: %d %s", name, status, data)
		}
	}
}
