package ddb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// answer is what is known of one answer, of whatever operation and however it was sent.
// Whoever stands between a client and the service may answer in its place: a proxy, a
// gateway, a portal, another service.
type answer struct {
	op         string
	status     int
	redirected bool     // it came of another request than ours
	broken     error    // why it is not whole; nil: it is
	content    string   // its media type, "" without
	checksum   bool     // it has one
	id         bool     // it names its request
	seen       bool     // its body was seen
	titled     bool     // a header names its error
	kind       string   // an error's type, as its body says it
	code       string   // the same as the SDK has read it; "" for a success
	parts      int      // how many items its request has; 0: it is no transaction
	reasons    []string // why each of them cancelled it; nil: it was not cancelled
	members    []string // of a success: all of them, with a checksum the first; nil: each is one of its successes
}

// habits are what the answers of an endpoint have had before.
type habits struct{ checksums, ids bool }

// foreign says why an answer is not certainly the service's own; nil: it is. What is not
// proves nothing, whatever it says: neither that a write was refused nor that it was
// applied, neither that an item is there nor that none is.
//
// The service gives a checksum with every answer. Engines that are compatible may give
// none, ever; then the other marks have to do.
func (a *answer) foreign(before habits) error {
	switch {
	case a.redirected:
		return errRedirected
	case a.broken != nil:
		return a.broken
	case !a.checksum && before.checksums:
		return errNoChecksum
	case !a.checksum && !a.id && before.ids:
		return errNoID
	case !a.checksum && !a.marked():
		return fmt.Errorf("it is of type %q", a.content)
	case a.code == "":
		return a.noSuccess()
	}
	return a.noError()
}

// marked reports whether the media type is the service's. One that is usual elsewhere
// needs a request's id beside it.
func (a *answer) marked() bool {
	return a.content == "" || strings.HasPrefix(a.content, "application/x-amz-json") || a.content == "application/json" && a.id
}

// noSuccess says why an answer without an error is not the service's.
func (a *answer) noSuccess() error {
	if a.status != http.StatusOK {
		return fmt.Errorf("its status is %d", a.status)
	}
	for _, name := range a.members {
		if !slices.Contains(successes[a.op], name) {
			return fmt.Errorf("it has %q", name)
		}
	}
	return nil
}

// noError says why an error is not the service's.
func (a *answer) noError() error {
	known, ok := codes[a.code]
	namespace, code, found := strings.Cut(a.kind, "#")
	if !found {
		namespace, code = "", a.kind
	}
	code, _, _ = strings.Cut(code, ":")
	switch {
	case !slices.Contains(refusals, a.status):
		return fmt.Errorf("its status is %d", a.status)
	case !a.seen && a.titled: // by whom the SDK's word for it came is not known
		return errTitled
	case a.seen && a.kind == "":
		return errNoType
	case a.seen && code != a.code:
		return fmt.Errorf("its header has the error %q, its body %q", a.code, code)
	case !known.of(namespace):
		return fmt.Errorf("its error %q is another service's", a.kind)
	case !ok, known.ops != nil && !slices.Contains(known.ops, a.op):
		return fmt.Errorf("%s has no error %q", a.op, a.code)
	case a.reasons != nil:
		return a.noCancellation()
	}
	return nil
}

// noCancellation says why the reasons of a cancelled transaction are not the service's:
// there is one for each item, and not all of them are none.
func (a *answer) noCancellation() error {
	if len(a.reasons) != a.parts {
		return fmt.Errorf("it has %d reasons for %d items", len(a.reasons), a.parts)
	}
	none := 0
	for _, reason := range a.reasons {
		switch {
		case reason == "" || reason == "None":
			none++
		case !slices.Contains(cancellations, reason), reason == conditionalCheckFailed && a.op == "TransactGetItems":
			return fmt.Errorf("it has the reason %q", reason)
		}
	}
	if none == a.parts {
		return errors.New("it has no reason")
	}
	return nil
}

// Namespaces of the types of errors: the service's own, and those of the frame that it
// stands in, which refuses a request before the service sees it.
const (
	ofService = "com.amazonaws.dynamodb.v20120810"
	ofFrame   = "com.amazon.coral."
)

// refusals are the statuses of errors that say that nothing was done.
var refusals = []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}

// successes are the members that granted requests of this library are answered with: who
// mixes up the answers of requests may give one of another operation.
var successes = map[string][]string{
	"GetItem":            {"Item", "ConsumedCapacity"},
	"UpdateItem":         {"Attributes", "ConsumedCapacity", "ItemCollectionMetrics"},
	"DeleteItem":         {"Attributes", "ConsumedCapacity", "ItemCollectionMetrics"},
	"Query":              {"Items", "Count", "ScannedCount", "LastEvaluatedKey", "ConsumedCapacity"},
	"Scan":               {"Items", "Count", "ScannedCount", "LastEvaluatedKey", "ConsumedCapacity"},
	"BatchGetItem":       {"Responses", "UnprocessedKeys", "ConsumedCapacity"},
	"TransactGetItems":   {"Responses", "ConsumedCapacity"},
	"TransactWriteItems": {"ConsumedCapacity", "ItemCollectionMetrics"},
	"DescribeTable":      {"Table"},
	"CreateTable":        {"TableDescription"},
	"DescribeTimeToLive": {"TimeToLiveDescription"},
	"UpdateTimeToLive":   {"TimeToLiveSpecification"},
}

