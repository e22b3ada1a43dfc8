package disdel

import (
	"strings"
	"testing"
)

// Whatever is wrong with an address, what signs in there is not shown, and what says which one it is stays.
func TestRedactedAddressesHaveNoPassword(t *testing.T) {
	for address, want := range map[string]string{
		"http://admin:CANARY@h:5984/x":  "http://xxxxx@h:5984/x",
		"http://admin:CANARY%zz@h":      "http://xxxxx@h",
		"redis://:CANARY/1@h:1/0":       "redis://xxxxx@h:1/0",
		"redis://:1/CANARY@h:1/0":       "redis://xxxxx@h:1/0",
		"redis://CANARY@h:1/0":          "redis://xxxxx@h:1/0",
		"redis://a:CAN@ARY@h:1/0":       "redis://xxxxx@h:1/0",
		"a:CANARY@h":                    "xxxxx@h",
		"admin:CANARY@h:1":              "xxxxx@h:1",
		"s3://k:CANARY@bucket?region=x": "s3://xxxxx@bucket?region=x",
		"http://admin:CANARY":           "xxxxx",
		"http://h:5984/x":               "http://h:5984/x",
		"file:///home/me@work/x":        "file:///home/me@work/x",
		"/home/me@work":                 "/home/me@work",
		"":                              "",
	} {
		if got := Redacted(address); got != want || strings.Contains(got, "CAN") {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
