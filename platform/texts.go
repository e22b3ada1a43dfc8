package platform

import (
	"fmt"
	"time"

	"github.com/disdel/disdel"
)

// OpenWhisk's words, from common/scala's ErrorResponse.scala unless said otherwise. Clients match on them.
const (
	textMemoryExhausted = "The action exhausted its memory and was aborted."
	textAbnormalRun     = "The action did not produce a valid response and exited unexpectedly."
	textAbnormalInit    = "The action did not initialize and exited unexpectedly."
	textLogsIncomplete  = "The action did not initialize or run as expected. Log data might be missing."
	textLogsMissing     = "There was an issue while collecting your logs. Data might be missing."
	textStartFailed     = "Failed to provision resources to run the action."
	textNoAuth          = "The resource requires authentication, which was not supplied with the request"
	textBadAuth         = "The supplied authentication is invalid"
	textNoEntity        = "The requested resource does not exist."
	textNoRoute         = "The requested resource could not be found."
	textExists          = "resource already exists"
	textForbidden       = "The supplied authentication is not authorized to access this resource."
)

func textTimeout(limit time.Duration, init bool) string {
	text := fmt.Sprintf("The action exceeded its time limits of %d milliseconds", limit.Milliseconds())
	if init {
		return text + " during initialization."
	}
	return text + "."
}

// textFolder is ours: OpenWhisk bounds no container's disk.
func textFolder(limitMB int) string {
	return fmt.Sprintf("The action wrote more than %d MB to its folder and was aborted.", limitMB)
}

func textInvalidResponse(body []byte) string {
	return "The action did not produce a valid JSON or JSON Array response: " + short(body)
}

func textInvalidInit(body []byte) string {
	return "The action failed during initialization: " + short(body)
}

func short(body []byte) string {
	const most = 1024
	if len(body) > most {
		return string(body[:most]) + "..."
	}
	return string(body)
}

func textResultTooLarge(size int, limit disdel.Bytes, body []byte) string {
	return fmt.Sprintf("The action produced a response that exceeded the allowed length: %d > %d bytes. The truncated response was: %s", size, limit, short(body))
}

func textLogsTruncated(limit int) string {
	return fmt.Sprintf("Logs were truncated because the total bytes size exceeds the limit of %d bytes.", limit)
}

func textTooLarge(size int64, limit disdel.Bytes) string {
	return fmt.Sprintf("Request larger than allowed: %d > %d bytes.", size, limit)
}

func textPerMinute(count, allowed int) string {
	return fmt.Sprintf("Too many requests in the last minute (count: %d, allowed: %d).", count, allowed)
}

func textConcurrent(count, allowed int) string {
	return fmt.Sprintf("Too many concurrent requests in flight (count: %d, allowed: %d).", count, allowed)
}

func textPackageNotEmpty(n int) string {
	return fmt.Sprintf("Package not empty (contains %d entity). Set force param or delete package contents.", n)
}

func textActivationID(n int) string {
	return fmt.Sprintf("Activation id length is %d but must be 32.", n)
}
