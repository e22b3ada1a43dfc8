package cli

import (
	"testing"
	"time"
)

func TestDaysAndWeeksAreTimes(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"7d": 168 * time.Hour, "1.5d": 36 * time.Hour, "2w": 336 * time.Hour,
		"90m": 90 * time.Minute,
	} {
		if got, err := ParseAgo(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "nand", "-1d", "0h", "7"} {
		if got, err := ParseAgo(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
