package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// verified runs `disdel verify` on a platform in a process of its own, and tells how long that took.
func verified(ctx context.Context, program string) error {
	folder, err := os.MkdirTemp("", "bench-deploy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	env := append(os.Environ(), "DISDEL_HOME="+folder)
	run := func(args ...string) (string, error) {
		var out, errs bytes.Buffer
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &errs
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("%v: %w\n%s", args, err, errs.String())
		}
		return out.String(), nil
	}
	_, err = run("platform", "up", "--detach", "--port", "0", "--concurrent", "30", "--pool-memory", "1GB")
	if err != nil {
		return err
	}
	defer run("platform", "down") //nolint:errcheck // the figures are printed
	state, err := os.ReadFile(filepath.Join(folder, "platform.json"))
	if err != nil {
		return err
	}
	var at struct{ Address string }
	if err := json.Unmarshal(state, &at); err != nil {
		return err
	}
	out, err := run("verify", "--apihost", at.Address, "-o", "json")
	if err != nil {
		return err
	}
	var report struct {
		TookMs float64 `json:"tookMs"`
		Passed int     `json:"passed"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		return err
	}
	figure("verify_s", report.TookMs/1e3, "s")
	figure("verify_passed", float64(report.Passed), "cases")
	return nil
}
