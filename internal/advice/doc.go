// Package advice computes, from the record of a failed job, which change lets the job pass: fields of the job file as
// --set takes them, and the arithmetic.
//
// The controller puts the advice into the failure's hint, and internal/report into commands, so that the screen, the
// record, the report and `report --spec` show the same figures. If the record has no measurement for a change, the
// advice says so. It does no I/O.
package advice
