package api

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/internal/test/golden"
	"github.com/disdel/disdel/internal/test/jsonshape"
	"github.com/disdel/disdel/service"
)

var update = flag.Bool("update", false, "write testdata/routes.golden and testdata/json.golden anew")

// testdata/routes.golden is every route with its role, parameters, bodies and statuses, as openapi.json describes it:
// go test ./service/api -run TestTheRoutesStay -update
func TestTheRoutesStay(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(Description())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		operations := doc.Paths.Find(path).Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			writeRoute(&out, method, path, operations[method])
		}
	}
	golden.Same(t, "testdata/routes.golden", out.String(), *update)
}

func writeRoute(out *strings.Builder, method, path string, op *openapi3.Operation) {
	role, _ := op.Extensions["x-role"].(string)
	fmt.Fprintln(out, strings.TrimSpace(method+" "+path+" "+role))
	var parameters []string
	for _, p := range op.Parameters {
		parameters = append(parameters, p.Value.In+" "+p.Value.Name)
	}
	slices.Sort(parameters)
	for _, p := range parameters {
		fmt.Fprintf(out, "  %s\n", p)
	}
	if op.RequestBody != nil {
		for _, kind := range slices.Sorted(maps.Keys(op.RequestBody.Value.Content)) {
			fmt.Fprintf(out, "  takes %s%s\n", kind, schemaOf(op.RequestBody.Value.Content[kind]))
		}
	}
	answers := op.Responses.Map()
	for _, status := range slices.Sorted(maps.Keys(answers)) {
		content := answers[status].Value.Content
		if len(content) == 0 {
			fmt.Fprintf(out, "  %s\n", status)
		}
		for _, kind := range slices.Sorted(maps.Keys(content)) {
			fmt.Fprintf(out, "  %s %s%s\n", status, kind, schemaOf(content[kind]))
		}
	}
}

// schemaOf is the name of a body's schema, if it has one.
func schemaOf(m *openapi3.MediaType) string {
	if m.Schema == nil || m.Schema.Ref == "" {
		return ""
	}
	return " " + m.Schema.Ref[strings.LastIndex(m.Schema.Ref, "/")+1:]
}

// testdata/json.golden is the shape of the bodies that only the API has, and of every event. The bodies that commands
// print, too, are in cmd/disdel/testdata/json.golden: go test ./service/api -run TestBodiesKeepTheirShape -update
func TestBodiesKeepTheirShape(t *testing.T) {
	jsonshape.Golden(t, "testdata/json.golden", *update, map[string][]any{
		"record": {disdel.Record{}}, "estimation": {service.Estimation{}},
		"submission": {apitypes.Submission{}}, "failure": {apitypes.Failure{}},
		"event": {apitypes.Event{}},
		"ask":   {apitypes.StopRequest{}},
		"state": {apitypes.State{}}, "jobs": {apitypes.JobList{}},
		"runner": {apitypes.Runner{}},
		"shares": {apitypes.ShareList{}}, "share": {apitypes.ShareRequest{}},
		"remarks": {apitypes.RemarkList{}},
		"logs":    {apitypes.LogList{}}, "source": {apitypes.Source{}},
		"datasets": {apitypes.DatasetList{}},
		"weights":  {apitypes.Weights{}},
		"models":   {apitypes.ModelList{}}, "list of weights": {apitypes.WeightsList{}},
		"stored":          {apitypes.StoredList{}},
		"line of answers": {apitypes.AnswerLine{}},

		"event noted": {service.Noted{}}, "event probed": {service.Probed{}}, "event resumed": {service.Resumed{}},
		"event planned": {service.Planned{}}, "event queued": {service.Queued{}}, "event admitted": {service.Admitted{}},
		"event invoked": {service.Invoked{}}, "event ended": {service.Ended{}}, "event progress": {service.Progress{}},
		"event stageBegan": {service.StageBegan{}}, "event roundEnded": {service.RoundEnded{}},
		"event adjusted": {service.Adjusted{}}, "event forecast": {service.Forecast{}}, "event outage": {service.Outage{}},
		"event waiting": {service.Waiting{}}, "event throttled": {service.Throttled{}}, "event pruned": {service.Pruned{}},
		"event finished": {service.Finished{}},
	})
}
