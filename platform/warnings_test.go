package platform

import (
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
)

// Whoever runs the platform learns when an action is made what its invocations will end with; clients do not, as with
// OpenWhisk.
func TestTheLogTellsOfActionsThatCannotRun(t *testing.T) {
	log, hook := logtest.NewNullLogger()
	log.SetLevel(logrus.WarnLevel)
	p := start(t, func(c *Config) {
		c.Kinds["nodejs:20"], c.Kinds["python:3"] = c.Kinds["disdel:1"], c.Kinds["disdel:1"]
		c.Logger = log
	})
	index := archive(t, inArchive{"index.js", "exports.main = () => ({})", 0})
	for _, c := range []struct{ name, exec, want string }{
		{"fine", `"kind":"nodejs:20","code":"` + index + `"`, ""},
		{"one-file", `"kind":"python:3","code":"def main(a): return {}"`, ""},
		{"other", `"kind":"python:3","code":"` + index + `"`, "no file that it can start with"},
		{"cut", `"kind":"nodejs:20","code":"` + index[:len(index)/8*4] + `"`, "its archive cannot be read"},
	} {
		hook.Reset()
		must(t, p, "PUT", "_/actions/"+c.name, `{"exec":{`+c.exec+`}}`)
		entry := hook.LastEntry()
		if (entry == nil) != (c.want == "") {
			t.Errorf("%s: the log says %v", c.name, entry)
			continue
		}
		if entry == nil {
			continue
		}
		why, _ := entry.Data[logrus.ErrorKey].(error)
		if entry.Data["action"] != "guest/"+c.name || why == nil || !strings.Contains(why.Error(), c.want) {
			t.Errorf("%s: the log says %v", c.name, entry.Data)
		}
	}
}
