package api

import (
	"encoding/json"
	"net/http"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/wire"
	"github.com/disdel/disdel/service"
)

// route is one thing that the server does.
type route struct {
	method, path string
	role         service.Role // that it takes; "": it asks nobody who he is
	answer       func(c *call) (status int, body any, err error)
	upload       bool // its body is files
}

// call is one request, from a tenant whose Service it is. An answer of status 0 was written already.
type call struct {
	*http.Request
	w        http.ResponseWriter
	server   *server
	Service  *service.Service
	operator bool // it comes from who runs the server
}

var routes = []route{
	{method: "GET", path: "/healthz", answer: alive},
	{method: "GET", path: "/readyz", answer: ready},
	{method: "GET", path: "/openapi.json", answer: describe},
	{method: "GET", path: "/metrics", role: service.RoleRead, answer: metrics},
	{method: "GET", path: "/api/v1/jobs", role: service.RoleRead, answer: listJobs},
	{method: "POST", path: "/api/v1/jobs", role: service.RoleSubmit, answer: submitJob},
	{method: "GET", path: "/api/v1/jobs/{job}", role: service.RoleRead, answer: showJob},
	{method: "GET", path: "/api/v1/jobs/{job}/events", role: service.RoleRead, answer: events},
	{method: "GET", path: "/api/v1/jobs/{job}/logs", role: service.RoleRead, answer: logs},
	{method: "GET", path: "/api/v1/jobs/{job}/wait", role: service.RoleRead, answer: wait},
	{method: "GET", path: "/api/v1/jobs/{job}/report", role: service.RoleRead, answer: reportJob},
	{method: "GET", path: "/api/v1/jobs/{job}/runner", role: service.RoleRead, answer: runner},
	{method: "POST", path: "/api/v1/jobs/{job}/cancel", role: service.RoleSubmit, answer: stopAs(disdel.StatusCanceled)},
	{method: "POST", path: "/api/v1/jobs/{job}/pause", role: service.RoleSubmit, answer: stopAs(disdel.StatusPaused)},
	{method: "POST", path: "/api/v1/jobs/{job}/resume", role: service.RoleSubmit, answer: resume},
	{method: "POST", path: "/api/v1/jobs/{job}/retry", role: service.RoleSubmit, answer: resume},
	{method: "PUT", path: "/api/v1/jobs/{job}/remark", role: service.RoleSubmit, answer: remark},
	{method: "GET", path: "/api/v1/remarks", role: service.RoleRead, answer: remarks},
	{method: "GET", path: "/api/v1/history", role: service.RoleRead, answer: listJobs},
	{method: "GET", path: "/api/v1/history/{job}", role: service.RoleRead, answer: showJob},
	{method: "POST", path: "/api/v1/estimates", role: service.RoleSubmit, answer: estimate},
	{method: "POST", path: "/api/v1/checks", role: service.RoleRead, answer: check},
	{method: "GET", path: "/api/v1/datasets", role: service.RoleRead, answer: listData},
	{method: "POST", path: "/api/v1/datasets", role: service.RoleAdmin, answer: addData},
	{method: "PUT", path: "/api/v1/datasets/{name}", role: service.RoleAdmin, answer: uploadData, upload: true},
	{method: "GET", path: "/api/v1/datasets/{name}", role: service.RoleRead, answer: showData},
	{method: "GET", path: "/api/v1/datasets/{name}/sample", role: service.RoleRead, answer: sampleData},
	{method: "DELETE", path: "/api/v1/datasets/{name}", role: service.RoleAdmin, answer: removeData},
	{method: "GET", path: "/api/v1/models", role: service.RoleRead, answer: listModels},
	{method: "GET", path: "/api/v1/models/{model}", role: service.RoleRead, answer: showModel},
	{method: "GET", path: "/api/v1/models/{model}/weights", role: service.RoleRead, answer: weights},
	{method: "POST", path: "/api/v1/models/{model}/infer", role: service.RoleSubmit, answer: infer},
	{method: "POST", path: "/api/v1/models/{model}/evaluate", role: service.RoleSubmit, answer: evaluate},
	{method: "PUT", path: "/api/v1/models/{model}/tags/{tag}", role: service.RoleSubmit, answer: tagModel},
	{method: "DELETE", path: "/api/v1/models/{model}", role: service.RoleAdmin, answer: removeModel},
	{method: "GET", path: "/api/v1/weights", role: service.RoleRead, answer: listWeights},
	{method: "PUT", path: "/api/v1/weights/{weights}", role: service.RoleSubmit, answer: putWeights, upload: true},
	{method: "DELETE", path: "/api/v1/weights/{weights}", role: service.RoleAdmin, answer: removeWeights},
	{method: "DELETE", path: "/api/v1/jobs/{job}", role: service.RoleAdmin, answer: forget},
}

func alive(*call) (int, any, error) { return http.StatusOK, wire.State{Status: "ok"}, nil }

// ready tells whether the server takes jobs: what it works with answers, and it is not about to end. Who asks learns no
// more than that, since it may be anybody.
func ready(c *call) (int, any, error) {
	if err := c.draining(); err != nil {
		return 0, nil, err
	}
	if err := c.Service.Ready(c.Context()); err != nil {
		return 0, nil, &disdel.Error{Kind: disdel.Unavailable, Op: "look at the back ends", Msg: "one does not answer"}
	}
	return http.StatusOK, wire.State{Status: "ready"}, nil
}

func describe(*call) (int, any, error) { return http.StatusOK, json.RawMessage(description), nil }
