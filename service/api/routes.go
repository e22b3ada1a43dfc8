package api

import (
	"encoding/json"
	"net/http"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/tenant"
)

// route is a route of the server.
type route struct {
	method, path string
	role         tenant.Role // that it requires; "": it needs no token
	answer       func(c *call) (status int, body any, err error)
	upload       bool // its body is files
	cost         cost // memory of a request
}

// call is one request, with the Service of its tenant. An answer of status 0 has been written already.
type call struct {
	*http.Request
	w        http.ResponseWriter
	out      *http.ResponseController
	server   *server
	Service  *service.Service
	operator bool     // the token is the operator's
	held     int64    // bytes of the tenant's budget
	computes bool     // the request has a place to compute from its start
	frees    []func() // release what the request holds
}

var routes = []route{
	{method: "GET", path: "/healthz", answer: alive},
	{method: "GET", path: "/readyz", answer: ready},
	{method: "GET", path: "/openapi.json", answer: describe},
	{method: "GET", path: "/metrics", role: tenant.RoleRead, answer: metrics, cost: costLook},
	{method: "GET", path: "/api/v1/jobs", role: tenant.RoleRead, answer: listJobs, cost: costList},
	{method: "POST", path: "/api/v1/jobs", role: tenant.RoleSubmit, answer: submitJob, cost: costSubmit},
	{method: "GET", path: "/api/v1/jobs/{job}", role: tenant.RoleRead, answer: showJob, cost: costRecord},
	{method: "GET", path: "/api/v1/jobs/{job}/events", role: tenant.RoleRead, answer: events, cost: costStream},
	{method: "GET", path: "/api/v1/jobs/{job}/logs", role: tenant.RoleRead, answer: logs, cost: costList},
	{method: "GET", path: "/api/v1/jobs/{job}/wait", role: tenant.RoleRead, answer: wait, cost: costStream},
	{method: "GET", path: "/api/v1/jobs/{job}/report", role: tenant.RoleRead, answer: reportJob, cost: costList},
	{method: "GET", path: "/api/v1/jobs/{job}/runner", role: tenant.RoleRead, answer: runner, cost: costRecord},
	{
		method: "POST", path: "/api/v1/jobs/{job}/cancel", role: tenant.RoleSubmit,
		answer: stopAs(disdel.StatusCanceled), cost: costLook,
	},
	{
		method: "POST", path: "/api/v1/jobs/{job}/pause", role: tenant.RoleSubmit,
		answer: stopAs(disdel.StatusPaused), cost: costLook,
	},
	{method: "POST", path: "/api/v1/jobs/{job}/resume", role: tenant.RoleSubmit, answer: resume, cost: costSubmit},
	{method: "POST", path: "/api/v1/jobs/{job}/retry", role: tenant.RoleSubmit, answer: resume, cost: costSubmit},
	{method: "PUT", path: "/api/v1/jobs/{job}/remark", role: tenant.RoleSubmit, answer: remark, cost: costLook},
	{method: "GET", path: "/api/v1/remarks", role: tenant.RoleRead, answer: remarks, cost: costList},
	{method: "GET", path: "/api/v1/history", role: tenant.RoleRead, answer: listJobs, cost: costList},
	{method: "GET", path: "/api/v1/history/{job}", role: tenant.RoleRead, answer: showJob, cost: costRecord},
	{method: "POST", path: "/api/v1/estimates", role: tenant.RoleSubmit, answer: estimate, cost: costWork},
	{method: "POST", path: "/api/v1/checks", role: tenant.RoleRead, answer: check, cost: costSubmit},
	{method: "GET", path: "/api/v1/datasets", role: tenant.RoleRead, answer: listData, cost: costList},
	{method: "POST", path: "/api/v1/datasets", role: tenant.RoleSubmit, answer: addData, cost: costUpload},
	{
		method: "PUT", path: "/api/v1/datasets/{name}", role: tenant.RoleSubmit,
		answer: uploadData, upload: true, cost: costUpload,
	},
	{method: "GET", path: "/api/v1/datasets/{name}", role: tenant.RoleRead, answer: showData, cost: costLook},
	{method: "GET", path: "/api/v1/datasets/{name}/sample", role: tenant.RoleRead, answer: sampleData, cost: costList},
	{
		method: "GET", path: "/api/v1/datasets/{name}/statistics", role: tenant.RoleRead,
		answer: dataStatistics, cost: costWork,
	},
	{method: "DELETE", path: "/api/v1/datasets/{name}", role: tenant.RoleSubmit, answer: removeData, cost: costLook},
	{method: "GET", path: "/api/v1/models", role: tenant.RoleRead, answer: listModels, cost: costList},
	{method: "GET", path: "/api/v1/models/{model}", role: tenant.RoleRead, answer: showModel, cost: costLook},
	{method: "GET", path: "/api/v1/models/{model}/weights", role: tenant.RoleRead, answer: weights, cost: costSend},
	{method: "GET", path: "/api/v1/models/{model}/program", role: tenant.RoleRead, answer: sendProgram, cost: costLook},
	{method: "POST", path: "/api/v1/models/{model}/infer", role: tenant.RoleSubmit, answer: inferRows, cost: costInfer},
	{method: "POST", path: "/api/v1/models/{model}/evaluate", role: tenant.RoleSubmit, answer: evaluate, cost: costInfer},
	{method: "PUT", path: "/api/v1/models/{model}/tags/{tag}", role: tenant.RoleSubmit, answer: tagModel, cost: costLook},
	{method: "DELETE", path: "/api/v1/models/{model}", role: tenant.RoleSubmit, answer: removeModel, cost: costLook},
	{method: "GET", path: "/api/v1/shares", role: tenant.RoleRead, answer: listShares, cost: costLook},
	{method: "GET", path: "/api/v1/shares/{kind}/{name}", role: tenant.RoleRead, answer: showShare, cost: costLook},
	{method: "PUT", path: "/api/v1/shares/{kind}/{name}", role: tenant.RoleSubmit, answer: addShare, cost: costLook},
	{
		method: "DELETE", path: "/api/v1/shares/{kind}/{name}", role: tenant.RoleSubmit,
		answer: removeShare, cost: costLook,
	},
	{method: "GET", path: "/api/v1/weights", role: tenant.RoleRead, answer: listWeights, cost: costList},
	{
		method: "PUT", path: "/api/v1/weights/{weights}", role: tenant.RoleSubmit,
		answer: putWeights, upload: true, cost: costUpload,
	},
	{method: "DELETE", path: "/api/v1/weights/{weights}", role: tenant.RoleSubmit, answer: removeWeights, cost: costLook},
	{
		method: "POST", path: "/api/v1/programs", role: tenant.RoleSubmit,
		answer: putProgram, upload: true, cost: costUpload,
	},
	{
		method: "POST", path: "/api/v1/environments", role: tenant.RoleSubmit,
		answer: installPackages, upload: true, cost: costUpload,
	},
	{method: "GET", path: "/api/v1/stored", role: tenant.RoleRead, answer: listStored, cost: costList},
	{
		method: "DELETE", path: "/api/v1/stored/{kind}/{name}", role: tenant.RoleSubmit,
		answer: removeStored, cost: costLook,
	},
	{method: "DELETE", path: "/api/v1/jobs/{job}", role: tenant.RoleSubmit, answer: forget, cost: costLook},
}

