package api

import (
	"cmp"
	"maps"
	"net/http"
	"os"
	"runtime"
	runtimemetrics "runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel/internal/process"
	"github.com/disdel/disdel/internal/promtext"
	"github.com/disdel/disdel/service"
)

// requests counts the answers of a server.
type requests struct {
	mu   sync.Mutex
	seen map[answered]int               // guarded by mu
	took map[string]*promtext.Histogram // guarded by mu: by the route
}

// answered are requests with the same route and status.
type answered struct {
	route string
	code  int
}

// add counts one. Requests that wait by intention are in no histogram.
func (r *requests) add(route string, code int, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[answered{route, code}]++
	if strings.HasSuffix(route, "/events") || strings.HasSuffix(route, "/wait") {
		return
	}
	if r.took[route] == nil {
		r.took[route] = promtext.NewHistogram(0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 10)
	}
	r.took[route].Add(took.Seconds())
}

// metrics answers in the text format of Prometheus: a tenant gets its own metrics, the operator those of all tenants
// and of the process.
func metrics(c *call) (int, any, error) {
	var p promtext.Page
	all := c.Service.Figures()
	totals(&p, all)
	newest(&p, all)
	aliases(&p, all)
	if c.operator {
		c.server.requests.write(&p)
		ofProcess(&p)
	}
	c.w.Header().Set("Content-Type", promtext.ContentType)
	c.w.Write(p.Bytes()) //nolint:errcheck // the client went away
	return 0, nil, nil
}

// totals are the sums over the jobs of each tenant.
func totals(p *promtext.Page, all []service.Figures) {
	gauge := func(name, help string, value func(f *service.Figures) float64) {
		p.Family(name, "gauge", help)
		for i := range all {
			p.Sample(name, value(&all[i]), "tenant", all[i].Tenant)
		}
	}
	gauge("disdel_jobs_queued", "Jobs of this server that wait for their gang.",
		func(f *service.Figures) float64 { return float64(f.Queued) })
	gauge("disdel_jobs_running", "Jobs of this server that run.",
		func(f *service.Figures) float64 { return float64(f.Running) })
	p.Family("disdel_jobs_submitted_total", "counter", "Jobs that were accepted, resumed or taken over.")
	for _, f := range all {
		p.Sample("disdel_jobs_submitted_total", float64(f.Submitted), "tenant", f.Tenant)
	}
	p.Family("disdel_jobs_ended_total", "counter", "Jobs that ended on this server or left it, by status.")
	for _, f := range all {
		for _, s := range slices.Sorted(maps.Keys(f.Ended)) {
			p.Sample("disdel_jobs_ended_total", float64(f.Ended[s]), "tenant", f.Tenant, "status", s.String())
		}
	}
	p.Family("disdel_jobs_cost_gbs_total", "counter", "Gigabyte-seconds of jobs that have ended.")
	for _, f := range all {
		p.Sample("disdel_jobs_cost_gbs_total", f.Cost, "tenant", f.Tenant)
	}
	p.Family("disdel_job_wait_seconds", "histogram", "From a job's acknowledgement to its gang.")
	for _, f := range all {
		p.Histogram("disdel_job_wait_seconds", f.Waited, "tenant", f.Tenant)
	}
	p.Family("disdel_activations_total", "counter", "Activations that ended, by task and outcome.")
	for _, f := range all {
		for _, e := range slices.SortedFunc(maps.Keys(f.Ends), byName) {
			p.Sample("disdel_activations_total", float64(f.Ends[e]), "tenant", f.Tenant, "task", string(e.Task), "outcome",
				e.Outcome.String())
		}
	}
	p.Family("disdel_cold_starts_total", "counter", "Activations that had to initialise a container.")
	for _, f := range all {
		for _, task := range slices.Sorted(maps.Keys(f.Cold)) {
			p.Sample("disdel_cold_starts_total", float64(f.Cold[task]), "tenant", f.Tenant, "task", string(task))
		}
	}
}

func byName(a, b service.ActivationEnd) int {
	return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Outcome, b.Outcome))
}

