package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/deploy"
	"github.com/disdel/disdel/deploy/doctor"
	"github.com/disdel/disdel/deploy/image"
	"github.com/disdel/disdel/deploy/verify"
	"github.com/disdel/disdel/examples"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/internal/test/jsonshape"
	"github.com/disdel/disdel/platform/local"
	"github.com/disdel/disdel/runtime/engine/gpu"
	"github.com/disdel/disdel/runtime/engine/native/checkup"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/batch"
	"github.com/disdel/disdel/service/infer"
	"github.com/disdel/disdel/service/tenant"
)

// documents are what -o json of each command prints: values, or functions whose first result is printed. A command that
// prints no document has none.
var documents = map[string][]any{
	"quickstart": {disdel.Record{}}, "submit": {disdel.Record{}}, "resume": {disdel.Record{}},
	"jobs follow": {disdel.Record{}}, "jobs wait": {disdel.Record{}},
	"jobs cancel": {askedDocument{}}, "jobs pause": {askedDocument{}},
	"batch":    {batch.Start},
	"estimate": {service.Estimation{}},
	"validate": {[]render.Problem{}}, "batch of invalid files": {[]render.Problem{}},
	"explain": {jobfile.ExplainSchema},

	"dataset add": {client.Data.AddKnown}, "dataset generate": {client.Data.AddSparse},
	"dataset list": {client.Data.List}, "dataset show": {client.Data.Get}, "dataset sample": {client.Data.Sample},
	"dataset remove": {client.Data.Remove},

	"jobs": {client.Records.List}, "jobs list": {client.Records.List}, "jobs show": {client.Records.Get},
	"jobs repair": {repairedDocument{}}, "jobs export": {export.WriteMLLess},
	"du": {usedDocument{}}, "prune": {cleanedDocument{}},
	"report": {report.New}, "report --html": {pageDocument{}}, "report --spec": {new(any)},

	"model list": {render.ModelList{}}, "model show": {render.KerasNetwork, render.NamedNetwork, render.DescribeModel},
	"evaluate": {client.Models.Evaluate},

	"platform up": {platformDocument{}}, "platform status": {platformDocument{}}, "platform down": {platformDocument{}},
	"platform user create": {local.AddTenant}, "platform user list": {local.Tenants},
	"platform user delete": {local.Tenant{}},

	"serve": {serving{}}, "ui": {serving{}},
	"tenant create": {madeTenant{}}, "tenant delete": {madeTenant{}}, "tenant list": {(*tenant.Registry).List},
	"tenant token list": {(*tenant.Registry).Tokens}, "tenant token create": {madeTenant{}},
	"tenant token revoke": {madeTenant{}},

	"deploy image": {image.Make}, "deploy up": {deploy.Plan{}}, "deploy preview": {deploy.Plan{}},
	"deploy status": {deploy.Plan{}}, "deploy down": {deploy.Plan{}},
	"doctor": {doctor.Examine}, "doctor engine": {checkup.Examine}, "verify": {verify.Run},

	"simulate": {service.Simulate}, "lab": {simulate.Lab{}},
	"version": {versionDocument{}}, "help exit-codes": {terminal.ExitCodes},
	"runtime": nil, "__complete": nil, // for programs of disdel's own

	"help":          {document{}},
	"completion":    {textDocument{}},
	"man":           {textDocument{}},
	"compare":       {report.Compare},
	"export":        {exported{}},
	"jobs delete":   {deletedDocument{}},
	"jobs prune":    {prunedDocument{}},
	"jobs logs":     {render.ActivationLogs},
	"jobs tag":      {remarkDocument{}},
	"jobs note":     {remarkDocument{}},
	"jobs watch":    nil, // the whole terminal
	"model export":  {exportDocument{}},
	"model import":  {client.Models.Add, render.Network{}},
	"model promote": {client.Models.Tag},
	"model compare": {render.ModelComparison{}},
	"model remove":  {client.Models.Remove, removedWeights{}},
	"example":       {[]examples.Example{}, examples.Example{}},
	"init":          {initialized{}},
	"infer":         {client.Models.Answer, render.FileAnswers{}, render.DataAnswers{}, watchDocument{}},
	"context add":   {render.Contexts{}}, "context list": {render.Contexts{}}, "context use": {render.Contexts{}},
	"context remove": {render.Contexts{}}, "context import-wskprops": {render.Contexts{}},
	"deploy gpu":    {gpuFiles{}},
	"doctor gpu":    {gpu.Inspect},
	"dataset share": {tenant.Share{}}, "dataset unshare": {tenant.Share{}},
	"model share": {tenant.Share{}}, "model unshare": {tenant.Share{}},
	"jobs share": {tenant.Share{}}, "jobs unshare": {tenant.Share{}},
	// Lines of files.
	"infer --file FILE.jsonl": {infer.DataRow{}}, "infer --watch --file FILE.jsonl": {answerLine{}},
}

// testdata/json.golden is the shape of each document: go test ./internal/cli -run TestDocumentsKeepTheirShape -update
func TestDocumentsKeepTheirShape(t *testing.T) {
	jsonshape.Golden(t, "testdata/json.golden", *update, documents)
}

// knownShapes are those of the goldens, by the command.
func knownShapes() (map[string]jsonshape.Shape, error) {
	var all strings.Builder
	for _, file := range []string{
		"testdata/json.golden", "../terminal/testdata/json.golden",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all.Write(text)
	}
	return jsonshape.Read(all.String()), nil
}

func TestEveryCommandHasTheShapeOfItsDocument(t *testing.T) {
	known, err := knownShapes()
	if err != nil {
		t.Fatal(err)
	}
	for path, c := range allCommands() {
		if _, ok := known[path]; !ok && len(c.Subcommands) == 0 {
			t.Errorf("the document of disdel %s is in no table of documents", path)
		}
	}
}

// strangeIn returns the fields of a document that the shape of its command does not have.
func strangeIn(ts *testscript.TestScript, command string, doc any) []string {
	known, err := knownShapes()
	ts.Check(err)
	shape, ok := known[command]
	if !ok {
		ts.Fatalf("no shape of a document is known as %q", command)
	}
	return shape.Strange(doc)
}
