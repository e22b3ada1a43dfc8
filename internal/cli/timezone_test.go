package cli

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// in runs the program in a time zone.
func (d *tool) in(zone string, args ...string) string {
	d.t.Helper()
	cmd, out, errs := d.command(args...)
	cmd.Env = append(cmd.Env, "TZ="+zone)
	if err := cmd.Run(); err != nil {
		d.t.Fatalf("TZ=%s disdel %s: %v\n%s", zone, strings.Join(args, " "), err, errs)
	}
	return out.String()
}

// localTime is a time in a document that has an offset instead of Z.
var localTime = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[0-9:.]+[+-]\d\d:\d\d"`)

// A job that runs in one time zone is the same in all others: documents have the same bytes, times in UTC, and --since
// counts from the same moment. Only tables show the reader's own time.
func TestTimeZonesChangeOnlyTables(t *testing.T) {
	t.Parallel()
	const zones = "/usr/share/zoneinfo"
	if _, err := os.Stat(filepath.Join(zones, "Asia", "Kathmandu")); err != nil {
		t.Skip("there are no time zones in " + zones)
	}
	list := []string{
		"UTC", "Asia/Kathmandu", "Pacific/Kiritimati", "Pacific/Pago_Pago", "America/St_Johns", "Europe/Berlin", "Asia/Tokyo",
	}
	seed := uint64(time.Now().UnixNano())
	rand.New(rand.NewPCG(seed, 39)).Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	t.Logf("seed %d: run in %s", seed, list[0])
	d := build(t)
	d.in(list[0], "quickstart", "--set", "training.epochs=2", "-q")
	documents := map[string]string{}
	for _, zone := range list {
		for _, words := range []string{"jobs show @last -o json", "jobs --since 15m -o json", "model list -o json"} {
			got := d.in(zone, strings.Fields(words)...)
			if was, ok := documents[words]; !ok {
				documents[words] = got
			} else if was != got {
				t.Errorf("disdel %s says something else in %s:\n%.2000s\nnot\n%.2000s", words, zone, got, was)
			}
			if at := localTime.FindString(got); at != "" {
				t.Errorf("disdel %s in %s has the time %s, not in UTC", words, zone, at)
			}
		}
		at, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		day := time.Now().In(at).Format("2006-01-02 15:")
		hourAgo := time.Now().Add(-15 * time.Minute).In(at).Format("2006-01-02 15:")
		if table := d.in(zone, "jobs", "--columns", "job,created"); !strings.Contains(table, day) &&
			!strings.Contains(table, hourAgo) {
			t.Errorf("in %s the job began at another time than %s:\n%s", zone, day, table)
		}
	}
}
