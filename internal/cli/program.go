package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/client"
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
