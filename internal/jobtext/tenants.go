package jobtext

import (
	"fmt"
	"io"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service/tenant"
)

// PrintTenants is a table of tenants with their quotas.
func PrintTenants(w io.Writer, all []tenant.Info) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no tenants yet: disdel tenant create NAME")
		return
	}
	rows := [][]string{{"TENANT", "CREATED", "TOKENS", "JOBS", "MEMORY", "DISK", "GB-S"}}
	for _, t := range all {
		rows = append(rows, []string{
			t.Name, t.Created.Local().Format("2006-01-02"), fmt.Sprint(len(t.Tokens)),
			unlessZero(t.Quota.Jobs, "%d"), unlessZero(t.Quota.Memory, "%v"), unlessZero(t.Quota.Disk, "%v"),
			unlessZero(t.Quota.Cost, "%g"),
		})
	}
	terminal.Table(w, rows...)
}

// unlessZero is a bound, or a dash where there is none.
func unlessZero[T int | disdel.Bytes | float64](v T, format string) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}
