package commandline

import (
	"flag"
	"testing"

	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/comparison"
	"github.com/disdel/disdel/internal/gpus"
	"github.com/disdel/disdel/internal/jobtext"
	"github.com/disdel/disdel/internal/modeltext"
	"github.com/disdel/disdel/internal/test/jsonshape"
	"github.com/disdel/disdel/service/infer"
)

var update = flag.Bool("update", false, "write testdata/json.golden anew")

// documents are what -o json of this package's commands prints, as the table of the same name in cmd/disdel.
var documents = map[string][]any{
	"help":           {document{}},
	"completion":     {textDocument{}},
	"man":            {textDocument{}},
	"compare":        {comparison.Of},
	"export":         {exported{}},
	"history delete": {deletedDocument{}},
	"history prune":  {prunedDocument{}},
	"job logs":       {jobtext.Logs},
	"job tag":        {remarkDocument{}},
	"job note":       {remarkDocument{}},
	"job watch":      nil, // the whole terminal
	"model export":   {exportDocument{}},
	"model promote":  {client.Models.Tag},
	"model compare":  {modeltext.Comparison{}},
	"model remove":   {client.Models.Remove, removedWeights{}},
	"infer":          {client.Models.Answer, modeltext.DataAnswers{}, watchDocument{}},
	"context add":    {jobtext.Contexts{}}, "context list": {jobtext.Contexts{}}, "context use": {jobtext.Contexts{}},
	"context remove": {jobtext.Contexts{}}, "context import-wskprops": {jobtext.Contexts{}},
	"deploy gpu": {gpuFiles{}},
	"doctor gpu": {gpus.Look},
	// Lines of files.
	"infer --output FILE.jsonl": {infer.DataRow{}}, "infer --watch --output FILE.jsonl": {answerLine{}},
}

// go test ./internal/commandline -run TestDocumentsKeepTheirShape -update
func TestDocumentsKeepTheirShape(t *testing.T) {
	jsonshape.Golden(t, "testdata/json.golden", *update, documents)
}
