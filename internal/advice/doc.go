// Package advice works out, from the record of a job that failed, what has to change for it to pass: fields of the job
// file, as --set takes them, and the arithmetic. The controller puts it into the failure's hint and internal/report
// into whole commands, so that the screen, the record, the report and `report --spec` name the same figures. The
// figures are those of package scheduler. It is pure, and promises nothing: where the record has no measurement that a
// change could come from, it says so.
package advice
