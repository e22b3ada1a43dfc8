package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/disdel/disdel"
)

// torch is how many samples a second PyTorch trains on, on the same GPU, or why that is not known.
func torch(n disdel.Network, batch int, tf32 bool) (perSecond float64, why string) {
	input := fmt.Sprintf("%dx%dx%d", n.Input[0], n.Input[1], n.Input[2])
	arguments := []string{
		"bench/peer/torch_train.py", "--device", "cuda", "--network", n.Name, "--input", input, "--classes",
		fmt.Sprint(n.Classes), "--batch", fmt.Sprint(batch), "--steps", "200", "--warmup", "20", "--channels-last",
	}
	if tf32 {
		arguments = append(arguments, "--precision", "tf32")
	}
	out, err := exec.Command("python3", arguments...).Output()
	if err != nil {
		why = err.Error()
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			lines := strings.Split(strings.TrimSpace(string(ended.Stderr)), "\n")
			why = lines[len(lines)-1]
		}
		return 0, why
	}
	var measured struct {
		PerSecond float64 `json:"samples_per_s"`
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &measured); err != nil {
		return 0, err.Error()
	}
	return measured.PerSecond, ""
}