// ofJobs are the metrics of a job's newest round, with their names in KubeML.
var ofJobs = []struct {
	name, alias, help string
	value             func(j *service.JobFigures) *float64
	times             float64 // factor of KubeML, whose accuracies are percentages
}{
	{
		"disdel_job_train_loss", "kubeml_job_train_loss", "Mean training loss of the newest round.",
		func(j *service.JobFigures) *float64 { return j.TrainLoss }, 1,
	},
	{
		"disdel_job_loss", "kubeml_job_validation_loss", "Held-out loss of the newest evaluation.",
		func(j *service.JobFigures) *float64 { return j.Loss }, 1,
	},
	{
		"disdel_job_accuracy", "kubeml_job_validation_accuracy", "Held-out accuracy of the newest evaluation.",
		func(j *service.JobFigures) *float64 { return j.Accuracy }, 100,
	},
	{
		"disdel_job_workers", "kubeml_job_parallelism", "Train actions of a round.",
		func(j *service.JobFigures) *float64 { return new(float64(j.Workers)) }, 1,
	},
	{
		"disdel_job_epoch_seconds", "kubeml_job_epoch_duration_seconds", "Time of an epoch, by the newest round.",
		func(j *service.JobFigures) *float64 {
			if j.Epoch == 0 {
				return nil
			}
			return new(j.Epoch.Seconds())
		}, 1,
	},
}

// newest are the results of the newest round of each unfinished job.
func newest(p *promtext.Page, all []service.Figures) {
	for _, family := range ofJobs {
		p.Family(family.name, "gauge", family.help)
		for _, f := range all {
			for i := range f.Jobs {
				if v := family.value(&f.Jobs[i]); v != nil {
					p.Sample(family.name, *v, "tenant", f.Tenant, "job", string(f.Jobs[i].Job), "name", f.Jobs[i].Name)
				}
			}
		}
	}
}

// aliases are the metrics under the names of KubeML, for dashboards made for it.
func aliases(p *promtext.Page, all []service.Figures) {
	running, inferring := 0, 0
	for _, f := range all {
		running, inferring = running+f.Running, inferring+f.Inferring
	}
	p.Family("kubeml_job_running_total", "gauge", "Jobs that run (KubeML's name).")
	p.Sample("kubeml_job_running_total", float64(running), "type", "train")
	p.Sample("kubeml_job_running_total", float64(inferring), "type", "inference")
	for _, family := range ofJobs {
		p.Family(family.alias, "gauge", family.help+" KubeML's name.")
		for _, f := range all {
			for i := range f.Jobs {
				if v := family.value(&f.Jobs[i]); v != nil {
					p.Sample(family.alias, *v*family.times, "jobid", string(f.Jobs[i].Job))
				}
			}
		}
	}
}

// write adds the metrics of the answers.
func (r *requests) write(p *promtext.Page) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Family("disdel_http_requests_total", "counter", "Requests that were answered, by route and status.")
	order := func(a, b answered) int { return cmp.Or(cmp.Compare(a.route, b.route), cmp.Compare(a.code, b.code)) }
	for _, a := range slices.SortedFunc(maps.Keys(r.seen), order) {
		p.Sample("disdel_http_requests_total", float64(r.seen[a]), "route", a.route, "code", strconv.Itoa(a.code))
	}
	p.Family("disdel_http_request_seconds", "histogram", "Time until a request was answered.")
	for _, route := range slices.Sorted(maps.Keys(r.took)) {
		p.Histogram("disdel_http_request_seconds", r.took[route], "route", route)
	}
}

// ofProcess are the metrics of the server's process under the names of Prometheus.
func ofProcess(p *promtext.Page) {
	if resident, ok := process.Resident(os.Getpid()); ok {
		p.Family("process_resident_memory_bytes", "gauge", "Resident memory of the server.")
		p.Sample("process_resident_memory_bytes", float64(resident))
	}
	live := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	runtimemetrics.Read(live)
	p.Family("go_gc_heap_live_bytes", "gauge", "Memory of the server that the last garbage collection kept.")
	p.Sample("go_gc_heap_live_bytes", float64(live[0].Value.Uint64()))
	p.Family("go_goroutines", "gauge", "Goroutines of the server.")
	p.Sample("go_goroutines", float64(runtime.NumGoroutine()))
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	code int
}

func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// status is what was answered.
func (r *recorder) status() int { return cmp.Or(r.code, http.StatusOK) }
