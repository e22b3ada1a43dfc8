package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/terminal"
)

// pythonVariable has the path of the interpreter for commands without --python PATH.
const pythonVariable = "DISDEL_PYTHON"

var pythonFlag = &cli.StringFlag{
	Name: "python", TakesFile: true, EnvVars: []string{pythonVariable},
	Usage: "`PATH` of the interpreter of Python programs (default: the project's .venv, or python3)",
}

// programFlags say how a Python program without a job file is trained.
var programFlags = []cli.Flag{
	&cli.StringFlag{Name: "data", Usage: "data set `NAME`; short for --set data.source=dataset://NAME"},
	&cli.StringFlag{Name: "loss", Usage: "`LOSS`, such as crossEntropy; short for --set training.loss=LOSS"},
	pythonFlag,
}

// programs describes Python programs with the interpreter that the command line or the environment names.
func programs(c *cli.Context) *client.Programs {
	out := &client.Programs{Interpreter: os.Getenv(pythonVariable)}
	if path, ok := c.Value(pythonFlag.Name).(string); ok && path != "" { // some commands have a switch of this name
		out.Interpreter = path
	}
	if strings.ContainsRune(out.Interpreter, filepath.Separator) {
		out.Interpreter = wholePath(out.Interpreter)
	}
	if folder, err := homeFolder(c); err == nil {
		out.Cache = filepath.Join(folder, "python")
	}
	return out
}

// programOperand splits an operand such as net.py:Net; ok is false for job files.
func programOperand(name string) (file, entry string, ok bool) {
	file, entry = name, ""
	if at := strings.LastIndexByte(name, ':'); at >= 0 {
		file, entry = name[:at], name[at+1:]
	}
	return file, entry, strings.HasSuffix(file, ".py")
}

// programJob is the job file of a Python program that has none. Flags change its fields.
func programJob(file, entry string) []byte {
	name := strings.TrimSuffix(filepath.Base(file), ".py")
	model := fmt.Sprintf("file: %q", filepath.Base(file))
	if entry != "" {
		model += fmt.Sprintf("\n    entry: %q", entry)
	}
	return fmt.Appendf(nil, `apiVersion: disdel/v1
kind: TrainingJob
metadata:
  name: %s
model:
  python:
    %s
data: {}
training:
  epochs: %d
`, jobName(name), model, programEpochs)
}

// programEpochs are the epochs of a program without a job file and without --epochs.
const programEpochs = 5

// programMistakes prints the faults of a job that has no file whose lines could be shown.
func programMistakes(u *ui, all *disdel.Faults) error {
	for _, f := range all.Faults {
		e := &disdel.Error{Kind: disdel.Invalid, Op: all.File, Msg: f.Path + ": " + f.Msg, Hint: f.Hint}
		switch {
		case f.Path == "data.source" && f.Msg == "missing":
			e.Msg, e.Hint = "a program needs data to learn from", "name a data set: --data NAME; disdel dataset list shows them. "+
				"If the program has a method dataset, add its rows first: disdel dataset add NAME --program FILE"
		case f.Path == client.ProgramPath:
			e.Msg = f.Msg
		}
		u.Fail(e)
	}
	return terminal.Reported(all)
}
