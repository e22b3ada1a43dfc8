package platform

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// This file lists every HTTP status and text that the REST API answers, and every text that an activation's record can
// have. Only the texts about invalid JSON are in bodies.go, because they quote the request. Texts are OpenWhisk's own,
// because clients compare them: from ErrorResponse.scala, unless a comment says otherwise. statuses_test.go refuses a
// status in another file.

// apiError is a refusal of the REST API: its HTTP status, and the text of the field "error" in its body.
type apiError struct {
	status int
	text   string
}

func (e apiError) Error() string { return e.text }

func badRequest(format string, args ...any) apiError {
	return apiError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func isNotFound(err error) bool {
	var refusal apiError
	return errors.As(err, &refusal) && refusal.status == http.StatusNotFound
}

func isForbidden(err error) bool {
	var refusal apiError
	return errors.As(err, &refusal) && refusal.status == http.StatusForbidden
}

// The HTTP statuses of requests that are not refused.
const (
	httpDone    = http.StatusOK
	httpRunning = http.StatusAccepted  // the activation's record is not there yet
	httpNoRule  = http.StatusNoContent // the fired trigger has no active rule
	httpNoBody  = http.StatusNoContent // the web action's result has no body
)

// blockingStatus is the HTTP status of a blocking invocation by the status of its activation.
var blockingStatus = map[string]int{
	statusSuccess: http.StatusOK, statusApplication: http.StatusBadGateway, statusDeveloper: http.StatusBadGateway,
	statusInternal: http.StatusInternalServerError,
}

// 400: the request cannot be read, or asks for what cannot be.
var (
	errNameIllegal  = badRequest("The name of the entity contains illegal characters.")
	errNotQualified = errMalformed("requirement failed: The fully qualified name of the entity must contain at least " +
		"the namespace and the name of the entity.")
	errNotAnObject  = errMalformed("JSON object expected") // spray-json
	errParameters   = errMalformed("parameters malformed!")
	errVersion      = errMalformed("semantic version malformed")
	errParameterSet = badRequest("Request defines parameters that are not allowed (e.g., reserved properties).")

	errActivationIDBad = badRequest("The activation id is not valid.")
	errDocsWithCount   = badRequest("The parameter 'docs' is not permitted with 'count'.")

	errExecMissing       = badRequest("exec undefined") // WhiskActionPut's reader
	errKindMissing       = errMalformed("'kind' must be a string defined in 'exec'")
	errComponentsMissing = errMalformed("'components' must be defined for sequence kind")
	errImageMissing      = errMalformed("'image' must be a string defined in 'exec' for 'blackbox' actions")
	errImageName         = errMalformed("could not parse image name")
	errSizeNegative      = errMalformed("requirement failed: a negative size of an object is not allowed.")

	errSequenceLong      = badRequest("Too many actions in the sequence.")
	errSequenceEmpty     = badRequest("No component specified for the sequence.")
	errSequenceCycle     = badRequest("Sequence may not refer to itself.")
	errSequenceComponent = badRequest("Sequence component does not exist.")

	errBindingTarget = badRequest("Binding references a package that does not exist.")
	errBindingNested = badRequest("Cannot bind to another package binding.")
	errOnBinding     = badRequest("Operation not permitted on package binding.")

	errRuleIncomplete = badRequest("rule requires a valid trigger and a valid action") // Rules.scala
	errFeedName       = badRequest("Feed name is not valid")

	errWebProcessing  = badRequest("There was an error processing your request.")
	errWebContentType = badRequest("Response did not specify a known content-type.")
	errWebMismatch    = badRequest("Response type in header did not match generated content type.")
)

// errMalformed refuses a body with a reason.
func errMalformed(why string) apiError {
	return apiError{http.StatusBadRequest, "The request content was malformed:\n" + why}
}

// errTooDeep is spray-json's refusal of a document that is nested too deeply.
var errTooDeep = errMalformed("JSON input nested too deeply:JSON input was nested more deeply than the configured " +
	"limit of maxNesting = 1000")

// errFieldObject refuses a body that is no object; field is the one that OpenWhisk reads first.
func errFieldObject(field string) apiError {
	return errMalformed("Object expected in field '" + field + "'")
}

// errAttachment refuses the code of an action.
func errAttachment(code json.RawMessage) apiError {
	return errMalformed("Could not deserialize as attachment record: " + string(code))
}

func errCodeMissing(kind string) apiError {
	return errMalformed("'code' must be a string or attachment object defined in 'exec' for '" + kind + "' actions")
}

func errKind(kind string, valid []string) apiError {
	valid = append(slices.Clone(valid), blackbox, sequenceKind)
	return errMalformed(fmt.Sprintf("The specified runtime '%s' is not supported by this platform. Valid values are: "+
		"'%s'.", kind, strings.Join(valid, "', '")))
}

// errImage refuses a blackbox action whose image no kind stands for. OpenWhisk has no such error: it pulls any image.
func errImage(image string, images, kinds []string) apiError {
	if len(images) == 0 {
		return errMalformed(fmt.Sprintf("The specified image '%s' is not supported by this platform, which has no images. "+
			"Valid kinds are: '%s'.", image, strings.Join(kinds, "', '")))
	}
	return errMalformed(fmt.Sprintf("The specified image '%s' is not supported by this platform. Valid images are: '%s'. "+
		"Valid kinds are: '%s'.", image, strings.Join(images, "', '"), strings.Join(kinds, "', '")))
}

// errKindRefused has no counterpart in OpenWhisk, which starts every container in an image.
func errKindRefused(kind, why string) apiError {
	return errMalformed(fmt.Sprintf("The runtime '%s' is refused by this platform: %s", kind, why))
}

// errLimitMalformed and errLimitFraction refuse a limit that is no number, or no whole one.
func errLimitMalformed(limit string) apiError { return errMalformed(limit + " limit malformed") }

func errLimitFraction(limit string) apiError {
	return errMalformed("requirement failed: " + limit + " limit must be whole number")
}

// errLimitAbove and errLimitBelow refuse a limit outside the platform's, as OpenWhisk's Limits classes do. what is
// "memory size" or the like, unit is " MB" or the like.
func errLimitAbove(what string, value, maximum int, unit string) apiError {
	return badRequest("requirement failed: %s %d%s exceeds allowed threshold of %d%s", what, value, unit, maximum, unit)
}

func errLimitBelow(what string, value, minimum int, unit string) apiError {
	return badRequest("requirement failed: %s %d%s below allowed threshold of %d%s", what, value, unit, minimum, unit)
}

// errNameLong has OpenWhisk's own spelling.
func errNameLong(length int) apiError {
	return badRequest("Name segement longer than allowed: %d > %d.", length, maxName)
}

func errActivationIDLength(length int) apiError {
	return badRequest("Activation id length is %d but must be 32.", length)
}

func errPackageReserved(name string) apiError {
	return badRequest("Package name '%s' is reserved.", name)
}

// errRuleEnd refuses a rule whose trigger or action, which what says, is not there.
func errRuleEnd(what, path string) apiError {
	return badRequest("%s /%s does not exist", what, path)
}

func errRuleStatus(status string) apiError {
	return errMalformed(fmt.Sprintf("requirement failed: %s is not a recognized rule state", status))
}

// errWebMedia refuses a web action's result that cannot be answered as media.
func errWebMedia(media string) apiError {
	return badRequest("Response is not valid '%s'.", media)
}

func errQuery(name, why string) apiError {
	return badRequest("The query parameter '%s' was malformed:\n%s", name, why)
}

// errQueryFlag has the text of the library that reads OpenWhisk's query parameters.
func errQueryFlag(name, value string) apiError {
	return errQuery(name, "'"+value+"' is not a valid Boolean value")
}

func errQueryLimit(value int, collection string) apiError {
	return errQuery("limit",
		fmt.Sprintf("The value '%d' is not in the range of 0 to %d for %s.", value, maxList, collection))
}

func errQuerySkip(value int, collection string) apiError {
	return errQuery("skip", fmt.Sprintf("The value '%d' is not greater than or equal to 0 for %s.", value, collection))
}

func errQueryInteger(name, value, collection string) apiError {
	return errQuery(name, fmt.Sprintf("The value '%s' is not an integer for %s.", value, collection))
}

func errQueryTime(name, value string) apiError {
	return errQuery(name, "Parameter is not a valid value for epoch seconds: "+value)
}

func errQueryName(value string) apiError {
	return errQuery("name", "Parameter may be a 'simple' name or 'package-name/simple' name: "+value)
}

func errQueryTimeout(limit time.Duration) apiError {
	return errQuery("timeout", fmt.Sprintf("Timeout must be number of milliseconds up to %d.", limit.Milliseconds()))
}

// 401: the request has no key, or a wrong one.
var (
	errNoKey = apiError{
		http.StatusUnauthorized, "The resource requires authentication, which was not supplied with the request",
	}
	errWrongKey = apiError{http.StatusUnauthorized, "The supplied authentication is invalid"}
	errWebNoKey = apiError{
		http.StatusUnauthorized, "Authentication is possible but has failed or not yet been provided.",
	}
)

// 403: the request may not do this.

// errForbidden names what another namespace keeps to itself: a namespace, or an entity in it.
func errForbidden(resource string) apiError {
	return apiError{
		http.StatusForbidden, fmt.Sprintf("The supplied authentication is not authorized to access '%s'.", resource),
	}
}

// errForeignOrigin is ours: OpenWhisk answers web pages of every origin.
func errForeignOrigin(origin string) apiError {
	return apiError{
		http.StatusForbidden, fmt.Sprintf("Web pages of other origins may not call this platform, and this request is "+
			"one's (%q).", shortened([]byte(origin))),
	}
}

// 404: there is no such path, or no such entity.
var (
	errNoRoute       = apiError{http.StatusNotFound, "The requested resource could not be found."}
	errNoEntity      = apiError{http.StatusNotFound, "The requested resource does not exist."}
	errRuleNoTrigger = apiError{http.StatusNotFound, "Only rules with existing triggers can be activated"}
	errWebNoProperty = apiError{http.StatusNotFound, "Response does not include requested property."}

	// errNoGateway is ours: without its gateway, OpenWhisk says that the resource does not exist.
	errNoGateway = apiError{
		http.StatusNotFound, "This platform has no API gateway. Web actions are served at " +
			"/api/v1/web/NAMESPACE/PACKAGE/NAME.",
	}
)

func errNoPackage(path string) apiError {
	return apiError{http.StatusNotFound, fmt.Sprintf("The requested resource '%s' does not exist.", path)}
}

// 405: the path has other methods. The text is that of the library that serves OpenWhisk's requests.
func errMethod(allowed string) apiError {
	return apiError{http.StatusMethodNotAllowed, "HTTP method not allowed, supported methods: " + allowed}
}

// 406: the client does not take the answer's content type.
func errNotAcceptable(contentType string) apiError {
	return apiError{
		http.StatusNotAcceptable, "Resource representation is only available with these types:\n" + contentType,
	}
}

// 409: the change does not fit what is there.
var (
	errExists     = apiError{http.StatusConflict, "resource already exists"}
	errOtherKind  = apiError{http.StatusConflict, "Resource by this name exists but is not in this collection."}
	errNotBinding = apiError{http.StatusConflict, "Resource is a package and cannot be converted into a binding."}
)

func errPackageNotEmpty(actions int) apiError {
	entities := "entities"
	if actions == 1 {
		entities = "entity"
	}
	return apiError{http.StatusConflict, fmt.Sprintf("Package not empty (contains %d %s). Set force param or delete "+
		"package contents.", actions, entities)}
}

// 413: the body, or a part of it that what names, is too large.
func errTooLarge(what string, size int64, limit disdel.Bytes) apiError {
	return apiError{
		http.StatusRequestEntityTooLarge, fmt.Sprintf("%s larger than allowed: %d > %d bytes.", what, size, limit),
	}
}

// 415: the body is not JSON.
func errContentType(contentType string) apiError {
	return apiError{http.StatusUnsupportedMediaType, fmt.Sprintf("The request's Content-Type [%s] is not supported. "+
		"Expected:\napplication/json", contentType)}
}

// 421 is ours: OpenWhisk answers under every host name.
func errForeignHost(host string) apiError {
	return apiError{http.StatusMisdirectedRequest, fmt.Sprintf("The host %q is no name of this platform, which answers "+
		"to its address and to localhost.", shortened([]byte(host)))}
}

// 429: the namespace's throttle refuses the request.
func errPerMinute(count, allowed int) apiError {
	return apiError{http.StatusTooManyRequests, fmt.Sprintf("Too many requests in the last minute (count: %d, allowed: "+
		"%d).", count, allowed)}
}

func errConcurrent(count, allowed int) apiError {
	return apiError{http.StatusTooManyRequests, fmt.Sprintf("Too many concurrent requests in flight (count: %d, "+
		"allowed: %d).", count, allowed)}
}

// 500: the platform failed.
var errInternal = apiError{http.StatusInternalServerError, "There was an internal server error."}

// errDamaged is ours: it names the file that is damaged.
func errDamaged(err error) apiError {
	return apiError{http.StatusInternalServerError, "The platform's file is damaged: " + err.Error()}
}

// 503: the platform takes nothing now.
var errBusy = apiError{http.StatusServiceUnavailable, errInternal.text}

// errCannotWrite is ours: OpenWhisk's database is on another machine.
func errCannotWrite(why error) apiError {
	return apiError{http.StatusServiceUnavailable, fmt.Sprintf("The platform cannot write to its data folder (%v) and "+
		"accepts nothing new until it can.", why)}
}

// Texts of activation records: errors, and lines of logs.
const (
	textMemoryExhausted = "The action exhausted its memory and was aborted."
	textAbnormalRun     = "The action did not produce a valid response and exited unexpectedly."
	textAbnormalInit    = "The action did not initialize and exited unexpectedly."
	textStartFailed     = "Failed to provision resources to run the action."
	textNotReady        = "Response not yet ready."
	textLogsIncomplete  = "The action did not initialize or run as expected. Log data might be missing."
	textLogsMissing     = "There was an issue while collecting your logs. Data might be missing."
	textCompositionLong = "Too many actions in the composition."

	// textLost is ours: OpenWhisk never answers for an activation that it lost.
	textLost = "The platform was ended while the action ran or waited, and started again. What it did is not known."
	// textLogsMixed is ours: OpenWhisk keeps no logs of activations that share a container.
	textLogsMixed = "Several activations ran in this container at once: of the lines above, some may be another's."
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

// textFolder is ours: OpenWhisk does not bound a container's disk.
func textFolder(limitMB int) string {
	return fmt.Sprintf("The action wrote more than %d MB to its folder and was aborted.", limitMB)
}

func textInvalidResponse(body []byte) string {
	return withBody("The action did not produce a valid JSON or JSON Array response", body)
}

func textInvalidInit(body []byte) string {
	return withBody("The action failed during initialization", body)
}

// withBody appends a container's answer to a text, or a full stop if the answer is empty.
func withBody(text string, body []byte) string {
	if len(body) == 0 {
		return text + "."
	}
	return text + ": " + shortened(body)
}

// shortened is a body as texts repeat it: its first KB.
func shortened(body []byte) string {
	const maximum = 1024
	if len(body) > maximum {
		return string(body[:maximum]) + "..."
	}
	return string(body)
}

func textResultTooLarge(size int, limit disdel.Bytes, body []byte) string {
	return fmt.Sprintf("The action produced a response that exceeded the allowed length: %d > %d bytes. The truncated "+
		"response was: %s", size, limit, shortened(body))
}

func textLogsTruncated(limit int) string {
	return fmt.Sprintf("Logs were truncated because the total bytes size exceeds the limit of %d bytes.", limit)
}

func textRuleInactive(rule, action string) string {
	return fmt.Sprintf("Rule '%s' is inactive, action '%s' was not activated.", rule, action)
}

func textComponentInvalid(name json.RawMessage) string {
	return fmt.Sprintf("Failed to parse action name from json value %s during composition.", name)
}

func textComponentMissing(path string) string {
	return fmt.Sprintf("Failed to resolve action with name '%s' during composition.", path)
}

func textComponentDenied(path string) string {
	return fmt.Sprintf("Failed entitlement check for action with name '%s' during composition.", path)
}

// textSize is a size as OpenWhisk's ByteSize reads.
func textSize(size disdel.Bytes) string { return fmt.Sprintf("%d B", size) }
