package cli

import (
	"bytes"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel/aggregator/embedded"
	"github.com/disdel/disdel/history/couchlite"
)

// What signs in, in the ways that people write it: as it is, encoded, in an address that is none.
const canary = "CANARYpw"

// canaryAddresses are addresses that nobody answers at, or that are none.
func canaryAddresses(scheme string) []string {
	var out []string
	for _, user := range []string{"admin:" + canary, ":" + canary, canary, "admin:%43ANARYpw" + canary, "admin:" + canary +
		"%zz", "admin:" + canary + "/1", "admin:1/" + canary, "admin:" + canary + "@x"} {
		out = append(out, scheme+"://"+user+"@127.0.0.1:1/0", scheme+"://"+user+"@[::1")
	}
	return append(out, "admin:"+canary+"@127.0.0.1:1", scheme+"://admin:"+canary)
}

// S7: no password shows in what is said of an address, whichever flag or variable it came by, and however wrong it is.
func TestNoPasswordIsSaidOfAnAddress(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	t.Setenv("WSK_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("DISDEL_AUTH", canary+":key")
	job := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(job, []byte(ownJob), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := typed(t, "dataset", "add", "digits"); code != 0 {
		t.Fatal(errs)
	}
	for _, c := range []struct {
		flag, variable string
		schemes        []string
		command        []string
	}{
		{"--couchdb", "DISDEL_COUCHDB", []string{"http", "https"}, []string{"history"}},
		{"--redis", "DISDEL_REDIS", []string{"redis", "rediss"}, []string{"estimate", job}},
		{"--apihost", "DISDEL_APIHOST", []string{"http", "https"}, []string{"estimate", job}},
		{"--storage", "DISDEL_STORAGE", []string{"s3", "nothing", "http"}, []string{"model", "list"}},
	} {
		for _, scheme := range c.schemes {
			for _, address := range canaryAddresses(scheme) {
				if u, err := url.Parse(address); c.flag == "--redis" && err == nil &&
					!strings.Contains(u.Opaque+u.Path+u.RawQuery+u.Fragment, "@") && address != "rediss://:"+canary+"@127.0.0.1:1/0" {
					continue // go-redis takes seconds to be sure that nobody answers: one of them is enough
				}
				out, errs, code := typed(t, append(c.command, "-vv", c.flag, address)...)
				saysNothing(t, c.flag+" "+address, out+errs)
				if code == 0 {
					t.Errorf("%s %s: exit 0\n%s%s", c.flag, address, out, errs)
				}
				if strings.Contains(address, "%zz") || strings.Contains(address, "[::1") {
					t.Setenv(c.variable, address)
					out, errs, _ = typed(t, append(c.command, "-o", "json")...)
					os.Unsetenv(c.variable) //nolint:errcheck // Setenv puts back what was
					saysNothing(t, c.variable+" "+address, out+errs)
				}
			}
		}
	}
}

func saysNothing(t *testing.T, where, text string) {
	t.Helper()
	if strings.Contains(text, "CANARY") {
		t.Errorf("%s:\n%s", where, text)
	}
}

// S7: the passwords of a job's Redis and history are nowhere afterwards: not on the screen, in the records, the
// reports, the home folder or the command lines of the processes that it started.
func TestAJobLeavesNoPasswordAnywhere(t *testing.T) {
	d := build(t)
	redis, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	couch, err := couchlite.Open(filepath.Join(t.TempDir(), "history.db"), couchlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer couch.Close()
	if err := couch.Start(); err != nil {
		t.Fatal(err)
	}
	var secrets []string
	plain := func(address string) (without, password string) {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		password, _ = u.User.Password()
		secrets = append(secrets, password)
		u.User = url.User(u.User.Username())
		return u.String(), password
	}
	store, storePassword := plain(redis.URL())
	records, recordsPassword := plain(couch.URL())
	at := []string{"--redis", store, "--couchdb", records}
	with := func(args ...string) []string { return append(args, at...) }
	t.Setenv("DISDEL_REDIS_PASSWORD", storePassword)
	t.Setenv("DISDEL_COUCHDB_PASSWORD", recordsPassword)

	cmd, out, errs := d.command(with("quickstart", "-v", "--set", "training.epochs=3")...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var lines bytes.Buffer
	for running := true; running; {
		for _, f := range d.cmdlines() {
			data, _ := os.ReadFile(f)
			lines.Write(append(data, '\n'))
		}
		select {
		case err := <-ended:
			if running = false; err != nil {
				t.Fatalf("%v\n%s", err, errs)
			}
		case <-time.After(20 * time.Millisecond):
		}
	}
	said := map[string]string{
		"standard output": out.String(), "standard error": errs.String(),
		"command lines": lines.String(),
	}
	for _, args := range [][]string{
		{"history", "show", "@last", "--logs", "-o", "json"},
		{"report", "@last", "-o", "json"},
		{"report", "@last", "--format", "html"},
		{"report", "@last", "--spec"},
	} {
		out, errs, code := d.run(with(args...)...)
		if code != 0 {
			t.Errorf("%v: exit %d\n%s", args, code, errs)
		}
		said[strings.Join(args, " ")] = out + errs
	}
	filepath.WalkDir(d.home,
		func(path string, e fs.DirEntry, err error) error { //nolint:errcheck // what cannot be read has been removed
			if err == nil && e.Type().IsRegular() {
				data, _ := os.ReadFile(path)
				said[path] = string(data)
			}
			return nil
		})
	for where, text := range said {
		for _, secret := range secrets {
			if secret == "" || strings.Contains(text, secret) || strings.Contains(text, url.QueryEscape(secret)) {
				t.Errorf("%s has a password (%d bytes long)", where, len(secret))
			}
		}
	}
}

// cmdlines are the command lines of this binary's containers.
func (d *tool) cmdlines() []string {
	var out []string
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range list {
		if data, _ := os.ReadFile(f); bytes.HasPrefix(data, []byte(d.path+"\x00")) {
			out = append(out, f)
		}
	}
	return out
}

// L9: a bucket that nothing gives a region or credentials for is refused at once, and nobody on the network is asked.
func TestABucketWithoutCredentialsIsRefusedAtOnce(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	for _, name := range bucketVariables {
		t.Setenv(name, "")
	}
	for address, want := range map[string]string{
		"s3://bucket":           "--storage 's3://bucket?region=REGION', or AWS_REGION",
		"s3://bucket?region=eu": "set AWS_ACCESS_KEY_ID",
		"s3:/bucket":            "AWS",
		"no url":                "s3://bucket?region=REGION",
	} {
		start := time.Now()
		out, errs, code := typed(t, "model", "list", "--storage", address)
		if code == 0 || out != "" || !strings.Contains(errs, want) || strings.Contains(errs, "WARN") ||
			time.Since(start) > 30*time.Second {
			t.Errorf("%s: exit %d\n%s%s", address, code, out, errs)
		}
	}
}

// bucketVariables are those that the SDK of S3 reads.
var bucketVariables = []string{
	"AWS_EC2_METADATA_DISABLED", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_PROFILE",
	"AWS_WEB_IDENTITY_TOKEN_FILE",
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
}
