package platform

import (
	"fmt"
	"slices"
	"strings"
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
	textNoWebAuth       = "Authentication is possible but has failed or not yet been provided."
	textNoAuth          = "The resource requires authentication, which was not supplied with the request"
	textBadAuth         = "The supplied authentication is invalid"
	textNoEntity        = "The requested resource does not exist."
	textNoRoute         = "The requested resource could not be found."
	textExists          = "resource already exists"
	textInternal        = "There was an internal server error."
	textNameIllegal     = "The name of the entity contains illegal characters."
	textQualified       = "The fully qualified name of the entity must contain at least the namespace and the name of " +
		"the entity."
	textNotAllowed    = "Request defines parameters that are not allowed (e.g., reserved properties)."
	textActivationBad = "The activation id is not valid."
	textDocsWithCount = "The parameter 'docs' is not permitted with 'count'."
	textExecMissing   = "exec undefined" // WhiskActionPut's reader
	textCodeMissing   = "'code' must be a string or attachment object defined in 'exec' for '%s' actions"
	textFeedName      = "Feed name is not valid"

	textSequenceLong  = "Too many actions in the sequence."
	textSequenceEmpty = "No component specified for the sequence."
	textSequenceCycle = "Sequence may not refer to itself."
	textNoComponent   = "Sequence component does not exist."

	textBindingMissing   = "Binding references a package that does not exist."
	textBindingOfBinding = "Cannot bind to another package binding."
	textNotOnBinding     = "Operation not permitted on package binding."
	textNoBindingNow     = "Resource is a package and cannot be converted into a binding."

	textRuleIncomplete  = "rule requires a valid trigger and a valid action" // Rules.scala
	textRuleNoTrigger   = "Only rules with existing triggers can be activated"
	textRuleStatus      = "requirement failed: %s is not a recognized rule state"
	textNotReady        = "Response not yet ready."
	textNoProperty      = "Response does not include requested property."
	textErrorProcessing = "There was an error processing your request."
	textUnknownContent  = "Response did not specify a known content-type."
	textContentMismatch = "Response type in header did not match generated content type."

	textOtherKind   = "Resource by this name exists but is not in this collection."
	textNotAnObject = "JSON object expected" // spray-json
)

func textTimeout(limit time.Duration, init bool) string {
	text := fmt.Sprintf("The action exceeded its time limits of %d milliseconds", limit.Milliseconds())
	if init {
		return text + " during initialization."
	}
	return text + "."
}

func textImageMissing(image string) string {
	return fmt.Sprintf("Failed to pull container image '%s'.", image)
}

// textLost is ours: no other OpenWhisk ever answers for an activation that it lost.
const textLost = "The platform was ended while the action ran or waited, and started again. What it did is not known."

// textLogsMixed is ours: OpenWhisk keeps no logs of activations that share a container.
const textLogsMixed = "Several activations ran in this container at once: of the lines above, some may be another's."

// textCannotWrite is ours as well.
func textCannotWrite(why error) string {
	return fmt.Sprintf("The platform cannot write to its data folder (%v) and accepts nothing new until it can.", why)
}

// textDamaged is ours: what is stored and cannot be believed is named.
func textDamaged(err error) string { return "The platform's file is damaged: " + err.Error() }

// textForeignHost and textForeignOrigin are ours: OpenWhisk answers every page, and asks for keys that nobody knows.
func textForeignHost(host string) string {
	return fmt.Sprintf("The host %q is no name of this platform, which answers to its address and to localhost.",
		short([]byte(host)))
}

func textForeignOrigin(origin string) string {
	return fmt.Sprintf("Web pages of other origins may not call this platform, and this request is one's (%q).",
		short([]byte(origin)))
}

// textNoGateway is ours: without its gateway, OpenWhisk says that the resource does not exist.
const textNoGateway = "This platform has no API gateway. Web actions are served at /api/v1/web/NAMESPACE/PACKAGE/NAME."

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
	return fmt.Sprintf("The action produced a response that exceeded the allowed length: %d > %d bytes. The truncated "+
		"response was: %s", size, limit, short(body))
}

