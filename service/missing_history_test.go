package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
)

// A home whose history was removed says so when jobs have left files in it, and what to do. A new home says nothing.
func TestAMissingHistoryIsTold(t *testing.T) {
	for file, told := range map[string]bool{
		"models/models/imported/v00001.json":                  false,
		"models/checkpoints/job-1/round-1":                    true,
		"tenants/ann/models/weights/digits/job-1.safetensors": true,
	} {
		home := t.TempDir()
		log, hook := logtest.NewNullLogger()
		log.SetLevel(logrus.WarnLevel)
		path := filepath.Join(home, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), Config{Home: home, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.History(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Close()
		var said strings.Builder
		for _, line := range hook.AllEntries() {
			said.WriteString(line.Message)
		}
		if got := strings.Contains(said.String(), "history.db is missing"); got != told {
			t.Errorf("%s: it says %q", file, said.String())
		}
	}
}
