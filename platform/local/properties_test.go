package local

import (
	"os"
	"path/filepath"
	"testing"
)

// Whatever a file of wsk's holds, properties that are set in it can be read again.
func FuzzProperties(f *testing.F) {
	for _, text := range []string{"APIHOST=http://a\nAUTH=b:c\n", "AUTH", "=\n=", "AUTH=x\r\nAUTH=y", "\x00\xff=1", ""} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "wskprops")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		ReadProperties(path)
		set := [][2]string{{"APIHOST", "http://localhost:1"}, {"AUTH", "key:word"}}
		if err := WriteProperties(path, set); err != nil {
			t.Fatal(err)
		}
		found := ReadProperties(path)
		for _, p := range set {
			if found[p[0]] != p[1] {
				t.Fatalf("%s is %q, want %q", p[0], found[p[0]], p[1])
			}
		}
	})
}
