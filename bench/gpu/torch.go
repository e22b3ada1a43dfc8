package main

import (
	"encoding/json"
	"fmt"
	"os/exec"

	"github.com/disdel/disdel"
)

// torch is how many samples a second PyTorch trains on, on the same GPU, or why that is not known.
func torch(python string, n disdel.Network, batch int, tf32 bool) (perSecond float64, why string) {
	input := fmt.Sprintf("%dx%dx%d", n.Input[0], n.Input[1], n.Input[2])
	arguments := []string{
		"bench/peer/torch_train.py", "--device", "cuda", "--network", n.Name, "--input", input, "--classes",
		fmt.Sprint(n.Classes), "--batch", fmt.Sprint(batch), "--steps", "200", "--warmup", "20", "--channels-last",
	}
	if tf32 {
		arguments = append(arguments, "--precision", "tf32")
	}
	line, why := said(exec.Command(python, arguments...))
	if why != "" {
		return 0, why
	}
	var measured struct {
		PerSecond float64 `json:"samples_per_s"`
	}
	if err := json.Unmarshal(line, &measured); err != nil {
		return 0, err.Error()
	}
	return measured.PerSecond, ""
}