// cancellations are the reasons for which an item cancels a transaction.
var cancellations = []string{conditionalCheckFailed, "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "ValidationError",
	"ItemCollectionSizeLimitExceeded", "AccessDenied", "DuplicateItem", "RequestLimitExceeded"}

// refusal is an error with which the service refuses a request before anything is done.
type refusal struct {
	common bool     // the frame has it, too
	ops    []string // that alone can have it; nil: all
}

// of reports whether it is the service's in a namespace; engines have none.
func (r refusal) of(namespace string) bool {
	return namespace == "" || namespace == ofService || r.common && strings.HasPrefix(namespace, ofFrame)
}

// codes are all of them. An error that is not here, as one to come, proves nothing.
var codes = func() map[string]refusal {
	all := map[string]refusal{
		"ConditionalCheckFailedException":      {ops: []string{"UpdateItem", "DeleteItem", "PutItem"}},
		"TransactionCanceledException":         {ops: []string{"TransactWriteItems", "TransactGetItems"}},
		"IdempotentParameterMismatchException": {ops: []string{"TransactWriteItems"}},
		"TransactionInProgressException":       {ops: []string{"TransactWriteItems"}},
	}
	for _, code := range []string{"TransactionConflictException", "ReplicatedWriteConflictException", "ItemCollectionSizeLimitExceededException",
		"ProvisionedThroughputExceededException", "ResourceNotFoundException", "ResourceInUseException", "TableNotFoundException", "TableInUseException",
		"TableAlreadyExistsException", "IndexNotFoundException", "LimitExceededException", "InvalidEndpointException", "PolicyNotFoundException"} {
		all[code] = refusal{}
	}
	for _, code := range []string{"AccessDenied", "AccessDeniedException", "UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException",
		"SignatureDoesNotMatch", "IncompleteSignature", "IncompleteSignatureException", "MissingAuthenticationToken", "MissingAuthenticationTokenException",
		"ExpiredToken", "ExpiredTokenException", "OptInRequired", "NotAuthorized", "AuthFailure", "RequestExpired", "RequestInTheFuture", "RequestTimeTooSkewed",
		"ThrottlingException", "Throttling", "RequestLimitExceeded", "ValidationException", "ValidationError", "SerializationException",
		"UnknownOperationException", "InvalidAction"} {
		all[code] = refusal{common: true}
	}
	return all
}()

var (
	errRedirected = errors.New("it is what a redirection led to")
	errTitled     = errors.New("its error is named in a header, as DynamoDB does not, and its body was not seen")
	errNoType     = errors.New("its error has no type")
	errNoID       = errors.New("it has no request's id, as replies of this endpoint had before")
	errNoChecksum = errors.New("it has no checksum, as replies of this endpoint had before")
)

// typeOf is the type of an error, as its body says it.
func typeOf(body []byte) string {
	var said struct {
		Type string `json:"__type"`
	}
	_ = json.Unmarshal(body, &said) // what cannot be read has none
	return said.Type
}

// membersOf are the names of what a body has, unless each is known, which is seen without
// decoding it.
func membersOf(body []byte, known []string) (names []string) {
	if only(body, known) {
		return nil
	}
	var said map[string]json.RawMessage
	_ = json.Unmarshal(body, &said) // what cannot be read the SDK has refused
	for name := range said {
		names = append(names, name)
	}
	return names
}

// firstMember is the name of the first of what a body has that begins like that, unless it is
// known, or the beginning does not tell. It is all that is looked at where a
// checksum fits: whatever answers in the service's place begins otherwise.
func firstMember(start []byte, known []string) []string {
	_, rest, found := bytes.Cut(start, []byte{'"'})
	if !found {
		return nil
	}
	name, ok := textAt(rest)
	if !ok && len(rest) <= mostName || ok && isOf(known, name) {
		return nil
	}
	return []string{string(name)}
}

// mostName is the length of the longest of successes.
const mostName = len("TimeToLiveSpecification")

// only reports whether the members of a body are certainly known ones.
func only(body []byte, known []string) bool {
	depth, named := 0, false // named: the member at which it looks has its name
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			named = named && depth > 1
		case '"':
			text, ok := textAt(body[i+1:])
			if !ok || depth == 1 && !named && !isOf(known, text) {
				return false
			}
			named = true
			i += 1 + len(text)
		}
	}
	return true
}

// textAt is a text of JSON, as it is written, at the beginning of which the bytes stand.
func textAt(body []byte) (text []byte, ok bool) {
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case '"':
			return body[:i], true
		}
	}
	return nil, false
}

func isOf(known []string, name []byte) bool {
	return slices.ContainsFunc(known, func(one string) bool { return one == string(name) })
}
