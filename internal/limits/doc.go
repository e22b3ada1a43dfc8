// Package limits has the arithmetic of the limits that pass where others failed: memory from the measured peak and its
// growth, time from the measured progress. The executor names them in its next step and the controller retries with them, so
// that both say the same figures. It is pure and knows no platform: ceilings are its callers'.
package limits