func alive(*call) (int, any, error) { return http.StatusOK, apitypes.State{Status: "ok"}, nil }

// ready reports whether the server takes jobs: its back ends answer, and it is not shutting down. It reveals no more,
// since it asks for no token.
func ready(c *call) (int, any, error) {
	if err := c.draining(); err != nil {
		return 0, nil, err
	}
	if err := c.Service.Ready(c.Context()); err != nil {
		return 0, nil, &disdel.Error{Kind: disdel.Unavailable, Op: "look at the back ends", Msg: "one does not answer"}
	}
	return http.StatusOK, apitypes.State{Status: "ready"}, nil
}

func describe(*call) (int, any, error) { return http.StatusOK, json.RawMessage(description), nil }

// listStored is what takes space: of a tenant its own items, for the operator also those of all tenants.
func listStored(c *call) (int, any, error) {
	items, err := c.Service.StoredOfAll(c.Context())
	return http.StatusOK, apitypes.StoredList{Items: append([]service.StoredItem{}, items...)}, err
}

func removeStored(c *call) (int, any, error) {
	item := service.StoredItem{Kind: service.StoredKind(c.PathValue("kind")), Name: c.PathValue("name")}
	switch item.Kind {
	case service.StoredData, service.StoredModels, service.StoredCheckpoints, service.StoredWeights, service.StoredAnswers,
		service.StoredLogs, service.StoredEnvironments:
	default:
		return 0, nil, &disdel.Error{Kind: disdel.NotFound, Op: "delete an item", Msg: "there is no such kind"}
	}
	err := c.Service.RemoveStored(c.Context(), item)
	return http.StatusOK, apitypes.State{Status: "removed"}, err
}