func textLogsTruncated(limit int) string {
	return fmt.Sprintf("Logs were truncated because the total bytes size exceeds the limit of %d bytes.", limit)
}

func textTooLarge(what string, size int64, limit disdel.Bytes) string {
	return fmt.Sprintf("%s larger than allowed: %d > %d bytes.", what, size, limit)
}

func textMalformed(why string) string { return "The request content was malformed:\n" + why }

func textQuery(name, why string) string {
	return fmt.Sprintf("The query parameter '%s' was malformed:\n%s", name, why)
}

func textLimitRange(value, most int, collection string) string {
	return fmt.Sprintf("The value '%d' is not in the range of 0 to %d for %s.", value, most, collection)
}

func textSkipRange(value int, collection string) string {
	return fmt.Sprintf("The value '%d' is not greater than or equal to 0 for %s.", value, collection)
}

func textNotInteger(value, collection string) string {
	return fmt.Sprintf("The value '%s' is not an integer for %s.", value, collection)
}

func textEpoch(value string) string {
	return "Parameter is not a valid value for epoch seconds: " + value
}

func textNameFilter(value string) string {
	return "Parameter may be a 'simple' name or 'package-name/simple' name: " + value
}

func textWait(limit time.Duration) string {
	return fmt.Sprintf("Timeout must be number of milliseconds up to %d.", limit.Milliseconds())
}

// textMethods names what a path allows, as the library does that serves OpenWhisk's requests.
func textMethods(allowed string) string {
	return "HTTP method not allowed, supported methods: " + allowed
}

// textNameLong has OpenWhisk's own spelling.
func textNameLong(n int) string {
	return fmt.Sprintf("Name segement longer than allowed: %d > %d.", n, maxName)
}

func textKind(kind string, valid []string) string {
	valid = append(slices.Clone(valid), blackbox, sequenceKind)
	return textMalformed(fmt.Sprintf("The specified runtime '%s' is not supported by this platform. Valid values are: "+
		"'%s'.", kind, strings.Join(valid, "', '")))
}

// textRefusedKind has no counterpart in OpenWhisk, which starts every container in an image.
func textRefusedKind(kind, why string) string {
	return textMalformed(fmt.Sprintf("The runtime '%s' is refused by this platform: %s", kind, why))
}

func textReserved(name string) string { return fmt.Sprintf("Package name '%s' is reserved.", name) }

func textMissing(what, path string) string { return fmt.Sprintf("%s /%s does not exist", what, path) }

func textInactive(rule, action string) string {
	return fmt.Sprintf("Rule '%s' is inactive, action '%s' was not activated.", rule, action)
}

// textSize is a size as OpenWhisk's ByteSize reads.
func textSize(n disdel.Bytes) string { return fmt.Sprintf("%d B", n) }

// textForbidden names what another namespace keeps to itself: a namespace, or an entity in it.
func textForbidden(resource string) string {
	return fmt.Sprintf("The supplied authentication is not authorized to access '%s'.", resource)
}

func textNoPackage(path string) string {
	return fmt.Sprintf("The requested resource '%s' does not exist.", path)
}

func textContentType(given string) string {
	return fmt.Sprintf("The request's Content-Type [%s] is not supported. Expected:\napplication/json", given)
}

const textNotAcceptable = "Resource representation is only available with these types:\napplication/json"

func textOnlyAs(contentType string) string {
	return "Resource representation is only available with these types:\n" + contentType
}

func textInvalidMedia(media string) string { return fmt.Sprintf("Response is not valid '%s'.", media) }

func textPerMinute(count, allowed int) string {
	return fmt.Sprintf("Too many requests in the last minute (count: %d, allowed: %d).", count, allowed)
}

func textConcurrent(count, allowed int) string {
	return fmt.Sprintf("Too many concurrent requests in flight (count: %d, allowed: %d).", count, allowed)
}

func textPackageNotEmpty(n int) string {
	entities := "entities"
	if n == 1 {
		entities = "entity"
	}
	return fmt.Sprintf("Package not empty (contains %d %s). Set force param or delete package contents.", n, entities)
}

func textActivationID(n int) string {
	return fmt.Sprintf("Activation id length is %d but must be 32.", n)
}
